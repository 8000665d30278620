"""What README and the pages in docs/ tell a reader to type: each command runs here, or says why not.

A block that does not run here begins with "```sh untested: " or "```python untested: " and the reason.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from rtx.cli import main
from rtx.cli.commands import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """Return what stands behind the name of the language, and the code, of each block of a page."""
    return [(rest.strip(), code) for name, rest, code in BLOCK.findall(page.read_text("utf-8")) if name == language]


def test_every_block_runs_or_has_a_reason() -> None:
    for page in PAGES:
        for rest, code in blocks(page, "sh") + blocks(page, "python"):
            assert not rest or re.fullmatch(r"untested: \w.{10,}", rest), (page.name, code)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=lambda page: page.name)
def test_the_command_has_every_verb_and_option_of_a_page(page: Path) -> None:
    for line in "".join(code for _, code in blocks(page, "sh")).replace("\\\n", "").splitlines():
        program, *words = shlex.split(line.split("<")[0], comments=True) or [""]
        verb = typer.main.get_command(app) if program == "rtx" else None
        while hasattr(verb, "commands"):
            verb = verb.commands[words.pop(0)]
        if verb:
            verb.make_parser(typer.Context(verb)).parse_args(words)  # the files that it names need not exist


@pytest.mark.slow
def test_the_commands_of_the_pages_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run in this process. What trains does so for one epoch."""
    shutil.copytree(ROOT / "results", tmp_path / "results")
    for folder in ("notebooks", "figures", "studies", "docs", "benchmarks", "README.md"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RTX_DATA", "")
    written = [code.splitlines() for page in PAGES for rest, code in blocks(page, "sh") if not rest]
    commands = dict.fromkeys(tuple(shlex.split(line, comments=True)) for lines in written for line in lines)
    assert len(commands) > 5
    # the ledger is checked first: what is trained between two commits is no run of a commit
    for program, *words in sorted(commands, key=lambda command: "check" not in command):
        monkeypatch.setattr("sys.argv", [program, *words, *["--epochs", "1"] * (words[0] == "train")])
        try:
            main()
        except SystemExit as end:
            assert not end.code, words


def python(page: Path) -> str:
    return "".join(code for rest, code in blocks(page, "python") if not rest)


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if python(page)], ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """README's runs in test_newcomers.py."""
    if "peft" not in python(page):
        exec(python(page), {})
        return
    # apart: where transformers can be imported, torchmetrics imports it
    peft = {"PYTHONPATH": f"{sys.prefix}/peft{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-c", python(page)]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | peft, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_table_of_speeds_has_the_stored_times() -> None:
    cases = json.loads((ROOT / "benchmarks/results/cpu.json").read_text("utf-8"))["cases"]
    table = re.search(r"<!-- speed -->\n(.*?)<!-- end -->", (ROOT / "docs/speed.md").read_text("utf-8"), re.DOTALL)[1]
    found = [[cell.strip() for cell in line.split("|")[2:-1]] for line in table.splitlines()[2:]]
    for case, times in zip(("mnist", "nottingham", "characters", "words"), found, strict=True):
        stored = {
            row["name"]: row["processor_ms"] for row in cases[case]["rows"] if row.get("setting", "medium") == "medium"
        }
        ways = "rtx", "published", "TransformerEncoder", "TCN", "nn.LSTM"
        expected = [next(ms for name, ms in stored.items() if name.split(" ")[0] == way) for way in ways]
        assert times == [f"{ms:,.0f} ms" for ms in expected]


TEXTS = sorted(path for pattern in ("*.md", "docs/*.md", "notebooks/*.py") for path in ROOT.glob(pattern))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_line_break_makes_a_list_of_a_sentence(path):
    """A line that begins with "5. " is an item of a list, also in the middle of a sentence."""
    for line in path.read_text(encoding="utf-8").splitlines():
        assert not re.match(r"#?  +\d+\. ", line), line
