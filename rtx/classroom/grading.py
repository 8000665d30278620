"""Grading what students hand in: their functions answer in a process without rights, rtx's own checks judge here.

A student's copy of a check decides nothing, nor does what a notebook prints or stores. A notebook may loop for ever,
crash or be none: that is told of its own exercises only. It grades exercises, and is no examination: whoever wants to
copy a solution, can.
"""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from rtx.classroom.answers import decode
from rtx.classroom.exercises import Exercise, chosen_notebooks, code_cells, exercises_of
from rtx.classroom.needed import broken_cell, needed_cells
from rtx.lab import checks
from rtx.lab.checks.check import Check

RESULTS = {True: "passed", False: "failed", None: "not attempted"}
MISSING = "missing"
LONGEST = 300  # characters of a message
STARTING = 60  # seconds that a process may take, beyond the limit, before a student's code runs
NOT_STARTED = "rtx did not start within {} seconds on this machine: grade again, with more --seconds"


@dataclass(frozen=True)
class Grade:
    """What came of one exercise of one student: passed, failed, not attempted or missing, and why."""

    student: str
    notebook: str
    exercise: str
    result: str
    message: str


def grade_folder(folder: Path, notebooks: Path, only: Sequence[str] = (), seconds: int = 60) -> Iterator[Grade]:
    """Grade every exercise of every student, one after the other.

    Args:
        folder: one student's folder, or one that holds a folder for each student.
        notebooks: the folder of the project's own notebooks, which say what the exercises are.
        only: how the names of the graded ones begin; all, if there is none.
        seconds: how long the exercises of one notebook may take.

    Raises:
        ValueError: if `folder` holds no notebook, or `notebooks` none of the project's, or `seconds` is below 1.
    """
    if seconds < 1:
        raise ValueError(f"seconds: expected 1 or more, got {seconds}")
    sources = chosen_notebooks(notebooks, only)
    for student, place in _students(folder):
        for source in sources:
            for exercise, (result, message) in _grade_notebook(place, exercises_of(source), seconds):
                yield Grade(student, exercise.notebook, exercise.function, result, _one_line(message))


def to_csv(grades: Sequence[Grade]) -> bytes:
    """Grades as CSV, a line each. What a spreadsheet would take for a formula begins with an apostrophe.

    The file begins with a byte order mark, without which Excel reads no UTF-8 and misspells names; pandas skips it, as
    does Python's `open` with the encoding "utf-8-sig".
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Grade)])
    for grade in grades:
        writer.writerow([f"'{cell}" if cell[:1] in "=+-@\t\r" and cell else cell for cell in astuple(grade)])
    return text.getvalue().encode("utf-8-sig", errors="replace")


def _students(folder: Path) -> list[tuple[str, Path]]:
    """Each student's name and the folder with their notebooks."""
    if not folder.is_dir():
        raise ValueError(f"folder: expected a folder that was handed in, found none at {str(folder)!r}")
    if (own := _notebooks_in(folder)) is not None:
        return [(_readable(folder.resolve().name), own)]
    places = {one: _unpacked(one) for one in _folders(folder)}
    if not any(places.values()):
        raise ValueError(f"folder: expected notebooks, or a folder of them for each student, in {str(folder)!r}")
    return [(_readable(one.name), place or one) for one, place in places.items()]


def _notebooks_in(folder: Path) -> Path | None:
    """The folder, or its "notebooks", where there are any."""
    return next((one for one in (folder / "notebooks", folder) if any(one.glob("*.ipynb"))), None)


def _unpacked(folder: Path) -> Path | None:
    """The folder with a student's notebooks, or the only one inside: an archive may hold a folder around all."""
    own, inside = _notebooks_in(folder), _folders(folder)
    return own if own or len(inside) != 1 else _unpacked(inside[0])


def _folders(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink() and _is_students(one.name))


def _grade_notebook(place: Path, exercises: list[Exercise], seconds: int) -> Iterator[tuple[Exercise, tuple[str, str]]]:
    notebook = place / f"{exercises[0].notebook}.ipynb" if exercises else place
    if exercises and not (notebook.is_file() and notebook.resolve().is_relative_to(place.resolve())):
        yield from ((each, (MISSING, _absent(notebook))) for each in exercises)
        return
    try:
        cells = code_cells(notebook) if exercises else []
    except (ValueError, OSError) as error:
        yield from ((each, (RESULTS[False], str(error))) for each in exercises)
        return
    found = _answers(cells, exercises, seconds)
    for number, each in enumerate(exercises):
        yield each, _judged(each, found[number], broken_cell(cells, each.function))


