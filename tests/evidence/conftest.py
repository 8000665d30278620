"""A ledger and a repository of a test's own."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rtx.evidence.ledger import read_results, write_result
from rtx.evidence.questions import QUESTIONS
from rtx.evidence.verdict import Finding, judge

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def put(tmp_path) -> Callable[..., None]:
    """Return a function that adds a run to the ledger in `tmp_path`; for a list of scores, a run for each next seed."""
    like = next(run for run in read_results("nottingham", RESULTS) if run.variant == "adam")

    def add(model, test, seed=0, **changes):
        for one, score in enumerate(test if isinstance(test, list) else [test], seed):
            ended = f"{model}{one}{len(list(tmp_path.glob('*/*')))}"
            write_result(replace(like, model=model, test=score, seed=one, **changes), tmp_path, ended)

    return add


@pytest.fixture
def find(tmp_path) -> Callable[..., Finding]:
    """Return a function that judges one question by the ledger in `tmp_path`, as the only claim of its paper."""

    def found(question, recipe, model, others=None, **what):
        what |= {"others": others} if others else {}
        (finding,) = judge([QUESTIONS[question](tmp_path, recipe=recipe, model=model, **what)])
        return finding

    return found


@pytest.fixture
def git(tmp_path) -> Callable[..., str]:
    """Return a function that runs git in `tmp_path` and returns what git prints."""

    def run(*arguments):
        named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        done = subprocess.run(["git", *named, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return run
