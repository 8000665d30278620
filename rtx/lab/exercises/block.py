"""Exercises of notebook 04: a residual step, whether a model notices order, and what each sublayer adds.

Wang et al. (2019), R-Transformer, Eq. 8.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from rtx.lab.exercises.exercise import Layer, bug, exercise


def _norm(x: Tensor) -> Tensor:
    return layer_norm(x, x.shape[-1:])


def _mix(x: Tensor) -> Tensor:
    return torch.tanh(2 * x.roll(1, 1) - x.flip(2))


def _cases() -> list[tuple[Tensor, Layer, Layer]]:
    x = 3 * torch.randn(2, 5, 8) + 1
    return [(x, _mix, _norm), (x, torch.cos, torch.tanh)]


@exercise(_cases)
@bug("this is pre-norm: in Eq. 8 the norm comes last", {"norm(x + sublayer(x))": "x + sublayer(norm(x))"})
@bug("the residual is missing: add x to the sublayer's output", {"x + ": ""})
@bug("you normalised the sublayer's output: normalise the sum", {"norm(x + sublayer(x))": "x + norm(sublayer(x))"})
@bug("the norm is missing", {"norm(x + ": "(x + "})
def residual(x: Tensor, sublayer: Layer, norm: Layer) -> Tensor:
    """The input is added to the output of the sublayer, and the sum is normalised."""
    return norm(x + sublayer(x))


def _weighted(x: Tensor) -> Tensor:
    """Return sums of the past, in which each position has a weight of its own. So the order matters."""
    return (x * torch.arange(1, x.shape[1] + 1)[:, None] / x.shape[1]).cumsum(1)


def _order_cases() -> list[tuple[Layer, Tensor]]:
    """Return models and inputs: four models that do not notice the swap, and four that do."""
    x = torch.randn(4, 9, 8)
    one = x.clone()
    one[[0, 2, 3], 0] = one[[0, 2, 3], 1]  # the swap changes only the second sequence
    return [
        (torch.tanh, x),
        (lambda x: x.cummax(1).values, x),
        (lambda x: (x[:, 2:].sum(1, True) + x[:, 1:2] + x[:, :1]).expand_as(x), x),  # only the rounding changes
        (lambda x: 1 + 0.01 * _weighted(x), x),  # the output hardly changes
        (lambda x: torch.cat([x, -_weighted(x), _weighted(x)], -1), one),  # the sum of the numbers stays the same
        (lambda x: (x[:, :1] - x[:, 1:2]).sign().expand_as(x), x),  # the lengths of all vectors stay the same
        (lambda x: (x[:, 1:2] + x[:, 2:3]).expand_as(x), x),  # does not notice if the second and the third are swapped
        (lambda x: (x[:, :1] + x[:, 1:2] + 2 * x[:, 2:3]).expand_as(x), x),  # notices any swap but the right one
    ]


@exercise(_order_cases)
@bug("you compared all outputs: the swapped places differ in any model; take the last", {"[:, -1]": ""})
@bug("this is the last sequence: the last position is [:, -1]", {"[:, -1]": "[-1]"})
@bug("the wrong way round: True is for a model that notices", {"not ": ""})
@bug("rounding is not order: sums in another order differ in the last digits; use torch.allclose", {"=1e-": "=0e-"})
@bug("position 0 was overwritten before it was copied: both places hold position 1", {"x[:, :1]": "x[:, 1:2]"})
def notices_order(model: Layer, x: Tensor) -> bool:
    """A sum does not notice the swap, a recurrence does."""
    swapped = torch.cat([x[:, 1:2], x[:, :1], x[:, 2:]], 1)
    return not torch.allclose(model(x)[:, -1], model(swapped)[:, -1], rtol=1e-4, atol=1e-5)


def _stacks() -> list[tuple[Tensor, list[Layer], list[Layer]]]:
    x = 2 * torch.randn(2, 5, 4) + 1
    norms: list[Layer] = [lambda x: 0.5 * _norm(x), lambda x: 2 * _norm(x) + 0.3, _norm]
    return [(x, [_mix, torch.cos, torch.relu], norms), (x[:, :3], [torch.cos, _mix], norms[1:])]


@exercise(_stacks)
@bug("all sublayers read the first x: each one reads the sum so far", {"x = x + added": "x = x"})
@bug("the norm is missing: each sublayer reads the normalised sum", {"norm(x)": "x"})
@bug("this is post-norm: pre-norm never normalises the sum itself", {"norm(x)": "x", "x + added": "norm(x + added)"})
@bug("these are the sums after each sublayer: return only what the sublayer added", {"append(": "append(x + "})
@bug("the residual is missing: the next sublayer reads x plus the contribution", {"x + added": "added"})
def contributions(x: Tensor, sublayers: Sequence[Layer], norms: Sequence[Layer]) -> Tensor:
    """The output is x plus the sum of all contributions."""
    found = []
    for sublayer, norm in zip(sublayers, norms, strict=True):
        added = sublayer(norm(x))
        found.append(added)
        x = x + added
    return torch.stack(found)
