"""A piano roll as a MIDI file, to be played by any program, or as sound: a few sine waves per note."""

import wave
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtx.tasks.music import FRAME_SECONDS, FRAMES_PER_QUARTER, import_music21
from rtx.tasks.rolls import LOWEST, check_roll

RATE = 22_050  # samples per second
OVERTONES = (1.0, 0.5, 0.25, 0.125)  # loudness of the multiples of a note's frequency
ATTACK, RELEASE, DECAY = 0.01, 0.1, 1.5  # seconds: to full loudness, to silence, to 1/e of it while held
PEAK = 0.8  # of what a sample can hold


class Note(NamedTuple):
    """A key that sounds from frame `start` up to, not including, frame `end`."""

    key: int
    start: int
    end: int


def held_notes(roll: ArrayLike) -> list[Note]:
    """The notes of a roll, by key and time. A key that sounds in successive frames is one note: a roll cannot tell.

    Raises:
        ValueError: if `roll` is no piano roll.
    """
    keys = check_roll("roll", roll).T
    silence = np.zeros((len(keys), 1), np.int8)
    changes = np.diff(keys.astype(np.int8), axis=1, prepend=silence, append=silence)
    # each key's changes are a start, an end, a start, …
    found = [(key, np.flatnonzero(line)) for key, line in enumerate(changes)]
    return [Note(key, int(a), int(b)) for key, at in found for a, b in list(pairwise(at))[::2]]


def write_midi(path: Path, roll: ArrayLike) -> None:
    """Write a roll as a MIDI file, a frame as an eighth note at 100 quarter notes a minute, by music21.

    Raises:
        ValueError: if `roll` is no piano roll.
        OSError: if the file cannot be written.
    """
    notes, music21 = held_notes(roll), import_music21()
    tempo = music21.tempo.MetronomeMark(number=60 / (FRAME_SECONDS * FRAMES_PER_QUARTER))
    score = music21.stream.Stream([tempo])
    for key, start, end in notes:
        length = (end - start) / FRAMES_PER_QUARTER
        score.insert(start / FRAMES_PER_QUARTER, music21.note.Note(midi=LOWEST + key, quarterLength=length))
    score.write("midi", fp=path)


def write_wav(path: Path, roll: ArrayLike) -> None:
    """Write a roll as a WAV file: mono, 16 bits, 22,050 samples a second.

    Raises:
        ValueError: if `roll` is no piano roll.
        OSError: if the file cannot be written.
    """
    samples = sound(roll)
    # given a name that it cannot open, wave would complain a second time when it is thrown away
    with path.open("wb") as opened, wave.open(opened, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((samples * 32767).astype("<i2").tobytes())


def sound(roll: ArrayLike) -> NDArray[np.float64]:
    """The samples of a roll, from -1 to 1: each note a sine wave with its overtones, struck and fading.

    Raises:
        ValueError: if `roll` is no piano roll.
    """
    roll = check_roll("roll", roll)
    samples = np.zeros(round((len(roll) * FRAME_SECONDS + RELEASE) * RATE))
    for key, start, end in held_notes(roll):
        tone = _tone(key, (end - start) * FRAME_SECONDS)
        first = round(start * FRAME_SECONDS * RATE)
        samples[first : first + len(tone)] += tone[: len(samples) - first]
    loudest = np.abs(samples).max()
    return samples * (PEAK / loudest) if loudest else samples


def _tone(key: int, seconds: float) -> NDArray[np.float64]:
    frequency = 440 * 2 ** ((LOWEST + key - 69) / 12)  # A4 is MIDI number 69
    t = np.arange(round((seconds + RELEASE) * RATE)) / RATE
    heard = [(n, loud) for n, loud in enumerate(OVERTONES, 1) if n * frequency < RATE / 2]
    wave = sum(loud * np.sin(2 * np.pi * n * frequency * t) for n, loud in heard)
    envelope = np.minimum(t / ATTACK, 1) * np.exp(-t / DECAY) * np.clip((seconds + RELEASE - t) / RELEASE, 0, 1)
    return np.asarray(wave * envelope)
