"""`rtx generate`: texts on the terminal, tunes as MIDI and sound; the same again for the same seed."""

import errno
import os
import re
import time
import tracemalloc
import wave
from pathlib import Path

import numpy as np
import pytest
import torch
from music21 import converter, midi
from pretty_midi import Instrument, PrettyMIDI
from pretty_midi import Note as MidiNote

import rtx
from rtx.tasks.generate import continue_texts
from rtx.tasks.rolls import RATE, Note, held_notes, read_midi, roll_of, sound, write_midi, write_wav
from rtx.tasks.text import characters, words
from rtx.tasks.vocabulary import vocabulary
from rtx.training.checkpoint import load_checkpoint, save_checkpoint

STORY = "the cat sat on the mat.\nthe dog sat on the cat.\n" * 5


def played(path: Path, quarter: int = 2) -> list[Note]:
    """The notes of a MIDI file, event by event, as music21 reads them; `quarter` frames are a quarter note."""
    file = midi.MidiFile()
    file.open(path)
    file.read()
    file.close()
    now, began, found = 0.0, {}, []
    for event in file.tracks[-1].events:
        if isinstance(event, midi.DeltaTime):
            now += event.time / file.ticksPerQuarterNote * quarter
        elif event.isNoteOn():
            began[event.pitch] = round(now)
        elif event.isNoteOff():
            found.append(Note(event.pitch - 21, began.pop(event.pitch), round(now)))
    return sorted(found)


@pytest.fixture(params=["characters", "words"])
def text_model(request, tmp_path):
    """A checkpoint of a model of a text that is not the manual."""
    path = tmp_path / "story.txt"
    path.write_text(STORY)
    task = {"characters": characters, "words": words}[request.param](path)
    torch.manual_seed(0)
    network = rtx.build(task, "lstm", d_model=8).eval()
    saved = tmp_path / "best.safetensors"
    texts = [text.to_json() for text in task.texts]
    save_checkpoint(saved, network, request.param, "lstm", {"d_model": 8}, texts=texts)
    return saved, network, task.texts[0]


def written(network, known, prompt, tokens, **how):
    """The tokens of a prompt and those that the model adds; it cannot draw tokens that are no text."""
    with torch.no_grad():
        network.decoder.bias[[*known.unwritten]] = -torch.inf
    return network.generate(torch.tensor([prompt]), tokens, **how)[0].tolist()


@pytest.fixture
def music_model(tmp_path):
    torch.manual_seed(0)
    saved = tmp_path / "best.safetensors"
    network = rtx.build("nottingham", "gru", d_model=8)
    with torch.no_grad():
        network.head.bias.fill_(-3)  # a few notes of 88 in a frame
    save_checkpoint(saved, network, "nottingham", "gru", {"d_model": 8})
    return saved


def test_a_text_goes_on_behind_its_prompt_and_is_the_same_for_the_same_seed(command, text_model):
    saved, network, known = text_model
    first, again, other = (
        command("generate", saved, "--prompt", "the cat", "--tokens", 40, "--seed", seed).stdout for seed in (1, 1, 2)
    )
    assert first == again != other
    assert first.startswith("the cat")
    assert first == known.decode(written(network, known, known.encode("the cat"), 40, seed=1)) + "\n"


def test_temperature_top_k_and_top_p_reach_the_draws(command, text_model):
    saved, network, known = text_model
    likeliest = known.decode(written(network, known, known.encode("the"), 20, temperature=0))
    for option in (("--temperature", 0), ("--top-k", 1), ("--top-p", 1e-9)):
        assert command("generate", saved, "--prompt", "the", "--tokens", 20, *option).stdout == likeliest + "\n"


def test_without_a_prompt_a_text_begins_where_one_begins(command, text_model):
    saved, network, known = text_model
    found = command("generate", saved, "--tokens", 15).stdout
    tokens = written(network, known, [known.start], 15)
    begun, whole = known.decode(tokens[:1]), known.decode(tokens)
    assert found == whole[len(begun) :] + "\n"


def test_pieces_come_one_by_one_as_they_are_drawn(text_model):
    _, network, known = text_model
    steps = []
    inner = network.backbone.step
    network.backbone.step = lambda *given: steps.append(1) or inner(*given)
    pieces = continue_texts(network, known, ["the"], 10)
    next(pieces)
    read = len(known.encode("the"))
    assert len(steps) == read
    assert len(list(pieces)) == 9 and len(steps) == read + 9


