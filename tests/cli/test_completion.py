"""What Tab offers after the words typed so far."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rtx.cli.commands import app
from rtx.tasks.data import DATASETS
from rtx.training.recipe import load_recipe, recipe_names

NOTTINGHAM = load_recipe("nottingham")


def asked(line: str) -> dict[str, str]:
    """The variables by which bash asks the command what may stand for the last word of a line."""
    return {"_RTX_COMPLETE": "complete_bash", "COMP_WORDS": f"rtx {line}", "COMP_CWORD": str(1 + line.count(" "))}


@pytest.fixture
def offered(monkeypatch, capsys) -> Callable[[str], list[str]]:
    def offer(line: str) -> list[str]:
        for name, value in asked(line).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as end:
            app(prog_name="rtx")
        assert end.value.code == 0
        return capsys.readouterr().out.split()

    return offer


@pytest.mark.parametrize("command", ("train", "sweep"))
def test_a_recipe_then_its_rows_then_its_variants(offered, command):
    assert offered(f"{command} ") == recipe_names()
    assert offered(f"{command} nottingham ") == [*NOTTINGHAM.models]
    assert offered(f"{command} nottingham gru --variant ") == [*NOTTINGHAM.variants]
    assert offered(f"{command} --seed 1 nottingham --variant adam r") == ["r-transformer", "rnn"]


def test_of_no_recipe_nothing_is_offered(offered):
    assert offered("train nottinghm ") == offered("train --variant ") == []


def test_a_table_may_be_all(offered):
    assert offered("table ") == [*recipe_names(), "all"]
    same = [name for name in NOTTINGHAM.variants if name.startswith("same")]
    assert offered("table nottingham --variant same") == same


def test_data_sets_by_their_beginning(offered):
    assert offered("data fetch ptb") == [name for name in DATASETS if name.startswith("ptb")] != []


def test_a_shell_gets_them_from_the_installed_command():
    command = Path(sys.executable).with_name("rtx")
    done = subprocess.run([command], env=os.environ | asked("train notti"), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["nottingham"]
