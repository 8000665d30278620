"""Exercises of notebook 04: a residual step, whether a model notices order, and what each sublayer adds.

Wang et al. (2019), R-Transformer, Eq. 8.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from rtx.lab.exercises.exercise import Exercise

Function = Callable[[Tensor], Tensor]


def _norm(x: Tensor) -> Tensor:
    return layer_norm(x, x.shape[-1:])


def _mix(x: Tensor) -> Tensor:
    return torch.tanh(2 * x.roll(1, 1) - x.flip(2))


def _cases() -> list[tuple[Tensor, Function, Function]]:
    draw = torch.Generator().manual_seed(0)
    x = 3 * torch.randn(2, 5, 8, generator=draw) + 1
    # LayerNorm gives the same for half a sum, and if it is applied twice; tanh does not.
    return [(x, _mix, _norm), (x, torch.cos, _norm), (x, torch.cos, torch.tanh)]


residual = Exercise(
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
        "you normalised x alone: first add the sublayer's output, then normalise the sum": (
            lambda x, sublayer, norm: norm(x) + sublayer(x)
        ),
        "you normalised x and the sublayer's output, each by itself: normalise their sum": (
            lambda x, sublayer, norm: norm(x) + norm(sublayer(x))
        ),
        "the norm is missing": lambda x, sublayer, norm: x + sublayer(x),
        "x is normalised before the sublayer, too: the sublayer reads x as it is": (
            lambda x, sublayer, norm: norm(x + sublayer(norm(x)))
        ),
        "the sublayer is missing": lambda x, sublayer, norm: norm(x),
        "you normalised the sum, and then added x again": lambda x, sublayer, norm: x + norm(x + sublayer(x)),
        "the sum is normalised twice: once is enough": lambda x, sublayer, norm: norm(norm(x + sublayer(x))),
        "the sum was divided by 2: Eq. 8 adds, and LayerNorm scales": lambda x, sublayer, norm: norm(
            (x + sublayer(x)) / 2
        ),
        "x was subtracted: Eq. 8 adds it": lambda x, sublayer, norm: norm(sublayer(x) - x),
        "`norm` is not used: call the one that you are given": lambda x, sublayer, norm: _norm(x + sublayer(x)),
    },
    praise="the input is added to the output of the sublayer, and the sum is normalised",
)


def _swapped(x: Tensor) -> Tensor:
    """Return (B, T, D) with its first two positions in each other's places."""
    return torch.cat([x[:, 1:2], x[:, :1], x[:, 2:]], 1)


def _past_flipped(x: Tensor) -> Tensor:
    """Return all positions but the last in reverse order."""
    return torch.cat([x[:, :-1].flip(1), x[:, -1:]], 1)


def _differ(before: Tensor, after: Tensor) -> bool:
    return not torch.allclose(before, after, rtol=1e-4, atol=1e-5)


def _recurrent(x: Tensor) -> Tensor:
    states = [torch.zeros_like(x[:, 0])]
    for t in range(x.shape[1]):
        states.append(torch.tanh(0.9 * states[-1] + x[:, t]))
    return torch.stack(states[1:], 1)


def _late(x: Tensor) -> Tensor:
    """Return a recurrence that starts at the third position, so that the order of the first two cannot matter."""
    return torch.cat([x[:, :2], _recurrent(x[:, 2:])], 1)


def _balanced(x: Tensor) -> Tensor:
    """Return a recurrence and its negative. The mean of the numbers at a position is always zero."""
    half = _recurrent(x)[..., ::2]
    return torch.cat([half, -half], -1)


def _faint(x: Tensor) -> Tensor:
    """Return a recurrence whose output hardly changes."""
    return 1 + 0.2 * _recurrent(x)


def _only_the_last_number(x: Tensor) -> Tensor:
    """Return sums of the past, but a recurrence in the last number."""
    return torch.cat([_sum(x)[..., :-1], 10 * _recurrent(x)[..., -1:]], -1)


def _sign(x: Tensor) -> Tensor:
    """Return 1 or -1, by which of the first two inputs is larger. All lengths of vectors stay the same."""
    return (x[:, :1] - x[:, 1:2]).sign().expand_as(x)


