"""Exercises of notebook 12: LocalRNN with hoisted projections, a softmax in pieces, the gradient of a GRU's last line.

Milakov & Gimelshein (2018), Online normalizer calculation for softmax; Rabe & Staats (2021), Self-attention Does Not
Need O(n²) Memory; Wang et al. (2019), R-Transformer, Eq. 2-3.
"""

import math
import weakref
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from rtx.lab.exercises.exercise import Case, bug, exercise

Step = Callable[[Tensor, Tensor], Tensor]


class _Projection(nn.Linear):
    """The projection of a cell with one gate. It counts the positions that it projects."""

    count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += x[..., 0].numel()
        return super().forward(x)


def _cell(D: int) -> tuple[_Projection, Step]:
    project = _Projection(D, 2 * D).requires_grad_(False)
    U, c = torch.randn(2 * D, D), torch.randn(2 * D)

    def step(a: Tensor, h: Tensor) -> Tensor:
        gate, new = (a + linear(h, U, c)).chunk(2, -1)
        return gate.sigmoid() * h + new.tanh()

    return project, step


def _projected_once(answer: Tensor, case: Case) -> Tensor:
    """Return the answer, or NaN if positions were projected more than once."""
    project, _, x, window = case
    return answer if project.count <= len(x) * (x.shape[1] + window) else torch.full_like(answer, math.nan)


@exercise(
    lambda: [(*_cell(D), torch.randn(B, T, D), M) for B, T, D, M in ((2, 7, 3, 4), (3, 5, 2, 2), (2, 6, 3, 1))],
    measure=_projected_once,
)
@bug("you project each position M times: once is enough", {"project(padded)": "padded", "step(a[": "step(project(a)["})
@bug("pads get the projection's bias, too: pad x first", {"project(padded)": "pad(project(x), (0, 0, M - 1, 0))"})
@bug("the state is lost: give `step` the state that it returned before", {", h)": ", torch.zeros_like(h))"})
@bug("the zeros are after the sequence, so your windows read the future", {"M - 1, 0)": "0, M - 1)"})
def hoisted_local_rnn(project: nn.Module, step: Step, x: Tensor, M: int) -> Tensor:
    """Each position is projected once, and all windows use the result."""
    T, padded = x.shape[1], pad(x, (0, 0, M - 1, 0))
    a, h = project(padded), torch.zeros_like(x)
    for i in range(M):
        h = step(a[:, i : i + T], h)
    return h


class _Pieces:
    """Compute a piece. Count the calls, and the pieces that are still held at a call."""

    def __init__(self, *tops: float) -> None:
        self.given, self.held = list[weakref.ref[Tensor]](), 0
        rows = torch.tensor([[0.0], [-150.0], [0.0]])  # the second query has far lower scores
        self.pieces = [(torch.randn(3, S) + top + rows, torch.randn(S, 2)) for S, top in enumerate(tops, 2)]

    def __call__(self, i: int) -> tuple[Tensor, Tensor]:
        scores, values = (part.clone() for part in self.pieces[i])
        self.held = max(self.held, sum(one() is not None for one in self.given))
        self.given.append(weakref.ref(scores))
        return scores, values


def _cases() -> list[tuple[_Pieces, int]]:
    """Return ordinary scores; scores of about 200 and -200; rising and falling maxima that are far apart."""
    tops = ((0, 0.5, -0.5, 0), (200, 201, 199, 200), (-200, -199, -201, -200), (-120, 0, 40, 120), (120, 0, -40, -120))
    return [(_Pieces(*each), len(each)) for each in tops]


def _one_at_a_time(answer: Tensor, case: Case) -> Tensor:
    """Return the answer, or infinities if several pieces were held (-), or a piece was computed twice (+)."""
    piece, n = case
    if piece.held > 2:  # a first piece that was computed before the loop may still have a name
        return torch.full_like(answer, -math.inf)
    return torch.full_like(answer, math.inf) if len(piece.given) > n else answer


@exercise(_cases, measure=_one_at_a_time)
@bug("you hold all pieces at once: use one piece, then the next", {"piece(i)": "[piece(j) for j in range(n)][i]"})
@bug("you compute each piece twice: rescale the sums when the maximum rises", {"scores.amax(": "piece(i)[0].amax("})
@bug("this is one maximum for all rows: each row has its own", {"scores.amax(-1, True)": "scores.max()"})
@bug(
    "this is the maximum of the piece: keep the largest so far",
    {"torch.maximum(top, scores.amax(-1, True))": "scores.amax(-1, True)"},
)
@bug("when the maximum rises, multiply the earlier sums by exp(old - new)", {"(top - new).exp()": "1"})
@bug("only the sum of the exponentials is rescaled: rescale the weighted sum, too", {"summed * factor": "summed"})
@bug("exp overflows where scores are large: subtract the running maximum first", {"new = ": "new = 0 * "})
@bug("the division at the end is missing: divide by the sum of the exponentials", {" / total": ""})
def softmax_in_pieces(piece: Callable[[int], tuple[Tensor, Tensor]], n: int) -> Tensor:
    """No row of scores is ever whole, each piece is computed once, and the answer is the same."""
    top, total, summed = torch.tensor(-math.inf), torch.tensor(0.0), torch.tensor(0.0)
    for i in range(n):
        scores, values = piece(i)
        new = torch.maximum(top, scores.amax(-1, True))
        factor, weights = (top - new).exp(), (scores - new).exp()
        total = total * factor + weights.sum(-1, True)
        summed = summed * factor + weights @ values
        top = new
    return summed / total


@exercise(lambda: [(torch.randn(5, 3), torch.rand(5, 3), torch.randn(5, 3).tanh(), torch.randn(5, 3))])
@bug("the sign of the first gradient is wrong: it has `before` minus n", {"(before - n)": "(n - before)"})
@bug("the first gradient is that of z, not a: multiply by z (1 - z)", {" * z * (1 - z)": ""})
@bug("the second gradient is that of n, not c: multiply by 1 - n²", {" * (1 - n * n)": ""})
@bug("n is already tanh(c): its derivative is 1 - n², without another tanh", {"n * n": "n.tanh() ** 2"})
def back_through_gate(d_h: Tensor, z: Tensor, n: Tensor, before: Tensor) -> Tensor:
    """The numbers z, n and the state before are enough. Nothing else of this line must be kept."""
    return torch.stack([d_h * (before - n) * z * (1 - z), d_h * (1 - z) * (1 - n * n), d_h * z])
