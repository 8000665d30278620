"""Which exercises a notebook holds, and the cells of a notebook that anybody may have written."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKED = re.compile(r"^checks\.(\w+)\((\w+)\)$", re.MULTILINE)
LARGEST = 20_000_000  # bytes of a notebook


@dataclass(frozen=True)
class Exercise:
    """A function to be written.

    Args:
        notebook: the notebook's name, without its ending.
        function: the name that the student's function has.
        check: the name of its check in `rtx.lab.checks`.
    """

    notebook: str
    function: str
    check: str


def chosen_notebooks(folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """The project's own notebooks in `folder`, or those of them whose names begin with one of `only`.

    Raises:
        ValueError: if there is none, or none for one of `only`.
    """
    found = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    if not found:
        raise ValueError(f"notebooks: expected the folder of rtx's notebooks, found none in {str(folder)!r}")
    for start in only:
        if not any(path.name.startswith(start) for path in found):
            raise ValueError(f"only: expected how the names of notebooks begin, such as 02, got {start!r}")
    return [path for path in found if not only or path.name.startswith(tuple(only))]


def exercises_of(notebook: Path) -> list[Exercise]:
    """The exercises of one of the project's own notebooks, in order."""
    found = CHECKED.findall("\n".join(code_cells(notebook)))
    return [Exercise(notebook.stem, function, check) for check, function in found]


def code_cells(notebook: Path) -> list[str]:
    """The sources of a notebook's code cells.

    Raises:
        ValueError: if the file is no notebook, or is too large to be one.
        OSError: if it cannot be read.
    """
    size = notebook.stat().st_size
    if size > LARGEST:
        raise ValueError(f"a notebook of at most {LARGEST:,} bytes was expected, this has {size:,}")
    try:
        cells = json.loads(notebook.read_bytes())["cells"]
        sources = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        return [source if isinstance(source, str) else "".join(source) for source in sources]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"a notebook (nbformat 4) was expected, this is none: {type(error).__name__}") from None
