"""Texts and MIDI files of a user's own: read, split, trained on, continued and scored; odd files are named."""

import csv
import json
import math
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from pretty_midi import Instrument, PrettyMIDI
from pretty_midi import Note as MidiNote

import rtx
from rtx.cli.options import own_files
from rtx.cli.score import _lines
from rtx.tasks import data, task_by_name
from rtx.tasks.generate import continue_texts
from rtx.tasks.losses import bigram_nll
from rtx.tasks.task import IGNORED, SPLITS
from rtx.tasks.vocabulary import END, UNKNOWN, vocabulary
from rtx.training.checkpoint import load_checkpoint, load_texts, read_card, save_checkpoint
from rtx.training.evaluate import evaluate, token_nats
from rtx.training.fit import new_trainee
from rtx.training.recipe import load_recipe, parse_setting

STORY = "the cat sat on the mat.\n\nthe dog sat on the cat.\n" * 40
UNITS = ["characters", "words", "sub-words"]
BRIEF = ("--epochs", 1, "--set", "limit=20", "--set", "limit_evaluation=20")


def scored(task, split):
    return [t for example in task.split(split) for t in example.target.tolist() if t != IGNORED]


@pytest.fixture
def story(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("story.txt").write_text(STORY, encoding="utf-8")
    return "story.txt"


def saved(path, unit, model="gru", **arguments):
    """A checkpoint of a model that is not trained, as a run would save it."""
    torch.manual_seed(0)
    given = {"path": path, "unit": unit, "vocabulary": 30} | arguments
    task = task_by_name("text", **given)
    sizes = {"d_model": 8} if model == "gru" else {"d_model": 8, "layers": 1, "heads": 2, "segment": 6}
    texts = [text.to_json() for text in task.texts]
    facts = {"task_arguments": given, "data_sha256": task.sha256(), "texts": texts}
    save_checkpoint("best.safetensors", rtx.build(task, model, **sizes), "text", model, sizes, **facts)
    return "best.safetensors"


@pytest.mark.parametrize("unit", UNITS)
def test_a_text_is_read_back_as_it_was(story, unit):
    task = task_by_name("text", path=story, unit=unit, vocabulary=30)
    (known,) = task.texts
    tokens = [token for split in SPLITS for token in scored(task, split)]
    assert "".join(known.decode(tokens).split()) == "".join(STORY.split())
    assert known.decode(known.encode("the cat sat\n\nthe dog")) == "the cat sat\n\nthe dog"
    assert 0.89 < len(scored(task, "train")) / len(tokens) < 0.91


def test_a_folder_is_read_in_the_order_of_names_and_no_window_crosses_a_border(tmp_path, story):
    folder = tmp_path / "texts"
    (folder / "more").mkdir(parents=True)
    for name, letter in (("b", "b"), ("a", "a"), ("more/c", "c")):
        (folder / f"{name}.txt").write_bytes((letter * 100).encode("utf-16"))
    (folder / "a (copy).txt").write_text("a" * 100)  # the same text in UTF-8
    (folder / "blank.txt").write_text(" \n")  # has nothing to read
    (folder / "._a.txt").write_bytes(b"\xff\x00")  # a file of macOS beside another
    task = task_by_name("text", path=str(folder), context=5, scored=7)
    assert task.texts[0].decode(scored(task, "train")) == "a" * 100 + "b" * 100 + "c" * 70
    for inputs, target in task.split("train")[:]:
        assert len({*target[target != IGNORED].tolist()}) == 1 and len({*inputs[1:].tolist()}) <= 1
    several = task_by_name("text", path=[str(folder / "a.txt"), str(folder / "a.txt"), story])
    assert several.name == "characters:a.txt+a.txt+story.txt"
    assert several.texts[0].decode(scored(several, "train")).startswith("a" * 100 + STORY[:30])


def test_a_state_is_not_carried_from_one_file_of_the_test_split_to_the_next(tmp_path):
    sizes = {"large": 9000, "small": 100}  # the end of the first and all of the second are the test split
    for name, size in sizes.items():
        (tmp_path / f"{name}.txt").write_text("ab" * size)
    how = {"carry": True, "batching": "columns", "path": [str(tmp_path / f"{name}.txt") for name in sizes]}
    with pytest.raises(ValueError, match="carry"):
        new_trainee(load_recipe("text").plan("gru", overrides=how), 0)


def test_what_lies_in_a_hidden_folder_is_not_read(tmp_path, story):
    hidden = tmp_path / "texts" / ".copies"
    hidden.mkdir(parents=True)
    for file in (hidden / "b.txt", hidden.parent / ".c.txt", hidden.parent / "a.txt"):
        file.write_text(STORY)
    assert [file.name for file in data.own_files(str(hidden.parent), [".txt"])] == ["a.txt"]


@pytest.mark.parametrize(
    ("unit", "symbols", "text", "tokens"),
    [
        ("characters", "abcd", "ab\ncd\n", 4),  # ends of lines are not in this vocabulary, and <unk> is not either
        ("words and marks", [UNKNOWN, END, "a", "b", "c"], "a b\n\nc\n", 5),  # a line without text is left out
    ],
)
def test_a_scored_text_is_cut_as_a_training_text_is(unit, symbols, text, tokens):
    assert sum(map(len, _lines(vocabulary(unit, symbols), text).values())) == tokens


def test_the_report_has_sizes_vocabulary_and_the_unknown_share(story):
    Path(story).write_text("a b " * 90 + "\N{SNOWMAN}" * 40)
    about = task_by_name("text", path=story).about()
    assert "360" in about["data"] and "4 different" in about["vocabulary"] and "test 100.00%" in about["vocabulary"]


def test_folders_and_files_of_the_command_become_the_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "songs").mkdir()
    for name in ("my.txt", "a b.txt", 'it"s.txt', os.fsdecode(b"\xff.txt")):
        (tmp_path / name).touch()
    assert own_files("text", None, None) == []
    for paths in (["my.txt"], ["a b.txt", 'it"s.txt']):
        (setting,) = own_files("text", paths, None)
        assert parse_setting(setting) == ("path", paths if paths[1:] else paths[0])
        plan = load_recipe("text").plan("gru", overrides=dict([parse_setting(setting)]))
        assert plan.variant == f"adam+path={','.join(paths)}"
    assert own_files("music", None, ["songs/"]) == own_files("music", None, ["./songs"]) == ["path=songs"]
    with pytest.raises(ValueError, match="dcff"):
        parse_setting(*own_files("text", [os.fsdecode(b"\xff.txt")], None))
    with pytest.raises(ValueError, match="nottingham"):
        own_files("nottingham", ["my.txt"], None)
    with pytest.raises(ValueError, match="--set: .*path=poems"):
        own_files("text", ["my.txt"], None, ["unit=words", "path=poems"])


