"""Free the explorers that a cell has made when the cell is run again.

ipywidgets and IPython's list of outputs keep each widget as long as the kernel lives. Without this, each run of a
cell would leave 2 to 4 MB in memory.
"""

from typing import Any

import ipywidgets as widgets
from IPython.core.getipython import get_ipython

_made: dict[str, tuple[int, list[Any]]] = {}  # by cell: the number of its last run, and the explorers of that run


def free_earlier(explorer: widgets.DOMWidget) -> None:
    """Close what an earlier run of the current cell has made, and remember `explorer` for the next run."""
    shell: Any = get_ipython()
    message = getattr(shell, "parent_header", None)
    cell = message.get("metadata", {}).get("cellId") if isinstance(message, dict) else None  # JupyterLab's id
    if not isinstance(cell, str):
        return
    last, made = _made.get(cell, (0, []))
    if last != shell.execution_count:
        for old in made:
            old.layout.close()
            old.close()
            _forget(shell, old)
        made = []
    _made[cell] = (shell.execution_count, [*made, explorer])


def _forget(shell: Any, old: object) -> None:
    """Remove what IPython keeps of an output: `Out[n]`, and the names `_n`, `_`, `__` and `___`."""
    for names in (shell.user_ns["Out"], shell.user_ns, shell.user_ns_hidden, vars(shell.displayhook)):
        for name in [name for name, value in names.items() if value is old]:
            if str(name).strip("_").isdecimal() or not str(name).strip("_"):  # the names of a reader stay
                names[name] = None