def _sum(x: Tensor) -> Tensor:
    """Return sums of the past, the nearest input first. A swap of the first two changes only the rounding."""
    return torch.stack([reduce(torch.add, x[:, : t + 1].flip(1).unbind(1)) for t in range(x.shape[1])], 1)


def _count(x: Tensor) -> Tensor:
    """Return how many positions each output sees, whatever they contain."""
    return torch.ones_like(x).cumsum(1)


def _largest(x: Tensor) -> Tensor:
    return x.cummax(1).values


def _doubled(x: Tensor) -> Tensor:
    """Return x with its second position in both of the first two places."""
    return torch.cat([x[:, 1:2], x[:, 1:]], 1)


def _order_cases() -> list[tuple[Function, Tensor]]:
    """Return models and inputs. Some tell a wrong swap from a wrong comparison."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(4, 9, 8, generator=draw)
    alike = torch.randn(1, 7, 1, generator=draw).repeat(4, 1, 8)  # swapping sequences or numbers changes nothing
    twins = x.clone()
    twins[-1, 0] = twins[-1, 1]  # in the last sequence, the swap changes nothing
    most = x.clone()
    most[[0, 2, 3], 0] = most[[0, 2, 3], 1]  # here, in all but the second sequence
    blind = (_sum, torch.tanh, _count, _largest, torch.zeros_like, _late)
    noticing = (_recurrent, _balanced, _faint, _only_the_last_number, _sign)
    return [*((model, x) for model in blind + noticing), (torch.tanh, alike), (torch.tanh, twins), (_recurrent, most)]


notices_order = Exercise(
    cases=_order_cases,
    solution=lambda model, x: _differ(model(x)[:, -1], model(_swapped(x))[:, -1]),
    bugs={
        "you compared all outputs: those at the swapped places see other inputs in any model; take the last": (
            lambda model, x: _differ(model(x), model(_swapped(x)))
        ),
        "this is the last sequence: the first axis counts sequences, the last position is [:, -1]": (
            lambda model, x: _differ(model(x)[-1], model(_swapped(x))[-1])
        ),
        "you looked at one sequence only: any of the batch may notice": (
            lambda model, x: _differ(model(x)[0, -1], model(_swapped(x))[0, -1])
        ),
        "you compared one number only: a change in any of them counts": (
            lambda model, x: _differ(model(x)[:, -1, 0], model(_swapped(x))[:, -1, 0])
        ),
        "the last input was moved, too: the last output then changes in any model": (
            lambda model, x: _differ(model(x)[:, -1], model(x.flip(1))[:, -1])
        ),
        "you reversed the whole past: only the first two positions change places": (
            lambda model, x: _differ(model(x)[:, -1], model(_past_flipped(x))[:, -1])
        ),
        "changes of different sign cancel in a mean or a sum: compare number by number": (
            lambda model, x: _differ(model(x)[:, -1].mean(-1), model(_swapped(x))[:, -1].mean(-1))
        ),
        "your tolerance is too large: a change of a thousandth is more than rounding": (
            lambda model, x: not torch.allclose(model(x)[:, -1], model(_swapped(x))[:, -1], atol=0.01)
        ),
        "the wrong way round: True is for a model that notices": (
            lambda model, x: not _differ(model(x)[:, -1], model(_swapped(x))[:, -1])
        ),
        "rounding is not order: sums in another order differ in their last digits; use torch.allclose": (
            lambda model, x: not torch.equal(model(x)[:, -1], model(_swapped(x))[:, -1])
        ),
        "positions were lost: after the two that change places, all others stay": (
            lambda model, x: _differ(model(x)[:, -1], model(_swapped(x)[:, :4])[:, -1])
        ),
        "the first position was overwritten before it was copied: both places hold the second one": (
            lambda model, x: _differ(model(x)[:, -1], model(_doubled(x))[:, -1])
        ),
        "sequences or numbers changed places: positions are counted by the second axis": (
            lambda model, x: _differ(model(x)[:, -1], model(x[[1, 0, *range(2, len(x))]])[:, -1])
        ),
        "nothing was swapped": lambda model, x: _differ(model(x)[:, -1], model(x)[:, -1]),
    },
    praise="a sum does not notice the swap, a recurrence does",
)


Functions = Sequence[Function]
Walk = Callable[[Tensor, Function, Function], tuple[Tensor, Tensor]]


def _walk(step: Walk) -> Callable[[Tensor, Functions, Functions], Tensor]:
    """Return a function that collects one tensor per sublayer. `step` returns this tensor and the next stream."""

    def collected(x: Tensor, sublayers: Functions, norms: Functions) -> Tensor:
        found = []
        for sublayer, norm in zip(sublayers, norms, strict=True):
            one, x = step(x, sublayer, norm)
            found.append(one)
        return torch.stack(found)

    return collected


def _added(x: Tensor, sublayer: Function, norm: Function) -> tuple[Tensor, Tensor]:
    y = sublayer(norm(x))
    return y, x + y


_contributions = _walk(_added)


def _all_from_the_input(x: Tensor, sublayers: Functions, norms: Functions) -> Tensor:
    return torch.stack([sublayer(norm(x)) for sublayer, norm in zip(sublayers, norms, strict=True)])


def _stacks() -> list[tuple[Tensor, list[Function], list[Function]]]:
    draw = torch.Generator().manual_seed(0)
    x = 2 * torch.randn(2, 5, 4, generator=draw) + 1
    norms: list[Function] = [lambda x: 0.5 * _norm(x), lambda x: 2 * _norm(x) + 0.3, _norm]
    return [(x, [_mix, torch.cos, torch.relu], norms), (x[:, :3], [torch.cos, _mix], norms[1:])]


contributions = Exercise(
    cases=_stacks,
    solution=_contributions,
    bugs={
        "all sublayers read the first x: each one reads the sum so far": _all_from_the_input,
        "the norm is missing: each sublayer reads the normalised sum": _walk(
            lambda x, sublayer, norm: (sublayer(x), x + sublayer(x))
        ),
        "this is post-norm: under pre-norm the sum itself is never normalised": _walk(
            lambda x, sublayer, norm: (sublayer(x), norm(x + sublayer(x)))
        ),
        "these are the sums after each sublayer: return only what the sublayer added": _walk(
            lambda x, sublayer, norm: (x + sublayer(norm(x)),) * 2
        ),
        "the normalised input is added as well: a contribution is the sublayer's output alone": _walk(
            lambda x, sublayer, norm: (norm(x) + sublayer(norm(x)), x + norm(x) + sublayer(norm(x)))
        ),
        "you normalised what the sublayer returns: the norm comes before the sublayer": _walk(
            lambda x, sublayer, norm: (norm(sublayer(x)), x + norm(sublayer(x)))
        ),
        "the residual is missing: the next sublayer reads the old sum plus the contribution": _walk(
            lambda x, sublayer, norm: (sublayer(norm(x)),) * 2
        ),
        "the normalised sum is passed on: the next sum is x plus the contribution": _walk(
            lambda x, sublayer, norm: (sublayer(norm(x)), norm(x) + sublayer(norm(x)))
        ),
        "you used the first norm for all sublayers: each one has its own": (
            lambda x, sublayers, norms: _contributions(x, sublayers, [norms[0]] * len(sublayers))
        ),
        "the order is reversed: the first sublayer comes first": (
            lambda x, sublayers, norms: _contributions(x, sublayers, norms).flip(0)
        ),
        "the sublayers are applied from the last to the first": (
            lambda x, sublayers, norms: _contributions(x, sublayers[::-1], norms[::-1])
        ),
        "this is the sum of all contributions: return them one by one, stacked": (
            lambda x, sublayers, norms: _contributions(x, sublayers, norms).sum(0)
        ),
        "these are sums of all contributions so far: return them one by one": (
            lambda x, sublayers, norms: _contributions(x, sublayers, norms).cumsum(0)
        ),
    },
    praise="the output is x plus the sum of all contributions",
)
