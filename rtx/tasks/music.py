"""Polyphonic music: predict which of 88 notes sound in the next frame of a piano roll.

Nottingham, JSB, Piano-midi.de and MuseData: Boulanger-Lewandowski et al. (2012), prepared and split as in Bai et al.
(2018). Nottingham is also in R-Transformer, Section 4.2. The task `chorales` has Bach's chorales from the corpus inside
the installed music21. Or MIDI files of your own.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rtx.nn.validate import check_above_zero, check_count
from rtx.tasks import data, rolls
from rtx.tasks.rolls import FRAME_SECONDS, NOTES, Note, Roll
from rtx.tasks.task import SPLITS, Batch, Example, Examples, Split, Sum, Task, mean_of, real_steps, widened

FRAMES_PER_QUARTER = 2  # of `chorales`


def published(name: str) -> Task:
    """Return one of the published sets. Every frame but the first of a piece is predicted.

    nottingham: 694/173/170 folk tunes with chords. jsb: 229/76/77 of Bach's chorales, a frame per quarter note; its
    pieces and frames differ from `chorales`. piano: Piano-midi.de, 87/12/25 pieces. muse: MuseData, 524/135/124 pieces
    for orchestra and piano.
    """
    seconds = (2 if name == "jsb" else 1) * FRAME_SECONDS
    return piano_roll_task(name, lambda: rolls.read_mat(*data.fetch(name).values()), lambda: data.sha256(name), seconds)


def chorales() -> Task:
    """Bach's chorales, a frame per eighth note. A frame has the notes that sound at its start.

    Shorter notes between two frames are left out. Of pieces that are equal up to transposition, one is kept. Other
    harmonisations of a melody are pieces of their own. They are split about 80/10/10 %. The first call parses the
    scores of music21 (half a minute). Later calls read the cache.
    """
    pieces = cache(_chorales)
    return piano_roll_task("chorales", lambda: _tenths(pieces()), lambda: data.sha256_of_arrays(*pieces()))


def own_music(path: str | Path | Sequence[str] | None = None, frame: float = 0.5, transpose: int = 0) -> Task:
    """MIDI files of your own, split about 80/10/10 % by piece. Of pieces that are equal but for their key, one is kept.

    Files without notes and files that are not MIDI are left out, and so are notes outside the 88 keys. `about` names
    these files, and the number of pieces that are equal to another one.

    Args:
        path: a folder of .mid or .midi files, a file, or a list of both; by default Bach's chorales of `chorales`.
        frame: the length of a frame of your files in quarter notes. By default, a frame is an eighth note.
        transpose: train also on each piece moved up and down by 1 to so many semitones, as far as the keys go.
    """
    seconds = FRAME_SECONDS if path is None else check_above_zero("frame", frame) * rolls.QUARTER_SECONDS
    check_count("transpose", transpose)
    said: defaultdict[str, list[str]] = defaultdict(list)

    @cache
    def pieces() -> dict[Split, list[Roll]]:
        return _tenths(_chorales() if path is None else _own_rolls(path, seconds, said))

    def moved() -> dict[Split, list[Roll]]:
        shifts = sorted(range(-transpose, transpose + 1), key=abs)
        copies = (np.roll(roll, by, 1) for by in shifts for roll in pieces()["train"] if _fits(roll, by))
        return pieces() | {"train": [*copies]}

    def about() -> dict[str, str]:
        frames = [f"{split} {len(found)} ({sum(map(len, found)):,})" for split, found in moved().items()]
        return {"data": f"pieces (frames): {', '.join(frames)}"} | {name: "; ".join(said[name]) for name in said}

    name = "music" if path is None else f"music:{data.own_name(path)}"
    return piano_roll_task(name, moved, lambda: data.sha256_of_arrays(*chain(*pieces().values())), seconds, about)


def _tenths(pieces: list[Roll]) -> dict[Split, list[Roll]]:
    """Split pieces: the last tenth for test, the tenth before it for validation, at least one piece for each."""
    tenth = max(1, len(pieces) // 10)
    return {"train": pieces[: -2 * tenth], "validation": pieces[-2 * tenth : -tenth], "test": pieces[-tenth:]}


def _own_rolls(path: str | Path | Sequence[str], seconds: float, said: defaultdict[str, list[str]]) -> list[Roll]:
    """Return the different pieces of a user's MIDI files. `said` gets what is left out, and why."""
    read = []
    for file in data.own_files(path, [".mid", ".midi"]):
        try:
            notes = rolls.read_notes(file, seconds)
            inside = [note for note in notes if 0 <= note.key < NOTES]
            read.append(rolls.check_roll(str(file), rolls.roll_of(inside, str(file))))
            if len(inside) < len(notes):
                said["other keys"].append(f"{file}: left out {len(notes) - len(inside)} of {len(notes)} notes")
        except ValueError as error:
            said["left out"].append(str(error))
    found = distinct(read)
    if same := len(read) - len(found):
        said["equal pieces"].append(f"left out {same} of {len(read)} pieces, which equal another but for their key")
    if len(found) < len(SPLITS):
        left_out = "; ".join(["", *said["left out"]])
        raise ValueError(f"path: expected at least {len(SPLITS)} different pieces, got {len(found)}{left_out}")
    return found


