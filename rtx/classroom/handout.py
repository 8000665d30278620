"""Writing the students' folder: the notebooks without solutions and outputs, and what they read."""

import json
import re
import shutil
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

from rtx.classroom.exercises import chosen_notebooks, exercises_of

SOLUTION = re.compile(r"<details>\s*<summary>Solution</summary>.*?</details>\n?", re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\((\d\d_\w+\.ipynb)(?:#[^)]*)?\)")  # to another notebook
README = """\
# Notebooks with exercises

Open the folder in JupyterLab and work through the notebooks. An exercise is a function to be written; the line below
it, `checks.…`, says whether it is right, or what is wrong with it. Keep the functions' names. Hand in the whole folder.

| notebook | exercises |
| --- | --- |
"""


def make_handout(folder: Path, notebooks: Path, only: Sequence[str] = ()) -> list[Path]:
    """Write the students' notebooks into a new `folder`, and return them.

    Args:
        folder: must not be there, or be empty.
        notebooks: the folder of the project's own notebooks.
        only: how the names of the wanted ones begin; all, if there is none.

    Raises:
        ValueError: if `folder` holds something, or `notebooks` does not hold what is wanted.
        OSError: if it cannot be written.
    """
    sources = chosen_notebooks(notebooks, only)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"folder: expected a new or an empty one, got {str(folder)!r}, which holds something")
    (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    written = [folder / "notebooks" / source.name for source in sources]
    for source, target in zip(sources, written, strict=True):
        notebook = for_students(json.loads(source.read_text(encoding="utf-8")), {path.name for path in written})
        target.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if (notebooks.parent / "results").is_dir():  # some notebooks read the ledger
        shutil.copytree(notebooks.parent / "results", folder / "results")
    lines = [_line(source) for source in sources]
    (folder / "README.md").write_text(README + "\n".join(lines) + "\n", encoding="utf-8")
    return written


def for_students(notebook: dict[str, Any], given: Set[str]) -> dict[str, Any]:
    """A notebook without its solutions, outputs and widgets; stubs, checks, hints and answers stay.

    Links to notebooks that are not among those `given` become their words alone.
    """
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        else:
            text = SOLUTION.sub("", "".join(cell["source"]))
            cell["source"] = LINK.sub(lambda link: link[0] if link[2] in given else link[1], text)
    notebook["metadata"].pop("widgets", None)
    return notebook


def _line(source: Path) -> str:
    functions = ", ".join(f"`{each.function}`" for each in exercises_of(source))
    return f"| [{source.stem.replace('_', ' ')}](notebooks/{source.name}) | {functions} |"
