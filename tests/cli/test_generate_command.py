"""`rtx generate`: texts on the terminal, tunes as MIDI and sound; the same again for the same seed."""

import wave
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from music21 import converter, midi
from typer.testing import CliRunner

import rtx
from rtx.cli.generate import generate
from rtx.tasks.generate import continue_text
from rtx.tasks.music import FRAME_SECONDS
from rtx.tasks.sound import RATE, Note, held_notes, sound, write_midi, write_wav
from rtx.tasks.text import characters, words
from rtx.tasks.vocabulary import vocabulary
from rtx.training.checkpoint import save_checkpoint

STORY = "the cat sat on the mat.\nthe dog sat on the cat.\n" * 5


def played(path: Path) -> list[Note]:
    """The notes of a MIDI file, event by event; half a quarter is a frame."""
    file = midi.MidiFile()
    file.open(path)
    file.read()
    file.close()
    kinds, now, began, found = midi.ChannelVoiceMessages, 0.0, {}, []
    for event in file.tracks[-1].events:
        if isinstance(event, midi.DeltaTime):
            now += event.time / file.ticksPerQuarterNote * 2
        elif event.type is kinds.NOTE_ON:
            began[event.pitch] = int(now)
        elif event.type is kinds.NOTE_OFF:
            found.append(Note(event.pitch - 21, began.pop(event.pitch), int(now)))
    return sorted(found)


def roll_of(*notes: Note, frames: int = 8) -> np.ndarray:
    roll = np.zeros((frames, 88), np.uint8)
    for key, start, end in notes:
        roll[start:end, key] = 1
    return roll


@pytest.fixture
def command():
    app = typer.Typer()
    app.command()(generate)

    def run(*words: object):
        return CliRunner().invoke(app, [str(word) for word in words])

    return run


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
        command(saved, "--prompt", "the cat", "--tokens", 40, "--seed", seed).stdout for seed in (1, 1, 2)
    )
    assert first == again != other
    assert first.startswith("the cat")
    prompt = torch.tensor([known.encode("the cat")])
    whole = network.generate(prompt, 40, seed=1)
    assert first == known.decode(whole[0].tolist()) + "\n"


