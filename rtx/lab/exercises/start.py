"""Exercise of notebook 00: reading a reach table."""

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _tables() -> list[tuple[Tensor]]:
    """Two causal tables, then all to all, one step ahead, one output that looks far ahead, one that does so faintly.

    In the last, of another size, neither the first row nor the last column tells.
    """
    past = torch.rand(6, 6, generator=torch.Generator().manual_seed(0)).tril() + torch.eye(6)
    ahead = torch.eye(6).roll(1, 1).triu(1)  # the place right of the diagonal
    far, faint = past.clone(), past.clone()
    inside = torch.ones(5, 5).tril()
    far[2, 5], faint[0, 3], inside[1, 3] = 1, 1e-4, 1
    return [(past,), (torch.eye(6),), (past + past.T,), (past + ahead,), (far,), (faint,), (inside,)]


def _empty(part: Tensor) -> bool:
    return bool((part == 0).all())


is_causal = Exercise(
    cases=_tables,
    solution=lambda moved: _empty(moved.triu(1)),
    bugs={
        "the diagonal is an output's own input, which it may see: start one place to its right": (
            lambda moved: _empty(moved.triu())
        ),
        "rows are outputs and columns inputs: you looked at the past, which is below the diagonal": (
            lambda moved: _empty(moved.tril(-1))
        ),
        "off by one: the place right of the diagonal is the future, too": lambda moved: _empty(moved.triu(2)),
        "you looked at the first output only: a later one may see its future": lambda moved: _empty(moved[0, 1:]),
        "small is not zero: the future must not move an output at all": lambda moved: bool(
            (moved.triu(1) < 0.01).all()
        ),
        "the wrong way round: True is for a model that sees no future": lambda moved: not _empty(moved.triu(1)),
    },
    praise="everything right of the diagonal is exactly zero, in every row",
)