def _fits(roll: Roll, shift: int) -> bool:
    """Whether no note leaves the 88 keys if all are moved by so many semitones."""
    used = np.flatnonzero(roll.any(axis=0)) + shift
    return bool(used[0] >= 0 and used[-1] < NOTES)


def piano_roll_task(
    name: str,
    read: Callable[[], Mapping[Split, Sequence[Roll]]],
    sha256: Callable[[], str | None] = lambda: None,
    frame_seconds: float = FRAME_SECONDS,
    about: Callable[[], dict[str, str]] | None = None,
) -> Task:
    """Return a task that predicts the next frame of piano rolls.

    `read` returns split → rolls of at least two frames each. It is called once, when first needed. `frame_seconds` is
    how long a frame lasts when a roll is played.
    """
    pieces = cache(read)

    def examples(split: Split) -> Sequence[Example]:
        def next_frames(indices: list[int]) -> list[Example]:
            found = (torch.from_numpy(pieces()[split][index]).float() for index in indices)
            return [Example(frames[:-1], frames[1:]) for frames in found]

        return Examples(len(pieces()[split]), next_frames)

    return Task(
        name=name,
        inputs=NOTES,
        outputs=NOTES,
        per="step",
        examples=examples,
        loss=frame_nll,
        measured=mean_of(frame_nll),
        metric="NLL per frame (nats)",
        sha256=sha256,
        baseline=lambda: rolls.marginal_nll(pieces()["train"], pieces()["test"]),
        frame_seconds=frame_seconds,
        about=about,
    )


def frame_nll(predictions: Tensor, batch: Batch) -> Sum:
    """-Σ y log p + (1-y) log(1-p), summed over notes and real frames; p = sigmoid of (B, T, 88) logits.

    Each note is an independent Bernoulli variable, as in the published code of TCN and R-Transformer.
    """
    real = real_steps(batch)[..., None]
    logits, notes = widened(torch.where(real, predictions, 0)), torch.where(real, batch.targets, 0)
    total = binary_cross_entropy_with_logits(logits, notes, weight=real.to(logits), reduction="sum")
    return Sum(total, batch.lengths.sum())


def _chorales() -> list[Roll]:
    key = f"chorales-v1-music21-{version('music21')}"  # v1: raise it when parsing changes
    stored = data.cached_arrays(key, _parse_chorales)
    frames = np.unpackbits(stored["frames"], axis=1, count=NOTES)
    return np.split(frames, np.cumsum(stored["lengths"])[:-1])


def _parse_chorales() -> data.Arrays:
    from music21 import corpus, ipython21

    if hasattr(ipython21, "t"):  # a timer, only in a notebook: it would draw all figures at twice the size
        ipython21.t.cancel()
    names = dict.fromkeys(corpus.chorales.Iterator(returnType="filename"))  # some are listed twice
    # forceSource: music21 writes no pickles of its own beside our cache
    pieces = distinct(score_to_roll(corpus.parse(name, forceSource=True)) for name in names)
    frames = np.packbits(np.concatenate(pieces), axis=1)
    return {"frames": frames, "lengths": np.array([len(piece) for piece in pieces])}


def score_to_roll(score: Any) -> Roll:
    """Return the notes of a music21 score that sound at each eighth note. Silence before and after is cut off."""

    notes = []
    for note in score.flatten().notes:
        times = note.offset, note.offset + note.quarterLength  # in quarter notes
        start, end = (math.ceil(time * FRAMES_PER_QUARTER) for time in times)
        notes += [Note(pitch.midi - rolls.LOWEST, start, end) for pitch in note.pitches]
    return rolls.roll_of(notes, "score")


def distinct(pieces: Iterable[Roll]) -> list[Roll]:
    """Return the first of each set of pieces that are equal up to transposition, ordered by a hash of their notes.

    So the order is random, but the same for everyone, and one piece more or less does not change the others' order.
    """
    by_hash: dict[str, Roll] = {}
    for roll in pieces:
        used = np.flatnonzero(roll.any(axis=0))
        by_hash.setdefault(data.sha256_of_arrays(roll[:, used[0] : used[-1] + 1]), roll)
    return [by_hash[key] for key in sorted(by_hash)]
