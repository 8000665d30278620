"""Run a student's code in a process without rights. It answers the cases of a check; the grader judges the answers."""

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from torch import Tensor

import rtx.lab
from rtx.classroom.confine import confine
from rtx.lab import checks
from rtx.lab.checks.check import attempt, is_stub

LARGEST = 50_000_000  # bytes of all answers


def serve(grader: Connection) -> None:
    """Run exercises for the grader. torch and rtx are imported once, here."""
    import rtx.lab.explore
    import rtx.lab.plots  # noqa: F401

    with suppress(EOFError, KeyboardInterrupt):  # when the grader ends
        while True:
            grader.send(run(*grader.recv()))


def run(check: str, cells: Sequence[str], seconds: int) -> tuple[bytes, int]:
    """Run one exercise in a process of its own; return what it wrote, and its exit code."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        _student(check, cells, seconds, writing)
    os.close(writing)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(process, signal.SIGKILL))
    signal.alarm(seconds)
    try:
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read(LARGEST)  # until the process ends, because it can start no other
    finally:
        signal.alarm(0)
        os.kill(process, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return said, code


def _student(check: str, cells: Sequence[str], seconds: int, pipe: int) -> None:
    """Give up all rights, write the answers and end. No other file stays open."""
    try:
        for stream in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        os.closerange(3, pipe)
        os.closerange(pipe + 1, 1 << 16)
        confine(seconds)
        os.write(pipe, json.dumps(answer(check, cells)).encode())
    finally:
        os._exit(0)


def answer(check: str, cells: Sequence[str]) -> dict[str, Any]:
    """Return the answers of the function that the last cell checks, at the moment of its check; or an error.

    All checks are replaced: one records the answers, the others do nothing, and no solution can be imported.
    """
    cases, found = getattr(checks, check).cases(), list[dict[str, Any]]()
    for name in [name for name in sys.modules if name.startswith(checks.__name__)]:
        del sys.modules[name]
    record = {check: lambda mine: found.append(_answers(mine, cases))}
    sys.modules[checks.__name__] = rtx.lab.checks = MagicMock(**record)
    torch.set_num_threads = MagicMock()  # the process may not start threads
    names = {"__name__": "__main__", "display": MagicMock()}
    failed = f"the notebook does not call checks.{check}"
    for code in cells:
        try:
            exec(compile(code, "cell", "exec"), names)
        except BaseException as error:  # also sys.exit()
            failed = f"a cell raised {type(error).__name__}: {error}"
    return found[-1] if found else {"error": failed}


def _answers(mine: Callable[..., Any], cases: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the function's answers to the cases as JSON, or the error and its case."""
    answers, changes = [], []
    try:
        for case in cases:
            value, changed = attempt(mine, case)
            answers.append(json.dumps(value, default=encode))
            changes.append(changed)
        return {"answers": answers, "changed": next(filter(None, changes), None), "stub": is_stub(mine)}
    except BaseException as error:
        return {"error": f"your code raised {type(error).__name__}: {error}", "case": len(answers)}


def encode(value: Any) -> Any:
    """Return a tensor or an array as what JSON can hold, and `...` as None."""
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return {"shape": list(value.shape), "numbers": value.flatten().tolist()}
    if value is Ellipsis:
        return None
    raise TypeError(f"an answer of type {type(value).__name__} is not allowed")


def decode(value: dict[str, Any]) -> Tensor:
    """Return the tensor that `encode` was given."""
    return torch.from_numpy(np.array(value["numbers"]).reshape(value["shape"]))
