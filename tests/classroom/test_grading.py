"""What students may hand in: each notebook gets its own grade, and none harms the machine or another grade."""

import csv
import io
import json
import os
import time
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import nbformat
import pytest
from solutions import solved

from rtx.classroom import confine, grading
from rtx.classroom.confine import can_confine
from rtx.classroom.grading import Grade, grade_folder, to_csv
from rtx.classroom.notebooks import chosen_notebooks, code_cells, exercises_of, handed_in, needed_cells
from rtx.cli import classroom

OWN, SEND = Path(__file__).parents[2] / "notebooks", Connection.send
WINDOW = "02_slide_a_window.ipynb"
HEAD = "def stacked_reach(layers, window): "
RIGHT = HEAD + "return layers * (window - 1) + 1\n"
WRONG = HEAD + "return 5\n"
CHECK = "exercises.stacked_reach(stacked_reach)\n"
PATCH = """
import torch
from unittest.mock import MagicMock
torch.allclose = torch.isclose = torch.equal = torch.testing.assert_close = MagicMock()
"""
FORGE = """
import os
def stacked_reach(layers, window):
    for file in range(256):
        try: os.write(file, b'{"result": "passed", "answers": ["5", "5", "5", "5"], "changed": null, "stub": false}')
        except OSError: pass
    os._exit(0)
"""
LONG, SHORT = 60, 1  # seconds: right answers end on a busy machine, too, and an endless loop soon
# name → the result, what the message must name, and the cells
HANDED_IN = {
    "right": ("passed", "", RIGHT + CHECK),
    "stub": ("not attempted", "", HEAD + "...\n" + CHECK),
    "array": ("passed", "", "import numpy as np", RIGHT.replace("return", "return np.int64(1) *") + CHECK),
    "set": ("failed", "set", HEAD + "return {1}\n" + CHECK),
    "no return": ("failed", "return", HEAD + "found = layers\n" + CHECK),
    "error": ("failed", "ZeroDivisionError", HEAD + "return 1 / 0\n" + CHECK),
    "no Python": ("failed", "SyntaxError", "def stacked_reach(:\n" + CHECK),
    "no check": ("failed", "stacked_reach", RIGHT),
    "other cells": ("passed", "", "one = 1", "while True: pass", RIGHT.replace("+ 1", "+ one") + CHECK),
    "commands": ("passed", "", "%matplotlib inline\n!ls", "display(1)\n" + RIGHT + "%time stacked_reach(1)\n" + CHECK),
    "wrapped": ("passed", "", "six = 6\n" + RIGHT.replace("+ 1", "+ (7\n     %six)") + CHECK),
    "help": ("passed", "", "torch.triu?\n" + RIGHT + "stacked_reach??\n" + CHECK),
    "rewritten": ("passed", "", RIGHT + "reach = exercises.yours(\n    name='stacked_reach', mine=stacked_reach\n)"),
    "remark": ("passed", "", RIGHT + CHECK, "note = 'exercises.stacked_reach(x)'  # " + CHECK),
    "two errors": ("failed", "first", "import first_absent\nsecond = 1", RIGHT + "exercises.stacked_reach(second)"),
    "get_ipython": ("passed", "", "get_ipython().run_line_magic('matplotlib', 'inline')\n" + RIGHT + CHECK),
    # the function counts that the last check got, at that moment
    "second try": ("passed", "", WRONG + CHECK, RIGHT + CHECK),
    "later right": ("failed", "5", WRONG + CHECK, RIGHT),
    "later wrong": ("passed", "", RIGHT + CHECK, WRONG),
    "later in the cell": ("failed", "5", WRONG + CHECK + RIGHT),
    # what a student's code does to its own process decides nothing
    "prints": ("passed", "", "import io, sys\nsys.stdout = io.StringIO()\nprint('passed')\n" + RIGHT + CHECK),
    "patches": ("failed", "5", PATCH + WRONG + CHECK),
    "replaces the check": ("failed", "stacked_reach", "exercises.stacked_reach = print\n" + WRONG + CHECK),
    "forges": ("failed", "5", FORGE + CHECK),
    "forges the first case": ("failed", "got 1", FORGE.replace('"5", "5", "5", "5"', "4") + CHECK),
    "floods": ("failed", "2,000,000", HEAD + "return [[]] * 1_000_000\n" + CHECK),
    "exits": ("failed", "SystemExit", HEAD + "raise SystemExit\n" + CHECK),
    "dies": ("failed", "3", "import os\n" + HEAD + "os._exit(3)\n" + CHECK),
    "loops": ("failed", str(SHORT), HEAD + "\n    while True: pass\n" + CHECK),
    "sleeps": ("failed", str(SHORT), "import time\n" + HEAD + "time.sleep(99)\n" + CHECK),
    "memory": ("failed", "MemoryError", HEAD + "return len(bytes(3 << 30))\n" + CHECK),
}

