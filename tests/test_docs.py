"""What README and the pages in docs/ tell a reader to type: each command runs here, or says why not.

A block of commands that no test can run begins with "```sh untested: " and the reason.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HERE = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "RTX_DATA": ""}


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """Return what stands behind the name of the language, and the code, of each block of a page."""
    return [(rest.strip(), code) for name, rest, code in BLOCK.findall(page.read_text("utf-8")) if name == language]


def test_every_block_of_commands_runs_or_has_a_reason() -> None:
    for page in PAGES:
        for rest, code in blocks(page, "sh"):
            assert not rest or re.fullmatch(r"untested: \w.{10,}", rest), (page.name, code)


@pytest.mark.slow
def test_the_commands_of_the_pages_run(tmp_path: Path) -> None:
    for folder in ("results", "notebooks", "figures", "studies"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    written = [code.splitlines() for page in PAGES for rest, code in blocks(page, "sh") if not rest]
    commands = dict.fromkeys(line.split("#")[0].strip() for lines in written for line in lines)
    assert len(commands) > 5
    for command in filter(None, commands):
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=HERE, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("page", [
    pytest.param(page, id=page.name, marks=[pytest.mark.slow] * ("torch.onnx" in page.read_text("utf-8")))
    for page in PAGES if blocks(page, "python")
])  # fmt: skip
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    code = "".join(code for _, code in blocks(page, "python"))
    peft = {"PYTHONPATH": f"{sys.prefix}/peft{os.pathsep}{os.environ.get('PYTHONPATH', '')}"} if "peft" in code else {}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=HERE | peft, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_table_of_speeds_has_the_stored_times() -> None:
    cases = json.loads((ROOT / "benchmarks/results/cpu.json").read_text("utf-8"))["cases"]
    table = re.search(r"<!-- speed -->\n(.*?)<!-- end -->", (ROOT / "docs/speed.md").read_text("utf-8"), re.DOTALL)[1]
    found = [[cell.strip() for cell in line.split("|")[2:-1]] for line in table.splitlines()[2:]]
    for case, times in zip(("mnist", "nottingham", "characters", "words"), found, strict=True):
        stored = {row["name"]: row["processor_ms"] for row in cases[case]["rows"] if row["setting"] == "medium"}
        ways = "rtx", "published", "TransformerEncoder", "TCN", "nn.LSTM"
        expected = [next(ms for name, ms in stored.items() if name.split(" ")[0] == way) for way in ways]
        assert times == [f"{ms:,.0f} ms" for ms in expected]