@pytest.mark.parametrize(("setting", "unit"), [("vocabulary", "sub-words"), ("least", "words")])
def test_a_setting_of_another_unit_is_refused(setting, unit):
    recipe = load_recipe("text")
    with pytest.raises(ValueError, match=f"^{setting}: .*{unit}.* 500 .*characters"):
        recipe.plan("gru", overrides={setting: 500})
    assert recipe.plan("gru", overrides={"unit": unit, setting: 500}).task_arguments == {"unit": unit, setting: 500}


@pytest.mark.parametrize(
    ("recipe", "option", "given", "named"),
    [
        ("text", "--text", "latin.txt", "offset 3"),
        ("text", "--text", "folder", ".txt"),
        ("text", "--text", "nothing", "--text: "),
        ("text", "--text", "", "--text: "),
        ("music", "--midi", "folder", ".mid"),
        ("music", "--midi", "nothing", "--midi: "),
    ],
)
def test_files_that_cannot_be_used_end_in_one_line(story, command, recipe, option, given, named):
    Path("folder").mkdir()
    Path("latin.txt").write_bytes(("caf\xe9 " * 9).encode("latin-1"))
    code, _, err = command("train", recipe, "gru", option, given, "--scale", "quick")
    assert code == 2 and named in err and given in err and err.count("\n") == 1 and "path" not in err


