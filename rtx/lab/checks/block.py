"""Check of notebook 04: a sublayer's residual and norm.

Wang et al. (2019), R-Transformer, Eq. 8.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from rtx.lab.checks.check import Check

Function = Callable[[Tensor], Tensor]


def _norm(x: Tensor) -> Tensor:
    return layer_norm(x, x.shape[-1:])


def _mix(x: Tensor) -> Tensor:
    return torch.tanh(2 * x.roll(1, 1) - x.flip(2))


def _cases() -> list[tuple[Tensor, Function, Function]]:
    draw = torch.Generator().manual_seed(0)
    # asking for gradients makes torch object to `x += …`, which would change the caller's x
    x = (3 * torch.randn(2, 5, 8, generator=draw) + 1).requires_grad_()
    return [(x, _mix, _norm), (x, torch.cos, _norm)]


residual = Check(
    cases=_cases,
    solution=lambda x, sublayer, norm: norm(x + sublayer(x)),
    bugs={
        "this is pre-norm, the order of the authors' code; in Eq. 8 the norm comes last": (
            lambda x, sublayer, norm: x + sublayer(norm(x))
        ),
        "the residual is missing: add x to the sublayer's output": lambda x, sublayer, norm: norm(sublayer(x)),
        "you normalised the sublayer's output alone: first add x, then normalise the sum": (
            lambda x, sublayer, norm: x + norm(sublayer(x))
        ),
        "the norm is missing": lambda x, sublayer, norm: x + sublayer(x),
        "normalised twice: the sublayer reads x as it is": lambda x, sublayer, norm: norm(x + sublayer(norm(x))),
        "the sublayer is missing": lambda x, sublayer, norm: norm(x),
    },
    praise="what went in is added to what came out, and the sum is normalised",
)
