"""Polyphonic music: predict which of 88 notes sound in the next frame of a piano roll.

Nottingham: Boulanger-Lewandowski et al. (2012), prepared and split as in Bai et al. (2018) and in
R-Transformer, Section 4.2. Chorales: J. S. Bach's, from the corpus inside the installed music21.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rtx.nn.validate import check_choice
from rtx.tasks import data
from rtx.tasks.task import SPLITS, Batch, Example, Examples, Split, Sum, Task, mean_of, real_steps, widened

Roll = NDArray[np.uint8]  # (frames, 88), 1 where a note sounds

NOTES = 88  # the keys of a piano
LOWEST = 21  # MIDI number of the first key, A0
FRAMES_PER_QUARTER = 2  # of the chorales: a frame lasts an eighth note
FRAME_SECONDS = 0.3  # of the chorales when played: 100 quarter notes a minute


def nottingham() -> Task:
    """Nottingham: 694/173/170 folk tunes with chords; every frame but the first is predicted."""

    def read() -> dict[Split, list[Roll]]:
        return read_mat(data.fetch("nottingham")["Nottingham.mat"])

    return piano_roll_task("nottingham", read, lambda: data.sha256("nottingham"))


def chorales() -> Task:
    """Bach's chorales, a frame per eighth note: the notes sounding at its start, held or struck.

    Shorter notes between two frames are left out. Of pieces equal up to transposition one is kept; other
    harmonisations of a melody are pieces of their own. Split by piece, about 80/10/10 %.
    The first call parses music21's scores (half a minute), later ones read the cache.
    """
    pieces = cache(_chorales)

    def read() -> dict[Split, list[Roll]]:
        rolls = pieces()
        tenth = len(rolls) // 10
        return {
            "train": rolls[: -2 * tenth],
            "validation": rolls[-2 * tenth : -tenth],
            "test": rolls[-tenth:],
        }

    return piano_roll_task("chorales", read, lambda: data.sha256_of_arrays(*pieces()))


def piano_roll_task(
    name: str,
    read: Callable[[], Mapping[Split, Sequence[ArrayLike]]],
    sha256: Callable[[], str | None] = lambda: None,
) -> Task:
    """Next-frame prediction on piano rolls.

    Args:
        name: the task's name.
        read: split → rolls (frames, 88) of 0 and 1, at least two frames each; called once, when first needed.
        sha256: checksum of the data.

    Raises:
        ValueError: from `split`, if a roll has another shape, or holds anything but 0 and 1.
    """

    @cache
    def rolls() -> dict[Split, list[Roll]]:
        given = read()
        for split in given:
            check_choice("split", split, SPLITS)
        return {
            split: [check_roll(f"{name}, {split}[{i}]", roll) for i, roll in enumerate(given[split])] for split in given
        }

    def examples(split: Split) -> Sequence[Example]:
        check_choice("split", split, rolls())
        return Examples(len(rolls()[split]), partial(_next_frames, rolls()[split]))

    return Task(
        name=name,
        inputs=NOTES,
        outputs=NOTES,
        per="step",
        examples=examples,
        loss=frame_nll,
        measured=mean_of(frame_nll),
        metric="NLL per frame (nats)",
        best="min",
        sha256=sha256,
    )


def frame_nll(predictions: Tensor, batch: Batch) -> Sum:
    """-Σ y log p + (1-y) log(1-p), summed over notes and real frames; p = sigmoid of (B, T, 88) logits.

    Each note is an independent Bernoulli variable, as in the published code of TCN and R-Transformer.
    """
    real = real_steps(batch)
    total = binary_cross_entropy_with_logits(widened(predictions[real]), batch.targets[real], reduction="sum")
    return Sum(total, batch.lengths.sum())


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
    from scipy.io import loadmat

    keys: dict[Split, str] = {"train": "traindata", "validation": "validdata", "test": "testdata"}
    expected = f"expected MATLAB cell arrays {', '.join(keys.values())} of (frames, {NOTES}) matrices of 0 and 1"
    try:
        cells = loadmat(path)
    except Exception as error:  # scipy has many kinds: ValueError, MatReadError, zlib.error, TypeError, …
        raise ValueError(f"{path}: cannot be read ({error}); {expected}") from error
    for key in keys.values():
        if key not in cells or cells[key].dtype != object or not cells[key].size:
            raise ValueError(f"{path}: has no cell array {key!r}; {expected}")
    return {
        split: [check_roll(f"{path}, {key}[{i}]", roll) for i, roll in enumerate(cells[key].ravel())]
        for split, key in keys.items()
    }


def _next_frames(rolls: Sequence[Roll], index: int) -> Example:
    frames = torch.from_numpy(rolls[index]).float()
    return Example(frames[:-1], frames[1:])


def _chorales() -> list[Roll]:
    key = f"chorales-v1-music21-{version('music21')}"  # v1: raise it when parsing changes
    stored = data.cached_arrays(key, _parse_chorales)
    frames = np.unpackbits(stored["frames"], axis=1, count=NOTES)
    return np.split(frames, np.cumsum(stored["lengths"])[:-1])


def _parse_chorales() -> data.Arrays:
    from music21 import corpus

    names = dict.fromkeys(corpus.chorales.Iterator(returnType="filename"))  # some are listed twice
    # forceSource: no pickles of music21's own beside our cache
    rolls = distinct(score_to_roll(corpus.parse(name, forceSource=True)) for name in names)
    frames = np.packbits(np.concatenate(rolls), axis=1)
    return {"frames": frames, "lengths": np.array([len(roll) for roll in rolls])}


def score_to_roll(score: Any) -> Roll:
    """The notes of a music21 score that sound at each eighth note; silence before and after is cut off."""
    flat = score.flatten()
    roll = np.zeros((math.ceil(flat.highestTime * FRAMES_PER_QUARTER), NOTES), np.uint8)
    for note in flat.notes:
        start = math.ceil(note.offset * FRAMES_PER_QUARTER)
        end = math.ceil((note.offset + note.quarterLength) * FRAMES_PER_QUARTER)
        for pitch in note.pitches:
            roll[start:end, pitch.midi - LOWEST] = 1
    sounding = np.flatnonzero(roll.any(axis=1))
    return roll[sounding[0] : sounding[-1] + 1]


def distinct(rolls: Iterable[Roll]) -> list[Roll]:
    """The first of each set of rolls equal up to transposition, in an order random yet the same for everyone.

    It is the order of a hash of the notes, so a piece more or less leaves the others' order as it was.
    """
    by_hash: dict[str, Roll] = {}
    for roll in rolls:
        used = np.flatnonzero(roll.any(axis=0))
        by_hash.setdefault(data.sha256_of_arrays(roll[:, used[0] : used[-1] + 1]), roll)
    return [by_hash[key] for key in sorted(by_hash)]
