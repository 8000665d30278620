"""Exercises of notebook 00: a table of dependencies, whether it is causal, and how far back it looks."""

from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise

Model = Callable[[Tensor], Tensor]


def _mix(x: Tensor) -> Tensor:
    """Return a causal mixture with an offset. Its outputs depend on their past in different degrees and directions."""
    sums = torch.tanh(x @ torch.linspace(0.4, 1.0, x.shape[-1], dtype=x.dtype)).cumsum(1)
    return sums[..., None] * torch.tensor([1.0, -0.7, 0.5], dtype=x.dtype) + 2


def _future(x: Tensor) -> Tensor:
    return 2 * x.roll(-1, 1) + x.flip(2)


def _models() -> list[tuple[Model, Tensor, float]]:
    draw = torch.Generator().manual_seed(0)
    x = [torch.randn(1, T, D, generator=draw, dtype=torch.float64) for T, D in ((5, 3), (4, 2))]
    return [(_mix, x[0], 1e-5), (_future, x[1], 1e-4), (lambda x: 3 * x, x[0], 1e-5)]


def _squares(after: Tensor, before: Tensor, epsilon: float) -> Tensor:
    return ((after - before) / epsilon).square().sum(-1)


def _table(
    change: Callable[[Tensor, Tensor, float], Tensor] = _squares,
    end: Callable[[Tensor], Tensor] = torch.sqrt,
    together: bool = False,
    undo: bool = True,
) -> Callable[..., Tensor]:
    """Return the table of dependencies with one thing changed."""

    def table(model: Model, x: Tensor, epsilon: float = 1e-5) -> Tensor:
        _, T, D = x.shape
        sums, nudged = torch.zeros(T, T).to(x), x.clone()
        for s in range(T):
            for d in [slice(None)] if together else range(D):
                nudged = x.clone() if undo else nudged
                nudged[0, s, d] += epsilon
                sums[:, s] += change(model(nudged)[0], model(x)[0], epsilon)
        return end(sums)

    return table


dependencies = Exercise(
    cases=_models,
    solution=_table(),
    bugs={
        "rows and columns are swapped: a row is an output, a column is an input": lambda *given: _table()(*given).T,
        "the division by epsilon is missing": _table(lambda a, b, e: (a - b).square().sum(-1)),
        "the square root at the end is missing": _table(end=lambda squares: squares),
        "changes of different sign cancel: square them before you add them up": _table(
            lambda a, b, e: ((a - b) / e).sum(-1), end=torch.abs
        ),
        "you nudged all numbers of an input at once; nudge one after the other": _table(together=True),
        "earlier nudges were not undone: start each one from a fresh clone of x": _table(undo=False),
    },
    praise="each column is one input, nudged in all its numbers; each row says how much that output changed",
)


def _tables() -> list[tuple[Tensor]]:
    """Return two causal tables, and tables in which all, one, or a single faint entry is in the future."""
    past = torch.rand(6, 6, generator=torch.Generator().manual_seed(0)).tril() + torch.eye(6)
    ahead = torch.eye(6).roll(1, 1).triu(1)  # the places right of the diagonal
    far, faint = past.clone(), past.clone()
    inside = torch.ones(5, 5).tril()
    far[2, 5], faint[0, 3], inside[1, 3] = 1, 1e-4, 1
    return [(past,), (torch.eye(6),), (past + past.T,), (past + ahead,), (far,), (faint,), (inside,)]


def _empty(part: Tensor) -> bool:
    return bool((part == 0).all())


is_causal = Exercise(
    cases=_tables,
    solution=lambda table: _empty(table.triu(1)),
    bugs={
        "the diagonal is each output's own input: start one place to the right": lambda table: _empty(table.triu()),
        "rows are outputs and columns inputs: you looked at the past": lambda table: _empty(table.tril(-1)),
        "off by one: the place right of the diagonal is the future, too": lambda table: _empty(table.triu(2)),
        "a small number is not zero: the future must change nothing": lambda table: bool((table.triu(1) < 0.01).all()),
        "the wrong way round: True is for a model that sees no future": lambda table: not _empty(table.triu(1)),
    },
    praise="everything right of the diagonal is exactly zero, in every row",
)


def _spans() -> list[tuple[Tensor]]:
    """Return bands of widths 3 and 1, a full triangle, a band with a gap, and one whose last row looks back least."""
    ones = torch.ones(7, 7)
    band, gap = ones.tril().triu(-2), ones.tril().triu(-4) - ones.tril(-1).triu(-1)
    early = band.clone()
    early[-1, :-1] = 0
    early[4, 0] = 1e-9
    return [(0.5 * band,), (torch.eye(5),), (ones.tril(),), (gap,), (early,)]


def _farthest(table: Tensor) -> int:
    at = (table > 0).nonzero()
    return int((at[:, 0] - at[:, 1]).max()) + 1


span = Exercise(
    cases=_spans,
    solution=_farthest,
    bugs={
        "the output's own position counts, too: add 1": lambda table: _farthest(table) - 1,
        "you looked at the last output only; an earlier one may look further back": lambda table: (
            len(table) - int(table[-1].nonzero()[0])
        ),
        "you counted an output's dependencies: a gap between them counts as well": lambda table: int(
            (table > 0).sum(1).max()
        ),
    },
    praise="the farthest dependency decides, in whichever row it is",
)
