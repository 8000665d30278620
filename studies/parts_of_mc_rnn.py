"""What do MC-RNN's blocks, its attention over channels and its matrices W_j buy? (Notebook 08.)

All models have one layer and read the words of the Python reference manual. `python -m studies.parts_of_mc_rnn` trains
MC-RNN without its attention, without its blocks, and with only one state to read, and GRUs, which have no W_j. It
writes `parts_of_mc_rnn.json` and takes about 40 minutes of one core.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import rtx
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.tasks import task_by_name
from rtx.tasks.task import Batch, Split, collate
from studies.fair import Problem, Scores, compare

STORED = Path(__file__).with_suffix(".json")
WIDTH = 32
TASK = task_by_name("words", least=30, context=8, scored=32)


class EqualChannels(MultiChannelRNN):
    """Every channel has the same weight, in training and in tests."""

    def _channel_weights(self, states: Tensor, x: Tensor) -> Tensor:
        return states.new_full(states.shape[:3], 1 / states.shape[2])


class LastStates(EqualChannels):
    """One channel without blocks: each state reads the mean of the last states, always of equally many.

    With one state this is a GRU whose last state passes W_1 first.
    """

    def __init__(self, d_model: int, states: int) -> None:
        super().__init__(d_model, block=states + 1, cell="gru")

    def in_degrees(self, length: int, read: int = 0) -> Tensor:
        """Return the same number of predecessors at every step, (T, C)."""
        return torch.full((length, self.predecessors), self.predecessors)

    def channels(self, x: Tensor, state: object = None) -> Tensor:
        """Return the state of the one channel, (B, T, 1, H). All channels of the parent class would be the same."""
        return super().channels(x)[:, :, :1]


def _mc_rnn(layer: Callable[[], MultiChannelRNN] | None = None, width: int = WIDTH, block: int = 4) -> nn.Module:
    model = rtx.MCRNN(width, block=block, cell="gru")
    if layer is not None:
        model.layers[0] = layer()
    return rtx.LanguageModel(model, TASK.inputs)  # type: ignore[arg-type]


MODELS: dict[str, Callable[[], nn.Module]] = {
    "MC-RNN, n = 4": _mc_rnn,
    "MC-RNN, n = 3": partial(_mc_rnn, block=3),
    "equal channels, n = 4": partial(_mc_rnn, partial(EqualChannels, WIDTH, block=4, cell="gru")),
    "equal channels, n = 3": partial(_mc_rnn, partial(EqualChannels, WIDTH, block=3, cell="gru"), block=3),
    "last state, no blocks": partial(_mc_rnn, partial(LastStates, WIDTH, 1)),
    "last two states, no blocks": partial(_mc_rnn, partial(LastStates, WIDTH, 2)),
    "last three states, no blocks": partial(_mc_rnn, partial(LastStates, WIDTH, 3)),
    "GRU": lambda: rtx.LanguageModel(rtx.RNN(WIDTH, cell="gru"), TASK.inputs),
    # 20,125 parameters; "last state" uses 19,603, and MC-RNN with n = 4 has 23,731
    "GRU, as large as last state": lambda: rtx.LanguageModel(rtx.RNN(34, cell="gru"), TASK.inputs),
    "GRU, as many parameters": lambda: rtx.LanguageModel(rtx.RNN(38, cell="gru"), TASK.inputs),
}


@cache
def windows(split: Split) -> Batch:
    """Return all whole windows of a split."""
    every = list(TASK.split(split))
    longest = max(len(one.inputs) for one in every)
    return collate([one for one in every if len(one.inputs) == longest], TASK.per)


def draw(size: int) -> tuple[Batch]:
    """Return random windows of the training text."""
    every = windows("train")
    chosen = torch.randint(len(every.inputs), (size,))
    return (Batch(*(part[chosen] for part in every)),)


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the cross-entropy per word."""
    total = TASK.loss(TASK.predict(model, batch), batch)
    return total.total / total.count


@contextmanager
def scaled(model: Any, factor: float) -> Iterator[None]:
    """Multiply the scores of the attention over channels, and undo that at the end."""
    weight = model.backbone.layers[0].attention_r.weight
    kept = weight.detach().clone()
    weight.data.mul_(factor)
    yield
    weight.data.copy_(kept)


def perplexity(split: Split, model: Any) -> Scores:
    """Return the perplexity. For MC-RNN also with equal channel weights and with reversed scores, in the test only."""
    batch = windows(split)
    found = {"perplexity": [loss(model, batch).exp().item()]}
    if isinstance(model.backbone, rtx.MCRNN) and type(model.backbone.layers[0]) is MultiChannelRNN:
        for name, factor in (("equal in the test", 0.0), ("reversed in the test", -1.0)):
            with scaled(model, factor):
                found[name] = [loss(model, batch).exp().item()]
    return found


PROBLEMS = {
    "words": Problem(
        MODELS,
        draw,
        loss,
        partial(perplexity, "test"),
        after=(200, 400),
        best="min",
        validate=partial(perplexity, "validation"),
        rates=(0.001, 0.003, 0.01, 0.02, 0.03),
    )
}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
