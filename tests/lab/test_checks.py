"""Every check knows a stub, its solution and each classic bug; so does the frame they share."""

import importlib
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rtx.lab import checks
from rtx.lab.checks import Check, Verdict

CHECKS = {name: check for name, check in vars(checks).items() if isinstance(check, Check)}
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("[0-9][0-9]_*.py"))
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


def begun(*_: Any) -> None:
    _last, _state, _written = 0, 0, []  # type: ignore[var-annotated]
    ...


def test_a_stub_may_begin_with_what_is_given() -> None:
    assert repr(double(begun)) == "… not attempted yet"


def test_every_stub_of_every_notebook_is_not_attempted() -> None:
    tried = []
    for notebook in NOTEBOOKS:
        for cell in re.split(r"^# %%.*$", notebook.read_text(), flags=re.MULTILINE):
            if found := re.search(r"^checks\.(\w+)\((\w+)\)$", cell, re.MULTILINE):
                names: dict[str, Any] = {}
                exec(cell.replace(found[0], ""), names)
                assert repr(CHECKS[found[1]](names[found[2]])) == "… not attempted yet", found[0]
                tried.append(found[1])
    assert sorted(tried) == sorted(CHECKS)


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


def test_a_right_answer_may_be_a_flipped_array() -> None:
    assert repr(double(lambda x: np.flip(2 * x.numpy()[::-1]))) == "✓ right: doubled"  # torch takes no negative strides


def doubled_in_place(x: Tensor) -> Tensor:
    x *= 2
    return x


def test_an_answer_that_changes_its_arguments_is_told_so() -> None:
    told = "✗ not yet: it changes its first argument, the caller's own: work on a copy"
    assert repr(double(doubled_in_place)) == told
    assert repr(double(lambda x: doubled_in_place(x) + 1)) == told  # whatever else is wrong
    assert repr(double(lambda x: doubled_in_place(x.clone()))) == "✓ right: doubled"
    step = Check(cases=double.cases, solution=double.solution, may_change=True)
    assert step(doubled_in_place).passed


def test_what_an_answer_does_to_a_case_does_not_reach_the_next() -> None:
    x = torch.tensor([1.0, 2.0])
    twice = Check(cases=lambda: [(x,), (x,)], solution=lambda x: 2 * x, may_change=True)
    assert twice(doubled_in_place).passed
    assert x.tolist() == [1, 2]


def test_an_optimisers_step_in_place_is_a_step() -> None:
    def step(w: Tensor, loss: Callable[[Tensor], Tensor], rate: float, clip: float) -> Tensor:
        descent = torch.optim.SGD([w], lr=rate)
        descent.zero_grad()
        loss(w).backward()
        torch.nn.utils.clip_grad_norm_(w, clip)
        descent.step()
        return w

    assert CHECKS["clipped_step"](step).passed


def test_sorted_runs_are_no_other_runs_afterwards() -> None:
    def sorting(validation: list[float], test: list[float]) -> float:
        validation.sort()
        test.sort()
        return test[0]

    assert not CHECKS["reported"](sorting).passed
    assert CHECKS["reported"](lambda validation, test: min(test)).passed is False
    assert CHECKS["reported"](CHECKS["reported"].solution).passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda a, b: 0.1 * 3, "for (1, 2.5) expected 3.5, got 0.3"),
        (lambda a, b: a + b if a == 1 else 0, "for (2, 2.5) expected 4.5, got 0"),
    ],
)
def test_of_plain_numbers_the_case_is_shown(answer: Callable[..., Any], message: str) -> None:
    assert Check(cases=lambda: [(1, 2.5), (2, 2.5)], solution=lambda a, b: a + b)(answer).message == message


def test_a_share_is_no_truth_value() -> None:
    larger = Check(cases=lambda: [(torch.tensor([0.0, 0.4, 0.6]),)], solution=lambda p: p > 0.3)
    assert larger(lambda p: p).message == "on the first case, at [1], expected 1, got 0.4"


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
