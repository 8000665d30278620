"""Piano rolls: their form and notes; MATLAB files, MIDI files and sound; and what note counts alone predict."""

import io
import math
from collections.abc import Iterable, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtx.tasks import data
from rtx.tasks.task import SPLITS, Split

Roll = NDArray[np.uint8]  # (frames, 88), 1 where a note sounds

NOTES = 88  # the keys of a piano
LOWEST = 21  # MIDI number of the first key, A0
QUARTER_SECONDS = 0.6  # 100 quarter notes a minute
LARGEST = 2**24  # bytes of a MIDI file; pretty_midi builds an object for each note
FRAME_SECONDS = QUARTER_SECONDS / 2  # a frame of most data sets is an eighth note
RATE = 44_100  # samples per second
OVERTONES = (1.0, 0.5, 0.25, 0.125)  # loudness of the multiples of a note's frequency
FADE = RATE // 10  # samples of a note's end that become silent, so that it does not click
LONGEST = 10 * RATE  # samples of a note, which is then below the last of 16 bits
PEAK = 0.8 * 2**15  # of a sample


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
    if (other := roll[(roll != 0) & (roll != 1)]).size:  # NaN differs from both
        raise ValueError(f"{name}: expected only 0 and 1, got {other[0]}")
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
    """Return the piano roll of notes. Silence before the first note is cut off, and so are notes without a frame."""
    heard = [note for note in notes if note.start < note.end]
    if not heard:
        raise ValueError(f"{name}: expected at least one note that sounds in a frame, got none")
    if outside := [LOWEST + note.key for note in heard if not 0 <= note.key < NOTES]:
        raise ValueError(f"{name}: expected MIDI notes from {LOWEST} to {LOWEST + NOTES - 1}, got {outside[0]}")
    first = min(note.start for note in heard)
    roll = np.zeros((max(note.end for note in heard) - first, NOTES), np.uint8)
    for key, start, end in heard:
        roll[start - first : end - first, key] = 1
    return roll


def read_mat(path: Path) -> dict[Split, list[Roll]]:
    """Return the rolls of a MATLAB file of Boulanger-Lewandowski, by split. Its checksum is known to be right."""
    from scipy.io import loadmat

    cells = loadmat(io.BytesIO(data.unpacked(path)))
    keys = zip(SPLITS, ("traindata", "validdata", "testdata"), strict=True)
    return {split: [matrix.astype(np.uint8) for matrix in cells[key].ravel()] for split, key in keys}


def write_midi(file: Path | BinaryIO, roll: ArrayLike, frame_seconds: float = FRAME_SECONDS) -> None:
    """Write a piano roll as a MIDI file, at 100 quarter notes a minute."""
    import pretty_midi

    piano = pretty_midi.Instrument(program=0)
    for key, start, end in held_notes(roll):
        piano.notes.append(pretty_midi.Note(80, LOWEST + key, start * frame_seconds, end * frame_seconds))
    midi = pretty_midi.PrettyMIDI(initial_tempo=60 / QUARTER_SECONDS)
    midi.instruments.append(piano)
    midi.write(file)


def read_midi(path: Path, frame_seconds: float = FRAME_SECONDS) -> Roll:
    """Return the piano roll of a MIDI file; see `read_notes`."""
    return roll_of(read_notes(path, frame_seconds), str(path))


def read_notes(path: Path, frame_seconds: float = FRAME_SECONDS) -> list[Note]:
    """Return the notes of a MIDI file: of all instruments but drums, each note rounded to frames.

    A frame is the same part of a quarter note in every file, whatever its tempo. `frame_seconds` is its length at 100
    quarter notes a minute. A time halfway between two frames becomes the later one.
    """
    from pretty_midi import PrettyMIDI

    if not path.is_file() or path.stat().st_size > LARGEST:
        raise ValueError(f"{path}: expected a MIDI file of at most {LARGEST:,} bytes, found another or none")
    try:
        midi = PrettyMIDI(str(path))
    except Exception as error:  # mido raises many kinds for a damaged file
        raise ValueError(f"{path}: expected a MIDI file ({str(error) or type(error).__name__})") from error

    def frame(seconds: float) -> int:
        frames = midi.time_to_tick(seconds) / midi.resolution * QUARTER_SECONDS / frame_seconds
        return math.floor(frames + 0.5 + 1e-6)  # not `round`, which rounds halves to even numbers: 0.5 to 0, 1.5 to 2

    played = [note for instrument in midi.instruments if not instrument.is_drum for note in instrument.notes]
    return [Note(note.pitch - LOWEST, frame(note.start), frame(note.end)) for note in played]


def write_wav(file: Path | BinaryIO, roll: ArrayLike, frame_seconds: float = FRAME_SECONDS) -> None:
    """Write a piano roll as a WAV file: mono, 16 bits, 44,100 samples a second."""
    from scipy.io import wavfile

    wavfile.write(file, RATE, sound(roll, frame_seconds))


def sound(roll: ArrayLike, frame_seconds: float = FRAME_SECONDS) -> NDArray[np.int16]:
    """Return the samples of a piano roll and a second of silence. A note is a sine wave with overtones that fades."""
    roll, length = check_roll("roll", roll), round(RATE * frame_seconds)
    samples, tone = np.zeros(len(roll) * length + RATE, np.int16), cache(partial(_tone, length))
    quiet = PEAK / (sum(OVERTONES) * max(1, int(roll.sum(1).max())))  # so that no sum is too large for a sample
    ages = np.zeros(NOTES, np.int64)  # frames since a key was struck
    for i, (now, after) in enumerate(pairwise([*roll, np.zeros(NOTES, np.uint8)])):
        keys = np.flatnonzero(now & (ages * length < LONGEST))
        samples[i * length : (i + 1) * length] = quiet * sum(tone(key, ages[key], after[key]) for key in keys)
        ages = (ages + 1) * (now & after)
    loudest = max(1, int(samples.max()), -int(samples.min()))
    return np.multiply(samples, PEAK / loudest, out=samples, casting="unsafe")  # in place, which saves memory


def _tone(length: int, key: int, age: int, goes_on: int) -> NDArray[np.float32]:
    """Return the samples of a frame of a key that was struck `age` frames before, and sounds after it or ends."""
    seconds = (np.arange(length) + age * length) / RATE
    phase = 2 * np.pi * 440 * 2 ** ((LOWEST + key - 69) / 12) * seconds  # MIDI note 69 has 440 Hz
    wave = np.sum([loud * np.sin(n * phase) for n, loud in enumerate(OVERTONES, 1)], axis=0)
    fade = 1 if goes_on else np.minimum(1, np.arange(length, 0, -1) / FADE)  # no click at a note's end
    return (np.exp(-seconds) * wave * fade).astype(np.float32)


def marginal_nll(train: Sequence[Roll], test: Sequence[Roll]) -> float:
    """Return the nats per predicted frame of `test` if each note is as likely as it is frequent in `train`.

    Half a frame with each note and half a frame without it are added, so that no note is impossible.
    """
    frames = np.concatenate([roll[1:] for roll in train])
    p = (frames.sum(0, dtype=np.int64) + 0.5) / (len(frames) + 1)
    y = np.concatenate([roll[1:] for roll in test])
    return float(-(y * np.log(p) + (1 - y) * np.log1p(-p)).sum() / len(y))
