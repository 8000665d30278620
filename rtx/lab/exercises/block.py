"""Exercises of notebook 04: a residual step, whether a model notices order, and what each sublayer adds.

Wang et al. (2019), R-Transformer, Eq. 8.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from rtx.lab.exercises.exercise import bug, exercise

Layer = Callable[[Tensor], Tensor]


def _norm(x: Tensor) -> Tensor:
    return layer_norm(x, x.shape[-1:])


def _mix(x: Tensor) -> Tensor:
    return torch.tanh(2 * x.roll(1, 1) - x.flip(2))


def _cases() -> list[tuple[Tensor, Layer, Layer]]:
    x = 3 * torch.randn(2, 5, 8) + 1
    # LayerNorm gives the same for half a sum, and if it is applied twice; tanh does not.
    return [(x, _mix, _norm), (x, torch.cos, _norm), (x, torch.cos, torch.tanh)]


@exercise(_cases)
@bug("this is pre-norm: in Eq. 8 the norm comes last", {"norm(x + sublayer(x))": "x + sublayer(norm(x))"})
@bug("the residual is missing: add x to the sublayer's output", {"x + ": ""})
@bug("you normalised the sublayer's output: normalise the sum", {"norm(x + sublayer(x))": "x + norm(sublayer(x))"})
@bug("the norm is missing", {"norm(x + ": "(x + "})
@bug("`norm` is not used: call the one that you are given", {"norm(x + ": "_norm(x + "})
def residual(x: Tensor, sublayer: Layer, norm: Layer) -> Tensor:
    """The input is added to the output of the sublayer, and the sum is normalised."""
    return norm(x + sublayer(x))


def _weighted(x: Tensor) -> Tensor:
    """Return sums of the past, in which each position has a weight of its own. So the order matters."""
    return (x * torch.arange(1, x.shape[1] + 1)[:, None] / x.shape[1]).cumsum(1)


def _order_cases() -> list[tuple[Layer, Tensor]]:
    """Return models and inputs. Some tell a wrong swap from a wrong comparison."""
    x = torch.randn(4, 9, 8)
    alike = torch.randn(1, 7, 1).repeat(4, 1, 8)  # swapping sequences or numbers changes nothing
    twins, most = x.clone(), x.clone()
    twins[-1, 0] = twins[-1, 1]  # in the last sequence, the swap changes nothing
    most[[0, 2, 3], 0] = most[[0, 2, 3], 1]  # here, in all but the second sequence
    models: list[Layer] = [
        torch.tanh,
        lambda x: x.cummax(1).values,
        lambda x: (x[:, 2:].sum(1, True) + x[:, 1:2] + x[:, :1]).expand_as(x),  # the swap changes only the rounding
        lambda x: torch.cat([x[:, :2], _weighted(x[:, 2:])], 1),  # the first two positions do not reach the last one
        _weighted,
        lambda x: 1 + 0.01 * _weighted(x),  # the output hardly changes
        lambda x: torch.cat([_weighted(x), -_weighted(x)], -1),  # the mean of the numbers is always zero
        lambda x: torch.cat([x.cummax(1).values[..., 1:], _weighted(x)[..., :1]], -1),  # only the last number notices
        lambda x: (x[:, :1] - x[:, 1:2]).sign().expand_as(x),  # the lengths of all vectors stay the same
    ]
    return [*((model, x) for model in models), (torch.tanh, alike), (torch.tanh, twins), (_weighted, most)]


@exercise(_order_cases)
@bug("you compared all outputs: the swapped places differ in any model; take the last", {"[:, -1]": ""})
@bug("this is the last sequence: the last position is [:, -1]", {"[:, -1]": "[-1]"})
@bug("the last input was moved, too: the last output then changes in any model", {"(swapped)": "(x.flip(1))"})
@bug("changes cancel in a mean or a sum: compare number by number", {"[:, -1]": "[:, -1].mean(-1)"})
@bug("your tolerance is too large: a change of a thousandth is more than rounding", {"1e-5": "0.01"})
@bug("the wrong way round: True is for a model that notices", {"not ": ""})
@bug("rounding is not order: sums in another order differ in the last digits; use torch.allclose", {"=1e-": "=0e-"})
@bug("positions were lost: all after the first two stay as they are", {"(swapped)": "(swapped[:, :4])"})
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
@bug("you pass on the normalised sum: add the contribution to x", {"x + added": "norm(x) + added"})
def contributions(x: Tensor, sublayers: Sequence[Layer], norms: Sequence[Layer]) -> Tensor:
    """The output is x plus the sum of all contributions."""
    found = []
    for sublayer, norm in zip(sublayers, norms, strict=True):
        added = sublayer(norm(x))
        found.append(added)
        x = x + added
    return torch.stack(found)
