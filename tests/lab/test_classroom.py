"""A class: what students get, and what they may hand in without harm to anybody's grade."""

import codecs
import csv
import io
import json
import os
import re
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib import rc_context

from rtx.classroom import Grade, chosen_notebooks, exercises_of, grade_folder, grading, make_handout, to_csv
from rtx.classroom.answers import decode, encode
from rtx.classroom.confine import can_confine, limit
from rtx.classroom.exercises import Exercise, code_cells
from rtx.classroom.grading import _judged
from rtx.classroom.needed import broken_cell, needed_cells
from rtx.classroom.student import _answer
from rtx.cli import classroom
from rtx.lab import checks
from rtx.lab.checks import Check

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WINDOW = "02_slide_a_window.ipynb"
Cells = dict[str, str]


def solutions(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return re.findall(r"<summary>Solution</summary>\s*```python\n(.*?)```", text, re.DOTALL)


def hand_in(place: Path, name: str, answers: Cells, add: str = "") -> Path:
    """A student's notebook: cells that hold a function of `answers` become that; `add` is one more, behind them."""
    notebook = json.loads((NOTEBOOKS / name).read_text())
    for cell in notebook["cells"]:
        for function, code in answers.items():
            if cell["cell_type"] == "code" and re.search(rf"^def {function}\(", "".join(cell["source"]), re.MULTILINE):
                cell["source"] = code
    notebook["cells"].append({"cell_type": "code", "source": add})
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(json.dumps(notebook))
    return place / name


# What students get


@pytest.fixture(scope="module")
def handout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("class") / "hand out"
    make_handout(folder, NOTEBOOKS)
    return folder


def test_solutions_and_outputs_go_and_stubs_and_checks_stay(handout: Path) -> None:
    for source in chosen_notebooks(NOTEBOOKS):
        before, after = (json.loads(path.read_text()) for path in (source, handout / "notebooks" / source.name))
        text = json.dumps(after)
        assert "Solution" not in text and "widget" not in str(after["metadata"])
        assert [one["outputs"] for one in after["cells"] if one.get("outputs")] == []
        assert code_cells(source) == code_cells(handout / "notebooks" / source.name)
        assert text.count("<summary>Hint") == json.dumps(before).count("<summary>Hint")
        for solution in solutions(source):
            assert json.dumps(solution)[1:-1] not in text
        texts = ["".join(one["source"]) for one in after["cells"] if one["cell_type"] == "markdown"]
        links = re.findall(r"\]\(([^):#]+)\)", "\n".join(texts))
        assert links and [link for link in links if not (handout / "notebooks" / link).exists()] == []


def test_a_link_to_a_notebook_that_is_not_handed_out_is_its_words(tmp_path: Path) -> None:
    make_handout(tmp_path, NOTEBOOKS, ["02", "03"])
    text = (tmp_path / "notebooks" / WINDOW).read_text()
    assert "Frame the problem" in text and "[Frame the problem](" not in text
    assert "[Attend to the past](03_attend_to_the_past.ipynb)" in text


def test_every_check_is_an_exercise_of_one_notebook() -> None:
    asked = [each.check for source in chosen_notebooks(NOTEBOOKS) for each in exercises_of(source)]
    assert sorted(asked) == sorted(name for name, value in vars(checks).items() if isinstance(value, Check))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda folder: make_handout(folder, folder), "notebooks: expected the folder of rtx's notebooks, found none"),
        (
            lambda folder: make_handout(folder / "a", NOTEBOOKS, ["2"]),
            "only: expected how the names of notebooks begin",
        ),
        (lambda folder: make_handout(NOTEBOOKS, NOTEBOOKS), "folder: expected a new or an empty one, got "),
        (
            lambda folder: list(grade_folder(folder, NOTEBOOKS)),
            "folder: expected notebooks, or a folder of them for each",
        ),
        (lambda folder: list(grade_folder(folder / "a", NOTEBOOKS)), "folder: expected a folder that was handed in"),
        (lambda folder: list(grade_folder(folder, NOTEBOOKS, seconds=0)), "seconds: expected 1 or more, got 0"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, call: Callable[[Path], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_renamed_notebook_is_missing_but_named(tmp_path: Path) -> None:
    handed_in = hand_in(tmp_path, WINDOW, {})
    handed_in.rename(handed_in.with_stem(f"Anna_{handed_in.stem} (1)"))
    told = {(grade.result, grade.message) for grade in grade_folder(tmp_path, NOTEBOOKS, ["02"])}
    assert told == {("missing", f"there is no such notebook; is it Anna_{Path(WINDOW).stem} (1).ipynb?")}


# What students may hand in: all into one folder, graded once

RIGHT = dict(zip(("windows", "stacked_reach"), solutions(NOTEBOOKS / WINDOW), strict=True))
OFF_BY_ONE = RIGHT["windows"].replace("(x, (0, 0, window - 1, 0))", "(x[:, :-1], (0, 0, window, 0))")
CHEAT = """
import rtx.lab.checks
from rtx.lab.checks import Check
rtx.lab.checks.stacked_reach = print
Check.__call__ = Check.judge = lambda *_: "✓ right"

def stacked_reach(layers, window):
    return rtx.lab.checks.stacked_reach.solution(layers, window)
"""
# right, if all of it was refused
WRITE = """
import os

def refused(act, *arguments):
    try:
        act(*arguments)
    except PermissionError:
        return True
    return False

def stacked_reach(layers, window):
    acts = [(open, {csv!r}, "w"), (open, {csv!r}, "a"), (os.remove, {csv!r}), (os.truncate, {csv!r}, 0)]
    acts += [(os.rename, "mine", {csv!r}), (os.symlink, "/", {csv!r} + "2"), (os.kill, os.getppid(), 9)]
    acts += [(open, f"/proc/{{os.getppid()}}/mem", "r+b")]
    open("mine", "w").write("a scratch file may be written")
    inside = all(refused(*act) for act in acts)
    child = os.fork()
    if not child:  # a child has no more rights
        os.setsid()
        os._exit(all(refused(*act) for act in acts))
    return (layers * (window - 1) + 1) if inside and os.waitpid(child, 0)[1] >> 8 else -1
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Grade]]:
    folder = tmp_path_factory.mktemp("returned")
    grades = folder / "grades.csv"
    grades.write_text("as it was\n")
    windows, reach = RIGHT["windows"], RIGHT["stacked_reach"]
    student = {
        "crash": {"windows": "import os\nos._exit(0)\ndef windows(x, window): pass", "stacked_reach": reach},
        "edited": {"windows": OFF_BY_ONE + "\nprint('✓ right: passed')\nchecks = None", "stacked_reach": CHEAT},
        "error": {"windows": "def windows(x, window):\n    return 1 / 0", "stacked_reach": "def stacked_reach(:"},
        "loop": {"windows": "def windows(x, window):\n    while True: pass", "stacked_reach": reach},
        "right": {"windows": windows, "stacked_reach": reach},
        "sleep": {"stacked_reach": "import time\ndef stacked_reach(L, M): time.sleep(600)"},
        "stub": {},
        "silent": {"windows": "def windows(x, window):\n    found = x * window", "stacked_reach": reach},
        "writer": {"stacked_reach": WRITE.format(csv=str(grades))},
    }
    for name, answers in student.items():
        place = Path("a zip's own folder", "again") if name == "right" else Path("notebooks")
        hand_in(folder / "class" / name / place, WINDOW, answers, "while True: pass")  # nobody needs that cell
    for name in ("absent", ".git", "__MACOSX", "right/__MACOSX"):  # only the first is a student's
        (folder / "class" / name).mkdir()
    hand_in(folder / "class" / "junk", WINDOW, {}).write_text('{"cells": [')
    (folder / "class" / "link").mkdir()
    (folder / "class" / "link" / WINDOW).symlink_to(NOTEBOOKS / WINDOW)
    found: dict[str, list[Grade]] = {}
    for grade in grade_folder(folder / "class", NOTEBOOKS, ["02"], seconds=12):
        found.setdefault(grade.student, []).append(grade)
    assert grades.read_text() == "as it was\n" and list(found) == sorted([*student, "absent", "junk", "link"])
    return found


TOLD = {
    "absent": [("missing", "there is no such notebook")] * 2,
    "crash": [("failed", "your code ended the process, with exit code 0"), ("passed", "")],
    "edited": [
        ("failed", "off by one: your windows end at t - 1, the present position is missing"),
        (
            "failed",
            "on case 1 (layers = 1, window = 4) your code raised AttributeError: ",
        ),  # there is no solution to be called
    ],
    "error": [
        ("failed", "on case 1 (x of shape (2, 6, 3), window = 4) your code raised ZeroDivisionError: division by zero"),
        ("failed", "a cell is no Python: SyntaxError in line 1: "),
    ],
    "junk": [("failed", "a notebook (nbformat 4) was expected, this is none: JSONDecodeError")] * 2,
    "link": [("missing", "there is no such notebook")] * 2,
    "loop": [("failed", "the notebook's exercises took more than 12 seconds: an endless loop?"), ("passed", "")],
    "right": [("passed", ""), ("passed", "")],
    "silent": [("failed", "your function returns nothing: is `return` missing?"), ("passed", "")],
    "sleep": [
        ("not attempted", ""),
        ("failed", "the notebook's exercises took more than 12 seconds: an endless loop?"),
    ],
    "stub": [("not attempted", "")] * 2,
    "writer": [("not attempted", ""), ("passed", "")],
}


@pytest.mark.slow
@pytest.mark.parametrize("student", TOLD)
def test_whatever_is_handed_in_is_graded_for_what_it_is(graded: dict[str, list[Grade]], student: str) -> None:
    if student == "writer" and not can_confine():
        pytest.skip("this system has no Landlock: rtx class grade says so")
    for grade, exercise, (result, message) in zip(graded[student], RIGHT, TOLD[student], strict=True):
        assert (grade.notebook, grade.exercise, grade.result) == ("02_slide_a_window", exercise, result), grade
        assert grade.message.startswith(message), grade


@pytest.mark.slow
def test_all_solutions_of_all_notebooks_pass() -> None:
    """As the student's process and the grader do it, here in one process: torch is imported once, and not 17 times."""
    passed = 0
    for source in chosen_notebooks(NOTEBOOKS):
        cells, written = code_cells(source), solutions(source)
        for each in exercises_of(source):
            (answer,) = (one for one in written if f"def {each.function}(" in one)
            place = next(i for i, cell in enumerate(cells) if f"def {each.function}(" in cell)
            cells[place] = cells[place][: cells[place].index("def ")] + answer  # with what its cell imports
            request = {"function": each.function, "cells": needed_cells(cells, each.function)}
            assert len(request["cells"]) <= 3, (
                f"{each}: what else its notebook calls by a name of this one, it needs, too"
            )
            check = getattr(checks, each.check)
            with rc_context():  # which a notebook's first cell changes
                said = json.loads(json.dumps(_answer(request, check.cases(), encode)))
            assert "answers" in said, (each, said)
            assert check.judge([decode(one) for one in said["answers"]], said["changed"]).passed, each
            passed += 1
        assert len(exercises_of(source)) == len(written)
    assert passed >= 34


# Its parts


def test_a_file_that_is_too_large_for_a_notebook_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = hand_in(tmp_path, WINDOW, {}, "#" * 1_000_000)  # larger than the project's own
    size = notebook.stat().st_size
    monkeypatch.setattr("rtx.classroom.exercises.LARGEST", size)
    assert code_cells(notebook)
    monkeypatch.setattr("rtx.classroom.exercises.LARGEST", size - 1)
    grades = list(grade_folder(tmp_path, NOTEBOOKS, ["02"]))
    told = f"a notebook of at most {size - 1:,} bytes was expected, this has {size:,}"
    assert [(grade.result, grade.message) for grade in grades] == [("failed", told)] * 2


def test_a_folder_of_any_name_is_graded_under_one_that_can_be_printed(tmp_path: Path) -> None:
    names = [b"J\xf8rgen", b"an\nn", "Zoë".encode()]
    try:
        for name in names:
            os.mkdir(os.fsencode(tmp_path) + b"/" + name)
    except OSError:
        pytest.skip("this file system holds names in UTF-8 only")
    (tmp_path / "Zoë" / WINDOW).write_text("none")
    grades = list(grade_folder(tmp_path, NOTEBOOKS, ["02"]))
    assert {grade.student.encode().decode() for grade in grades} == {"J\ufffdrgen", "an n", "Zoë"}


def test_a_machine_that_is_slow_to_start_is_no_endless_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "STARTING", -1)
    said, ended = grading._run([], seconds=1)
    assert (said, ended) == ([], "rtx did not start within 0 seconds on this machine: grade again, with more --seconds")


def test_grades_that_were_given_before_a_stop_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> Iterator[Grade]:
        yield Grade("Ada", "02", "windows", "passed", "")
        raise KeyboardInterrupt

    monkeypatch.setattr(grading, "grade_folder", stopped)
    whole = tmp_path / "grades.csv"
    whole.write_text("of last week")
    with pytest.raises(KeyboardInterrupt):
        classroom.grade(tmp_path, whole, NOTEBOOKS)
    assert whole.read_text() == "of last week"
    assert "Ada,02,windows,passed" in (tmp_path / "unfinished-grades.csv").read_text()


def test_a_folder_without_notebooks_leaves_no_grades(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="folder: expected notebooks"):
        classroom.grade(tmp_path, tmp_path / "grades.csv", NOTEBOOKS)
    assert not any(tmp_path.iterdir())


def test_a_system_that_bounds_no_memory_bounds_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded: list[int] = []

    def setrlimit(kind: int, limits: tuple[int, int]) -> None:
        if kind == resource.RLIMIT_AS:  # as on macOS
            raise ValueError("current limit exceeds maximum limit")
        bounded.append(kind)

    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    monkeypatch.setattr(signal, "alarm", bounded.append)
    limit(7)
    assert bounded == [7, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_CORE]


def test_a_function_needs_the_cells_of_the_names_it_reads() -> None:
    cells = [
        "%matplotlib inline\nimport torch",
        "x = slow()",
        "from math import *",
        "def helper(y):\n    return [torch.tensor(z) for z in y]",
        "def mine(x):\n    return helper(x)",
        "while True: pass",
        "def mine(x:",
        "class Later:\n    def go(self): return mine(unseen)",
    ]
    plain = cells[0].replace("%matplotlib inline", "pass")
    assert needed_cells(cells, "mine") == [plain, *cells[2:5]]
    assert needed_cells(cells, "Later") == [plain, *cells[2:5], cells[7]]
    assert needed_cells(cells, "none") == [cells[2]]
    assert str(broken_cell(cells, "mine")).startswith("SyntaxError in line 1: ")
    assert broken_cell(cells, "helper") is None
    asked = ["def start():\n    global STEP\n    STEP = 1\n\nstart()", "def next_one(n): return n + STEP"]
    assert needed_cells(asked, "next_one") == asked
    python = "def modulo(n):\n    return (\n        n\n        % 7\n    )"
    assert needed_cells([python], "modulo") == [python]
    for command in ("%time f()", "!ls", "?print", "files = !ls", "taken = %timeit -o f()", "torch.stack?", "print??"):
        assert needed_cells([f"def f(): return 1\n{command}"], "f") == ["def f(): return 1\npass"]
    assert "null" in str(broken_cell(["def f(): '\0'"], "f"))


@pytest.mark.parametrize(
    "answer",
    [None, ..., True, 3, 0.1, "text", [1, [2.5, None]], torch.tensor([[0.1], [float("nan")]]), torch.zeros(2, 0),
     torch.tensor(7), torch.tensor([True, False])],
    ids=repr,
)  # fmt: skip
def test_answers_survive_as_text(answer: object) -> None:
    again = decode(json.loads(json.dumps(encode(answer))))
    assert type(again) is type(answer) and repr(again) == repr(answer)


def test_a_flipped_array_is_handed_over() -> None:
    assert decode(encode(np.arange(3)[::-1])).tolist() == [2, 1, 0]  # torch takes no negative strides


def test_an_array_stays_one_and_so_has_the_grade_of_the_notebook() -> None:
    rows = """
def windows(x, window):
    padded = np.pad(x.numpy(), ((0, 0), (window - 1, 0), (0, 0)))
    return [np.stack([one[t : t + window] for t in range(x.shape[1])]) for one in padded]
"""
    assert _graded(["import numpy as np", rows], "windows")[0] == "passed"
    five = _graded(["import numpy as np\ndef stacked_reach(layers, window): return np.int64(5)"])
    assert five == ("failed", "on case 1 (layers = 1, window = 4) expected 4, got np.int64(5)")
    assert encode(np.array([None, "a"])) == {"kind": "other", "name": "ndarray"}


def test_what_an_answer_does_to_its_arguments_is_handed_over() -> None:
    cells = ["def windows(x, window):\n    x *= 2\n    return x"]
    check = checks.windows
    said = json.loads(json.dumps(_answer({"function": "windows", "cells": cells}, check.cases(), encode)))
    exercise = Exercise("02_slide_a_window", "windows", "windows")
    assert _judged(exercise, said, None) == (
        "failed",
        "it changes its first argument, the caller's own: work on a copy",
    )
    for told in (99, "x", -9, [1]):  # whatever the process writes
        result, _ = _judged(exercise, said | {"changed": told}, None)
        assert result == "failed"


def test_a_broken_cell_behind_the_stub_is_an_attempt() -> None:
    stub, broken, right = "def stacked_reach(layers, window): ...", "def stacked_reach(:", RIGHT["stacked_reach"]
    assert _graded([stub, broken]) == ("failed", "a cell is no Python: SyntaxError in line 1: invalid syntax")
    assert _graded([stub, right, broken])[0] == "passed"
    assert _graded([stub]) == ("not attempted", "")


def _graded(cells: list[str], function: str = "stacked_reach") -> tuple[str, str]:
    """As the student's process and the grader do it, in this one."""
    request = {"function": function, "cells": needed_cells(cells, function)}
    said = json.loads(json.dumps(_answer(request, getattr(checks, function).cases(), encode)))
    return _judged(Exercise("02_slide_a_window", function, function), said, broken_cell(cells, function))


def test_what_is_displayed_on_the_way_is_no_error() -> None:
    assert _graded([RIGHT["stacked_reach"].replace("return", "display(layers)\n    return")])[0] == "passed"


def test_other_answers_keep_their_kind_only() -> None:
    assert encode(torch.tensor(1j)) == {"kind": "other", "name": "Tensor"}
    assert type(decode(encode({1, 2}))).__name__ == "set"
    torch.testing.assert_close(decode(encode(torch.ones(2, dtype=torch.bfloat16))), torch.ones(2, dtype=torch.float64))
    for text in ('{"kind": "tensor", "numbers": ["a"], "shape": [1], "dtype": "int64"}', '{"a": 1}'):
        with pytest.raises(ValueError, match="answer: expected what encode writes"):
            decode(json.loads(text))


def test_a_spreadsheet_is_told_that_names_are_in_utf8() -> None:
    made = to_csv([Grade("Zoë", "02", "windows", "passed", "")])
    assert made == codecs.BOM_UTF8 + "student,notebook,exercise,result,message\nZoë,02,windows,passed,\n".encode()


def test_grades_are_csv_without_formulas() -> None:
    names = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "ann"]
    grades = [Grade(name, "02", "windows", "failed", 'said "no", twice') for name in names]
    made = to_csv([*grades, Grade("ann", "02", "windows", "passed", "")])
    head, *rows = csv.reader(io.StringIO(made.decode("utf-8-sig")))
    assert head == ["student", "notebook", "exercise", "result", "message"]
    assert [row[0] for row in rows] == [*(f"'{name}" for name in names[:-1]), "ann", "ann"]
    assert [row[1:] for row in rows[-2:]] == [
        ["02", "windows", "failed", 'said "no", twice'],
        ["02", "windows", "passed", ""],
    ]
