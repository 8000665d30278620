"""The listening room: tunes to hear, what each frame cost a model, and a blind test of real against generated."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from torch.nn.functional import binary_cross_entropy_with_logits

from rtx.lab.explore.music import next_frame_logits
from rtx.lab.explore.page import Page
from rtx.lab.plots import COLOURS, piano_roll
from rtx.tasks.build import SequenceModel
from rtx.tasks.rolls import FRAME_SECONDS, LOWEST, Roll, check_roll, held_notes

SCRIPT = Path(__file__).with_name("listening.js")


def listening(
    tunes: Mapping[str, ArrayLike],
    generated: Collection[str] = (),
    model: SequenceModel | None = None,
    frame_seconds: float = FRAME_SECONDS,
) -> Page:
    """Tunes with a play button, a MIDI file to take away, and, if some are generated, a blind test.

    Args:
        tunes: by name, each (frames, 88) of 0 and 1.
        generated: names of those that no person wrote.
        model: if given, the strip below a tune shows what each frame cost it, in nats.
        frame_seconds: how long a frame lasts, at most 8: the three bytes of a MIDI file's tempo hold no more.

    Raises:
        ValueError: if there is no tune, one is no piano roll, `generated` names none of them, or a frame is too long.
    """
    if not tunes:
        raise ValueError("tunes: expected at least one, got none")
    if unknown := sorted(set(generated) - set(tunes)):
        raise ValueError(f"generated: expected names of tunes, {', '.join(tunes)}, got {', '.join(unknown)}")
    if not 0 < frame_seconds <= 8:
        raise ValueError(f"frame_seconds: expected more than 0 and at most 8, got {frame_seconds!r}")
    rolls = {name: check_roll("tunes", roll) for name, roll in tunes.items()}
    costs = {name: None if model is None else frame_costs(model, roll) for name, roll in rolls.items()}
    shown = [
        {
            "name": name,
            "kind": "generated" if name in generated else "real",
            "frames": len(roll),
            "notes": held_notes(roll),
            "nll": costs[name],
        }
        for name, roll in rolls.items()
    ]
    data = {"tunes": shown, "lowest": LOWEST, "seconds": frame_seconds}
    still = _still(*next(iter(rolls.items())), shown[0])
    return Page(SCRIPT, data, still, "play a tune and watch its dearest frames; then the blind test", **START)


START: dict[str, Any] = {"tune": 0, "blind": False, "guesses": {}, "order": []}


def frame_costs(model: SequenceModel, roll: Roll) -> list[float]:
    """Nats of each frame, given those before it; 0 for the first, which is not predicted."""
    logits = next_frame_logits(model, roll)
    target = torch.from_numpy(roll[1:].astype(np.float32))
    return [0.0, *binary_cross_entropy_with_logits(logits.float(), target, reduction="none").sum(1).tolist()]


def _still(name: str, roll: Roll, shown: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(7.2, 2.8), layout="constrained")
    if shown["nll"] is None:
        piano_roll(figure.add_subplot(), roll, name)
        return figure
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    piano_roll(top, roll, name)
    top.set_xlabel("")
    bottom.bar(range(1, len(roll) + 1), shown["nll"], color=COLOURS[1], width=1)
    bottom.set(xlabel="frame", ylabel="nats", xlim=(0.5, len(roll) + 0.5))  # as the roll, whose axis it shares
    return figure
