"""Convolution, recurrence or attention: who learns to copy, to count, to follow a rule, to look up? (Notebook 07.)

Models of 35,000 to 41,000 parameters learn six problems: copy memory with a fixed and with a varied silence, the
running parity of bits, and the locality dial at three settings. `python -m studies.which_past` writes
`which_past.json`. It takes about 110 minutes of one core.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor, nn

import rtx
from rtx.models import CausalModel
from rtx.nn import LocalRNN
from rtx.tasks import task_by_name
from rtx.tasks.build import SequenceModel
from rtx.tasks.task import Batch, Task, collate
from rtx.tasks.toy.locality_dial import optimal_loss, symbol_nll
from studies.fair import WIDE, Problem, Scores, compare

STORED = Path(__file__).with_suffix(".json")
TESTED, SYMBOLS = 300, 5


class LocalRNNs(CausalModel):
    """LocalRNNs on one another: what an R-Transformer is without attention, feed-forward network and residuals."""

    def __init__(self, d_model: int, layers: int, window: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.layers = nn.Sequential(*(LocalRNN(d_model, window) for _ in range(layers)))

    def forward(self, x: Tensor, state: object = None) -> Tensor:
        """Return the last layer's output."""
        out: Tensor = self.layers(x)
        return out


def open_gates() -> rtx.RNN:
    """Return an LSTM whose forget gates start at sigmoid(5) = 0.993."""
    network = rtx.RNN(66, cell="lstm")
    with torch.no_grad():
        network.network.bias_ih_l0[66 : 2 * 66] = 5.0
    return network


MAKERS: dict[str, Callable[[], nn.Module]] = {
    "GRU": partial(rtx.RNN, 76, cell="gru"),
    "LSTM": partial(rtx.RNN, 66, cell="lstm"),
    "LSTM, gates open": open_gates,
    "TCN, sees 151": partial(rtx.TCN, 28, 4, 6),
    "TCN, sees 25": partial(rtx.TCN, 42, 2, 5),
    "LocalRNNs, see 19": partial(LocalRNNs, 44, 3, 7),
    **{f"Transformer, {norm}-norm": partial(rtx.Transformer, 40, 2, 4, norm=norm) for norm in ("post", "pre")},
    **{
        f"Transformer, relative, {norm}-norm": partial(rtx.Transformer, 40, 2, 4, norm=norm, position="relative")
        for norm in ("post", "pre")
    },
    **{
        f"R-Transformer, {norm}-norm": partial(rtx.RTransformer, 32, 2, 4, window=4, norm=norm)
        for norm in ("post", "pre")
    },
}

COPIERS = [name for name in MAKERS if name != "LocalRNNs, see 19"]
COUNTERS = [name for name in MAKERS if name not in ("TCN, sees 25", "LSTM, gates open")]
READERS = ["GRU", "TCN, sees 151", *(name for name in MAKERS if "Transformer" in name)]


def _sample(task: Task, size: int) -> tuple[Batch]:
    examples = task.split("train")
    return (collate([examples[i] for i in torch.randint(len(examples), (size,)).tolist()], task.per),)


def _mean_loss(task: Task, model: nn.Module, batch: Batch) -> Tensor:
    total = task.loss(task.predict(model, batch), batch)
    return total.total / total.count


@cache
def copy(shortest: int, longest: int) -> Task:
    """Return copy memory with a silence of so many steps."""
    return task_by_name("copy-memory", length=shortest, longest=longest, size=100_000)


@cache
def test_batch(task: Task, split: str) -> Batch:
    """Return the first sequences of a split."""
    examples = task.split(split)
    return collate([examples[i] for i in range(TESTED)], task.per)


def recalled(trained: tuple[int, int], split: str, model: nn.Module) -> Scores:
    """Return the share of letters recalled after silences as in training, and after one step more than 20."""
    silences = {"as trained": trained, "21 steps": (21, 21)}
    batches = {name: (copy(*silence), test_batch(copy(*silence), split)) for name, silence in silences.items()}
    return {name: [task.score(task.predict(model, batch), batch) / 100] for name, (task, batch) in batches.items()}


