"""What Tab offers after the words typed so far."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rtx.training.recipe import recipe_names


@pytest.mark.parametrize("words", ["train ", "sweep ", "table ", "train notti"])
def test_a_shell_gets_recipes_from_the_installed_command(words: str) -> None:
    asked = {"_RTX_COMPLETE": "complete_bash", "COMP_WORDS": f"rtx {words}", "COMP_CWORD": "2"}
    command = Path(sys.executable).with_name("rtx")
    done = subprocess.run([command], env=os.environ | asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [name for name in recipe_names() if name.startswith(words.split(" ")[1])]
