"""What a check is: a solution, and the classic wrong answers, which an answer that behaves like one is told by name.

So a test can feed every check its stub, its solution and its bugs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


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
        return self.judge(answers)

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


def _same(expected: Any, given: Any) -> bool:
    try:
        given, expected = torch.as_tensor(given), torch.as_tensor(expected)
        # NaN is like NaN: a bug that overflows is told by its name
        torch.testing.assert_close(given, expected, check_dtype=False, rtol=1e-4, atol=1e-5, equal_nan=True)
    except (AssertionError, TypeError, ValueError, RuntimeError):
        return False
    return True


def _difference(where: str, expected: Any, given: Any) -> str:
    if isinstance(expected, Tensor) and isinstance(given, Tensor) and expected.shape != given.shape:
        return f"expected shape {tuple(expected.shape)}, got {tuple(given.shape)}"
    if isinstance(expected, Tensor) and not isinstance(given, Tensor):
        return f"expected a tensor, got {type(given).__name__}"
    return f"on {where} expected {_short(expected)}, got {_short(given)}"


def _short(value: Any) -> str:
    if isinstance(value, Tensor) and not value.ndim:
        return f"{value.item():.4g}"
    if isinstance(value, Tensor):
        return f"a tensor that begins {[round(v, 3) for v in value.flatten()[:3].tolist()]}"
    return repr(value)
