"""What of a notebook a function needs: its cell, and the cells that make the names these read.

So a class is graded in minutes, and an endless loop elsewhere in a notebook harms no exercise. What a cell does
to a thing that another one made is not seen.
"""

import re
import symtable
from collections.abc import Callable, Sequence

# of IPython: %magic, !shell, ?help, name = %magic, name = !shell, help?
COMMAND = re.compile(r"^(\s*)(?:(?:[\w.]+\s*=\s*)?[%!].*|\?.*|[\w.]+\?\??[^\S\n]*)$", re.MULTILINE)
EVERYTHING = "*"


def needed_cells(cells: Sequence[str], function: str) -> list[str]:
    """The cells that it takes to make `function`, in their order; cells that are no Python are left out."""
    kept = [(index, code, *names) for index, code in enumerate(map(_plain, cells)) if (names := _names(code))]
    wanted, chosen = {function}, dict[int, str]()
    while True:
        more = [each for each in kept if each[0] not in chosen and each[2] & (wanted | {EVERYTHING})]
        if not more:
            return [chosen[index] for index in sorted(chosen)]
        for index, code, _, read in more:
            chosen[index] = code
            wanted |= read


def broken_cell(cells: Sequence[str], function: str) -> str | None:
    """What is wrong with the syntax of the last cell that seems to define `function`; None if there is none."""
    named = re.compile(rf"\b{re.escape(function)}\b\s*(\(|=)")
    for code in reversed([_plain(cell) for cell in cells]):
        if named.search(code) and _names(code) is None:
            return _fault(code)
    return None


def _plain(cell: str) -> str:
    """A cell without commands of IPython, or as it is where it is Python: % also divides."""
    if _fault(cell) is None:
        return cell
    return "" if cell.lstrip().startswith("%%") and "\n" not in cell else COMMAND.sub(r"\1pass", cell)


def _names(code: str) -> tuple[set[str], set[str]] | None:
    """The global names that a cell binds, and those that it reads anywhere; None if it is no Python."""
    if _fault(code):
        return None
    top = symtable.symtable(code, "cell", "exec")
    symbols = top.get_symbols()
    binds = {each.get_name() for each in symbols if each.is_assigned() or each.is_imported() or each.is_namespace()}
    if re.search(r"^\s*from\s.*import\s*\*", code, re.MULTILINE):
        binds.add(EVERYTHING)
    read = {each.get_name() for each in symbols if each.is_referenced()}
    return binds | _globals_below(top, symtable.Symbol.is_assigned), read | _globals_below(top)


def _globals_below(
    table: symtable.SymbolTable, used: Callable[[symtable.Symbol], bool] = symtable.Symbol.is_referenced
) -> set[str]:
    found = set[str]()
    for child in table.get_children():
        found |= {each.get_name() for each in child.get_symbols() if each.is_global() and used(each)}
        found |= _globals_below(child, used)
    return found


def _fault(code: str) -> str | None:
    try:
        compile(code, "cell", "exec")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:  # a null byte, a thousand brackets
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        return f"{type(error).__name__}{line}: {getattr(error, 'msg', error)}"
    return None
