"""Grade what students hand in: their functions answer in a process without rights, and the checks judge here.

A student's copy of a check decides nothing, and a notebook's outputs decide nothing. This grades exercises and is no
examination: the solutions are public.
"""

import csv
import io
import json
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from rtx.classroom.notebooks import Notebook, chosen_notebooks, code_cells, exercises_of, handed_in, needed_cells
from rtx.classroom.student import run
from rtx.lab import checks

PASSED, FAILED, NOT_ATTEMPTED, MISSING = "passed", "failed", "not attempted", "missing"
LONGEST = 300  # characters of a message
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # so that it may fork


class Grade(NamedTuple):
    """The result of one exercise of one student (passed, failed, not attempted or missing) and the reason."""

    student: str
    notebook: str
    exercise: str
    result: str
    message: str


def grade_folder(folder: Path, notebooks: Path, only: Sequence[str] = (), seconds: int = 20) -> Iterator[Grade]:
    """Grade every exercise of every student, one after the other; `handed_in` says what `folder` may hold.

    The project's own notebooks say what the exercises are. One exercise may take `seconds`.
    """
    exercises = [(source.stem, *each) for source in chosen_notebooks(notebooks, only) for each in exercises_of(source)]
    students = handed_in(folder)
    # one process imports torch once, and copies itself for each exercise; Ctrl-C ends only this process
    server = ProcessPoolExecutor(1, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN))
    with patch.dict(os.environ, ONE_THREAD, MPLBACKEND="agg", CUDA_VISIBLE_DEVICES=""), server:
        for student, files in students.items():
            for notebook, check, function in exercises:
                try:
                    cells = needed_cells(code_cells(_one_of(files, notebook)), check)
                    result, message = _judge(check, server.submit(run, check, cells, seconds).result())
                except FileNotFoundError as error:
                    result, message = MISSING, str(error)
                except Exception as error:  # whatever a student wrote must not end the grading of a class
                    result, message = FAILED, f"{type(error).__name__}: {error}"
                yield Grade(_one_line(student), notebook, function, result, _one_line(message))


def to_csv(grades: Sequence[Grade]) -> bytes:
    """Return grades as CSV, a line each. An apostrophe precedes what a spreadsheet takes for a formula.

    The file begins with a byte order mark: without it, Excel does not read UTF-8 and misspells names.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Grade._fields)
    writer.writerows([f"'{cell}" if cell.startswith(tuple("=+-@＝＋－＠")) else cell for cell in one] for one in grades)
    return text.getvalue().encode("utf-8-sig")


def _one_of(files: Sequence[Notebook], notebook: str) -> Notebook:
    like = [path for path in files if notebook in path.stem]  # a browser adds " (1)", Canvas adds the student
    found = [path for path in like if path.stem == notebook] or like
    if len(found) != 1:
        raise FileNotFoundError(f"there are {len(found)} notebooks of this name")
    return found[0]


def _judge(name: str, said: bytes) -> tuple[str, str]:
    """Judge what a student's process wrote by the project's own check; return the result and the message."""
    found = json.loads(said, object_hook=_tensor)
    if "error" in found:
        return FAILED, str(found["error"])
    passed, message = astuple(getattr(checks, name).judge(found["answers"], found["changed"], found["stub"]))
    return {True: PASSED, False: FAILED, None: NOT_ATTEMPTED}[passed], "" if passed else message


def _tensor(table: dict[str, Any]) -> Any:
    return torch.tensor(table["numbers"]).reshape(table["shape"]) if "numbers" in table else table


def _one_line(text: str) -> str:
    """Return a text as one line that any terminal can print: without control characters and halves of characters."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
