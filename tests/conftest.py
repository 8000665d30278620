"""Fixtures for every test."""

import multiprocessing
import os
import shutil
import zlib
from hashlib import sha256
from multiprocessing.context import ForkServerContext
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import hypothesis
import pytest
import torch

# A time limit for each example would fail on a busy machine; examples that are new each time, on any, now and then. The
# soak of tests/faults draws new ones.
hypothesis.settings.register_profile("rtx", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("rtx")

# These lessons learn from the manual that the running Python has. The stored outputs are of one such text. With another
# one the cells run, but their outputs differ, and nobody compares them.
OF_THE_MANUAL = {"01_frame_the_problem.ipynb", "06_carry_memory.ipynb", "13_model_language.ipynb"}
SAME_MANUAL = (
    sha256("".join(topics[name] for name in sorted(topics)).encode()).hexdigest().startswith("37d06970fc926e60")
)

NAMED = os.environ.get("RTX_DATA")  # as the tests began: some of them change it


ROW = ("recipe", "model", "data", "metric", "test", "baseline", "seconds")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rehearse", action="store_true", help="train every row for as long as its quick scale says")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a GPU, where there is none, and what takes long, unless `pytest -m soak` asks for it."""
    left_out = {"gpu"} if not torch.cuda.is_available() else set()
    left_out |= {"soak"} if "soak" not in config.option.markexpr else set()
    kept = [one for one in items if not any(map(one.get_closest_marker, left_out))]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[one for one in items if any(map(one.get_closest_marker, left_out))])
        items[:] = kept
    for one in items:
        if not SAME_MANUAL and one.path.name in OF_THE_MANUAL:
            one.options["check"] = False  # type: ignore[attr-defined]  # a cell of nbval


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a test draws without a seed of its own must not hang on which tests this worker ran before."""
    torch.manual_seed(zlib.crc32(item.nodeid.encode()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What every row of every recipe scored, the fixture `run` of test_quick.py has written it down."""
    reports = (one for key in ("passed", "failed") for one in terminalreporter.getreports(key))
    rows = sorted(tuple(value) for one in reports for name, value in one.user_properties if name == "row")
    if not rows:
        return
    widths = [max(len(row[i]) for row in (ROW, *rows)) for i in range(len(ROW))]
    terminalreporter.section("rows, trained at their quick scale")
    for row in (ROW, *rows):
        terminalreporter.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@pytest.fixture(scope="session")
def processes() -> ForkServerContext:
    """Return a way to start real processes that load torch, Lightning, TensorBoard and others only once."""
    context = multiprocessing.get_context("forkserver")
    others = ["torch.utils.tensorboard", "sqlalchemy.orm", "alembic.config", "pydantic.main", "pooch", "pytest"]
    context.set_forkserver_preload(["rtx.evidence.record", "rtx.training.sweep", "rtx.cli", *others])
    return context


@pytest.fixture
def tiny_task(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Register the tiny task and return it."""
    from tiny_recipe import tiny  # imports rtx, so only for the tests that use it

    from rtx.tasks import TASKS

    task = tiny()
    monkeypatch.setitem(TASKS, "tiny", lambda: task)
    return task


@pytest.fixture
def recipe(tiny_task: Any) -> Any:
    """Return the recipe of the tiny task."""
    from tiny_recipe import tiny_recipe

    return tiny_recipe()


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Return a function that trains a plan in a folder of `tmp_path` and gives the ledger's file."""
    from tiny_recipe import CPU

    from rtx.evidence.record import train

    def start(plan: Any, name: str = "a", **options: Any) -> Path:
        return train(plan, runs=tmp_path / name, results=tmp_path / name / "results", **(CPU | options))

    return start


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder RTX_DATA names, else ../shared/data beside the checkout; RTX_DATA is set to it."""
    folder = Path(NAMED) if NAMED else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not NAMED and not folder.is_dir():
        pytest.skip("needs real data: set RTX_DATA to a folder that holds poly_music/ and mnist/")
    monkeypatch.setenv("RTX_DATA", str(folder))
    return folder


@pytest.fixture
def compiler() -> None:
    """Skip the test where `torch.compile` cannot work."""
    if shutil.which("g++") is None:
        pytest.skip("torch.compile needs g++")
    if " " in torch.__file__:
        pytest.skip("torch.compile does not quote its own path, which has a space here")
