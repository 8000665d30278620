"""Exercises of notebook 00: a table of dependencies, whether it is causal, and how far back it looks."""

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Layer, bug, exercise


def _models() -> list[tuple[Layer, Tensor, float]]:
    """Return a model that sees the past, and one that sees the future, with inputs and epsilons."""
    x, short, mix = torch.randn(1, 5, 3).double(), torch.randn(1, 4, 2).double(), torch.randn(3, 3).double()
    return [(lambda x: (x @ mix).tanh().cumsum(1) + 2, x, 1e-5), (lambda x: 2 * x.roll(-1, 1) + x.flip(2), short, 1e-4)]


@exercise(_models)
@bug("rows and columns are swapped: a row is an output, a column is an input", {"[:, s]": "[s]"})
@bug("the division by epsilon is missing", {" / epsilon": ""})
@bug("changes of different sign cancel: square them before you add them up", {".square()": "", ".sqrt()": ".abs()"})
@bug("you nudged all numbers of an input at once; nudge one after the other", {"range(D)": "[slice(None)]"})
@bug("earlier nudges were not undone: start each from a clone of x", {"x.clone()": "nudged if s or d else x.clone()"})
@bug("the root is missing", {".sqrt()": ""})
@bug("each nudge replaced the one before: add up over d", {"+= ((model": "= ((model"})
def dependencies(model: Layer, x: Tensor, epsilon: float = 1e-5) -> Tensor:
    """Each column is one input, nudged in all its numbers. Each row says how much that output changed."""
    _, T, D = x.shape
    before, squares = model(x), torch.zeros(T, T).to(x)
    for s in range(T):
        for d in range(D):
            nudged = x.clone()
            nudged[0, s, d] += epsilon
            squares[:, s] += ((model(nudged) - before)[0] / epsilon).square().sum(-1)
    return squares.sqrt()


def _tables() -> list[tuple[Tensor]]:
    """Return two causal tables, and tables that have one faint entry in the future, or those right of the diagonal."""
    past = torch.rand(6, 6).tril() + torch.eye(6)
    faint = past.clone()
    faint[2, 4] = 1e-9
    return [(past,), (torch.eye(6),), (faint,), (past + torch.eye(6).roll(1, 1).triu(1),)]


@exercise(_tables)
@bug("the diagonal is each output's own input: start one place to the right", {"triu(1)": "triu()"})
@bug("rows are outputs and columns inputs: you looked at the past", {"triu(1)": "tril(-1)"})
@bug("a small number is not zero: the future must change nothing", {"== 0": "< 0.01"})
@bug("the wrong way round: True is for a model that sees no future", {"bool(": "not bool("})
def is_causal(table: Tensor) -> bool:
    """Everything right of the diagonal is exactly zero, in every row."""
    return bool((table.triu(1) == 0).all())


def _spans() -> list[tuple[Tensor]]:
    """Return bands of widths 3 and 1, a full triangle, a gap, a last row that looks back least, and a view ahead."""
    ones = torch.ones(7, 7)
    band, gap = ones.tril().triu(-2), ones.tril().triu(-4) - ones.tril(-1).triu(-1)
    early = band.clone()
    early[-1, :-1], early[4, 0] = 0, 1e-9
    return [(0.5 * band,), (torch.eye(5),), (ones.tril(),), (gap,), (early,), (torch.eye(6) + torch.eye(6).roll(3, 1),)]


@exercise(_spans)
@bug("the output's own position counts, too: add 1", {" + 1": ""})
@bug("you looked at the last output only; others may look further back", {".max()": "[rows == len(table) - 1].max()"})
@bug("you counted dependencies: a gap between them counts, too", {"(rows - columns)": "(rows.bincount() - 1)"})
def span(table: Tensor) -> int:
    """The farthest dependency decides, in whichever row it is."""
    rows, columns = (table > 0).nonzero().T
    return int((rows - columns).max()) + 1
