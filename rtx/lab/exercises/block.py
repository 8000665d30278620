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
        "this is pre-norm: in Eq. 8 the norm comes last": lambda x, sublayer, norm: x + sublayer(norm(x)),
        "the residual is missing: add x to the sublayer's output": lambda x, sublayer, norm: norm(sublayer(x)),
        "you normalised the sublayer's output: normalise the sum": lambda x, sublayer, norm: x + norm(sublayer(x)),
        "the norm is missing": lambda x, sublayer, norm: x + sublayer(x),
        "`norm` is not used: call the one that you are given": lambda x, sublayer, norm: _norm(x + sublayer(x)),
    },
    praise="the input is added to the output of the sublayer, and the sum is normalised",
)


def _swapped(x: Tensor) -> Tensor:
    """Return (B, T, D) with its first two positions in each other's places."""
    return torch.cat([x[:, 1:2], x[:, :1], x[:, 2:]], 1)


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


def _notices(
    change: Callable[[Tensor], Tensor] = _swapped,
    read: Callable[[Tensor], Tensor] = lambda y: y[:, -1],
    differ: Callable[[Tensor, Tensor], bool] = _differ,
) -> Callable[[Function, Tensor], bool]:
    """Return the test with one thing changed."""
    return lambda model, x: differ(read(model(x)), read(model(change(x))))


notices_order = Exercise(
    cases=_order_cases,
    solution=_notices(),
    bugs={
        "you compared all outputs: the swapped places differ in any model; take the last": _notices(read=lambda y: y),
        "this is the last sequence: the last position is [:, -1]": _notices(read=lambda y: y[-1]),
        "the last input was moved, too: the last output then changes in any model": _notices(lambda x: x.flip(1)),
        "changes cancel in a mean or a sum: compare number by number": _notices(read=lambda y: y[:, -1].mean(-1)),
        "your tolerance is too large: a change of a thousandth is more than rounding": _notices(
            differ=lambda before, after: not torch.allclose(before, after, atol=0.01)
        ),
        "the wrong way round: True is for a model that notices": _notices(differ=lambda *both: not _differ(*both)),
        "rounding is not order: sums in another order differ in their last digits; use torch.allclose": _notices(
            differ=lambda before, after: not torch.equal(before, after)
        ),
        "positions were lost: all after the first two stay as they are": _notices(lambda x: _swapped(x)[:, :4]),
        "the first position was overwritten before it was copied: both places hold the second one": _notices(
            lambda x: torch.cat([x[:, 1:2], x[:, 1:]], 1)
        ),
    },
    praise="a sum does not notice the swap, a recurrence does",
)


Functions = Sequence[Function]


def _walk(
    read: Callable[[Tensor, Function], Tensor] = lambda x, norm: norm(x),
    keep: Callable[[Tensor, Tensor], Tensor] = lambda x, y: y,
    go_on: Callable[[Tensor, Tensor, Function], Tensor] = lambda x, y, norm: x + y,
) -> Callable[[Tensor, Functions, Functions], Tensor]:
    """Return a function that collects the contributions, with one thing changed."""

    def collected(x: Tensor, sublayers: Functions, norms: Functions) -> Tensor:
        found = []
        for sublayer, norm in zip(sublayers, norms, strict=True):
            y = sublayer(read(x, norm))
            found.append(keep(x, y))
            x = go_on(x, y, norm)
        return torch.stack(found)

    return collected


def _stacks() -> list[tuple[Tensor, list[Function], list[Function]]]:
    draw = torch.Generator().manual_seed(0)
    x = 2 * torch.randn(2, 5, 4, generator=draw) + 1
    norms: list[Function] = [lambda x: 0.5 * _norm(x), lambda x: 2 * _norm(x) + 0.3, _norm]
    return [(x, [_mix, torch.cos, torch.relu], norms), (x[:, :3], [torch.cos, _mix], norms[1:])]


contributions = Exercise(
    cases=_stacks,
    solution=_walk(),
    bugs={
        "all sublayers read the first x: each one reads the sum so far": _walk(go_on=lambda x, y, norm: x),
        "the norm is missing: each sublayer reads the normalised sum": _walk(lambda x, norm: x),
        "this is post-norm: under pre-norm the sum itself is never normalised": _walk(
            lambda x, norm: x, go_on=lambda x, y, norm: norm(x + y)
        ),
        "these are the sums after each sublayer: return only what the sublayer added": _walk(keep=torch.add),
        "the residual is missing: the next sublayer reads x plus the contribution": _walk(go_on=lambda x, y, norm: y),
        "you pass on the normalised sum: add the contribution to x": _walk(go_on=lambda x, y, norm: norm(x) + y),
    },
    praise="the output is x plus the sum of all contributions",
)
