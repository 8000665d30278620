"""Every check knows a stub, its solution and each classic bug; so does the frame they share."""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest
import torch

from rtx.lab import checks
from rtx.lab.checks import Check, Verdict

CHECKS = {name: check for name, check in vars(checks).items() if isinstance(check, Check)}
BUGS = [pytest.param(CHECKS[name], bug, id=f"{name}: {bug}") for name in CHECKS for bug in CHECKS[name].bugs]

double = Check(
    cases=lambda: [(torch.tensor([1.0, 2.0]),), (torch.zeros(2),)],
    solution=lambda x: 2 * x,
    bugs={"squared, not doubled": lambda x: x**2},
    praise="doubled",
)


@pytest.fixture(params=CHECKS)
def check(request: pytest.FixtureRequest) -> Check:
    return CHECKS[request.param]


def test_every_check_is_exported() -> None:
    modules = [importlib.import_module(f"{checks.__name__}.{m.name}") for m in pkgutil.iter_modules(checks.__path__)]
    defined = {name for module in modules for name, value in vars(module).items() if isinstance(value, Check)}
    assert CHECKS and set(CHECKS) == defined
    assert set(checks.__all__) >= defined


def dots(*_: Any) -> None: ...


def nothing(*_: Any) -> None:
    """Do nothing."""
    pass


@pytest.mark.parametrize("stub", [dots, nothing, lambda *_: None, lambda *_: ...])
def test_a_stub_is_not_attempted(check: Check, stub: Callable[..., Any]) -> None:
    assert repr(check(stub)) == "… not attempted yet"


def test_an_answer_without_return_is_told_so() -> None:
    def forgotten(x: torch.Tensor) -> None:
        2 * x

    assert repr(double(forgotten)) == "✗ not yet: your function returns nothing: is `return` missing?"


def test_the_solution_passes_and_is_told_what_it_shows(check: Check) -> None:
    assert check(check.solution) == Verdict(True, check.praise)
    assert check.praise and check.bugs


@pytest.mark.parametrize(("check", "bug"), BUGS)
def test_a_classic_bug_is_named(check: Check, bug: str) -> None:
    assert check(check.bugs[bug]) == Verdict(False, bug)


def test_an_error_in_the_answer_is_reported() -> None:
    assert repr(double(lambda x: 1 / 0)) == "✗ not yet: your code raised ZeroDivisionError: division by zero"


def test_a_right_answer_may_be_a_list() -> None:
    assert repr(double(lambda x: (2 * x).tolist())) == "✓ right: doubled"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: (2 * x)[None], "expected shape (2,), got (1, 2)"),
        (lambda x: "doubled", "expected a tensor, got str"),
        (lambda x: x + 5, "on the first case, at [0], expected 2, got 6"),
        (lambda x: 2 * x + (x == 0), "on case 2, at [0], expected 0, got 1"),
        (lambda x: torch.stack([2 * x[0], 3 * x[1]]), "on the first case, at [1], expected 4, got 6"),
        (lambda x: (2 * x + 1).tolist(), "on the first case, at [0], expected 2, got 3"),
        (lambda x: x**2, "squared, not doubled"),
    ],
)
def test_a_wrong_answer_is_told_how_it_differs(answer: Callable[..., Any], message: str) -> None:
    verdict = double(answer)
    assert verdict.passed is False
    assert verdict.message.startswith(message)