def midi(path, *notes):
    song = PrettyMIDI(initial_tempo=100)
    song.instruments = [Instrument(0)]
    song.instruments[0].notes = [MidiNote(80, *note) for note in notes]
    song.write(str(path))


@pytest.fixture
def songs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("songs").mkdir()
    for i in range(10):
        midi(f"songs/{i}.mid", (60, 0.0, 0.6), (62 + i, 0.6, 1.2), (64, 1.2, 3.0))
    midi("songs/high.midi", (60, 0.0, 3.0), (110, 0.0, 3.0), (75, 0.6, 1.2))
    midi("songs/empty.mid")
    Path("songs/broken.mid").write_bytes(b"MThd")
    return "songs"


def test_a_folder_of_midi_files_becomes_rolls_and_odd_files_are_named(songs):
    task = task_by_name("music", path=songs)
    assert [len(task.split(split)) for split in SPLITS] == [9, 1, 1]
    about = task.about()
    assert "empty.mid" in about["left out"] and "broken.mid" in about["left out"] and "1 of 3" in about["other keys"]
    assert "high.midi" in about["other keys"] and task.frame_seconds == 0.3
    assert "equal pieces" not in about
    copy = pickle.loads(pickle.dumps(task)).split("test")  # as for a worker that is started by `spawn`
    assert torch.equal(copy[0].inputs, task.split("test")[0].inputs)
    midi("songs/again.mid", (65, 0.0, 0.6), (67, 0.6, 1.2), (69, 1.2, 3.0))  # 0.mid, five semitones higher
    assert "1 of 12" in task_by_name("music", path=songs).about()["equal pieces"]
    Path("songs/again.mid").unlink()
    finer = task_by_name("music", path=songs, frame=0.25)
    assert finer.frame_seconds == 0.15
    assert len(finer.split("test")[0].inputs) == 2 * len(task.split("test")[0].inputs) + 1


def test_transposed_copies_are_for_training_alone(songs):
    plain, moved = (task_by_name("music", path=songs, transpose=by) for by in (0, 2))
    assert len(moved.split("train")) == 5 * 9 and len(moved.split("test")) == 1
    first, up = (moved.split("train")[i].target.numpy() for i in (0, 9))
    assert np.array_equal(np.roll(first, -1, 1), up) or np.array_equal(np.roll(first, 1, 1), up)
    assert moved.sha256() == plain.sha256()
    Path("songs/3.mid").unlink()
    assert task_by_name("music", path=songs).sha256() != plain.sha256()


def test_too_few_pieces_are_refused_and_the_reasons_are_named(songs):
    with pytest.raises(ValueError, match=r"got 1.*broken\.mid"):
        task_by_name("music", path=["songs/1.mid", "songs/broken.mid"]).split("train")