def test_a_tune_is_written_as_midi_and_as_sound(command, music_model, tmp_path):
    out = [tmp_path / "a.mid", tmp_path / "a.wav"]
    done = command("generate", music_model, "--tokens", 12, "--out", out[0], "--out", out[1])
    assert done.returncode == 0 and done.stdout.split() == ["wrote", str(out[0]), "wrote", str(out[1])]
    assert len(played(out[0])) > 5
    with wave.open(str(out[1])) as file:
        assert file.getnframes() / file.getframerate() == pytest.approx(13 * 0.3 + 1, abs=0.7)
    before = out[1].read_bytes()
    command("generate", music_model, "--tokens", 12, "--out", out[1])
    assert out[1].read_bytes() == before
    command("generate", music_model, "--tokens", 12, "--out", out[1], "--seed", 1)
    assert out[1].read_bytes() != before


@pytest.mark.parametrize("name", ["a.mid", "a.wav"])
def test_a_full_disk_leaves_the_former_tune(command, music_model, tmp_path, monkeypatch, name):
    def full(*_):
        raise OSError(errno.ENOSPC, "the disk is full")

    (path := tmp_path / name).write_text("the former tune")
    monkeypatch.setattr("os.fsync", full)
    done = command("generate", music_model, "--tokens", 4, "--out", path)
    assert done.returncode == 1 and str(path) in done.stderr
    assert path.read_text() == "the former tune" and not [*tmp_path.glob("*.partial")]


@pytest.mark.parametrize("name", ["nottingham", "jsb"])  # whose frames are an eighth note and a quarter note
def test_a_tune_of_a_file_is_continued(command, music_model, tmp_path, real_data, name):
    save_checkpoint(music_model, load_checkpoint(music_model), name, "gru", {"d_model": 8})
    task, out = rtx.tasks.task_by_name(name), tmp_path / "a.mid"
    read = task.split("test")[3].inputs[:16].numpy()
    write_midi(tmp_path / "start.mid", read, task.frame_seconds)
    prompt = ("--prompt", tmp_path / "start.mid")
    assert command("generate", music_model, *prompt, "--tokens", 4, "--out", out).returncode == 0
    notes = played(out, {"nottingham": 2, "jsb": 1}[name])
    assert [note._replace(end=min(note.end, 16)) for note in notes if note.start < 16] == held_notes(read)


@pytest.mark.parametrize("place", ["none/a.wav", "folder.wav"])
def test_nothing_is_written_unless_all_can_be(command, music_model, tmp_path, place):
    (tmp_path / "folder.wav").mkdir()
    done = command("generate", music_model, "--tokens", 4, "--out", tmp_path / "a.mid", "--out", tmp_path / place)
    assert done.stderr.startswith("rtx: out: ") and str(tmp_path / place) in done.stderr
    assert not (tmp_path / "a.mid").exists()


@pytest.mark.parametrize("quarter", [1, 2])
def test_midi_holds_the_roll_at_the_length_of_its_frames(tmp_path, quarter):
    roll = roll_of([Note(0, 0, 8), Note(39, 1, 8), Note(43, 1, 3), Note(51, 3, 4), Note(51, 6, 8), Note(87, 7, 8)])
    write_midi(tmp_path / "a.mid", roll, 0.6 / quarter)
    assert played(tmp_path / "a.mid", quarter) == held_notes(roll)
    (tempo,) = converter.parse(tmp_path / "a.mid").flatten().getElementsByClass("MetronomeMark")
    assert tempo.getQuarterBPM() == pytest.approx(100)
    np.testing.assert_array_equal(read_midi(tmp_path / "a.mid", 0.6 / quarter), roll)
    assert held_notes(np.zeros((4, 88))) == []


def test_a_midi_file_is_read_by_its_beats_and_without_drums(tmp_path):
    song = PrettyMIDI(initial_tempo=60)  # an eighth note lasts half a second
    song.instruments = [Instrument(0), Instrument(73), Instrument(0, is_drum=True)]
    for instrument, pitch, start, end in [(0, 60, 1.0, 1.5), (0, 60, 1.5, 2.0), (1, 64, 1.52, 2.6), (2, 40, 0.0, 9.0)]:
        song.instruments[instrument].notes.append(MidiNote(80, pitch, start, end))
    song.write(str(tmp_path / "a.mid"))
    assert held_notes(read_midi(tmp_path / "a.mid")) == [Note(39, 0, 2), Note(43, 1, 3)]


@pytest.mark.parametrize("notes", [[], [(20, 0.0, 1.0)], [(109, 0.0, 1.0)], [(60, 0.0, 0.01)]])
def test_a_midi_file_without_notes_of_the_88_keys_is_refused(tmp_path, notes):
    song = PrettyMIDI()
    song.instruments = [Instrument(0)]
    song.instruments[0].notes = [MidiNote(80, *note) for note in notes]
    song.write(str(tmp_path / "a.mid"))
    with pytest.raises(ValueError, match=f"a.mid: .* got {notes[0][0] if notes and notes[0][0] != 60 else 'none'}$"):
        read_midi(tmp_path / "a.mid")


