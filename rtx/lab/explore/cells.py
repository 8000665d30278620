"""Free the explorers that a cell has made when the cell is run again.

ipywidgets and IPython's list of outputs keep each widget as long as the kernel lives. Without this, each run of a
cell would leave its figures and widgets in memory.
"""

from typing import Any

import ipywidgets as widgets
from IPython.core.getipython import get_ipython

_made: dict[str, tuple[int, list[Any]]] = {}  # by cell: the number of its last run, and the explorers of that run


def free_earlier(explorer: Any, root: widgets.Widget) -> None:
    """Close what an earlier run of the current cell has made, and remember `explorer` for the next run.

    Args:
        explorer: what the cell shows.
        root: the widget that holds all others of the explorer.
    """
    shell: Any = get_ipython()
    cell = _cell(shell)
    if cell is None:
        return
    last, made = _made.get(cell, (0, []))
    if last != shell.execution_count:
        for old, old_root in made:
            close_all(old_root)
            _forget(shell, old)
        made = []
    _made[cell] = (shell.execution_count, [*made, (explorer, root)])


def close_all(widget: widgets.Widget) -> None:
    """Close a widget and all widgets in its traits: children, layout and style."""
    values = list(widget.trait_values().values()) if widget.comm is not None else []
    widget.close()
    for value in values:
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, widgets.Widget):
                close_all(part)


def _cell(shell: Any) -> str | None:
    """The id that JupyterLab sends with a cell; None outside a notebook."""
    message = getattr(shell, "parent_header", None)
    cell = message.get("metadata", {}).get("cellId") if isinstance(message, dict) else None
    return cell if isinstance(cell, str) else None


def _forget(shell: Any, old: object) -> None:
    """Remove what IPython keeps of an output: `Out[n]`, and the names `_n`, `_`, `__` and `___`."""
    for names in (shell.user_ns["Out"], shell.user_ns, shell.user_ns_hidden, vars(shell.displayhook)):
        for name in [name for name, value in names.items() if value is old]:
            if str(name).strip("_").isdecimal() or not str(name).strip("_"):  # the names of a reader stay
                names[name] = None