@pytest.mark.slow
def test_own_music_goes_from_files_to_a_tune(songs, command):
    assert command("train", "music", "gru", "--midi", songs, "--scale", "quick", "--set", "frame=0.25", *BRIEF)[0] == 0
    (checkpoint,) = Path("runs").rglob("best.safetensors")
    assert command("generate", checkpoint, "--tokens", 8, "--out", "a.mid", "--prompt", "songs/1.mid")[0] == 0
    assert command("generate", checkpoint, "--out", "a.mid", "--prompt", "./a.mid")[0] == 2
    assert PrettyMIDI("a.mid").get_end_time() <= (10 + 16) * 0.15 + 1e-6
    assert command("evaluate", checkpoint)[0] == 0
    Path("songs/1.mid").unlink()
    assert command("evaluate", checkpoint)[0] == 2
    assert command("generate", checkpoint, "--tokens", 8, "--out", "a.mid")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_own_text_goes_from_a_file_to_a_continuation(story, command, unit):
    train = ("train", "text", "gru", "--text", story, "--scale", "quick", *BRIEF)
    train += ("--set", f"unit={unit}", *(("--set", "vocabulary=30") if unit == "sub-words" else ()))
    code, out, _ = command(*train)
    assert code == 0 and "vocabulary" in out
    (checkpoint,) = Path("runs").rglob("best.safetensors")
    code, out, _ = command("generate", checkpoint, "--prompt", "the cat", "--tokens", 20)
    assert code == 0 and out.startswith("the cat") and UNKNOWN not in out
    assert command("evaluate", checkpoint)[0] == command("score", checkpoint, story)[0] == 0
    Path(story).write_text(STORY + "a dog.\n")
    code, _, err = command("evaluate", checkpoint)
    assert code == 2 and err.count("\n") == 1
    code, _, err = command(*train, "--resume")
    assert code == 2 and err.splitlines()[-1].startswith("rtx: resume: ") and story in err and "{" not in err
    Path(story).unlink()
    code, _, err = command("evaluate", checkpoint)
    assert code == 2 and story in err
    assert command("generate", checkpoint, "--tokens", 5)[0] == 0


@pytest.mark.slow
def test_a_sweep_reads_own_files_all_together(story, command):
    Path("other.txt").write_text(STORY.replace("cat", "cow"))
    sweep = ("sweep", "text", "gru", "--scale", "quick", *BRIEF, "--set", "learning_rate=0.01,0.003")
    code, out, _ = command(*sweep, "--text", story, "--text", "other.txt", "--test", "--results", "results")
    assert code == 0 and "2 runs" in out
    (result,) = map(json.loads, map(Path.read_text, Path("results").rglob("*.json")))
    assert result["data"] == f"characters:{story}+other.txt"
    assert command(*sweep, "--midi", story)[0] == 2


def continued(network, known, prompt, tokens, **how):
    return "".join(piece for (piece,) in continue_texts(network, known, [prompt], tokens, **how))


@pytest.mark.parametrize("model", ["gru", "character-transformer"])
def test_prompts_of_several_lengths_go_on_as_each_does_alone(story, model):
    network = load_checkpoint(path := saved(story, "characters", model)).double()
    (known,) = load_texts(path)
    prompts = ["the", "", "the cat sat on"]
    alone = [continued(network, known, prompt, 15, seed=3) for prompt in prompts]
    together = map("".join, zip(*continue_texts(network, known, prompts, 15, seed=3), strict=True))
    assert [*together] == alone and {len(text) for text in alone} == {15}


