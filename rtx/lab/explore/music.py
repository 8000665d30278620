"""Explorer of a music model: what it expected of a frame, and what came.

Wang et al. (2019), R-Transformer, §4.2.
"""

import ipywidgets as widgets
import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rtx.lab.explore.explorer import Explorer
from rtx.lab.plots import COLOURS, freeze, piano_roll
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite
from rtx.tasks.build import SequenceModel
from rtx.tasks.rolls import LOWEST, Roll, check_roll

BEFORE, AFTER = 23, 8  # frames shown around the chosen one
EXPECTED, CAME = COLOURS[0], COLOURS[1]  # blue, orange


def prediction(model: SequenceModel, roll: ArrayLike) -> Explorer:
    """Choose a frame: what has sounded before it, and each note's probability. Controls `frame`, `temperature`.

    Args:
        model: predicts the 88 logits of the next frame at every step.
        roll: a tune, (frames, 88) of 0 and 1.

    Raises:
        ValueError: if `roll` is no piano roll, or the model's logits are not finite.
    """
    tune = check_roll("roll", roll)
    logits = next_frame_logits(model, tune)
    picture = _Picture(tune)

    def update(frame: int, temperature: float) -> str:
        scaled = logits[frame - 2] / temperature  # the first prediction is that of frame 2
        came = torch.from_numpy(tune[frame - 1])
        p = torch.sigmoid(scaled)
        cost = binary_cross_entropy_with_logits(scaled, came.float(), reduction="none")
        picture.move(frame, p.numpy())
        return _sentence(frame, p, came, cost)

    return Explorer(
        picture.figure,
        update,
        "find the frame that costs most; then lower the temperature there, and at a frame that costs little",
        frame=widgets.IntSlider(min(len(tune), 1 + BEFORE), 2, len(tune), description="frame"),
        temperature=widgets.FloatSlider(1.0, min=0.25, max=2.0, step=0.25, description="temperature"),
    )


def next_frame_logits(model: SequenceModel, roll: Roll) -> Float[Tensor, "T-1 88"]:
    """Row t: what the model expects of frame t + 2, counted from 1, having read those before it."""
    x = torch.from_numpy(roll[:-1]).to(next(model.parameters()))
    with torch.no_grad(), evaluating(model):
        logits = model(x[None])[0].float().cpu()
    check_finite("logits of the model", logits)
    return logits


def note_name(midi: int) -> str:
    """A MIDI number as a note: 60 is C4, 61 is C♯4."""
    return f"{['C', 'C♯', 'D', 'D♯', 'E', 'F', 'F♯', 'G', 'G♯', 'A', 'A♯', 'B'][midi % 12]}{midi // 12 - 1}"


def _sentence(frame: int, p: Tensor, came: Tensor, cost: Tensor) -> str:
    notes = came.nonzero().flatten().tolist()
    heard = ", ".join(f"{note_name(LOWEST + i)} ({p[i]:.2f})" for i in notes) or "silence"
    dearest = int(cost.argmax())
    why = "came" if came[dearest] else "did not come"
    return (
        f"Frame {frame} brought {heard}; it costs {cost.sum():.2f} nats, "
        f"of which {cost[dearest]:.2f} because {note_name(LOWEST + dearest)} {why}."
    )


class _Picture:
    """Left, the tune with the chosen frame boxed and what follows it faded; right, each note's probability."""

    def __init__(self, tune: Roll) -> None:
        self.tune = tune
        self.figure = Figure(figsize=(7.6, 4.2), layout="constrained")
        left, right = self.figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        piano_roll(left, tune, "the tune, the chosen frame boxed")
        low, high = (int(limit) for limit in left.get_ylim())
        box = {"edgecolor": CAME, "facecolor": "none", "linewidth": 2}
        self.box = left.add_patch(Rectangle((0, low), 1, high - low, zorder=3, **box))
        self.future = left.add_patch(Rectangle((0, low), len(tune), high - low, facecolor="white", alpha=0.7))
        octaves = [midi for midi in range(low, high + 1) if midi % 12 == 0]
        left.set(ylabel="note", yticks=octaves, yticklabels=map(note_name, octaves))
        self.bars = right.hlines(LOWEST + np.arange(tune.shape[1]), 0, 0, linewidth=4)
        (self.came,) = right.plot([1], [low], "<", color=CAME, clip_on=False)
        right.set(xlim=(0, 1), xlabel="predicted probability", title="orange: the notes that came")
        self.left = left
        freeze(self.figure)

    def move(self, frame: int, p: np.ndarray) -> None:
        """Choose a frame, counted from 1; `p` holds the probabilities of its notes."""
        start = max(0.5, min(frame - 0.5 - BEFORE, len(self.tune) + 0.5 - BEFORE - AFTER))
        self.left.set_xlim(start, min(start + BEFORE + AFTER, len(self.tune) + 0.5))
        self.box.set_x(frame - 0.5)
        self.future.set_x(frame + 0.5)
        notes, came = LOWEST + np.arange(len(p)), self.tune[frame - 1] == 1
        self.bars.set_segments([[(0, note), (width, note)] for note, width in zip(notes, p, strict=True)])
        self.bars.set_color([CAME if sounds else EXPECTED for sounds in came])
        self.came.set_data(np.ones(came.sum()), notes[came])