class Parity:
    """Is the number of ones so far odd? Drawn anew for each batch."""

    def draw(self, size: int, T: int = 24) -> tuple[Tensor, Tensor]:
        """Return bits (B, T, 1), and 1 at each step up to which the number of ones is odd (B, T)."""
        bits = torch.randint(2, (size, T, 1)).float()
        return bits, bits.cumsum(1)[..., 0].long() % 2

    def loss(self, model: nn.Module, bits: Tensor, odd: Tensor) -> Tensor:
        """Return the cross-entropy per step."""
        return nn.functional.cross_entropy(model(bits).flatten(0, 1), odd.flatten())

    def right(self, model: nn.Module) -> Scores:
        """Return the share of right answers up to step 24, as in training, up to step 96, and at each step."""
        bits, odd = self.draw(TESTED, 96)
        by_step = (model(bits).argmax(-1) == odd).float().mean(0)
        return {
            "24 steps": [by_step[:24].mean().item()],
            "96 steps": [by_step.mean().item()],
            "by step": by_step.tolist(),
        }


def dial(strengths: tuple[float, float]) -> Task:
    """Return the locality dial at these strengths of the rule and of the recall."""
    local, long = strengths
    return task_by_name("locality-dial", length=30, local=local, long=long, symbols=SYMBOLS, size=100_000)


def above_best(task: Task, strengths: tuple[float, float], split: str, model: nn.Module) -> Scores:
    """Return the nats per symbol above the best possible loss, of both kinds of symbols together, and of each."""
    batch = test_batch(task, split)
    kinds = (symbol_nll(task.predict(model, batch), batch, recall) for recall in (False, True))
    rule, book = (
        float(one.total / one.count) - optimal_loss(strength, SYMBOLS)
        for one, strength in zip(kinds, strengths, strict=True)
    )
    return {"both": [(rule + book) / 2], "rule": [rule], "book": [book]}


def models(names: list[str], inputs: int, outputs: int) -> dict[str, Callable[[], nn.Module]]:
    """Return these models, between two linear layers."""

    def answering(make: Callable[[], nn.Module]) -> SequenceModel:
        return SequenceModel(make(), inputs, outputs, "step")  # type: ignore[arg-type]

    return {name: partial(answering, make) for name, make in MAKERS.items() if name in names}


def copying(silence: tuple[int, int]) -> Problem:
    """Return copy memory as a problem."""
    task = copy(*silence)
    return Problem(
        models(COPIERS, 10, 10),
        partial(_sample, task),
        partial(_mean_loss, task),
        partial(recalled, silence, "test"),
        after=(100, 200, 400),
        rates=WIDE,
        validate=partial(recalled, silence, "validation"),
    )


def dialled(strengths: tuple[float, float]) -> Problem:
    """Return one setting of the locality dial as a problem."""
    task = dial(strengths)
    return Problem(
        models(READERS, 2 * SYMBOLS + 1, SYMBOLS),
        partial(_sample, task),
        partial(_mean_loss, task),
        partial(above_best, task, strengths, "test"),
        after=(100, 200, 400),
        rates=WIDE,
        best="min",
        validate=partial(above_best, task, strengths, "validation"),
    )


PARITY = Parity()
PROBLEMS = {
    "copy, silence of 20": copying((20, 20)),
    "copy, silence of 15 to 25": copying((15, 25)),
    "parity": Problem(models(COUNTERS, 1, 2), PARITY.draw, PARITY.loss, PARITY.right, after=(100, 200, 400)),
    "rule alone": dialled((1.0, 0.0)),
    "book alone": dialled((0.0, 1.0)),
    "rule and book": dialled((1.0, 1.0)),
}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