def test_what_is_no_midi_file_is_refused(tmp_path):
    for content in (b"", b"MThd", b"a tune" * 100):
        (tmp_path / "a.mid").write_bytes(content)
        with pytest.raises(ValueError, match="a.mid: "):
            read_midi(tmp_path / "a.mid")
    os.truncate(tmp_path / "a.mid", 2**24 + 1)  # a sparse file
    for path in (tmp_path / "a.mid", Path("/dev/zero")):
        with pytest.raises(ValueError, match="at most 16,777,216 bytes"):
            read_midi(path)


def test_a_note_sounds_in_its_time_and_a_wav_file_holds_the_samples(tmp_path):
    roll = np.zeros((8, 88))
    roll[2:6, 48] = 1
    for seconds in (0.3, 0.6):
        samples = sound(roll, seconds) / 2**15
        begin, end = round(2 * seconds * RATE), round(6 * seconds * RATE)
        assert not samples[: begin - 1].any() and not samples[end + 1 :].any()
        assert np.abs(samples[begin : begin + RATE // 20]).max() > 0.1
        assert np.abs(samples).max() == pytest.approx(0.8, abs=1e-4)
    write_wav(tmp_path / "a.wav", roll, seconds)
    with wave.open(str(tmp_path / "a.wav")) as file:
        stored = np.frombuffer(file.readframes(len(samples) + 1), "<i2") / 2**15
        assert (file.getframerate(), file.getnchannels()) == (RATE, 1)
    np.testing.assert_array_equal(stored, samples)
    assert not sound(np.zeros((4, 88))).any()


def test_notes_sound_as_pretty_midi_would_play_them():
    roll = np.zeros((80, 88))
    roll[:, 30], roll[5:20, 48], roll[30:40:2, 60], roll[3:9, 87] = 1, 1, 1, 1
    piano = Instrument(0)
    piano.notes = [MidiNote(80, 21 + key, start / 4, end / 4) for key, start, end in held_notes(roll)]
    wave_ = lambda phase: sum(np.sin(n * phase) / 2 ** (n - 1) for n in (1, 2, 3, 4))  # noqa: E731
    expected, found = piano.synthesize(RATE, wave_), sound(roll, 0.25)
    expected = expected * 0.8 * 2**15 / np.abs(expected).max()
    assert len(found) == len(expected)
    assert np.abs(found - expected).max() < 20  # of 32,768


def test_a_tune_of_many_frames_needs_little_time_and_memory():
    roll = np.random.default_rng(0).random((6000, 88)) < 0.05
    roll[:, 40] = 1  # held for half an hour
    tracemalloc.start()
    begin = time.process_time()
    samples = sound(roll)
    seconds, peak = time.process_time() - begin, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(samples) / RATE == pytest.approx(6000 * 0.3 + 1) and peak < 300e6 and seconds < 10


@pytest.mark.parametrize("text_model", ["characters"], indirect=True)
def test_what_cannot_be_generated_is_refused(command, text_model, tmp_path):
    saved, network, _ = text_model
    music = tmp_path / "music.safetensors"
    save_checkpoint(music, rtx.build("nottingham", "gru", d_model=8), "nottingham", "gru", {"d_model": 8})
    sums = tmp_path / "sums.safetensors"
    save_checkpoint(sums, rtx.build("add", "gru", d_model=8), "add", "gru", {"d_model": 8})
    for words_, message in [
        ((music, "--out", "a.mp3"), "out: .* a.mp3"),
        ((music, "--top-k", 3), "top-k: .* 3"),
        ((music, "--top-p", 0), "top-p: .* 0"),
        ((music, "--prompt", "a.mid", "--prompt", "b.mid"), "prompt: .* 2"),
        ((sums,), "sums.safetensors: .* add"),
        ((saved, "--out", "a.mid"), "out: "),
        ((saved, "--prompt", "the", "--top-p", 7), "top_p: "),
    ]:
        done = command("generate", *words_)
        assert re.search(message, done.stderr) and done.stdout == ""
    (tmp_path / "empty").mkdir()
    assert command("generate", tmp_path / "none").returncode == command("generate", tmp_path / "empty").returncode == 2
    with pytest.raises(ValueError, match="vocabulary: expected the model's .* symbols, got 3"):
        next(continue_texts(network, vocabulary("characters", "abc"), ["a"], 3))
    with pytest.raises(ValueError, match="tokens: expected a whole number of at least 1, got 0"):
        next(continue_texts(network, vocabulary("characters", "abc"), ["a"], 0))