def test_a_closed_standard_output_is_no_traceback(text_model, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    path, *_ = text_model
    generate(path, prompt="the", tokens=2, top_k=None, device=None, out=None)


def test_an_argument_out_of_range_prints_nothing_but_the_error(command, text_model):
    path, *_ = text_model
    done = command(path, "--prompt", "the", "--top-p", 7)
    assert "top_p: expected" in str(done.exception) and done.stdout == ""


def test_a_device_that_is_not_there_is_refused(command, text_model):
    saved, *_ = text_model
    assert command(saved, "--tokens", 3, "--device", "cpu").exit_code == 0
    error = command(saved, "--tokens", 3, "--device", "gpu").exception
    assert str(error).startswith("device: 'gpu' is unknown, allowed are cpu")


def test_temperature_top_k_and_top_p_reach_the_draws(command, text_model):
    saved, network, known = text_model
    likeliest = known.decode(network.generate(torch.tensor([known.encode("the")]), 20, temperature=0)[0].tolist())
    for option in (("--temperature", 0), ("--top-k", 1), ("--top-p", 1e-9)):
        assert command(saved, "--prompt", "the", "--tokens", 20, *option).stdout == likeliest + "\n"


def test_without_a_prompt_a_text_begins_where_one_begins(command, text_model):
    saved, network, known = text_model
    found = command(saved, "--tokens", 15).stdout
    tokens = network.generate(torch.tensor([[known.start]]), 15)[0].tolist()
    begun, whole = known.decode(tokens[:1]), known.decode(tokens)
    assert found == whole[len(begun) :] + "\n"


def test_pieces_come_one_by_one_as_they_are_drawn(text_model):
    _, network, known = text_model
    steps = []
    inner = network.backbone.step
    network.backbone.step = lambda *given: steps.append(1) or inner(*given)
    pieces = continue_text(network, known, "the", 10)
    next(pieces)
    read = len(known.encode("the"))
    assert len(steps) == read
    assert len(list(pieces)) == 9 and len(steps) == read + 9


def test_dropout_is_off_while_a_text_is_drawn_and_comes_back(text_model):
    _, network, known = text_model
    network.backbone.dropout.p = 0.5
    network.train()
    first, again = ("".join(continue_text(network, known, "the", 20)) for _ in range(2))
    assert first == again and network.training


def test_a_tune_is_written_as_midi_and_as_sound(command, music_model, tmp_path):
    out = [tmp_path / "a.mid", tmp_path / "a.wav"]
    done = command(music_model, "--tokens", 12, "--out", out[0], "--out", out[1])
    assert done.exit_code == 0 and done.stdout.split() == ["wrote", str(out[0]), "wrote", str(out[1])]
    assert len(played(out[0])) > 5
    with wave.open(str(out[1])) as file:
        assert file.getnframes() / file.getframerate() == pytest.approx(13 * FRAME_SECONDS, abs=0.2)
    before = out[1].read_bytes()
    command(music_model, "--tokens", 12, "--out", out[1])
    assert out[1].read_bytes() == before
    command(music_model, "--tokens", 12, "--out", out[1], "--seed", 1)
    assert out[1].read_bytes() != before


def test_a_tune_of_the_test_split_is_continued(command, music_model, tmp_path, real_data):
    out = tmp_path / "a.mid"
    assert command(music_model, "--prompt", 3, "--tokens", 4, "--out", out).exit_code == 0
    read = rtx.tasks.task_by_name("nottingham").split("test")[3].inputs[:16].numpy()
    found = [note._replace(end=min(note.end, 16)) for note in played(out) if note.start < 16]
    assert found == held_notes(read)
    done = command(music_model, "--prompt", 170, "--out", out)
    assert str(done.exception) == "prompt: expected the number of a test tune, 0 to 169, got '170'"


@pytest.mark.parametrize("place", ["none/a.wav", "folder.wav"])
def test_nothing_is_written_unless_all_can_be(command, music_model, tmp_path, place):
    (tmp_path / "folder.wav").mkdir()
    done = command(music_model, "--tokens", 4, "--out", tmp_path / "a.mid", "--out", tmp_path / place)
    assert str(done.exception) == f"out: expected a file in a folder that exists, got {tmp_path / place}"
    assert not (tmp_path / "a.mid").exists()


def test_a_sound_that_cannot_be_written_is_one_error(tmp_path):
    """What a destructor complains of besides would fail the test: see `filterwarnings` in pyproject.toml."""
    with pytest.raises(FileNotFoundError):
        write_wav(tmp_path / "none" / "a.wav", roll_of(Note(48, 2, 6)))


def test_keys_that_sound_on_are_one_note():
    notes = [Note(0, 0, 2), Note(39, 1, 8), Note(51, 3, 4), Note(51, 6, 8)]
    assert held_notes(roll_of(*notes)) == notes
    assert held_notes(np.zeros((4, 88))) == []


def test_midi_holds_the_roll(tmp_path):
    roll = roll_of(Note(0, 0, 8), Note(39, 1, 8), Note(43, 1, 3), Note(51, 3, 4), Note(51, 6, 8))
    write_midi(tmp_path / "a.mid", roll)
    assert played(tmp_path / "a.mid") == held_notes(roll)
    (tempo,) = converter.parse(tmp_path / "a.mid").flatten().getElementsByClass("MetronomeMark")
    assert tempo.getQuarterBPM() == pytest.approx(60 / (2 * FRAME_SECONDS))  # a frame is an eighth note


def test_a_note_sounds_at_its_pitch_and_in_its_time(tmp_path):
    samples = sound(roll_of(Note(48, 2, 6)))  # A4
    assert not samples[: round(2 * FRAME_SECONDS * RATE)].any()
    assert np.abs(samples[: round(2.2 * FRAME_SECONDS * RATE)]).max() > 0.1
    assert np.abs(samples[round(5.8 * FRAME_SECONDS * RATE) : round(6 * FRAME_SECONDS * RATE)]).max() > 0.1
    assert not samples[round((6 * FRAME_SECONDS + 0.1) * RATE) + 1 :].any()  # it dies away for a tenth of a second
    assert np.abs(samples).max() == pytest.approx(0.8)
    spectrum = np.abs(np.fft.rfft(samples))
    assert np.fft.rfftfreq(len(samples), 1 / RATE)[spectrum.argmax()] == pytest.approx(440, abs=1)
    write_wav(tmp_path / "a.wav", roll_of(Note(48, 2, 6)))
    with wave.open(str(tmp_path / "a.wav")) as file:
        stored = np.frombuffer(file.readframes(len(samples) + 1), "<i2") / 32767
    np.testing.assert_allclose(stored, samples, atol=1e-4)
    assert not sound(np.zeros((4, 88))).any()


def test_what_cannot_be_generated_is_refused(command, text_model, music_model, tmp_path):
    _, network, _ = text_model
    music = tmp_path / "music.safetensors"
    save_checkpoint(music, rtx.build("nottingham", "gru", d_model=8), "nottingham", "gru", {"d_model": 8})
    sums = tmp_path / "sums.safetensors"
    save_checkpoint(sums, rtx.build("add", "gru", d_model=8), "add", "gru", {"d_model": 8})
    for words_, message in [
        ((music, "--out", "a.mp3"), "out: expected a file that ends in .mid or .wav, got a.mp3"),
        ((music, "--top-k", 3), "top_k, top_p: choose among tokens"),
        ((sums,), "sums.safetensors: expected a model of a text or of music, got one of add"),
        ((tmp_path / "none",), "none: there is no such checkpoint"),
        ((tmp_path,), f"{tmp_path}: expected a checkpoint, got a folder"),
    ]:
        assert message in str(command(*words_).exception)
    with pytest.raises(ValueError, match="vocabulary: expected the model's .* symbols, got 3"):
        continue_text(network, vocabulary("characters", "abc"), "a", 3)
    with pytest.raises(ValueError, match="tokens: expected a whole number of at least 1, got 0"):
        continue_text(network, vocabulary("characters", "abc"), "a", 0)
