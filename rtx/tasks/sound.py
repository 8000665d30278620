"""Piano rolls as MIDI files, which any music program plays, and as sound."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtx.tasks.rolls import FRAME_SECONDS, LOWEST, QUARTER_SECONDS, Note, Roll, check_size, held_notes, roll_of

if TYPE_CHECKING:
    from pretty_midi import PrettyMIDI

RATE = 44_100  # samples per second
OVERTONES = (1.0, 0.5, 0.25, 0.125)  # loudness of the multiples of a note's frequency
PEAK = 0.8  # of the loudest sample that a file can hold


def write_midi(path: Path, roll: ArrayLike, frame_seconds: float = FRAME_SECONDS) -> None:
    """Write a piano roll as a MIDI file, at 100 quarter notes a minute."""
    _midi(roll, frame_seconds).write(str(path))


def read_midi(path: Path, frame_seconds: float = FRAME_SECONDS) -> Roll:
    """Return the piano roll of a MIDI file: all instruments but drums, each note rounded to frames.

    A frame is the same part of a quarter note in every file, whatever its tempo. `frame_seconds` is its length at 100
    quarter notes a minute.
    """
    from pretty_midi import PrettyMIDI

    check_size(path)
    try:
        midi = PrettyMIDI(str(path))
    except Exception as error:  # mido raises many kinds for a damaged file
        raise ValueError(f"{path}: expected a MIDI file ({error or type(error).__name__})") from error

    def frame(seconds: float) -> int:
        return round(midi.time_to_tick(seconds) / midi.resolution * QUARTER_SECONDS / frame_seconds)

    played = [note for instrument in midi.instruments if not instrument.is_drum for note in instrument.notes]
    return roll_of([Note(note.pitch - LOWEST, frame(note.start), frame(note.end)) for note in played], str(path))


def write_wav(path: Path, roll: ArrayLike, frame_seconds: float = FRAME_SECONDS) -> None:
    """Write a piano roll as a WAV file: mono, 16 bits, 44,100 samples a second."""
    from scipy.io import wavfile

    wavfile.write(path, RATE, (sound(roll, frame_seconds) * 32767).astype("<i2"))


def sound(roll: ArrayLike, frame_seconds: float = FRAME_SECONDS) -> NDArray[np.float64]:
    """Return the samples of a piano roll, from -1 to 1. Each note is a sine wave with overtones that fades."""
    (piano,) = _midi(roll, frame_seconds).instruments
    samples: NDArray[np.float64] = piano.synthesize(RATE, _with_overtones)
    loudest = np.abs(samples).max()
    return samples * (PEAK / loudest) if loudest else samples


def _midi(roll: ArrayLike, frame_seconds: float) -> "PrettyMIDI":
    import pretty_midi

    piano = pretty_midi.Instrument(program=0)
    for key, start, end in held_notes(roll):
        piano.notes.append(pretty_midi.Note(80, LOWEST + key, start * frame_seconds, end * frame_seconds))
    midi = pretty_midi.PrettyMIDI(initial_tempo=60 / QUARTER_SECONDS)
    midi.instruments.append(piano)
    return midi


def _with_overtones(phase: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sum([loud * np.sin(n * phase) for n, loud in enumerate(OVERTONES, 1)], axis=0)
