"""What a check is: a solution, and the classic wrong answers, which an answer that behaves like one is told by name.

So a test can feed every check its stub, its solution and its bugs.
"""

import dis
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

NOTHING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}  # what Python does in a stub


@dataclass(frozen=True)
class Verdict:
    """What a check found. Shown at the end of a cell."""

    passed: bool | None  # None: not attempted
    message: str

    def __repr__(self) -> str:
        mark = {True: "✓ right", False: "✗ not yet", None: "… not attempted yet"}[self.passed]
        return f"{mark}: {self.message}" if self.message else mark


@dataclass(frozen=True)
class Check:
    """An exercise's check.

    Args:
        cases: arguments to try an answer on.
        solution: the right answer.
        bugs: message → a function with that bug.
        praise: what passing shows.
    """

    cases: Callable[[], Sequence[tuple[Any, ...]]]
    solution: Callable[..., Any]
    bugs: dict[str, Callable[..., Any]] = field(default_factory=dict)
    praise: str = ""

    def __call__(self, mine: Callable[..., Any]) -> Verdict:
        """Try `mine` on every case and compare."""
        try:
            answers = [mine(*case) for case in self.cases()]
        except Exception as error:  # whatever a learner's code raises is the finding
            return Verdict(False, f"your code raised {type(error).__name__}: {error}")
        verdict = self.judge(answers)
        if verdict.passed is None and not _is_stub(mine):
            return Verdict(False, "your function returns nothing: is `return` missing?")
        return verdict

    def judge(self, answers: Sequence[Any]) -> Verdict:
        """Compare answers, one for each case, which may come from another process."""
        if all(answer is None or answer is Ellipsis for answer in answers):
            return Verdict(None, "")
        cases = self.cases()  # fresh: an answer may have changed its arguments
        expected = [self.solution(*case) for case in cases]
        wrong = [i for i, pair in enumerate(zip(expected, answers, strict=True)) if not _same(*pair)]
        if not wrong:
            return Verdict(True, self.praise)
        for message, bug in self.bugs.items():
            if self._agrees(bug, cases, answers):
                return Verdict(False, message)
        where = f"case {wrong[0] + 1}" if wrong[0] else "the first case"
        return Verdict(False, _difference(where, expected[wrong[0]], answers[wrong[0]]))

    @staticmethod
    def _agrees(function: Callable[..., Any], cases: Sequence[tuple[Any, ...]], answers: Sequence[Any]) -> bool:
        return all(_same(function(*case), answer) for case, answer in zip(cases, answers, strict=True))


def _is_stub(function: Callable[..., Any]) -> bool:
    """Whether a function does nothing, as one whose body is `...` or `pass`."""
    code = getattr(function, "__code__", None)
    return code is not None and {step.opname for step in dis.get_instructions(code)} <= NOTHING


def _same(expected: Any, given: Any) -> bool:
    try:
        given, expected = torch.as_tensor(given), torch.as_tensor(expected)
        # NaN is like NaN: a bug that overflows is told by its name
        torch.testing.assert_close(given, expected, check_dtype=False, rtol=1e-4, atol=1e-5, equal_nan=True)
    except (AssertionError, TypeError, ValueError, RuntimeError):
        return False
    return True


def _difference(where: str, expected: Any, given: Any) -> str:
    if not isinstance(expected, Tensor):
        return f"on {where} expected {expected!r}, got {given!r}"
    try:
        given = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        return f"expected a tensor, got {type(given).__name__}"
    if expected.shape != given.shape:
        return f"expected shape {tuple(expected.shape)}, got {tuple(given.shape)}"
    close = torch.isclose(given.to(expected.dtype), expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    place = tuple((~close).nonzero()[0].tolist()) if not close.all() else (0,) * expected.ndim
    at = f", at {list(place)}," if place else ""
    return f"on {where}{at} expected {expected[place].item():.4g}, got {given[place].item():.4g}"
