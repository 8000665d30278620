"""Grade what students hand in: their functions answer in a process without rights, and the exercises judge here."""

import csv
import io
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple
from unittest.mock import MagicMock, patch

import torch

import rtx.lab.explore  # noqa: F401  # notebooks use it; once imported, it is there in every copy of this process
from rtx.classroom.confine import confine
from rtx.classroom.notebooks import Notebook, chosen_notebooks, code_cells, exercises_of, handed_in, needed_cells
from rtx.lab import exercises
from rtx.lab.exercises.exercise import Exercise, Verdict, is_stub

PASSED, FAILED, NOT_ATTEMPTED, MISSING = "passed", "failed", "not attempted", "missing"
LONGEST = 300  # characters of a message
LARGEST = 2_000_000  # bytes of the answers to an exercise
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # so that it may fork


class Grade(NamedTuple):
    """The result of one exercise of one student (passed, failed, not attempted or missing) and the reason."""

    student: str
    notebook: str
    exercise: str
    result: str
    message: str


def grade_folder(folder: Path, notebooks: Path, only: Sequence[str] = (), seconds: int = 20) -> Iterator[Grade]:
    """Grade the exercises of `notebooks` for every student, each in at most `seconds`. See `handed_in` for `folder`."""
    sources = {source.stem: code_cells(source) for source in chosen_notebooks(notebooks, only)}
    asked = [(notebook, check) for notebook, cells in sources.items() for check in exercises_of(cells)]
    students = handed_in(folder)  # before the server starts, because it may raise
    with _server() as server:
        for student, files in students.items():
            for notebook, check in asked:
                try:
                    cells = needed_cells(code_cells(_one_of(files, notebook)), check)
                    server.send((check, cells, seconds))
                    result, message = _judge(check, server.recv_bytes())
                except FileNotFoundError as error:
                    result, message = MISSING, str(error)
                except (EOFError, OSError):  # no fault of this student
                    raise ChildProcessError("the process for students' code has ended; is the memory full?") from None
                except Exception as error:  # whatever a student wrote must not end the grading of a class
                    result, message = FAILED, f"{type(error).__name__}: {error}"
                yield Grade(_one_line(student), notebook, check, result, _one_line(message))


def to_csv(grades: Sequence[Grade]) -> bytes:
    """Return grades as CSV, a line each. An apostrophe precedes what a spreadsheet takes for a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Grade._fields)
    writer.writerows([f"'{cell}" if cell.startswith(tuple("=+-@＝＋－＠")) else cell for cell in one] for one in grades)
    return text.getvalue().encode("utf-8-sig")  # a byte order mark tells Excel that this is UTF-8


def _one_of(files: Sequence[Notebook], notebook: str) -> Notebook:
    found = [path for path in files if notebook in path.stem.lower()]  # a browser adds " (1)", Canvas adds the student
    if len(found) != 1:
        names = ", ".join(path.name for path in files) or "nothing"
        raise FileNotFoundError(f"expected one notebook of this name, got {len(found)}; handed in: {names}")
    return found[0]


def _one_line(text: str) -> str:
    """Return a text as one line that any terminal can print: without control characters and halves of characters."""
    return shorten("".join(c if c.isprintable() else " " for c in text), LONGEST, placeholder="…")


def _judge(name: str, said: bytes) -> tuple[str, str]:
    """Judge what a student's process wrote by the project's own check; return the result and the message."""
    found = json.loads(said, object_hook=_tensor)
    if "error" in found:
        return FAILED, str(found["error"])
    check: Exercise = getattr(exercises, name)
    if len(found["answers"]) != (cases := len(check.cases())):
        return FAILED, f"expected {cases} answers, one for each case, got {len(found['answers'])}"
    passed, message = astuple(check.judge(found["answers"], found["changed"], found["stub"]))
    return {True: PASSED, False: FAILED, None: NOT_ATTEMPTED}[passed], "" if passed else message


@contextmanager
def _server() -> Iterator[Connection]:
    """Start the process that imports torch once and copies itself for each exercise. Yield a pipe to it.

    A copy has all that this process has. So the process gets no lock of the grader and no variable that may be secret.
    """
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "LD_LIBRARY_PATH") if name in os.environ}
    with patch.dict(os.environ, kept | ONE_THREAD, clear=True, MPLBACKEND="agg", CUDA_VISIBLE_DEVICES=""):
        spawn.Process(target=_serve, args=(theirs,), daemon=True).start()
    theirs.close()  # so that the grader reads the end of the pipe when the process ends
    with ours:
        yield ours


def _serve(questions: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends this process together with the grader
    with suppress(EOFError, OSError):  # the grader is done, or the machine can start no other process
        while True:
            questions.send_bytes(run(*questions.recv()))


def run(check: str, cells: Sequence[str], seconds: int) -> bytes:
    """Run one exercise in a process of its own and return what it wrote, or the error that ended it."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        _student(check, cells, seconds, writing)
    os.close(writing)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(process, signal.SIGKILL))
    signal.alarm(seconds)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read(LARGEST + 1)  # until the process ends, because it can start no other
    signal.alarm(0)
    os.kill(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if len(said) > LARGEST:
        error = f"the answers have more than {LARGEST:,} bytes"
    elif code in (-signal.SIGKILL, -signal.SIGXCPU):
        error = f"the exercise took more than {seconds} seconds; is there an endless loop?"
    elif code or not said:
        error = f"the code ended Python, with exit code {code}"
    else:
        return said
    return json.dumps({"error": error}).encode()


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


def answer(name: str, cells: Sequence[str]) -> dict[str, Any]:
    """Return the answers of the function that the last cell exercises, at the moment of its check; or an error."""
    check: Exercise = getattr(exercises, name)
    cases, found = check.cases(), list[dict[str, Any]]()

    def record(self: Exercise, mine: Callable[..., Any]) -> Verdict:
        if self is check:
            found.append(_answers(self, mine, cases))
        return Verdict(None, "")  # so `yours` gives the solution of this and of other exercises to later cells

    Exercise.__call__ = record  # type: ignore[method-assign]
    torch.set_num_threads = MagicMock()  # the process may not start threads
    names = {"__name__": "__main__", "display": MagicMock(), "get_ipython": MagicMock()}
    failed = None
    for code in cells:
        try:
            exec(code, names)
        except BaseException as error:  # also sys.exit()
            failed = failed or f"a cell raised {type(error).__name__}: {error}"  # later ones may follow from it
    return found[-1] if found else {"error": failed or f"the notebook does not try the exercise {name}"}


def _answers(check: Exercise, mine: Callable[..., Any], cases: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the function's answers to the cases as numbers and lists, or the error that it raised."""
    answers, changed = [], None
    try:
        for case in cases:
            value, now = check.attempt(mine, case)
            answers.append(json.loads(json.dumps(value, default=_plain)))
            changed = changed or now
        return {"answers": answers, "changed": changed, "stub": is_stub(mine)}
    except BaseException as error:
        return {"error": f"{check.where(len(answers))} your code raised {type(error).__name__}: {error}"}


def _plain(tensor: Any) -> dict[str, list[Any]]:
    return {"shape": [*tensor.shape], "numbers": tensor.flatten().tolist()}


def _tensor(table: dict[str, Any]) -> Any:
    return torch.tensor(table["numbers"]).reshape(table["shape"]) if "numbers" in table else table
