"""The process that runs a student's code: it answers the cases of checks, and judges nothing.

    python -P -m rtx.classroom.student SECONDS < request > answers

The request is JSON: for each exercise its check, its function and the cells that the function needs. A line of JSON
is written before each exercise and after it. What the student's code could do to this process, it can do to its own
answers only: whether they are right is found out elsewhere.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from rtx.lab.checks.check import attempt, is_stub

CHECKS = "rtx.lab.checks"


def main() -> None:
    """Read the request, give up all rights that are not needed, and answer."""
    request = json.load(sys.stdin)
    lines = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "r+b") as nowhere:
        for stream in (0, 1, 2):  # a student prints, and reads, as much as they like
            os.dup2(nowhere.fileno(), stream)
    cases = _cases([each["check"] for each in request])
    from rtx.classroom.answers import encode
    from rtx.classroom.confine import confine, limit

    limit(int(sys.argv[1]))
    confine(Path.cwd())
    for number, each in enumerate(request):
        _say(lines, number, {"begins": True})
        _say(lines, number, _answer(each, cases[each["check"]], encode))


def _cases(names: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
    """The cases of checks, which are then hidden, as they hold solutions."""
    from rtx.lab import checks, explore, plots  # noqa: F401  (all but the checks: their import is not the student's time)

    cases = {name: list(getattr(checks, name).cases()) for name in names}
    for name in [name for name in sys.modules if name.startswith(CHECKS)]:
        del sys.modules[name]
    hidden = ModuleType(CHECKS)
    vars(hidden)["__getattr__"] = _no_check
    sys.modules[CHECKS] = hidden
    vars(sys.modules["rtx.lab"])["checks"] = hidden
    return cases


def _no_check(name: str) -> Callable[..., None]:
    if name.startswith("__"):
        raise AttributeError(name)
    return _nothing


def _nothing(*_: object, **__: object) -> None:
    """Takes anything and shows nothing."""


def _answer(exercise: dict[str, Any], cases: Sequence[tuple[Any, ...]], encode: Callable[[Any], Any]) -> dict[str, Any]:
    """The function's answers to the cases, or the error on the way to them."""
    names: dict[str, Any] = {"__name__": "__main__", "display": _nothing}  # which every notebook has
    failed = None
    for code in exercise["cells"]:
        try:
            exec(compile(code, "cell", "exec"), names)
        except BaseException as error:  # sys.exit, too
            failed = failed or f"a cell that it needs raised {_told(error)}"
    mine = names.get(exercise["function"])
    if not callable(mine):
        return {"error": failed or f"there is no function {exercise['function']}"}
    tried: list[tuple[Any, int | None]] = []
    try:
        for case in cases:
            tried.append(attempt(mine, case))
        changed = next((place for _, place in tried if place), None)
        return {"answers": [encode(answer) for answer, _ in tried], "changed": changed, "stub": is_stub(mine)}
    except BaseException as error:
        return {"error": f"your code raised {_told(error)}", "case": len(tried)}


def _told(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # an exception of the student's own, whose text raises another
        return "an exception"


def _say(lines: TextIO, number: int, what: dict[str, Any]) -> None:
    lines.write(json.dumps({"exercise": number} | what) + "\n")
    lines.flush()


if __name__ == "__main__":
    main()
