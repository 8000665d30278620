"""Polyphonic music: predict which of 88 notes sound in the next frame of a piano roll.

Nottingham, JSB, Piano-midi.de and MuseData: Boulanger-Lewandowski et al. (2012), prepared and split as in Bai et al.
(2018); Nottingham also in R-Transformer, Section 4.2. Chorales: J. S. Bach's, from the corpus inside the installed
music21.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rtx.nn.validate import check_choice
from rtx.tasks import data
from rtx.tasks.rolls import LOWEST, NOTES, Roll, check_roll, marginal_nll, read_mat
from rtx.tasks.task import SPLITS, Batch, Example, Examples, Split, Sum, Task, mean_of, real_steps, widened

FRAMES_PER_QUARTER = 2  # of the chorales: a frame lasts an eighth note
FRAME_SECONDS = 0.3  # of the chorales when played: 100 quarter notes a minute


def nottingham() -> Task:
    """Nottingham: 694/173/170 folk tunes with chords; every frame but the first is predicted."""

    return _published("nottingham")


def jsb() -> Task:
    """JSB: 229/76/77 of Bach's chorales, a frame per quarter note; other pieces and frames than those of `chorales`."""
    return _published("jsb")


def piano() -> Task:
    """Piano-midi.de: 87/12/25 pieces of classical piano music."""
    return _published("piano")


def muse() -> Task:
    """MuseData: 524/135/124 pieces for orchestra and piano."""
    return _published("muse")


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
        trivial=lambda: marginal_nll(rolls()["train"], rolls()["test"]),
    )


def frame_nll(predictions: Tensor, batch: Batch) -> Sum:
    """-Σ y log p + (1-y) log(1-p), summed over notes and real frames; p = sigmoid of (B, T, 88) logits.

    Each note is an independent Bernoulli variable, as in the published code of TCN and R-Transformer.
    """
    real = real_steps(batch)[..., None]
    logits, notes = widened(torch.where(real, predictions, 0)), torch.where(real, batch.targets, 0)
    total = binary_cross_entropy_with_logits(logits, notes, weight=real.to(logits), reduction="sum")
    return Sum(total, batch.lengths.sum())


def _published(name: str) -> Task:
    def read() -> dict[Split, list[Roll]]:
        (path,) = data.fetch(name).values()
        return read_mat(path)

    return piano_roll_task(name, read, lambda: data.sha256(name))


def _next_frames(rolls: Sequence[Roll], index: int) -> Example:
    frames = torch.from_numpy(rolls[index]).float()
    return Example(frames[:-1], frames[1:])


def _chorales() -> list[Roll]:
    key = f"chorales-v1-music21-{version('music21')}"  # v1: raise it when parsing changes
    stored = data.cached_arrays(key, _parse_chorales)
    frames = np.unpackbits(stored["frames"], axis=1, count=NOTES)
    return np.split(frames, np.cumsum(stored["lengths"])[:-1])


def _parse_chorales() -> data.Arrays:
    corpus = import_music21().corpus
    names = dict.fromkeys(corpus.chorales.Iterator(returnType="filename"))  # some are listed twice
    # forceSource: no pickles of music21's own beside our cache
    rolls = distinct(score_to_roll(corpus.parse(name, forceSource=True)) for name in names)
    frames = np.packbits(np.concatenate(rolls), axis=1)
    return {"frames": frames, "lengths": np.array([len(roll) for roll in rolls])}


def import_music21() -> ModuleType:
    """music21, without what it does to a notebook a second later: all its figures would be drawn at twice the size."""
    import music21
    from music21 import ipython21

    timer = getattr(ipython21, "t", None)  # there is one in a notebook only
    if timer is not None:
        timer.cancel()
    return music21


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
