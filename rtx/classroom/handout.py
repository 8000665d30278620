"""Write the students' folder: the notebooks without solutions and outputs, and the files that they read."""

import json
import re
import shutil
from collections.abc import Sequence, Set
from pathlib import Path

from rtx.classroom.notebooks import chosen_notebooks, code_cells

SOLUTION = re.compile(r"<details>\s*<summary>Solution</summary>.*?</details>\n?", re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\((\d\d_\w+\.ipynb)(?:#[^)]*)?\)")  # to another notebook
READ = re.compile(r'"\.\./([\w./-]+)"')  # a file or a folder that a cell reads
README = """\
# Notebooks with exercises

Open this folder in JupyterLab, where rtx is installed. In each exercise you write a function. The line `checks.…` below
it says whether it is right. Keep this line: the last check of an exercise counts. Keep the names of the notebooks.
"""


def make_handout(folder: Path, notebooks: Path, only: Sequence[str] = ()) -> list[Path]:
    """Write the students' notebooks, and the files that they read, into a new or empty folder; return the notebooks."""
    sources = chosen_notebooks(notebooks, only)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"folder: expected a new or an empty folder, got {str(folder)!r}, which holds something")
    (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    for source in sources:
        text = _for_students(source, {each.name for each in sources})
        (folder / "notebooks" / source.name).write_text(text, encoding="utf-8")
    for name in {name for source in sources for name in READ.findall("\n".join(code_cells(source)))}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (notebooks.parent / name).is_dir() else shutil.copyfile
        copy(notebooks.parent / name, folder / name)
    (folder / "README.md").write_text(README, encoding="utf-8")
    return [folder / "notebooks" / source.name for source in sources]


def _for_students(source: Path, given: Set[str]) -> str:
    """Return a notebook without solutions, outputs and widgets. A link to a notebook that is not given becomes text."""
    notebook = json.loads(source.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        else:
            text = SOLUTION.sub("", "".join(cell["source"]))
            cell["source"] = LINK.sub(lambda link: link[0] if link[2] in given else link[1], text)
    notebook["metadata"].pop("widgets", None)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
