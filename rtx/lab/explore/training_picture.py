"""The picture of the training lab: losses, the metric, and a look inside; one figure, whose artists are moved."""

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.lines import Line2D

from rtx.lab.learning import History
from rtx.lab.look import Look
from rtx.lab.plots import COLOURS, small_png

POINTS = 150  # of a curve, at most: more would be slower to draw, and hide its course
FIXED = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=True)  # to find one would double the time


class TrainingPicture:
    """Left, the loss of each run; in the middle, the metric; right, what goes on in the newest run's model."""

    def __init__(self) -> None:
        self.figure = Figure(figsize=(10.5, 3.3), layout=FIXED)
        self.losses, self.scores, self.inside = self.figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
        self.figure.subplots_adjust(left=0.06, right=0.95, bottom=0.16, top=0.88, wspace=0.27)
        self.losses.set(title="training", xlabel="update", ylabel="loss of a batch")
        self.scores.set(title="validation: dots: all of it, line: a batch", xlabel="update")
        self.image = self.inside.imshow(np.zeros((2, 2)), aspect="auto", interpolation="nearest", vmin=0, vmax=1)
        self.bar = self.figure.colorbar(self.image, ax=self.inside, label="value")
        self.inside.set_title("inside the model")
        self.show([], "metric", None)

    def show(self, runs: Sequence[History], metric: str, seen: Look | None) -> bytes:
        """The picture of these runs, each in the colour of its place. What was seen inside stays with the runs."""
        for ax in (self.losses, self.scores):
            for line in list(ax.lines):
                line.remove()
        for i, run in enumerate(runs):
            colour = COLOURS[i % len(COLOURS)]
            self.losses.plot(*_thinned(run.losses), color=colour, linewidth=1.2)
            self.scores.plot(*_columns(run.probes), color=colour, linewidth=1, alpha=0.6)
            self.scores.plot(*_columns(run.validations), "o", color=colour, markersize=5)
        self.scores.set_ylabel(fill(metric, 40))
        for ax in (self.losses, self.scores):
            _fit(ax, ax.lines)
        if seen is not None:
            self._show_inside(seen)
        if seen is not None or not runs:
            for ax in (self.inside, self.bar.ax):
                ax.set_visible(seen is not None)
        return small_png(self.figure)

    def _show_inside(self, seen: Look) -> None:
        values = seen.values.float().numpy()
        rows, columns = values.shape
        self.image.set_data(values)
        self.image.set_extent((0.5, columns + 0.5, rows + 0.5, 0.5))
        self.image.set_clim(min(0.0, float(values.min())), float(values.max()) or 1.0)
        self.inside.set(xlabel=seen.x, ylabel=seen.y, title=fill(seen.title, 40))
        self.inside.set_yticks([] if rows == 1 else sorted({1, (rows + 1) // 2, rows}))


def _fit(ax: Axes, lines: Sequence[Line2D]) -> None:
    """Limits around all points; of an axis without any, 0 to 1."""
    points = [line.get_xydata() for line in lines]
    together = np.concatenate([np.asarray(p, float).reshape(-1, 2) for p in points]) if points else np.empty((0, 2))
    if not len(together):
        ax.set(xlim=(0, 1), ylim=(0, 1))
        return
    low, high = together[:, 1].min(), together[:, 1].max()
    room = 0.06 * (high - low) or 0.5
    ax.set(xlim=(0, 1.03 * max(1.0, together[:, 0].max())), ylim=(low - room, high + room))


def _columns(points: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    """Two lists of pairs, which another thread may just be adding to."""
    found = list(points)
    return [x for x, _ in found], [y for _, y in found]


def _thinned(losses: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Updates and losses; of a long run means of as many neighbours as leave 150 points."""
    values = np.array(losses)
    size = max(1, len(values) // POINTS)
    whole = values[: len(values) // size * size].reshape(-1, size)
    return np.arange(1, len(whole) + 1) * size, whole.mean(1)