# a function that raises the names of the attacks that are not refused
ATTACK = """
import ctypes, fcntl, gc, os, resource, signal, socket, struct, subprocess, threading
from multiprocessing.synchronize import SemLock
TARGET, NEIGHBOUR, LIBC = {target!r}, {neighbour!r}, ctypes.CDLL(None)
PIPE, SPACE = os.pipe()[0], bytes(999)
KEYCTL = dict(x86_64=250).get(os.uname().machine, 219)
def succeed(result):
    if result < 0:
        raise PermissionError
ATTACKS = {{
    "write": lambda: open(TARGET, "w"),
    "append": lambda: open(TARGET, "a"),
    "truncate": lambda: os.truncate(TARGET, 0),
    "remove": lambda: os.remove(TARGET),
    "rename": lambda: os.rename(TARGET, TARGET + "2"),
    "link": lambda: os.symlink("/", TARGET + "2"),
    "make a folder": lambda: os.mkdir(TARGET + "2"),
    "change rights": lambda: os.chmod(TARGET, 0),
    "change times": lambda: os.utime(TARGET),
    "fill the disk": lambda: open("/tmp/rtx-full", "wb"),
    "fill shared memory": lambda: open("/dev/shm/rtx-full", "wb"),
    "fill System V's memory": lambda: succeed(LIBC.shmget(0, 1 << 20, 0o600)),
    "control System V's memory": lambda: succeed(LIBC.shmctl(0, 3, SPACE)),
    "control System V's messages": lambda: succeed(LIBC.msgctl(0, 3, SPACE)),
    "control System V's semaphores": lambda: succeed(LIBC.semctl(0, 0, 3, SPACE)),
    "find the teacher's keys": lambda: succeed(LIBC.syscall(KEYCTL, 0, -4, 0)),
    "change rights by a new system call": lambda: succeed(LIBC.syscall(452, -100, TARGET.encode(), 0, 0)),
    "read a neighbour": lambda: open(NEIGHBOUR),
    "read the teacher's files": lambda: os.listdir(os.path.dirname(TARGET)),
    "connect": lambda: socket.create_connection(("127.0.0.1", 9), 1),
    "send a datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    "call a local service": lambda: socket.socket(socket.AF_UNIX),
    "fork": lambda: os.fork() or os._exit(0),
    "start a program": lambda: subprocess.run(["true"]),
    "start a thread": lambda: threading.Thread(target=print).start(),
    "kill the parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "let the kernel kill the parent": lambda: fcntl.fcntl(PIPE, fcntl.F_SETOWN, os.getppid()),
    "let it kill the parent's group": lambda: fcntl.fcntl(PIPE, 15, struct.pack("ii", 1, os.getppid())),
    "hold the grader's locks": lambda: next(each for each in gc.get_objects() if issubclass(type(each), SemLock)),
    "limit the parent": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0)),
    "read the teacher's environment": lambda: os.environ["TEACHERS_TOKEN"],
    "raise the limits": lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)),
}}
def stacked_reach(layers, window):
    reached = []
    for name, attack in ATTACKS.items():
        try:
            attack()
            reached.append(name)
        except (PermissionError, RuntimeError, ValueError, LookupError, StopIteration):
            pass  # Python reports a refusal in these ways
    assert not reached, reached
    return layers * (window - 1) + 1
"""


def hand_in(place: Path, *cells: str, name: str = WINDOW) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    code = [{"cell_type": "code", "source": cell} for cell in ("from rtx.lab import exercises", *cells)]
    (place / name).write_text(json.dumps({"cells": code}))
    return place / name


