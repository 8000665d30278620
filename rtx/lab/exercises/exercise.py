"""What a check is: a solution, and the classic wrong answers, which an answer that behaves like one is told by name.

So a test can feed every check its stub, its solution and its bugs.
"""

import dis
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

READS = ("LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME")  # in names of the steps that read a variable
PLACES = ("first", "second", "third", "fourth", "fifth")
Measure = Callable[[Tensor, tuple[Any, ...]], Tensor]


@dataclass(frozen=True)
class Verdict:
    """What a check found. Shown at the end of a cell."""

    passed: bool | None  # None: not attempted
    message: str

    def __repr__(self) -> str:
        mark = {True: "✓ right", False: "✗ not yet", None: "… not attempted yet"}[self.passed]
        return f"{mark}: {self.message}" if self.message else mark


@dataclass(frozen=True)
class Exercise:
    """An exercise's check.

    Args:
        cases: arguments to try an answer on.
        solution: the right answer.
        bugs: message → a function with that bug.
        praise: what passing shows.
        may_change: whether a right answer may change its arguments, as a training step does.
        measure: returns what is compared, from an answer and its case; by default the answer itself. It is for what
            the numbers of an answer do not show, such as its gradient.
    """

    cases: Callable[[], Sequence[tuple[Any, ...]]]
    solution: Callable[..., Any]
    bugs: dict[str, Callable[..., Any]] = field(default_factory=dict)
    praise: str = ""
    may_change: bool = False
    measure: Measure | None = None

    def __call__(self, mine: Callable[..., Any]) -> Verdict:
        """Try `mine` on every case and compare."""
        tried: list[tuple[Any, int | None]] = []
        try:
            for case in self.cases():
                tried.append(attempt(mine, case, self.measure))
        except Exception as error:  # whatever a learner's code raises is the finding, if all was right until then
            raised = f"{self.where(len(tried))} your code raised {type(error).__name__}: {error}"
            before = self._compared(self.cases()[: len(tried)], [answer for answer, _ in tried])
            return Verdict(False, raised) if before.passed else before
        changed = next((place for _, place in tried if place), None)
        return self.judge([answer for answer, _ in tried], changed, is_stub(mine))

    def where(self, number: int) -> str:
        """A case, counted from 0, as a message names it: its numbers, and the shapes of its tensors."""
        given = zip(signature(self.solution).parameters, self.cases()[number], strict=False)
        told = ", ".join(_given(name, value) for name, value in given if not callable(value))
        return f"on case {number + 1} ({told})"

    def judge(self, answers: Sequence[Any], changed: int | None = None, stub: bool = True) -> Verdict:
        """Compare answers, one for each case, which may come from another process.

        Args:
            answers: what was returned.
            changed: which argument the function changed, counted from 1.
            stub: whether the function reads nothing, so that to answer nothing is not to have tried.
        """
        if all(answer is None or answer is Ellipsis for answer in answers):
            return Verdict(None, "") if stub else Verdict(False, "your function returns nothing: is `return` missing?")
        if changed and not self.may_change:  # before what it did to the numbers: it may well be the cause
            return Verdict(False, f"it changes its {PLACES[changed - 1]} argument, the caller's own: work on a copy")
        return self._compared(self.cases(), answers)

    def _compared(self, cases: Sequence[tuple[Any, ...]], answers: Sequence[Any]) -> Verdict:
        expected = [self._answer(self.solution, case) for case in cases]
        wrong = [i for i, pair in enumerate(zip(expected, answers, strict=True)) if not _same(*pair)]
        if not wrong:
            return Verdict(True, self.praise)
        for message, bug in self.bugs.items():
            if self._agrees(bug, cases, answers):
                return Verdict(False, message)
        return Verdict(False, _difference(self.where(wrong[0]), expected[wrong[0]], answers[wrong[0]]))

    def _agrees(self, function: Callable[..., Any], cases: Sequence[tuple[Any, ...]], answers: Sequence[Any]) -> bool:
        return all(_same(self._answer(function, case), answer) for case, answer in zip(cases, answers, strict=True))

    def _answer(self, function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
        return _measured(function(*case), case, self.measure)


def attempt(mine: Callable[..., Any], case: tuple[Any, ...], measure: Measure | None = None) -> tuple[Any, int | None]:
    """Return the answer to a copy of a case, and the place of an argument that was changed on the way, from 1."""
    given = deepcopy(case)  # cases share tensors: what one did to its own must not reach the next
    answer = _measured(mine(*given), given, measure)
    pairs = enumerate(zip(case, given, strict=True), 1)
    return answer, next((place for place, pair in pairs if not _equal(*pair)), None)


def _measured(answer: Any, case: tuple[Any, ...], measure: Measure | None) -> Any:
    return measure(answer, case) if measure and isinstance(answer, Tensor) else answer


def _equal(before: Any, after: Any) -> bool:
    if isinstance(before, nn.Module):
        return all(torch.equal(*pair) for pair in zip(before.parameters(), after.parameters(), strict=True))
    return torch.equal(before, after) if isinstance(before, Tensor) else bool(before == after)


def is_stub(function: Callable[..., Any]) -> bool:
    """Whether a function reads nothing, neither an argument nor what it set itself: it may begin with `last = 0`."""
    code = getattr(function, "__code__", None)
    return code is not None and not any(read in step.opname for step in dis.get_instructions(code) for read in READS)


def _same(expected: Any, given: Any) -> bool:
    found = _tensor(given)
    if found is None or _has_wrong_kind(expected, found):
        return False
    try:
        # NaN is like NaN: a bug that overflows is told by its name
        torch.testing.assert_close(found, _tensor(expected), check_dtype=False, rtol=1e-4, atol=1e-5, equal_nan=True)
    except AssertionError:
        return False
    return True


def _has_wrong_kind(expected: Any, given: Tensor) -> bool:
    """Return whether floats were given for whole numbers, or numbers for truth values: an index needs the right one."""
    if not isinstance(expected, Tensor) or expected.is_floating_point():
        return False
    return given.is_floating_point() or (expected.dtype == torch.bool and given.dtype != torch.bool)


def _tensor(value: Any) -> Tensor | None:
    """An answer as a tensor, wherever it lies; None if it has no numbers."""
    if isinstance(value, np.ndarray):
        value = value.copy()  # a flipped array has negative strides, which torch does not take
    try:
        return torch.as_tensor(value).cpu()
    except (TypeError, ValueError, RuntimeError):
        return None


def _given(name: str, value: Any) -> str:
    return f"{name} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"{name} = {value}"


def _difference(where: str, expected: Any, given: Any) -> str:
    if not isinstance(expected, Tensor):
        return f"{where} expected {_shown(expected)}, got {_shown(given)}"
    found = _tensor(given)
    if found is None:
        return f"{where} expected a tensor, got {type(given).__name__}"
    if expected.shape != found.shape:
        return f"{where} expected shape {tuple(expected.shape)}, got {tuple(found.shape)}"
    if _has_wrong_kind(expected, found):
        return f"{where} expected numbers of type {expected.dtype}, got {found.dtype}"
    # as floats: as truth values, 0.4 and True would be the same
    close = torch.isclose(found.double(), expected.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
    place = tuple((~close).nonzero()[0].tolist()) if not close.all() else (0,) * expected.ndim
    at = f", at {list(place)}," if place else ""
    wanted, got = expected[place].item(), found[place].item()
    digits = 4 if f"{wanted:.4g}" != f"{got:.4g}" else 9  # half precision is wrong behind the fourth
    return f"{where}{at} expected {wanted:.{digits}g}, got {got:.{digits}g}"


def _shown(value: Any) -> str:
    if isinstance(value, Tensor | np.ndarray) and value.ndim:
        return f"{'a tensor' if isinstance(value, Tensor) else 'an array'} of shape {tuple(value.shape)}"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