def _absent(notebook: Path) -> str:
    """A browser or a student may have renamed it: "02_slide_a_window (1).ipynb"."""
    like = sorted(one.name for one in notebook.parent.glob("*.ipynb") if notebook.stem in one.stem)
    renamed = [name for name in like if name != notebook.name]
    return "there is no such notebook" + (f"; is it {' or '.join(renamed)}?" if renamed else "")


def _judged(exercise: Exercise, said: dict[str, Any], broken: str | None) -> tuple[str, str]:
    """Result and message, by the project's own check."""
    if broken and said.get("stub", True):  # behind the stub that was handed out, say
        return RESULTS[False], f"a cell is no Python: {broken}"
    check = getattr(checks, exercise.check)
    if "answers" not in said:
        return RESULTS[False], _error(check, said)
    try:
        answers = [decode(answer) for answer in said["answers"]]
        if len(answers) != len(check.cases()):
            raise ValueError(f"{len(answers)} answers")
        verdict = check.judge(answers, said.get("changed"), said.get("stub", True))
    except Exception as error:  # whatever a student's process wrote must not end the grading of a class
        return RESULTS[False], f"the answers cannot be read: {error}"
    return RESULTS[verdict.passed], verdict.message


def _error(check: Check, said: dict[str, Any]) -> str:
    """What ended the student's code, and on which case, where the process names one."""
    number = said.get("case")
    if isinstance(number, int) and 0 <= number < len(check.cases()):
        return f"{check.where(number)} {said.get('error')}"
    return str(said.get("error"))


def _answers(cells: Sequence[str], exercises: Sequence[Exercise], seconds: int) -> list[dict[str, Any]]:
    """What the student's process says of each exercise; where it dies, a new one goes on with the next exercise."""
    said: list[dict[str, Any]] = []
    while len(said) < len(exercises):
        rest = exercises[len(said) :]
        request = [
            {"check": each.check, "function": each.function, "cells": needed_cells(cells, each.function)}
            for each in rest
        ]
        lines, ended = _run(request, seconds)
        said += lines
        if len(lines) < len(rest):
            said.append({"error": ended})
    return said


def _run(request: list[dict[str, Any]], seconds: int) -> tuple[list[dict[str, Any]], str]:
    """One process: what it said of the first exercises, and how it ended."""
    with tempfile.TemporaryDirectory(prefix="rtx-student-") as scratch, tempfile.TemporaryFile() as output:
        command = [sys.executable, "-P", "-m", "rtx.classroom.student", str(seconds)]
        variables = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "TMPDIR": scratch}
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.DEVNULL,
            cwd=scratch,
            env=os.environ | variables,
            start_new_session=True,
        )
        try:
            process.communicate(json.dumps(request).encode(), timeout=STARTING + seconds)
            ended = _ending(process.returncode, seconds)
        except subprocess.TimeoutExpired:
            started = os.fstat(output.fileno()).st_size > 0
            ended = _too_long(seconds) if started else NOT_STARTED.format(STARTING + seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it may have started, too
            process.wait()
        output.seek(0)
        return _read(output.read()), ended


def _too_long(seconds: int) -> str:
    return f"the notebook's exercises took more than {seconds} seconds: an endless loop?"


def _ending(code: int, seconds: int) -> str:
    if code in (-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL):
        return _too_long(seconds)
    return f"your code ended the process, with exit code {code}"


def _read(output: bytes) -> list[dict[str, Any]]:
    """The answers in a row from the first exercise on; the first line on an exercise counts."""
    said: list[dict[str, Any]] = []
    for line in output.splitlines():
        with suppress(ValueError, RecursionError):
            one = json.loads(line)
            if isinstance(one, dict) and one.get("exercise") == len(said) and ("answers" in one or "error" in one):
                said.append(one)
    return said


def _is_students(name: str) -> bool:
    """Whether a folder of that name may be a student's: not one that is hidden, or that macOS adds to what it zips."""
    return not name.startswith(".") and name != "__MACOSX"


def _readable(name: str) -> str:
    """A folder's name as any terminal can print it: an archive from another system may hold one that is no UTF-8."""
    return _one_line(os.fsencode(name).decode("utf-8", errors="replace"))


def _one_line(message: str) -> str:
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in message).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