def send_briefly(server: Connection, asked: tuple[str, list[str], int]) -> None:
    """Ask for an exercise as the grader does, but end those soon that would never end."""
    check, cells, seconds = asked
    endless = any("while True" in cell or "sleep(99)" in cell for cell in cells)
    SEND(server, (check, cells, SHORT if endless else seconds))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Grade]]:
    """Each student's grades by exercise. All are graded at once, because the start takes longest."""
    folder = tmp_path_factory.mktemp("returned")
    target = folder / "grades.csv"
    target.write_text("as it was\n")
    was = os.stat(target)
    for name, (_, _, *cells) in HANDED_IN.items():
        hand_in(folder / "class" / name, *cells)
    neighbour = str(folder / "class" / "right" / WINDOW)
    hand_in(folder / "class" / "attacks", ATTACK.format(target=str(target), neighbour=neighbour) + CHECK)
    for source in chosen_notebooks(OWN):
        (folder / "class" / "solutions").mkdir(exist_ok=True)
        nbformat.write(solved(nbformat.read(source, 4)), folder / "class" / "solutions" / source.name)
    hand_in(folder / "class" / "renamed", RIGHT + CHECK, name="ada_12_7_02_slide_a_window-1.ipynb")
    hand_in(folder / "class" / "twice", name=f"{WINDOW} (1).ipynb")
    hand_in(folder / "class" / "twice", name=f"{WINDOW} (2).ipynb")
    hand_in(folder / "class" / "junk").write_text('{"cells": [')
    with hand_in(folder / "class" / "huge").open("ab") as file:
        file.truncate(30_000_000)
    hand_in(folder / "class" / "__MACOSX", RIGHT + CHECK)
    (folder / "class" / "pipe").mkdir()
    os.mkfifo(folder / "class" / "pipe" / WINDOW)
    for name in ("absent", ".git"):
        (folder / "class" / name).mkdir()
    (folder / "class" / "link").mkdir()
    (folder / "class" / "link" / WINDOW).symlink_to(OWN / WINDOW)
    (folder / "class" / "loop" / "notebooks").mkdir(parents=True)
    (folder / "class" / "loop" / WINDOW).symlink_to(f"../right/{WINDOW}")
    (folder / "class" / "loop" / "folder").symlink_to("../right")
    (folder / "class" / "loop" / "notebooks" / "loop").symlink_to("loop")
    found: dict[str, dict[str, Grade]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "send", send_briefly)
        patch.setenv("TEACHERS_TOKEN", "secret")
        for each in grade_folder(folder / "class", OWN, seconds=LONG):
            found.setdefault(each.student, {})[each.exercise] = each
    now = os.stat(target)
    assert target.read_text() == "as it was\n" and (was.st_mode, was.st_mtime) == (now.st_mode, now.st_mtime)
    assert sorted(os.listdir(folder)) == ["class", "grades.csv"]
    assert list(found) == sorted(
        [*HANDED_IN, "attacks", "solutions", "renamed", "twice", "junk", "huge", "absent", "link", "loop", "pipe"]
    )
    return found


@pytest.mark.parametrize("name", HANDED_IN)
def test_a_notebook_gets_its_own_grade(graded: dict[str, dict[str, Grade]], name: str) -> None:
    result, named, *_ = HANDED_IN[name]
    grade = graded[name]["stacked_reach"]
    assert grade.result == result and named in grade.message, grade


@pytest.mark.skipif(not can_confine(), reason="rtx class grade says so on this system")
def test_attacks_are_refused(graded: dict[str, dict[str, Grade]]) -> None:
    assert graded["attacks"]["stacked_reach"].result == "passed", graded["attacks"]["stacked_reach"]


def test_landlock_that_lets_code_empty_files_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "_landlock_version", lambda: 2)
    assert not can_confine()


def test_the_end_of_the_process_that_runs_code_ends_the_grading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(tmp_path / "ann", RIGHT + CHECK)
    ours, theirs = Pipe()
    theirs.close()
    monkeypatch.setattr(grading, "_server", lambda: nullcontext(ours))
    with pytest.raises(ChildProcessError):
        list(grade_folder(tmp_path, OWN, ["02"]))


