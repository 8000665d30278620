"""Exercises of notebook 11: the cost of a frame, a reference point that knows one frame, and the cost of independence.

Wang et al. (2019), R-Transformer, Table 2; Boulanger-Lewandowski et al. (2012).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, binary_cross_entropy_with_logits, one_hot

from rtx.lab.exercises.exercise import Exercise


def _notes(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the NLL of each note, (T, 88)."""
    return binary_cross_entropy_with_logits(logits, targets, reduction="none")


def _frames() -> list[tuple[Tensor, Tensor]]:
    """Return small logits, ordinary ones, and some so large that exp overflows and 1 - sigmoid is 0."""
    draw = torch.Generator().manual_seed(0)
    small, ordinary = torch.rand(3, 88, generator=draw), 2 * torch.randn(5, 88, generator=draw)
    sounds = [(torch.rand(z.shape, generator=draw) < 0.2).float() for z in (small, ordinary, ordinary)]
    return list(zip((small, ordinary, 100 * ordinary), sounds, strict=True))


nll_per_frame = Exercise(
    cases=_frames,
    solution=lambda logits, targets: _notes(logits, targets).sum(1).mean(),
    bugs={
        "mean over keys: the NLL of a frame is the sum over its 88 keys": lambda z, y: _notes(z, y).mean(),
        "sum over frames: take the mean, or longer tunes cost more": lambda z, y: _notes(z, y).sum(),
        "this is a softmax over keys: each key has its own sigmoid": lambda z, y: -(y * z.log_softmax(1)).sum(1).mean(),
        "sigmoid twice: the loss with_logits applies it itself": lambda z, y: _notes(z.sigmoid(), y).sum(1).mean(),
        "only the notes that sound are counted: count silent keys, too": lambda z, y: (y * _notes(z, y)).sum(1).mean(),
        "right for small logits; for large ones 1 - sigmoid(z) is 0, its log infinite: use logsigmoid(-z)": (
            lambda z, y: -(y * z.sigmoid().log() + (1 - y) * (1 - z.sigmoid()).log()).sum(1).mean()
        ),
        "right for small logits; binary_cross_entropy cuts log p off at -100: use the one with_logits": (
            lambda z, y: 88 * binary_cross_entropy(z.sigmoid(), y)
        ),
        "right for small logits; for large ones exp(z) is infinite: use softplus(z), not log(1 + exp(z))": (
            lambda z, y: (z.exp().log1p() - z * y).sum(1).mean()
        ),
    },
    praise="a sum over keys, a mean over frames, from logits of any size",
)


def _pairs() -> list[tuple[Tensor, Tensor]]:
    """Return frames and the frames after them. Some keys never sound, and a case has as many keys as frames."""
    draw = torch.Generator().manual_seed(0)
    cases = []
    for frames, keys in ((12, 5), (7, 7)):
        before = (torch.rand(frames, keys, generator=draw) < 0.5).float()
        after = torch.where(torch.rand(frames, keys, generator=draw) < 0.7, before, 1 - before)
        before[:, 0] = after[:, 0] = 0
        cases.append((before, after))
    return cases


def _shares(
    share: Callable[[Tensor, Tensor], Tensor] = lambda n, c: (n + 0.5) / (c + 1),
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return both rows for another share of n in c."""
    return lambda before, after: torch.stack([share((was * after).sum(0), was.sum(0)) for was in (1 - before, before)])


_markov = _shares()
markov_per_key = Exercise(
    cases=_pairs,
    solution=_markov,
    bugs={
        "the rows are swapped: row 0 is for a key that was silent before": lambda b, a: _markov(b, a).flip(0),
        "a key that never sounds gives 0/0: add ½ above and 1 below": _shares(lambda n, c: n / c),
        "the ½ is there, but not the 1 below: then a share can exceed 1": _shares(lambda n, c: (n + 0.5) / c),
        "divided by all frames: divide by those in which the key was silent, or sounding, before": (
            lambda b, a: _shares(lambda n, c: (n + 0.5) / (len(a) + 1))(b, a)
        ),
        "row 0 says how often a silent key stays silent: both rows say how often it sounds next": (
            lambda b, a: torch.stack([1 - _markov(b, a)[0], _markov(b, a)[1]])
        ),
    },
    praise="two numbers for each key: it knows that notes are held, and nothing else",
)


def _observed() -> list[tuple[Tensor]]:
    """Return frames seen after one past: two chords, three frames that repeat, and one key at a time."""
    two = torch.tensor([[1.0, 1, 0, 1, 0], [1, 0, 1, 0, 1]])
    three = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 0]])[[0, 0, 0, 1, 1, 2]]
    return [(two,), (three,), (one_hot(torch.tensor([0, 1, 2, 2, 2]), 3).float(),)]


def _apart(frames: Tensor, p_log_p: Callable[[Tensor, Tensor], Tensor] = torch.xlogy) -> Tensor:
    p = frames.mean(0)
    return -(p_log_p(p, p) + p_log_p(1 - p, 1 - p)).sum()


def _together(frames: Tensor) -> Tensor:
    share = frames.unique(dim=0, return_counts=True)[1] / len(frames)
    return -torch.xlogy(share, share).sum()


independence_gap = Exercise(
    cases=_observed,
    solution=lambda frames: _apart(frames) - _together(frames),
    bugs={
        "0 · log 0 is NaN here: use torch.xlogy(p, p), which gives 0": lambda frames: (
            _apart(frames, lambda p, q: p * q.log()) - _together(frames)
        ),
        "only p log p is counted: a key that stays silent costs something, too": (
            lambda frames: -torch.xlogy(frames.mean(0), frames.mean(0)).sum() - _together(frames)
        ),
        "these are the nats of independent keys: subtract those of whole frames": _apart,
        "every row counts as a frame of its own: join equal rows": (
            lambda frames: _apart(frames) - math.log(len(frames))
        ),
        "equal rows were thrown away: they say how probable a frame is": (
            lambda frames: _apart(frames.unique(dim=0)) - _together(frames.unique(dim=0))
        ),
    },
    praise="independent keys never cost less than whole frames; the gap is what the keys know of each other",
)
