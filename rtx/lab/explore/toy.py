"""The toy solver: addition over T steps, learnt live by feed-forward attention; where it looks, and how much is solved.

Raffel & Ellis (2015), Section 2 and Table 1.
"""

import math
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from rtx.lab.background import Background
from rtx.lab.explore.live import Live, Recorded
from rtx.lab.explore.page import packed
from rtx.lab.explore.recording import Control, Panel, Seen
from rtx.lab.learning import learn, score
from rtx.lab.seeded import seeded
from rtx.models import FeedForwardAttention
from rtx.tasks.loader import loader
from rtx.tasks.registry import task_by_name

OFFERED = {
    "task": ["add", "multiply"],
    "length": [50, 100, 200, 400],
    "pooling": ["attention", "mean"],
    "learning_rate": [0.0003, 0.001, 0.003, 0.01, 0.03],
}
BATCH, UPDATES, EVERY = 100, 1000, 20  # sequences per update; updates at most, and between two scores
TEST, SOLVED = 500, 0.9995
MOST = math.e**2  # in even shares: scores are tanh
TRY = "move the slider: when do the two columns appear, and how much is solved then? In JupyterLab, train with the mean"


class ToyRun(Background):
    """One training with settings as in `toy`: what share of sequences is solved, and the weights of one of them."""

    def __init__(self, task: str, length: int, pooling: str, learning_rate: float) -> None:
        super().__init__()
        self.task, self.pooling, self.rate = task_by_name(task, length=length), pooling, learning_rate
        self.title = f"{pooling}, T = {length}, rate {learning_rate:g}"
        self.solved: list[float] = []
        self.shares: list[Tensor] = []  # (T,) each, in even shares
        self.marked = torch.zeros(0, dtype=torch.bool)

    @property
    def told(self) -> str:
        """How far it is; empty before its first score."""
        return f"update {(len(self.solved) - 1) * EVERY} of at most {UPDATES}" if self.solved else ""

    def told_at(self, update: int) -> str:
        """How much was solved after so many updates, or at the end."""
        place, steps = min(update // EVERY, len(self.solved) - 1), len(self.marked)
        both = float(self.shares[place][self.marked].sum()) / steps
        return (
            f"After {place * EVERY} updates of {BATCH} sequences {self.solved[place]:.1%} of {TEST} test sequences are "
            f"solved. In the sequence whose weights are shown, the two marked steps have {both:.1%} of the attention; "
            f"even would be {2 / steps:.1%}."
        )

    def work(self) -> None:
        """Train until all is solved, or for 1,000 updates."""
        with seeded(0):
            model = FeedForwardAttention(pooling=self.pooling, leak="coded")
        test = next(iter(loader(self.task, "test", TEST)))
        example = test.inputs[0, : test.lengths[0]]
        self.marked = example[:, 1] == 1  # the mask, at the two steps that count
        steps = learn(self.task, model, self.rate, BATCH, clip=None)
        for update in range(0, UPDATES + 1, EVERY):
            self.shares.append(model.weights(example[None])[0].detach() * len(example))
            self.solved.append(score(self.task, model, test))
            if self.solved[-1] > SOLVED or update == UPDATES:
                return
            for _ in islice(steps, EVERY):
                self.breathe()


def toy(length: int = 50, pooling: str = "attention", learning_rate: float = 0.01, task: str = "add") -> Live:
    """Solve addition or multiplication live.

    Args:
        length: T, of the shortest sequence; the longest is a tenth longer.
        pooling: "attention" or "mean".
        learning_rate: of Adam.
        task: "add" or "multiply".

    Raises:
        ValueError: if one of them is not offered.
    """
    settings: dict[str, Any] = {"task": task, "length": length, "pooling": pooling, "learning_rate": learning_rate}
    return Live("toy", "The toy solver", TRY, ToyRun, lambda _: OFFERED, _recorded, **settings)


def _recorded(runs: dict[str, ToyRun]) -> Recorded:
    """How much each run has solved, and where one of them looks."""
    curves = [[(k * EVERY, share) for k, share in enumerate(run.solved)] for run in runs.values()]
    axes: dict[str, Any] = {"x": (0, UPDATES), "y": (0, 1)}
    solved = Panel("lines", curves, "test sequences solved", "updates", names=list(runs), sets="update", **axes)
    weights = {name: _weights(run) for name, run in runs.items()}

    def see(run: str, update: int) -> Seen:
        return runs[run].told_at(update), [solved, weights[run]]

    updates = range(0, max(len(run.solved) for run in runs.values()) * EVERY, EVERY)
    return {"update": Control("updates", updates, seconds=4)}, see


def _weights(run: ToyRun) -> Panel:
    shares, marks = packed(torch.stack(run.shares)), run.marked.nonzero().flatten().tolist()
    return Panel("heat", shares, "weights (1: the mean)", "step", "updates", marks=marks, y=(0, MOST), sets="update")
