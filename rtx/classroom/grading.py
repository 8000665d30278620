"""Grade what students hand in: their functions answer in a process without rights, and the checks judge here.

A student's copy of a check decides nothing, and a notebook's outputs decide nothing. This grades exercises and is no
examination: the solutions are public.
"""

import csv
import io
import json
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from rtx.classroom.notebooks import Notebook, chosen_notebooks, code_cells, exercises_of, handed_in, needed_cells
from rtx.classroom.student import decode, serve
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

    The project's own notebooks say what the exercises are; with `only`, those whose names begin with one of its texts.
    One exercise may take some seconds. Bad arguments raise ValueError.
    """
    if seconds < 1:
        raise ValueError(f"seconds: expected 1 or more, got {seconds}")
    exercises = [(source.stem, *each) for source in chosen_notebooks(notebooks, only) for each in exercises_of(source)]
    students = handed_in(folder)
    with _server() as server:
        for student, files in students.items():
            for notebook, check, function in exercises:
                result, message = _grade(files, notebook, check, seconds, server)
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


@contextmanager
def _server() -> Iterator[Connection]:
    """Start the process that runs students' code, and yield the connection to it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    with patch.dict(os.environ, ONE_THREAD, MPLBACKEND="agg", CUDA_VISIBLE_DEVICES=""):
        server.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()  # which ends the server
        server.join()


def _grade(files: Sequence[Notebook], notebook: str, check: str, seconds: int, server: Connection) -> tuple[str, str]:
    """Return the result and the message of one exercise."""
    like = [path for path in files if notebook in path.stem]  # a browser adds " (1)", Canvas adds the student
    found = [path for path in like if path.stem == notebook] or like
    if len(found) != 1:
        return MISSING, f"there are {len(found)} notebooks of this name"
    try:
        server.send((check, needed_cells(code_cells(found[0]), check), seconds))
    except ValueError as error:
        return FAILED, str(error)
    said, code = server.recv()
    if code in (-signal.SIGKILL, -signal.SIGXCPU):
        return FAILED, f"the exercise took more than {seconds} seconds: is there an endless loop?"
    try:
        return _judge(check, said or json.dumps({"error": f"your code ended Python, with exit code {code}"}))
    except Exception as error:  # whatever a student's process wrote must not end the grading of a class
        return FAILED, f"the answers cannot be read: {type(error).__name__}"


def _judge(name: str, text: str | bytes) -> tuple[str, str]:
    """Judge answers by the project's own check."""
    check, said = getattr(checks, name), json.loads(text)
    if "answers" not in said:
        return FAILED, f"{check.where(said['case'])} {said['error']}" if "case" in said else str(said["error"])
    answers = [json.loads(answer, object_hook=decode) for answer in said["answers"]]
    passed, message = astuple(check.judge(answers, said["changed"], said["stub"]))
    return {True: PASSED, False: FAILED, None: NOT_ATTEMPTED}[passed], "" if passed else message


def _one_line(text: str) -> str:
    """Return a text as one line that any terminal can print: without control characters and halves of characters."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
