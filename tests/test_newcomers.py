"""What a newcomer's machine may lack: the README's code and the `rtx` command do without it."""

import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rtx
from rtx.tasks.data import cache_folder

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = "".join(re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL))
FOLDERS = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "RTX_CACHE", "RTX_DATA")
TRY = """
import os, socket, sys
{lacking}

def no_network(*_):
    raise AssertionError("asked the network")

socket.socket.connect = socket.getaddrinfo = no_network

{examples}

from rtx.lab import explore
from rtx.nn.ops import build
explore.depends()
print(tuple(y.shape), tuple(text.shape), build.obstacle(), sep="\\n")
sys.argv = ["rtx", "list", "models"]
import rtx.cli
rtx.cli.main()
"""

LACKING = """
import sys
for missing, run in (("typer", "import rtx.cli; rtx.cli.main()"), ("seaborn", "import rtx.lab.explore")):
    sys.modules[missing] = None
    try:
        exec(run)
    except (ImportError, SystemExit) as error:
        print(error)
"""


def attempt(folder: Path, lacking: str = "", **variables: str) -> str:
    """What stands in the way of C++ when a new process in `folder`, without a network, has run the README's code."""
    environment = {key: value for key, value in os.environ.items() if key not in FOLDERS} | variables
    code = TRY.format(lacking=lacking, examples=EXAMPLES)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    outputs, generated, obstacle, *listed = done.stdout.splitlines()
    assert (outputs, generated) == ("(8, 100, 64)", "(1, 202)")
    assert set(rtx.MODELS) <= {line.split()[0] for line in listed if line.split()}
    return obstacle


@pytest.mark.slow
def test_with_a_home_that_cannot_be_written_and_no_compiler_or_other_program_on_one_core(tmp_path: Path) -> None:
    one_core = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})" if hasattr(os, "sched_setaffinity") else ""
    (tmp_path / "file").touch()  # nothing can be made below a file, not even by root
    assert attempt(tmp_path, one_core, PATH=str(tmp_path), HOME=str(tmp_path / "file" / "home")) != "None"


def test_what_is_not_installed_is_named_with_the_line_that_installs_it() -> None:
    done = subprocess.run([sys.executable, "-c", LACKING], capture_output=True, text=True)
    needed = {"typer": "train", "seaborn": "lab,train"}
    for said, (missing, extra) in zip(done.stdout.splitlines(), needed.items(), strict=True):
        assert missing in said and f'pip install ".[{extra}]"' in said


def test_a_user_without_a_home_learns_which_variable_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(number: int) -> None:
        raise KeyError(number)

    for name in FOLDERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(ValueError, match="^RTX_CACHE: "):
        cache_folder()
