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


def _table(
    changed: Callable[[Tensor, Tensor, float], Tensor],
    add: Callable[[Tensor], Tensor] = lambda squares: squares.sqrt(),
) -> Callable[..., Tensor]:
    """Return the table of dependencies with one thing changed: what is summed for an input, or its end."""

    def table(model: Model, x: Tensor, epsilon: float = 1e-5) -> Tensor:
        _, T, D = x.shape
        sums = torch.zeros(T, T).to(x)
        for s in range(T):
            for d in range(D):
                nudged = x.clone()
                nudged[0, s, d] += epsilon
                sums[:, s] += changed(model(nudged)[0], model(x)[0], epsilon)
        return add(sums)

    return table


def _squares(after: Tensor, before: Tensor, epsilon: float) -> Tensor:
    return ((after - before) / epsilon).square().sum(-1)


def _all_at_once(model: Model, x: Tensor, epsilon: float = 1e-5) -> Tensor:
    """Nudge all numbers of an input together, so that their effects may cancel."""
    columns = []
    for s in range(x.shape[1]):
        nudged = x.clone()
        nudged[0, s] += epsilon
        columns.append(_squares(model(nudged)[0], model(x)[0], epsilon).sqrt())
    return torch.stack(columns, 1)


def _first_number(model: Model, x: Tensor, epsilon: float = 1e-5) -> Tensor:
    columns = []
    for s in range(x.shape[1]):
        nudged = x.clone()
        nudged[0, s, 0] += epsilon
        columns.append(_squares(model(nudged)[0], model(x)[0], epsilon).sqrt())
    return torch.stack(columns, 1)


def _nudges_stay(model: Model, x: Tensor, epsilon: float = 1e-5) -> Tensor:
    """Nudge one number after the other without going back."""
    _, T, D = x.shape
    before, nudged, squares = model(x), x.clone(), torch.zeros(T, T).to(x)
    for s in range(T):
        for d in range(D):
            nudged[0, s, d] += epsilon
            squares[:, s] += _squares(model(nudged)[0], before[0], epsilon)
    return squares.sqrt()


_right = _table(_squares)
dependencies = Exercise(
    cases=_models,
    solution=_right,
    bugs={
        "rows and columns are swapped: a row is an output, a column is an input": lambda *given: _right(*given).T,
        "the division by epsilon is missing": _table(lambda a, b, e: (a - b).square().sum(-1)),
        "the division by epsilon must come before the square": _table(
            lambda a, b, e: (a - b).square().sum(-1) / e, lambda squares: squares.sqrt()
        ),
        "the square root at the end is missing": _table(_squares, lambda squares: squares),
        "changes of different sign cancel: square them before you add them up": _table(
            lambda a, b, e: ((a - b) / e).sum(-1), lambda sums: sums.abs()
        ),
        "you added up absolute changes; the formula adds up squares and takes the root": _table(
            lambda a, b, e: ((a - b) / e).abs().sum(-1), lambda sums: sums
        ),
        "you nudged all numbers of an input at once; nudge one after the other": _all_at_once,
        "you nudged only the first number of each input; the sum goes over all D": _first_number,
        "earlier nudges were not undone: start each one from a fresh clone of x": _nudges_stay,
        "this is the mean over the D numbers; the formula has a sum": _table(
            lambda a, b, e: ((a - b) / e).square().mean(-1)
        ),
        "the model's output itself is in the table: subtract the output before the nudge": _table(
            lambda a, b, e: (a / e).square().sum(-1)
        ),
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
        "the diagonal is each output's own input, which it may see: start one place to the right": (
            lambda table: _empty(table.triu())
        ),
        "rows are outputs and columns are inputs: you looked at the past, below the diagonal": (
            lambda table: _empty(table.tril(-1))
        ),
        "off by one: the place right of the diagonal is the future, too": lambda table: _empty(table.triu(2)),
        "you looked at the first output only; a later one may see the future": lambda table: _empty(table[0, 1:]),
        "you looked at the last input only; an earlier one may be seen too soon": lambda table: _empty(table[:-1, -1]),
        "a small number is not zero: the future must not change an output at all": lambda table: bool(
            (table.triu(1) < 0.01).all()
        ),
        "the answer is the wrong way round: True is for a model that sees no future": (
            lambda table: not _empty(table.triu(1))
        ),
        "one zero in the future is not enough: all of them must be zero": lambda table: bool(
            (table[torch.ones_like(table).triu(1) > 0] == 0).any()
        ),
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


def _farthest(table: Tensor, rows: slice = slice(None), least: float = 0.0) -> int:
    at = (table > least).nonzero()
    chosen = at[torch.isin(at[:, 0], torch.arange(len(table))[rows])]
    return int((chosen[:, 0] - chosen[:, 1]).max()) + 1


span = Exercise(
    cases=_spans,
    solution=_farthest,
    bugs={
        "the output's own position counts, too: add 1": lambda table: _farthest(table) - 1,
        "you looked at the last output only; an earlier one may look further back": lambda table: _farthest(
            table, slice(-1, None)
        ),
        "you looked at the first output only": lambda table: _farthest(table, slice(0, 1)),
        "you counted the dependencies of the last output; a gap between them counts as well": lambda table: int(
            (table[-1] > 0).sum()
        ),
        "you counted the dependencies of the output with most; a gap between them counts as well": lambda table: int(
            (table > 0).sum(1).max()
        ),
        "a small number is not zero": lambda table: _farthest(table, least=1e-6),
        "this is the length of the sequence": len,
        "you counted all dependencies of the table": lambda table: int((table > 0).sum()),
        "one position too many": lambda table: _farthest(table) + 1,
    },
    praise="the farthest dependency decides, in whichever row it is",
)
