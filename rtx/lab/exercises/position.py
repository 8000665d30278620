"""Exercises of notebook 05: scores with clipped distances, Transformer-XL's score, and rotations.

Shaw et al. (2018), Eq. 3-5; Dai et al. (2019), §3.3; Su et al. (2021), RoFormer, §3.2.
"""

import math

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import bug, exercise


@exercise(lambda: [(torch.randn(6, 9), torch.randn(6, 9), torch.randn(5, 9), 2)])
@bug("the sign is wrong: a key in the past has a negative distance", {"(t - t[:, None])": "(t[:, None] - t)"})
@bug("add clip: a negative index counts from the end", {" + clip": ""})
@bug("the sign of the distance is lost: past and future have different vectors", {".clamp": ".abs().clamp"})
@bug("the factor 1/√K is missing", {" / math.sqrt(q.shape[1])": ""})
@bug("only the second product is scaled: put brackets around the sum", {"(q @ k.T + places)": "q @ k.T + places"})
def shaw_scores(q: Tensor, k: Tensor, table: Tensor, clip: int) -> Tensor:
    """Every key has a score, however far away it is. The 2 clip + 1 vectors serve any length."""
    t = torch.arange(len(q))
    rows = (t - t[:, None]).clamp(-clip, clip) + clip
    places = (table[rows] @ q[:, :, None])[..., 0]  # (T, T): a row for each query, a column for each key
    return (q @ k.T + places) / math.sqrt(q.shape[1])


@exercise(lambda: [tuple(torch.randn(5, K)) for K in (4, 9)])
@bug("u and v are swapped: u meets k, v meets r", {"q + u": "q + v", "(q + v) @ r": "(q + u) @ r"})
@bug("only the second half is scaled: put brackets around the sum", {"((q": "(q", "@ r)": "@ r"})
@bug("the factor 1/√K is missing", {" / math.sqrt(len(q))": ""})
@bug("the vectors u and v are missing: these are (a) and (b) only", {"(q + u)": "q", "(q + v)": "q"})
@bug("u · r and v · k were added: u meets only k, v only r", {"(q + u) @ k + (q + v) @ r": "(q + u + v) @ (k + r)"})
def xl_score(q: Tensor, k: Tensor, r: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Two products contain all four terms."""
    return ((q + u) @ k + (q + v) @ r) / math.sqrt(len(q))


@exercise(lambda: [(torch.randn(4, 6), 0), (torch.randn(3, 4), 5)])
@bug("you rotated the other way: the minus belongs to the even number", {"- b * sin, a": "+ b * sin, -a"})
@bug("the even number was replaced early: the odd one needs its old value", {"a * sin": "(a * cos - b * sin) * sin"})
@bug(
    "you paired number i with number i + K/2, as some libraries do; here 2i and 2i + 1 are a pair",
    {"::2], x[:, 1::2]": ": K // 2], x[:, K // 2 :]", "stack(turned, -1).flatten(1)": "cat(turned, 1)"},
)
@bug("start is not used", {"start + ": ""})
@bug("the exponent lacks its factor 2: pair i has the rate 10000^(-2i/K)", {"(0, K, 2)": "(K // 2)"})
def rotated(x: Tensor, start: int = 0) -> Tensor:
    """Each pair keeps its length and turns by an angle that grows with the position."""
    T, K = x.shape
    angles = (start + torch.arange(T))[:, None] * 10_000.0 ** (-torch.arange(0, K, 2) / K)
    cos, sin, a, b = angles.cos(), angles.sin(), x[:, ::2], x[:, 1::2]
    turned = a * cos - b * sin, a * sin + b * cos
    return torch.stack(turned, -1).flatten(1)
