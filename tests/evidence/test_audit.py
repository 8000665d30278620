"""`rtx ledger check` finds every number that cannot be traced and measured again."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from rtx.evidence import audit as audits
from rtx.evidence.agenda import as_typed
from rtx.evidence.audit import audit, is_in_history
from rtx.tasks import task_by_name
from rtx.training import provenance
from rtx.training.recipe import load_recipe, parse_setting

ROOT = Path(__file__).parents[2]
RUN = "rtx train nottingham gru --seed 0"
SET = f"{RUN} --set "


def test_the_ledger_has_no_fault():
    assert audit(ROOT / "results") == []
    assert list((ROOT / "results").glob("*/*.json"))


@pytest.fixture
def damaged(tmp_path):
    """A copy of one run, to be changed: its file and its content."""
    (source,) = (ROOT / "results" / "nottingham").glob("gru-adam-s0-*.json")
    path = tmp_path / "nottingham" / source.name
    path.parent.mkdir()
    shutil.copy(source, path)
    return path, json.loads(path.read_text())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"commit": None}, "None"),
        ({"commit": "a" * 40 + "-dirty"}, "aaa-dirty"),
        ({"recipe_file": {"sha256": "ab12", "in_commit": False}}, "ab12"),
        ({"data_sha256": "0"}, "checksum 0,"),
        ({"model": "lstm"}, "rtx train nottingham gru"),
        ({"model": "perceptron", "command": "rtx train nottingham perceptron"}, "'perceptron'"),
        ({"command": "python train.py"}, "python train.py"),
        ({"command": "rtx train 'nottingham"}, "quotation"),
        ({"command": SET + "d_modl=3"}, "'d_modl'"),
        ({"command": SET + "d_model"}, "'d_model'"),
        ({"command": SET + "window=3"}, "'window'"),
        ({"scale": "huge", "command": RUN + " --scale huge"}, "'huge'"),
        ({"test": float("nan")}, "not finite"),
        ({"validation": float("inf")}, "not finite"),
        ({"epoch": 0}, "epoch"),
        ({"seed": 7}, "--seed 0, but the file says 7"),
        ({"scale": "quick"}, "--scale full, but the file says quick"),
        ({"variant": "same-parameters"}, "--variant adam, but the file says same-parameters"),
        ({"variant": "adam+window=3"}, "adam+window=3"),
        ({"command": RUN + " --seed 7"}, "--seed 0 and 7"),
        ({"epoch": 99}, "99"),
        ({"command": RUN + " --epochs 1", "epoch": 2}, "trains for 1"),
    ],
)
def test_each_fault_is_named_with_its_file(damaged, change, named):
    path, content = damaged
    assert audit(path.parents[1]) == []
    path.write_text(json.dumps(content | change))
    found, *_ = audit(path.parents[1])
    assert found.startswith(f"{path}: ") and named in found


def test_a_commit_that_is_nobodys_is_named(damaged, monkeypatch):
    path, content = damaged
    monkeypatch.setattr(audits, "is_in_history", lambda commit: False)
    assert audit(path.parents[1]) == [f"{path}: its commit is not in this repository: {content['commit']}"]


@pytest.fixture
def of_settings(damaged):
    """Writes a run of the quick scale that was made with some settings on other data than without; gives the ledger."""
    path, content = damaged

    def write(recipe, row, data_sha256, *settings):
        command = as_typed(recipe, row, None, "quick", 0, None, settings, [])
        variant = load_recipe(recipe).plan(row, None, dict(map(parse_setting, settings)), "quick").variant
        made = {"recipe": recipe, "model": row, "variant": variant, "scale": "quick", "epoch": 1}
        made |= {"data_sha256": data_sha256, "command": command}
        path.unlink()
        folder = path.parents[1] / recipe
        folder.mkdir()
        (folder / path.name).write_text(json.dumps(content | made))
        return path.parents[1]

    return write


def test_data_of_another_size_or_text_are_told_from_other_data(of_settings, tmp_path):
    story = tmp_path / "it's mine.txt"
    story.write_text("the cat sat on the mat. " * 20)
    of_text = hashlib.sha256(story.read_bytes()).hexdigest()
    assert audit(of_settings("ptb-char", "gru", of_text, f"path={story}")) == []
    story.write_text("the dog sat on the mat. " * 20)
    (fault,) = audit(tmp_path)
    assert f"its data has the checksum {of_text}, today's data has " in fault
    story.unlink()
    (fault,) = audit(tmp_path)
    assert str(story) in fault


@pytest.mark.parametrize("setting", ["size=200", "vocabulary=120"])
def test_data_are_those_of_the_commands_settings(of_settings, setting):
    key, value = parse_setting(setting)
    ours = task_by_name("dates", **{"size": 600, key: value}).sha256()
    assert audit(of_settings("multi30k", "baseline", ours, "size=600", setting)) == []


def test_a_file_cut_short_or_in_anothers_folder_is_named(damaged):
    path, _ = damaged
    other = path.parents[1] / "jsb" / path.name
    other.parent.mkdir()
    path.rename(other)
    assert audit(path.parents[1]) == [f"{other}: the run is of nottingham, but its folder is jsb"]
    other.write_text(other.read_text()[:50])
    (found,) = audit(path.parents[1])
    assert "the file is damaged" in found


def test_a_commit_of_the_history_is_known_and_another_is_not(tmp_path, monkeypatch, git):
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    is_in_history.cache_clear()
    assert is_in_history(git("rev-parse", "HEAD")) is True
    assert is_in_history("a" * 40) is False
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path.parent)
    is_in_history.cache_clear()
    assert is_in_history("a" * 40) is None
    is_in_history.cache_clear()
