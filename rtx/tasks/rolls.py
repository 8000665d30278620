"""Piano rolls: what one is, those of Boulanger-Lewandowski's files, and how well note counts alone predict them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtx.tasks.mat import read_cells
from rtx.tasks.task import Split

Roll = NDArray[np.uint8]  # (frames, 88), 1 where a note sounds

NOTES = 88  # the keys of a piano
LOWEST = 21  # MIDI number of the first key, A0


def check_roll(name: str, roll: ArrayLike) -> Roll:
    """`roll` as uint8.

    Raises:
        ValueError: unless it is a (frames, 88) array of 0 and 1 with at least two frames.
    """
    roll = np.asarray(roll)
    if roll.ndim != 2 or roll.shape[1] != NOTES:
        raise ValueError(f"{name}: expected a piano roll (frames, {NOTES}), got shape {roll.shape}")
    if len(roll) < 2:
        raise ValueError(f"{name}: expected at least two frames, one to read and one to predict, got {len(roll)}")
    bad = (roll != 0) & (roll != 1)  # NaN differs from both
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name}: expected only 0 and 1, got {roll[first]} at (frame, note) {first}")
    return roll.astype(np.uint8)


def read_mat(path: Path) -> dict[Split, list[Roll]]:
    """The rolls of a MATLAB file in Boulanger-Lewandowski's layout, by split.

    Raises:
        ValueError: unless it holds cell arrays traindata, validdata and testdata of (frames, 88) arrays.
    """
    keys: dict[Split, str] = {"train": "traindata", "validation": "validdata", "test": "testdata"}
    expected = f"expected MATLAB cell arrays {', '.join(keys.values())} of (frames, {NOTES}) matrices of 0 and 1"
    try:
        cells = read_cells(path)
    except ValueError as error:
        raise ValueError(f"{path}: cannot be read ({error}); {expected}") from error
    for key in keys.values():
        if not cells.get(key):
            raise ValueError(f"{path}: has no cell array {key!r}; {expected}")
    return {
        split: [check_roll(f"{path}, {key}[{i}]", roll) for i, roll in enumerate(cells[key])]
        for split, key in keys.items()
    }


def marginal_nll(train: Sequence[Roll], test: Sequence[Roll]) -> float:
    """Nats per predicted frame of `test` where each note is as likely as it is often in `train`.

    Half a frame with and half a frame without each note are added, so that none is impossible.
    """
    frames = np.concatenate([roll[1:] for roll in train])
    p = (frames.sum(0, dtype=np.int64) + 0.5) / (len(frames) + 1)
    y = np.concatenate([roll[1:] for roll in test])
    return float(-(y * np.log(p) + (1 - y) * np.log1p(-p)).sum() / len(y))
