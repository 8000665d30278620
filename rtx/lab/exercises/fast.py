"""Exercises of notebook 12: LocalRNN with hoisted projections, a softmax in pieces, the gradient of a GRU's last line.

Milakov & Gimelshein (2018), Online normalizer calculation for softmax; Rabe & Staats (2021), Self-attention Does Not
Need O(n²) Memory; Wang et al. (2019), R-Transformer, Eq. 2-3.
"""

import math
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from rtx.lab.exercises.exercise import Exercise

Project = Callable[[Tensor], Tensor]
Step = Callable[[Tensor, Tensor], Tensor]


def _spoilt(answer: Tensor, spoilt: bool, by: float) -> Tensor:
    """Return an answer that no right one equals if it was found in a way that is not allowed."""
    return torch.full_like(answer, by) if spoilt else answer


# LocalRNN


def _cell(draw: torch.Generator, D: int) -> tuple[Project, Step]:
    """Return a cell with one gate: its projection and its step. `project.count` adds up the projected positions."""
    W, U = (torch.randn(2 * D, D, generator=draw) for _ in range(2))
    b, c = (torch.randn(2 * D, generator=draw) for _ in range(2))

    def project(x: Tensor) -> Tensor:
        project.count += x.numel() // D  # type: ignore[attr-defined]
        return linear(x, W, b)

    project.count = 0  # type: ignore[attr-defined]

    def step(a: Tensor, h: Tensor) -> Tensor:
        gate, new = (a + linear(h, U, c)).chunk(2, -1)
        return gate.sigmoid() * h + new.tanh()

    return project, step


def _sequences() -> list[tuple[Project, Step, Tensor, int]]:
    draw = torch.Generator().manual_seed(0)
    sizes = ((2, 7, 3, 4), (3, 5, 2, 2), (2, 6, 3, 1))
    return [(*_cell(draw, D), torch.randn(B, T, D, generator=draw), M) for B, T, D, M in sizes]


def _projected_once(answer: Tensor, case: tuple[Any, ...]) -> Tensor:
    project, _, x, window = case
    count, project.count = project.count, 0
    B, T, _ = x.shape
    return _spoilt(answer, count > B * (T + window), math.nan)


def _in_windows(
    projections: Callable[[Project, Tensor, int], Tensor] = lambda project, x, M: project(pad(x, (0, 0, M - 1, 0))),
    keep: Callable[[Tensor], Tensor] = lambda h: h,
) -> Callable[[Project, Step, Tensor, int], Tensor]:
    """Return a hoisted LocalRNN with one thing changed."""

    def run(project: Project, step: Step, x: Tensor, M: int) -> Tensor:
        a, h = projections(project, x, M), torch.zeros_like(x)
        for i in range(M):
            h = step(a[:, i : i + x.shape[1]], keep(h))
        return h

    return run


def _projected_in_the_loop(project: Project, step: Step, x: Tensor, M: int) -> Tensor:
    padded, h = pad(x, (0, 0, M - 1, 0)), torch.zeros_like(x)
    for i in range(M):
        h = step(project(padded[:, i : i + x.shape[1]]), h)
    return h


def _whole(project: Project, step: Step, x: Tensor, M: int) -> Tensor:
    a, states = project(x), [torch.zeros_like(x[:, 0])]
    for t in range(x.shape[1]):
        states.append(step(a[:, t], states[-1]))
    return torch.stack(states[1:], 1)


hoisted_local_rnn = Exercise(
    cases=_sequences,
    solution=_in_windows(),
    bugs={
        "you project each position M times: call `project` once, before the loop": _projected_in_the_loop,
        "the pads must be zeros before the projection: `project` adds a bias, so its output for a pad is not 0": (
            _in_windows(lambda project, x, M: pad(project(x), (0, 0, M - 1, 0)))
        ),
        "this is the RNN over the whole sequence: each output must depend on its own window only": _whole,
        "the state is lost: give `step` the state that it returned before": _in_windows(keep=torch.zeros_like),
        "the zeros are after the sequence, so your windows read the future": _in_windows(
            lambda project, x, M: project(pad(x, (0, 0, 0, M - 1)))
        ),
    },
    praise="each position is projected once, and all windows use the result",
    measure=_projected_once,
)

# Softmax in pieces

Piece = Callable[[int], tuple[Tensor, Tensor]]


def _stream(pairs: list[tuple[Tensor, Tensor]]) -> Piece:
    """Return a function that computes a piece. It counts its calls, and pieces that are still held at a call."""

    def piece(i: int) -> tuple[Tensor, Tensor]:
        scores, values = (part.clone() for part in pairs[i])
        held = sum(one() is not None for one in piece.given)  # type: ignore[attr-defined]
        piece.held = max(piece.held, held)  # type: ignore[attr-defined]
        piece.calls += 1  # type: ignore[attr-defined]
        piece.given.append(weakref.ref(scores))  # type: ignore[attr-defined]
        return scores, values

    piece.given, piece.held, piece.calls = [], 0, 0  # type: ignore[attr-defined]
    return piece


