"""What an exercise is: a solution, cases to try an answer on, and the mistakes that learners make most often.

A mistake is written as a change of the solution's text: {"/ m": ""} is the solution without this division. An answer
that behaves like the changed solution gets the hint of this mistake. A test feeds every exercise all its mistakes.
"""

import dis
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from inspect import getsource, signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rtx.lab.seeded import seeded

READS = ("LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME")  # in names of the steps that read a variable
Function = Callable[..., Any]
Case = tuple[Any, ...]
Layer = Callable[[Tensor], Tensor]
Bug = dict[str, str] | Function  # old text → new text in the solution's source, or another function
Measure = Callable[[Tensor, Case], Tensor]


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
        solution: the right answer. Its docstring says what passing shows.
        draw: returns the arguments to try an answer on. Its random numbers have the seed 0.
        bugs: hint → a likely mistake.
        measure: returns what is compared, from an answer and its case; by default the answer itself. It is for what
            the numbers of an answer do not show, such as its gradient.
    """

    solution: Function
    draw: Callable[[], Sequence[Case]]
    bugs: dict[str, Bug]
    measure: Measure | None = None

    def cases(self) -> Sequence[Case]:
        """Return the arguments to try an answer on, the same ones each time."""
        with seeded(0):
            return self.draw()

    def wrong(self, hint: str) -> Function:
        """Return the function with the mistake of this hint."""
        bug = self.bugs[hint]
        if callable(bug):
            return bug
        source = "def" + getsource(self.solution).partition("\ndef")[2]  # without the decorators
        for old, new in bug.items():
            source = source.replace(old, new)
        names = dict(self.solution.__globals__)
        exec(source, names)
        return names[self.solution.__name__]

    def __call__(self, mine: Function) -> Verdict:
        """Try `mine` on every case and compare."""
        answers, changed = [], None
        try:
            for case in self.cases():
                answer, now = self.attempt(mine, case)
                answers.append(answer)
                changed = changed or now
        except Exception as error:  # whatever a learner's code raises is the finding, if all was right until then
            raised = f"{self.where(len(answers))} your code raised {type(error).__name__}: {error}"
            before = self._compared(answers)
            return Verdict(False, raised) if before.passed else before
        return self.judge(answers, changed, is_stub(mine))

    def attempt(self, mine: Function, case: Case) -> tuple[Any, str | None]:
        """Return the answer to a copy of a case, and the name of an argument that was changed on the way."""
        given = deepcopy(case)  # cases share tensors: what one did to its own must not reach the next
        answer = mine(*given)
        if self.measure and isinstance(answer, Tensor):
            answer = self.measure(answer, given)
        arguments = zip(signature(self.solution).parameters, case, given, strict=False)
        return answer, next((name for name, before, after in arguments if not _equal(before, after)), None)

    def where(self, number: int) -> str:
        """A case, counted from 0, as a message names it: its numbers, and the shapes of its tensors."""
        given = zip(signature(self.solution).parameters, self.cases()[number], strict=False)
        told = ", ".join(f"{name}: {_shown(value)}" for name, value in given if not callable(value))
        return f"on case {number + 1} ({told})"

    def judge(self, answers: Sequence[Any], changed: str | None = None, stub: bool = True) -> Verdict:
        """Compare answers, one for each case, which may come from another process.

        `changed` names an argument that the function changed. `stub` says whether the function reads nothing, so that
        to answer nothing is not to have tried.
        """
        if all(answer is None or answer is Ellipsis for answer in answers):
            return Verdict(None, "") if stub else Verdict(False, "your function returns nothing: is `return` missing?")
        if changed:  # before what it did to the numbers: it may well be the cause
            return Verdict(False, f"it changes its argument `{changed}`, the caller's own: work on a copy")
        return self._compared(answers)

    def _compared(self, answers: Sequence[Any]) -> Verdict:
        """Compare answers with those of the solution, and then with those of each mistake."""
        differences = self._differences(self.solution, answers)
        if not any(differences):
            return Verdict(True, self.solution.__doc__ or "")
        for hint in self.bugs:
            if not any(self._differences(self.wrong(hint), answers)):
                return Verdict(False, hint)
        number = next(i for i, difference in enumerate(differences) if difference)
        return Verdict(False, f"{self.where(number)} {differences[number]}")

    def _differences(self, function: Function, answers: Sequence[Any]) -> list[str]:
        """Say for each case how the answer differs from that of a function."""
        cases = zip(self.cases(), answers, strict=False)
        return [_difference(self.attempt(function, case)[0], answer) for case, answer in cases]


def exercise(cases: Callable[[], Sequence[Case]], measure: Measure | None = None) -> Callable[[Function], Exercise]:
    """Return a decorator that makes an exercise of its solution. See `Exercise` for the arguments."""
    return lambda solution: Exercise(solution, cases, vars(solution).get("bugs", {}), measure)


def bug(hint: str, change: Bug) -> Callable[[Function], Function]:
    """Return a decorator that adds a likely mistake to a solution, before those that it has already."""

    def add(solution: Function) -> Function:
        vars(solution)["bugs"] = {hint: change} | vars(solution).get("bugs", {})
        return solution

    return add


def is_stub(function: Function) -> bool:
    """Whether a function reads nothing, neither an argument nor what it set itself: it may begin with `last = 0`."""
    code = getattr(function, "__code__", None)
    return code is not None and not any(read in step.opname for step in dis.get_instructions(code) for read in READS)


def _equal(before: Any, after: Any) -> bool:
    if isinstance(before, nn.Module):
        return all(map(torch.equal, before.parameters(), after.parameters()))
    if isinstance(before, Tensor):
        return torch.equal(before, after)
    return callable(before) or bool(before == after)


def _difference(expected: Any, given: Any) -> str:
    """Say how an answer differs from the expected one. Nothing is said if they are the same."""
    wanted, found = _tensor(expected), _tensor(given)
    both = f"expected {_shown(expected)}, got {_shown(given)}"
    if wanted is None or found is None or found.shape != wanted.shape:
        return both
    # as floats: as truth values, 0.4 and True would be the same. NaN is like NaN, so that a hint can name an overflow
    far = ~torch.isclose(found.double(), wanted.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
    if not far.any():
        truths = [one.dtype == torch.bool for one in (wanted, found)]  # torch casts them to numbers, but lessons cannot
        fits = truths[0] == truths[1] and torch.can_cast(found.dtype, wanted.dtype)
        is_type_wrong = isinstance(expected, Tensor) and not fits
        return f"expected numbers of type {wanted.dtype}, got {found.dtype}" if is_type_wrong else ""
    if not isinstance(expected, Tensor):
        return both
    at = f" at {place}" if (place := far.nonzero()[0].tolist()) else ""
    return f"expected {wanted[far][0].item():.6g}, got {found[far][0].item():.6g}{at}"


def _tensor(value: Any) -> Tensor | None:
    """An answer as a tensor, wherever it lies; None if it has no numbers."""
    if isinstance(value, np.ndarray):
        value = value.copy()  # a flipped array has negative strides, which torch does not take
    try:
        return torch.as_tensor(value).cpu()
    except (TypeError, ValueError, RuntimeError):
        return None


def _shown(value: Any) -> str:
    if isinstance(value, Tensor | np.ndarray) and value.ndim:
        return f"{'a tensor' if isinstance(value, Tensor) else 'an array'} of shape {tuple(value.shape)}"
    if isinstance(value, list | tuple) and any(isinstance(one, Tensor) for one in value):
        return f"{len(value)} tensors that are not stacked"
    if isinstance(value, list) and any(map(callable, value)):
        return f"{len(value)} functions"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
