"""The Bach room: a tune to change, a model that continues it, and what each frame costs the model.

Wang et al. (2019), R-Transformer, §4.2.
"""

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.nn.functional import binary_cross_entropy_with_logits

from rtx.lab.explore.network import described, weight_bytes
from rtx.lab.explore.page import Page
from rtx.lab.pretrained import pretrained
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite
from rtx.tasks.build import SequenceModel
from rtx.tasks.registry import task_by_name
from rtx.tasks.rolls import FRAME_SECONDS, LOWEST, Roll, check_roll

SWITCHES = {"local": "LocalRNN", "attention": "attention"}  # the kinds of layers that can be switched off
CHORALE, FRAMES = 11, 64  # the tune if none is given: a chorale of the test split whose second line repeats the first


def bach(
    roll: ArrayLike | None = None,
    model: SequenceModel | None = None,
    frame_seconds: float = FRAME_SECONDS,
    begin: int | None = None,
) -> Page:
    """Change the notes of a tune, let a model continue it, and hear and see what each of its layers is good for.

    The state has `begin`, and `seed` and `temperature` of the model's draws. `local` and `attention` say whether these
    layers are on. `edits` has 88 · (frame - 1) + key + 1 for each note that was added and minus that for each one taken
    away. `frame` and `note` (MIDI) are the cursor. `expected` shows probabilities.

    Args:
        roll: a tune, (frames, 88) of 0 and 1; by default a chorale that the model was not trained on.
        model: an RNN, GRU, Transformer or R-Transformer that predicts the 88 logits of the next frame; by default
            the R-Transformer that comes with the package.
        frame_seconds: how long a frame lasts.
        begin: the first frame that the model writes, from 2; by default it writes the last third.

    Raises:
        ValueError: if `roll` is no piano roll, or the page cannot compute the model.
    """
    tune = unheard()[CHORALE][:FRAMES] if roll is None else check_roll("roll", roll)
    author = "Bach" if roll is None else "the tune"
    model = cast(SequenceModel, pretrained("bach")) if model is None else model
    costs, network, third = frame_costs(model, tune), described(model), 2 * len(tune) // 3
    switches = {kind: SWITCHES[kind] for kind in SWITCHES if any(one["kind"] == kind for one in network["layers"])}
    data = {"tune": keys(tune), "author": author, "network": network, "most": 1.5 * max(costs), "switches": switches}
    start: dict[str, Any] = {
        "begin": begin or third + 1, "seed": 1, "temperature": 0.7, "local": True, "attention": True,
        "edits": [], "frame": max(1, third - 7), "note": 60, "expected": False,
    }  # fmt: skip
    presets: dict[str, dict[str, Any]] = {
        f"Only {author}": {"begin": len(tune) + 1},
        **{f"Without {name}": {kind: False} for kind, name in switches.items()},
        "Cold draws": {"temperature": 0.2},
    }
    return Page(
        "bach.js",
        data | {"lowest": LOWEST, "seconds": frame_seconds},
        "play it; click notes near the border, and see what the model makes of them; drag the border. The higher a "
        "bar, the less the model expected the frame; a bar that reaches the top is cut off. Green marks a passage "
        "that repeats an earlier one",
        title="The Bach room",
        presets={name: start | change for name, change in presets.items()},
        weights=weight_bytes(model),
        **start,
    )


def unheard() -> list[Roll]:
    """The chorales by Bach that no model was trained on."""
    examples = task_by_name("chorales").split("test")
    return [torch.cat([one.inputs, one.target[-1:]]).to(torch.uint8).numpy() for one in examples]


def keys(roll: Roll) -> list[list[int]]:
    """For each frame the keys that sound."""
    return [np.flatnonzero(frame).tolist() for frame in roll]


def frame_costs(model: SequenceModel, roll: Roll) -> list[float]:
    """Nats of each frame but the first, given those before it."""
    x = torch.from_numpy(roll).to(next(model.parameters()))
    with torch.no_grad(), evaluating(model):
        logits = model(x[None, :-1])[0]
    check_finite("logits of the model", logits)
    return binary_cross_entropy_with_logits(logits, x[1:], reduction="none").sum(1).tolist()