def _pieces() -> list[tuple[Piece, int]]:
    """Return ordinary scores; scores of about 200 and -200; rising, falling and mixed maxima that are far apart."""
    draw = torch.Generator().manual_seed(0)

    def case(sizes: list[int], tops: list[float], scale: float = 1.0, D: int = 2) -> tuple[Piece, int]:
        rows = torch.tensor([[0.0], [-150.0], [0.0]])  # the second query has far lower scores
        pairs = [
            (scale * torch.randn(3, S, generator=draw) + top + rows, torch.randn(S, D, generator=draw))
            for S, top in zip(sizes, tops, strict=True)
        ]
        return _stream(pairs), len(sizes)

    return [
        case([4, 3, 5], [0.0, 0.5, -0.5]),
        case([3, 3, 2, 4], [200.0, 201.0, 199.0, 200.5]),
        case([2, 4, 3], [-200.0, -199.0, -201.0]),
        case([3, 2, 4], [-120.0, 0.0, 120.0], D=4),
        case([3, 2, 4], [120.0, 0.0, -120.0]),
    ]


def _one_at_a_time(answer: Tensor, case: tuple[Any, ...]) -> Tensor:
    piece, n = case
    held, calls = piece.held, piece.calls
    piece.given, piece.held, piece.calls = [], 0, 0
    return _spoilt(_spoilt(answer, calls > n, 1e30), held > 1, -1e30)


Rescale = Callable[[Tensor, Tensor], Tensor]


def _by(old: Tensor, new: Tensor) -> Tensor:
    return (old - new).exp()


def _one(old: Tensor, new: Tensor) -> Tensor:
    return torch.ones_like(new)


def _running(
    total_by: Rescale = _by,
    sum_by: Rescale = _by,
    top_of: Callable[[Tensor, Tensor], Tensor] = lambda top, scores: torch.maximum(top, scores.amax(-1, True)),
    divide: bool = True,
) -> Callable[[Piece, int], Tensor]:
    """Return a softmax with a running maximum, and with one thing changed."""

    def run(piece: Piece, n: int) -> Tensor:
        top, total, summed = torch.tensor(-math.inf), torch.tensor(0.0), torch.tensor(0.0)
        for i in range(n):
            scores, values = piece(i)
            new = top_of(top, scores)
            weights = (scores - new).exp()
            total = total * total_by(top, new) + weights.sum(-1, True)
            summed = summed * sum_by(top, new) + weights @ values
            top = new
        return summed / total if divide else summed

    return run


def _joined(piece: Piece, n: int) -> Tensor:
    scores, values = zip(*(piece(i) for i in range(n)), strict=True)
    return torch.cat(scores, -1).softmax(-1) @ torch.cat(values)


def _twice(piece: Piece, n: int) -> Tensor:
    top = torch.stack([piece(i)[0].amax(-1, True) for i in range(n)]).amax(0)
    return _running(_one, _one, lambda _, scores: top)(piece, n)


softmax_in_pieces = Exercise(
    cases=_pieces,
    solution=_running(),
    bugs={
        "you hold all pieces at once, so the whole row is in memory: use one piece, then the next": _joined,
        "you compute each piece twice: rescale the sums when the maximum rises, then once is enough": _twice,
        "when the maximum rises, multiply the earlier sums by exp(old - new)": _running(total_by=_one, sum_by=_one),
        "only the sum of the exponentials is rescaled: rescale the weighted sum, too": _running(sum_by=_one),
        "exp overflows where scores are large: subtract the running maximum first": _running(
            top_of=lambda top, scores: torch.zeros_like(scores[:, :1])
        ),
        "each piece subtracts its own largest score: rescale the sums, so that all pieces have the same maximum": (
            _running(_one, _one, lambda top, scores: scores.amax(-1, True))
        ),
        "one maximum for all rows: in a row far below it all exponentials are 0; take each row's own": _running(
            top_of=lambda top, scores: torch.maximum(top, scores.amax())
        ),
        "the division at the end is missing: divide by the sum of the exponentials": _running(divide=False),
    },
    praise="no row of scores is ever whole, each piece is computed once, and the answer is the same",
    measure=_one_at_a_time,
)

# The last line of a GRU


def _gates() -> list[tuple[Tensor, ...]]:
    draw = torch.Generator().manual_seed(0)
    found: list[tuple[Tensor, ...]] = []
    for shape in ((5, 3), (2, 4)):
        d_h, z, n, before = (torch.randn(shape, generator=draw) for _ in range(4))
        found.append((d_h, z.sigmoid(), n.tanh(), before))
    return found


def _back(
    z_slope: Callable[[Tensor], Tensor] = lambda z: z * (1 - z),
    n_slope: Callable[[Tensor], Tensor] = lambda n: 1 - n * n,
    change: Callable[[Tensor, Tensor], Tensor] = lambda n, before: before - n,
    above: Callable[[Tensor], Tensor] = lambda d_h: d_h,
) -> Callable[..., Tensor]:
    """Return the three gradients with one thing changed."""
    return lambda d_h, z, n, before: torch.stack(
        [
            above(d_h) * change(n, before) * z_slope(z),
            above(d_h) * (1 - z) * n_slope(n),
            above(d_h) * z,
        ]
    )


back_through_gate = Exercise(
    cases=_gates,
    solution=_back(),
    bugs={
        "the sign of the first gradient is wrong: it has `before` minus n": _back(change=lambda n, before: n - before),
        "the first gradient is that of z, not a: multiply by z (1 - z)": _back(z_slope=torch.ones_like),
        "the second gradient is that of n, not c: multiply by 1 - n²": _back(n_slope=torch.ones_like),
        "n is already tanh(c): its derivative is 1 - n², without another tanh": _back(
            n_slope=lambda n: 1 - n.tanh() ** 2
        ),
        "the gradients must be multiplied by d_h, which comes from above": _back(above=torch.ones_like),
        "the first gradient lacks n, which 1 - z multiplies": _back(change=lambda n, before: before),
    },
    praise="z, n and the state before are enough: nothing else of this line must be kept",
)