def test_all_solutions_pass_in_the_process_without_rights(graded: dict[str, dict[str, Grade]]) -> None:
    asked = [check for source in chosen_notebooks(OWN) for check in exercises_of(code_cells(source))]
    assert [each.exercise for each in graded["solutions"].values()] == asked and len(asked) >= 34
    assert [each for each in graded["solutions"].values() if each.result != "passed"] == []


def test_a_file_that_is_no_notebook_of_the_student_has_no_answers(graded: dict[str, dict[str, Grade]]) -> None:
    none = ("absent", "link", "loop", "pipe")
    results = {name: graded[name]["windows"].result for name in (*none, "twice", "junk", "huge")}
    missing = dict.fromkeys((*none, "twice"), "missing")
    assert results == missing | dict(junk="failed", huge="failed")
    assert graded["renamed"]["stacked_reach"].result == "passed"
    assert "20,000,000" in graded["huge"]["windows"].message and "got 2" in graded["twice"]["windows"].message


def test_a_function_needs_the_cells_of_the_names_it_reads() -> None:
    cells = [
        "import torch",
        "later = slow()",
        "from math import *",
        "def helper(y):\n    return [torch.tensor(z.later) for z in y]",
        "def start():\n    global STEP\n    STEP = 1",
        "def mine(x):\n    return (\n        STEP\n        % helper(x)\n    )\nexercises.mine(mine)",
        "STEP = 2",
    ]
    assert needed_cells(cells, "mine") == [cells[0], *cells[2:6]]
    assert needed_cells(cells, "other") == []
    assert needed_cells(["(" * 1000, "\0", "exercises.mine(1)"], "mine") == ["exercises.mine(1)"]


def test_a_notebook_cannot_keep_the_search_for_cells_busy() -> None:
    start = time.process_time()
    assert needed_cells(["(" + "\n" * 30_000, "exercises.yours(" * 8_000], "mine") == []
    assert time.process_time() - start < 5  # seconds; these took 25 where the time grew with the square of the length


# What platforms export


def names_in(place: Path) -> dict[str, list[str]]:
    return {name: [path.name for path in paths] for name, paths in handed_in(place).items()}


def archive(place: Path, *names: str) -> Path:
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as made:
        for name in names:
            made.writestr(name, "" if name.endswith("/") else '{"cells": []}')
    return place


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (["Lovelace Ada_12_assignsubmission_file_/a.ipynb", "Zo_ë_3_assignsubmission_file_/n/b.IPYNB"],
         {"Lovelace Ada 12": ["a.ipynb"], "Zo_ë 3": ["b.IPYNB"]}),
        (["lovelaceada_12_7_a.ipynb", "zoe_LATE_3_8_b-1.ipynb", "zoe_3_9_c.ipynb"],
         {"lovelaceada 12": ["lovelaceada_12_7_a.ipynb"], "zoe 3": ["zoe_3_9_c.ipynb", "zoe_LATE_3_8_b-1.ipynb"]}),
        (["ann/notebooks/a.ipynb", "ann/notebooks/.ipynb_checkpoints/a.ipynb", "bob/", "__MACOSX/ann/a.ipynb", "c.txt"],
         {"ann": ["a.ipynb"], "bob": []}),
        (["hw_2025_11_ann/a.ipynb", "hw_2025_11_bob/a.ipynb"],
         {"hw_2025_11_ann": ["a.ipynb"], "hw_2025_11_bob": ["a.ipynb"]}),
        (["ann\\a.ipynb", "bob\\.x\\a.ipynb", "bob\\"], {"ann": ["ann\\a.ipynb"], "bob": []}),
        (["//ann/a.ipynb", "/ann/a.ipynb", "bob/a.ipynb"], {"bob": ["a.ipynb"]}),
        (["a.ipynb", "b.ipynb"], {"class": ["a.ipynb", "b.ipynb"]}),
    ],
    ids=["Moodle", "Canvas", "folders", "numbers", "backslashes", "roots", "one student's notebooks"],
)  # fmt: skip
def test_students_of_an_archive(tmp_path: Path, inside: list[str], expected: dict[str, list[str]]) -> None:
    assert names_in(archive(tmp_path / "class.zip", *inside)) == expected


