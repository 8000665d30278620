"""Does a memory last because it is linear, or because it starts slow? Who learns parity? (Notebook 16.)

Recall: a symbol, 49 silent steps, then the question which symbol it was. Three recurrent layers start with gates of
which half is left after 50 silent steps (slow), or after 1.5 steps (fast). Parity: is the number of ones so far odd? In
one of its RG-LRUs factors may be negative, and another has the same factors without their signs. `python -m
studies.start_of_a_memory` writes `start_of_a_memory.json`. It takes about 10 minutes of one core.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

import rtx
from rtx.nn.linear_recurrence import RGLRU, C
from rtx.tasks.build import SequenceModel
from studies.fair import WIDE, Problem, Scores, compare
from studies.first_symbol import SYMBOLS, WIDTH, loss, reader
from studies.which_past import PARITY

STORED = Path(__file__).with_suffix(".json")
STEPS, WIDER = 50, 55  # a wider RG-LRU has as many parameters as the GRU
HALF_LIVES = {"slow": 50.0, "fast": 1.5}
SILENCE = SYMBOLS - 1  # the last symbol; seven others are to be recalled


class Linear(rtx.models.CausalModel):
    """An RG-LRU alone, as a backbone."""

    def __init__(self, recurrence: RGLRU) -> None:
        super().__init__()
        self.recurrence, self.d_model = recurrence, recurrence.d_model

    def forward(self, x: Tensor, state: object = None) -> Tensor:
        """Return the states."""
        states: Tensor = self.recurrence(x)
        return states


class Signed(RGLRU):
    """An RG-LRU with factors from -1 to 1 instead of from 0 to 1. What is added stays the same."""

    def _terms(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = super()._terms(x)
        return 2 * a - 1, b


class Unsigned(Signed):
    """The control of `Signed`: the same factors without their signs."""

    def _terms(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = super()._terms(x)
        return a.abs(), b


def rnn(cell: str, half_life: float) -> rtx.RNN:
    """Return a GRU or an LSTM whose biases alone would keep half of a state for so many steps."""
    network = rtx.RNN(WIDTH, cell=cell)
    factor = 0.5 ** (1 / half_life)
    with torch.no_grad():  # the second quarter of an LSTM's rows and the second third of a GRU's rows keep the state
        for bias in (network.network.bias_ih_l0, network.network.bias_hh_l0):
            bias[WIDTH : 2 * WIDTH] = math.log(factor / (1 - factor)) / 2
    return network


def rg_lru(half_life: float) -> Linear:
    """Return an RG-LRU with this half-life where its gate is half open."""
    layer = RGLRU(WIDTH)
    log_a = torch.full((WIDTH,), 2 * math.log(0.5) / half_life / C)  # (a^c)^½ is the factor of a step
    with torch.no_grad():
        layer.decay.copy_(log_a - (-torch.expm1(log_a)).log())
    return Linear(layer)


LAYERS: dict[str, Callable[[float], nn.Module]] = {
    "LSTM": partial(rnn, "lstm"),
    "GRU": partial(rnn, "gru"),
    "RG-LRU": rg_lru,
}


def starting(layer: str, start: str) -> rtx.LanguageModel:
    """Return a model of the symbols with this layer and this start."""
    return reader(LAYERS[layer](HALF_LIVES[start]))


def counter(make: Callable[[], nn.Module]) -> SequenceModel:
    """Return a model of bits."""
    return SequenceModel(make(), 1, 2, "step")  # type: ignore[arg-type]


def draw(size: int) -> tuple[Tensor, Tensor]:
    """Return a symbol and then silence (B, T), and the symbol."""
    first = torch.randint(SILENCE, (size,))
    return silenced(first, STEPS), first


def silenced(first: Tensor, steps: int) -> Tensor:
    """Return sequences (B, T) that begin with these symbols."""
    return torch.cat([first[:, None], torch.full((len(first), steps - 1), SILENCE)], 1)


def right(model: nn.Module) -> Scores:
    """Return the share of the seven symbols that are recalled after 50 steps, as in training, and after 200."""
    first = torch.arange(SILENCE)
    last = {steps: model(silenced(first, steps))[:, -1] for steps in (STEPS, 4 * STEPS)}
    return {f"{steps} steps": [(y.argmax(-1) == first).float().mean().item()] for steps, y in last.items()}


COUNTERS: dict[str, Callable[[], nn.Module]] = {
    "GRU": partial(rtx.RNN, WIDTH, cell="gru"),
    "LSTM": partial(rtx.RNN, WIDTH, cell="lstm"),
    "RG-LRU": lambda: Linear(RGLRU(WIDER)),
    "RG-LRU, factors from -1 to 1": lambda: Linear(Signed(WIDER)),
    "RG-LRU, without these signs": lambda: Linear(Unsigned(WIDER)),
}
PROBLEMS = {
    "recall": Problem(
        {f"{layer}, {start} start": partial(starting, layer, start) for layer in LAYERS for start in HALF_LIVES},
        draw,
        loss,
        right,
        after=(100, 200, 400),
        rates=WIDE,
    ),
    "parity": Problem(
        {name: partial(counter, make) for name, make in COUNTERS.items()},
        PARITY.draw,
        PARITY.loss,
        PARITY.right,
        after=(200, 800),
        rates=WIDE,
    ),
}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