def test_a_stop_ends_a_text_before_it_but_not_within_the_least_tokens(story):
    network = load_checkpoint(path := saved(story, "characters"))
    (known,) = load_texts(path)
    whole = continued(network, known, "the", 200)
    stop = whole[20:23]
    at = whole.index(stop)
    assert continued(network, known, "the", 200, stop=[stop]) == whole[:at]
    later = continued(network, known, "the", 200, stop=[stop], least=at + 5)
    assert len(later) > at + 3 and whole.startswith(later)
    assert continued(network, known, "the", 9, stop=[whole[8] + "!"]) == whole[:9]
    for wrong in ({"stop": [""]}, {"least": 201}, {"forbidden": ["\N{SNOWMAN}"]}, {"forbidden": ["th"]}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            continued(network, known, "the", 200, **wrong)


def test_forbidden_symbols_are_never_written(story, command):
    path = saved(story, "words")
    _, out, _ = command("generate", path, "--tokens", 200, "--forbid", "cat", "--forbid", r"\n")
    assert "cat" not in out and UNKNOWN not in out and out.count("\n") == 1 and "dog" in out
    _, out, _ = command("generate", path, "--tokens", 5, "--prompt", "the", "--prompt", "a dog")
    assert out.startswith("the ") and "\na dog " in out


def test_the_bigram_sums_to_one_and_follows_its_formula():
    train = torch.tensor([0, 1, 0, 1, 0, 2])
    every = [bigram_nll(train, torch.tensor([a, b]), 0, 4)[1].neg().exp() for a in range(4) for b in range(4)]
    torch.testing.assert_close(torch.stack(every).reshape(4, 4).sum(1), torch.ones(4, dtype=torch.double))
    # after 0 came 0, 1, 1, 2, the first 0 being after the start: three kinds
    assert float(every[1]) == pytest.approx((2 + 3 * 3 / 10) / (4 + 3))


@pytest.mark.parametrize("unit", UNITS)
def test_a_text_is_scored_as_the_test_split_is(story, command, unit):
    path, card = saved(story, unit), read_card("best.safetensors")
    task, (known,) = task_by_name("text", **card["task_arguments"]), load_texts(path)
    tokens = torch.tensor(scored(task, "test"))
    nats = float(token_nats(load_checkpoint(path), card, known, tokens).mean())
    expected = nats / math.log(2) if unit == "characters" else math.exp(nats)
    assert evaluate(Path(path))[task.metric] == pytest.approx(expected, rel=1e-4)
    Path("a.txt").write_text("the cat\n\nthe zebra\n")
    code, out, _ = command("score", path, "a.txt", story, "--lines", "--csv", "scores.csv")
    rows = [*csv.DictReader(Path("scores.csv").read_text().splitlines())]
    assert code == 0 and "line 3" in out
    mine = [row for row in rows if row["file"] == "a.txt"]
    lines, whole = [row for row in mine if row["line"]], mine[-1]
    numbers = ["1", "3"] if unit == "words" else ["1", "2", "3"]
    assert [row["line"] for row in lines] == numbers and rows[-1]["file"] == "all"
    assert sum(int(row["tokens"]) for row in lines) == int(whole["tokens"]) and float(lines[-1]["unknown"]) > 0
    assert all(float(row["bigram"]) > 0 for row in rows)
    assert command("score", path, "a.txt", "--csv", path)[0] == 2 and load_checkpoint(path)
    Path("a.txt").rename(odd := os.fsdecode(b"\xff.txt"))
    assert command("score", path, odd, "--csv", "scores.csv")[0] == 0 and "udcff" in Path("scores.csv").read_text()


@pytest.mark.parametrize("name", ["best.safetensors", "model.safetensors"])
def test_a_checkpoint_may_be_named_by_its_folder(story, command, name):
    Path("run").mkdir()
    code, _, err = command("score", "run", story)
    assert code == 2 and "checkpoint: " in err and "got run" in err and err.count("\n") == 1
    path = Path(saved(story, "characters")).rename(f"run/{name}")
    assert command("score", "run", story)[:2] == command("score", path, story)[:2]
    assert command("score", "run", story, "--csv", path)[0] == 2 and load_checkpoint(path)


def test_without_the_training_text_a_score_has_no_bigram(story, command):
    path = saved(story, "words")
    Path(story).rename("moved.txt")
    code, out, err = command("score", path, "moved.txt")
    assert code == 0 and " nan " in out and story in err
    code, _, err = command("score", path, "nothing.txt")
    assert code == 2 and err.startswith("rtx: nothing.txt ")
    before = Path("moved.txt").read_bytes()
    code, *_ = command("score", path, "moved.txt", "--csv", "moved.txt")
    assert code == 2 and Path("moved.txt").read_bytes() == before


def test_a_sub_word_vocabulary_of_lines_comes_back_from_its_checkpoint(story):
    (known,) = load_texts(saved(story, "sub-words"))
    assert known.encode("the cat\n")[-1] == known.start and known.decode([known.start]) == "\n"
    assert vocabulary("words", ["the", END, UNKNOWN]).unwritten == [2]
