"""The toy solver: addition over T steps, learnt live by feed-forward attention; where it looks, and how much is solved.

Raffel & Ellis (2015), Section 2 and Table 1.
"""

import math
from collections.abc import Callable
from itertools import islice

import ipywidgets as widgets
import numpy as np
import torch
from torch import Tensor

from rtx.lab.background import Background
from rtx.lab.explore.live import LiveExplorer
from rtx.lab.explore.pooling import MARKED
from rtx.lab.learning import learn
from rtx.lab.plots import COLOURS, freeze, new_figure
from rtx.lab.seeded import seeded
from rtx.models import FeedForwardAttention
from rtx.nn.validate import check_choice
from rtx.tasks.loader import loader
from rtx.tasks.registry import task_by_name

LENGTHS, POOLINGS, RATES = (50, 100, 200, 400), ("attention", "mean"), (0.0003, 0.001, 0.003, 0.01, 0.03)
BATCH, UPDATES, EVERY = 100, 1000, 20  # sequences per update; updates at most, and between two scores
TEST, SOLVED = 500, 0.9995
MOST = math.e**2  # in even shares: scores are tanh


class ToyRun:
    """One training: after every 20 updates the share of test sequences solved, and the shares of one of them.

    Args:
        task: "add" or "multiply".
        length: T, of the shortest sequence; the longest is a tenth longer.
        pooling, rate: the model's, and Adam's.
        watch: called now and then, in the thread that trains.
    """

    def __init__(self, task: str, length: int, pooling: str, rate: float, watch: Callable[[], object]) -> None:
        self.task, self.pooling, self.rate = task_by_name(task, length=length), pooling, rate
        self.solved: list[float] = []
        self.shares: list[Tensor] = []  # (T,) each, in even shares
        self.marked = torch.zeros(0, dtype=torch.bool)
        self.background = Background(self._train, watch, "toy")

    def _train(self, background: Background) -> None:
        with seeded(0):
            model = FeedForwardAttention(pooling=self.pooling, leak="coded")
        test = next(iter(loader(self.task, "test", TEST)))
        example = test.inputs[0, : test.lengths[0]]
        self.marked = example[:, 1] == MARKED
        steps = learn(self.task, model, self.rate, BATCH, clip=None)
        for update in range(0, UPDATES + 1, EVERY):
            with torch.no_grad():
                self.shares.append(model.weights(example[None])[0] * len(example))
                self.solved.append(self.task.score(self.task.predict(model, test), test))
            if self.solved[-1] > SOLVED or update == UPDATES:
                return
            for _ in islice(steps, EVERY):
                background.breathe()


def toy(length: int = 50, pooling: str = "attention", learning_rate: float = 0.01, task: str = "add") -> LiveExplorer:
    """Solve addition or multiplication live, with controls `length` (T), `pooling` and `learning_rate`.

    Args:
        length, pooling, learning_rate: where the controls stand at first.
        task: "add" or "multiply".

    Raises:
        ValueError: if one of them is not offered.
    """
    check_choice("task", task, ("add", "multiply"))
    check_choice("pooling", pooling, POOLINGS)
    for name, value, offered in (("length", length, LENGTHS), ("learning_rate", learning_rate, RATES)):
        if value not in offered:
            raise ValueError(f"{name}: expected one of {', '.join(map(str, offered))}, got {value!r}")
    picture = _Picture()
    runs: dict[tuple[int, str, float], ToyRun] = {}

    def work(watch: Callable[[], None], length: int, pooling: str, learning_rate: float) -> Background:
        run = runs[length, pooling, learning_rate] = ToyRun(task, length, pooling, learning_rate, watch)
        return run.background

    def update(length: int, pooling: str, learning_rate: float) -> str:
        run = runs.get((length, pooling, learning_rate))
        picture.show(run, [one for one in runs.values() if one is not run], length)
        return _sentence(run)

    return LiveExplorer(
        picture.figure,
        update,
        work,
        "train with attention, then with the mean; then both at T = 400: which one slows down more?",
        "toy",
        length=widgets.SelectionSlider(options=LENGTHS, value=length, description="length T"),
        pooling=widgets.Dropdown(options=POOLINGS, value=pooling, description="pooling"),
        learning_rate=widgets.SelectionSlider(options=RATES, value=learning_rate, description="learning rate"),
    )


def _sentence(run: ToyRun | None) -> str:
    if run is None or not run.solved:
        return "Not trained yet: press “train”."
    found, steps = list(run.solved), len(run.marked)
    both = float(run.shares[len(found) - 1][run.marked].sum()) / steps
    return (
        f"After {(len(found) - 1) * EVERY} updates of {BATCH} sequences {found[-1]:.1%} of {TEST} test sequences are "
        f"solved. The two marked steps of the one on the right have {both:.1%} of the attention; even would be "
        f"{2 / steps:.1%}."
    )


class _Picture:
    """Left, how much is solved, of the runs before in grey; right, a row of shares for each score on the left."""

    def __init__(self) -> None:
        self.figure, (self.solved, self.shares) = new_figure(8.6, 3.4, columns=2)
        self.solved.set(xlabel=f"updates of {BATCH} sequences", ylabel="test sequences solved", ylim=(0, 1.04))
        self.solved.set(xlim=(0, UPDATES), title="how much is solved; settings before in grey")
        self.image = self.shares.imshow(np.ones((2, 50)), aspect="auto", vmin=0, vmax=MOST)
        (self.marks,) = self.shares.plot([1], [0], "v", color=COLOURS[1], clip_on=False)
        self.shares.set(xlabel="step of one sequence", ylabel="updates", title="where it looks; marked steps in orange")
        self.figure.colorbar(self.image, ax=self.shares, label="share of a step, even = 1")
        freeze(self.figure)

    def show(self, run: ToyRun | None, others: list[ToyRun], length: int) -> None:
        """The run of the controls, if it has begun, and those before it."""
        for line in list(self.solved.lines):
            line.remove()
        for one in others:
            solved = list(one.solved)  # one of them may still be at work
            self.solved.plot(range(0, len(solved) * EVERY, EVERY), solved, color="0.8")
        rows, steps = np.full((UPDATES // EVERY + 1, length), np.nan), list[int]()  # empty axes with their numbers
        if run is not None and run.shares:
            solved, rows = list(run.solved), torch.stack(list(run.shares)).numpy()
            self.solved.plot(range(0, len(solved) * EVERY, EVERY), solved, color=COLOURS[0], marker=".")
            steps = (run.marked.nonzero().flatten() + 1).tolist()
        self.image.set_data(rows)
        self.image.set_extent((0.5, rows.shape[1] + 0.5, (len(rows) - 0.5) * EVERY, -0.5 * EVERY))
        self.shares.set(xlim=(0.5, rows.shape[1] + 0.5), ylim=((len(rows) - 0.5) * EVERY, -0.5 * EVERY))
        self.marks.set_data(steps, [-0.5 * EVERY] * len(steps))