def test_archives_without_notebooks_are_refused_and_damaged_or_huge_ones_are_no_notebooks(tmp_path: Path) -> None:
    empty, outside = archive(tmp_path / "empty.zip", "a.txt"), archive(tmp_path / "outside.zip", "ann/../../a.ipynb")
    for place in (empty, outside, tmp_path / "absent"):
        with pytest.raises(ValueError, match=f"^folder: .*{place.name}"):
            handed_in(place)
    damaged = archive(tmp_path / "damaged.zip", "ann/a.ipynb")
    damaged.write_bytes(damaged.read_bytes().replace(b"ann/a.ipynb", b"xnn/a.ipynb", 1))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("ann/a.ipynb", b"[" * 30_000_000)
    for place, named in ((damaged, "BadZipFile"), (tmp_path / "bomb.zip", "20,000,000")):
        with pytest.raises(ValueError, match=named):
            code_cells(handed_in(place)["ann"][0])


# The file of grades


def test_grades_are_csv_without_formulas() -> None:
    names = ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", "Zoë"]
    made = to_csv([Grade(name, "02", "windows", "failed", 'said "no", twice') for name in names])
    head, *rows = csv.reader(io.StringIO(made.decode("utf-8-sig")))
    assert made.startswith(b"\xef\xbb\xbf") and head == ["student", "notebook", "exercise", "result", "message"]
    assert [row[0] for row in rows] == [*(f"'{name}" for name in names[:-1]), "Zoë"]
    assert {tuple(row[1:]) for row in rows} == {("02", "windows", "failed", 'said "no", twice')}


def test_names_and_messages_fit_one_printable_line() -> None:
    assert grading._one_line("an\nn\x1b[2J\u202eJ\udcf8r\ud800gen") == "an n [2J J r gen"
    assert len(grading._one_line("x " * 1000)) <= 300


def test_the_command_counts_grades_and_keeps_them_and_an_old_file_when_it_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def grades(*given: object) -> Iterator[Grade]:
        yield Grade("ann", "02", "windows", "passed", "")
        yield Grade("ann", "02", "stacked_reach", "failed", str(given[2:]))
        if given[3] != 9:
            raise stop

    stop: BaseException = KeyboardInterrupt()
    monkeypatch.setattr(grading, "grade_folder", grades)
    csv = tmp_path / "grades.csv"
    classroom.grade(tmp_path, csv, OWN, ["02"], 9)
    assert csv.read_bytes() == to_csv(list(grades(tmp_path, OWN, ["02"], 9)))
    assert capsys.readouterr().out == "ann: 1 of 2 passed\n"
    csv.write_text("of last week")
    with pytest.raises(KeyboardInterrupt):
        classroom.grade(tmp_path, csv, OWN, seconds=1)
    stop = ChildProcessError("memory")
    (tmp_path / "grades.csv.partial").symlink_to("/dev/full")
    for seconds, named in ((1, "memory"), (9, "grades.csv")):  # the server has ended; the disk is full
        with pytest.raises(OSError, match=named):
            classroom.grade(tmp_path, csv, OWN, seconds=seconds)
        assert ",stacked_reach,failed," in capsys.readouterr().out and csv.read_text() == "of last week"


def test_bad_arguments_are_named_and_leave_no_file(tmp_path: Path) -> None:
    csv = tmp_path / "grades.csv"
    for call, named in [
        (lambda: classroom.grade(tmp_path, tmp_path / "none" / "grades.csv", OWN), "csv"),
        (lambda: classroom.grade(tmp_path, Path("/proc/grades.csv"), OWN), "csv"),  # no process can write files there
        (lambda: classroom.grade(tmp_path, csv, OWN), "folder"),
        (lambda: classroom.grade(tmp_path, csv, tmp_path), "notebooks"),
        (lambda: classroom.make(tmp_path / "a", OWN, ["99"]), "notebooks"),
    ]:
        with pytest.raises(ValueError, match=f"^{named}: "):
            call()
    assert not any(tmp_path.iterdir())
