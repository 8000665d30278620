"""Piano rolls: their form, their notes, how to read them from MATLAB files, and what note counts alone predict."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtx.tasks.task import Split

Roll = NDArray[np.uint8]  # (frames, 88), 1 where a note sounds

NOTES = 88  # the keys of a piano
LOWEST = 21  # MIDI number of the first key, A0
QUARTER_SECONDS = 0.6  # 100 quarter notes a minute
FRAME_SECONDS = QUARTER_SECONDS / 2  # a frame of most data sets is an eighth note
LARGEST = 2**24  # bytes of a file; the largest one of the data sets has 0.9 million
KEYS: dict[Split, str] = {"train": "traindata", "validation": "validdata", "test": "testdata"}


class Note(NamedTuple):
    """A key, from 0 to 87, that sounds from frame `start` up to frame `end`, which is not included."""

    key: int
    start: int
    end: int


def check_roll(name: str, roll: ArrayLike) -> Roll:
    """Return `roll` as uint8; refuse all but a (frames, 88) array of 0 and 1 with at least two frames."""
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


def held_notes(roll: ArrayLike) -> list[Note]:
    """Return the notes of a roll, by key and time. A key that sounds in successive frames counts as one note."""
    keys = check_roll("roll", roll).T
    silence = np.zeros((len(keys), 1), np.int8)
    changes = np.diff(keys.astype(np.int8), axis=1, prepend=silence, append=silence)
    # the changes of a key are a start, an end, a start, …
    found = [(key, np.flatnonzero(line)) for key, line in enumerate(changes)]
    return [Note(key, int(a), int(b)) for key, at in found for a, b in list(pairwise(at))[::2]]


def roll_of(notes: Iterable[Note], name: str = "notes") -> Roll:
    """Return the piano roll of notes. Silence before the first note is cut off, and so are notes without a frame.

    An empty roll and a note outside the 88 keys are refused.
    """
    heard = [note for note in notes if note.start < note.end]
    if not heard:
        raise ValueError(f"{name}: expected at least one note that sounds in a frame, got none")
    for note in heard:
        if not 0 <= note.key < NOTES:
            highest = LOWEST + NOTES - 1
            raise ValueError(f"{name}: expected MIDI notes from {LOWEST} to {highest}, got {LOWEST + note.key}")
    first = min(note.start for note in heard)
    roll = np.zeros((max(note.end for note in heard) - first, NOTES), np.uint8)
    for key, start, end in heard:
        roll[start - first : end - first, key] = 1
    return roll


def check_size(path: Path) -> None:
    """Refuse a file of more than 16 MB."""
    if (size := path.stat().st_size) > LARGEST:
        raise ValueError(f"{path}: expected at most {LARGEST} bytes, got {size}")


def read_mat(path: Path) -> dict[Split, list[Roll]]:
    """Return the rolls of a MATLAB file in the layout of Boulanger-Lewandowski, by split."""
    from scipy.io import loadmat

    check_size(path)
    try:
        cells = loadmat(path)
    except Exception as error:  # scipy raises many kinds for a damaged file
        raise ValueError(f"{path}: expected a MATLAB file of version 5 to 7 ({error})") from error
    if missing := [key for key in KEYS.values() if key not in cells or cells[key].dtype != object]:
        raise ValueError(f"{path}: expected cell arrays {', '.join(KEYS.values())}, missing {', '.join(missing)}")
    return {
        split: [check_roll(f"{path}, {key}[{i}]", roll) for i, roll in enumerate(cells[key].ravel())]
        for split, key in KEYS.items()
    }


def marginal_nll(train: Sequence[Roll], test: Sequence[Roll]) -> float:
    """Return the nats per predicted frame of `test` if each note is as likely as it is frequent in `train`.

    Half a frame with each note and half a frame without it are added, so that no note is impossible.
    """
    frames = np.concatenate([roll[1:] for roll in train])
    p = (frames.sum(0, dtype=np.int64) + 0.5) / (len(frames) + 1)
    y = np.concatenate([roll[1:] for roll in test])
    return float(-(y * np.log(p) + (1 - y) * np.log1p(-p)).sum() / len(y))
