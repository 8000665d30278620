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


def _from_probability(p: Tensor, targets: Tensor) -> Tensor:
    return -(targets * p.log() + (1 - targets) * (1 - p).log()).sum(1).mean()


nll_per_frame = Exercise(
    cases=_frames,
    solution=lambda logits, targets: _notes(logits, targets).sum(1).mean(),
    bugs={
        "mean over keys: the NLL of a frame is the sum over its 88 keys": lambda z, y: _notes(z, y).mean(),
        "sum over frames: take the mean, or longer tunes cost more": lambda z, y: _notes(z, y).sum(),
        "mean over keys and sum over frames: it is the other way round": lambda z, y: _notes(z, y).mean(1).sum(),
        "one number per frame: the mean over frames is missing": lambda z, y: _notes(z, y).sum(1),
        "one number per key: the sum over keys is missing": lambda z, y: _notes(z, y).mean(0),
        "divided by the number of notes that sound: divide by the number of frames": (
            lambda z, y: _notes(z, y).sum() / y.sum()
        ),
        "the sign is flipped: this is the log-likelihood": lambda z, y: -_notes(z, y).sum(1).mean(),
        "these are bits, of the logarithm to base 2: nats have the natural logarithm": (
            lambda z, y: _notes(z, y).sum(1).mean() / math.log(2)
        ),
        "this is a softmax over the keys, as if one key sounded at a time: each key has its own sigmoid": (
            lambda z, y: -(y * z.log_softmax(1)).sum(1).mean()
        ),
        "the probabilities are a softmax over the keys, so they sum to 1: each key has its own sigmoid": (
            lambda z, y: -(y * z.log_softmax(1) + (1 - y) * (-z.softmax(1)).log1p()).sum(1).mean()
        ),
        "the sigmoid is missing: logits are no probabilities": _from_probability,
        "sigmoid twice: binary_cross_entropy_with_logits applies it itself": (
            lambda z, y: _notes(z.sigmoid(), y).sum(1).mean()
        ),
        "only the notes that sound are counted: a key that is silent has a probability, too": (
            lambda z, y: (y * _notes(z, y)).sum(1).mean()
        ),
        "only the silent keys are counted: the notes that sound cost something, too": (
            lambda z, y: ((1 - y) * _notes(z, y)).sum(1).mean()
        ),
        "the targets are the wrong way round: a key with target 1 costs -log p": (
            lambda z, y: _notes(z, 1 - y).sum(1).mean()
        ),
        "this is the perplexity: leave out the exponential": lambda z, y: _notes(z, y).sum(1).mean().exp(),
        "right for small logits; for large ones 1 - sigmoid(z) is 0, its log infinite: use logsigmoid(-z)": (
            lambda z, y: _from_probability(z.sigmoid(), y)
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


def _count(was: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each key how often it was so and then sounded, and how often it was so."""
    return (was * after).sum(0), was.sum(0)


def _rows(
    share: Callable[[Tensor, Tensor], Tensor] = lambda n, of: (n + 0.5) / (of + 1),
    count: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = _count,
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function that computes both rows, with one part changed."""
    return lambda before, after: torch.stack([share(*count(was, after)) for was in (1 - before, before)])


_markov = _rows()
markov_per_key = Exercise(
    cases=_pairs,
    solution=_markov,
    bugs={
        "the rows are swapped: row 0 is for a key that was silent before": lambda b, a: _markov(b, a).flip(0),
        "this has a row for each key: row 0 is for silent before, row 1 for sounding before": (
            lambda b, a: _markov(b, a).T
        ),
        "before and after are swapped: the past is given, the next frame is predicted": lambda b, a: _markov(a, b),
        "a key that never sounds gives 0/0: add ½ above and 1 below": _rows(lambda n, of: n / of),
        "the ½ is there, but not the 1 below: then a share can exceed 1": _rows(lambda n, of: (n + 0.5) / of),
        "the 1 below is there, but not the ½ above: then a share can be 0": _rows(lambda n, of: n / (of + 1)),
        "you added 1 above and 2 below: here it is ½ and 1": _rows(lambda n, of: (n + 1) / (of + 2)),
        "divided by all frames: divide by those in which the key was silent, or sounding, before": (
            lambda b, a: torch.stack([(((was * a).sum(0)) + 0.5) / (len(a) + 1) for was in (1 - b, b)])
        ),
        "row 0 says how often a silent key stays silent: both rows say how often it sounds next": (
            lambda b, a: torch.stack([1 - _markov(b, a)[0], _markov(b, a)[1]])
        ),
        "these are the shares of silence: say how often the key sounds": lambda b, a: 1 - _markov(b, a),
        "the frame before is not used: both rows are the marginal": (
            lambda b, a: ((a.sum(0) + 0.5) / (len(a) + 1)).expand(2, -1)
        ),
        "one number for all keys: each key has its own shares": _rows(
            lambda n, of: ((n.sum() + 0.5) / (of.sum() + 1)).expand(len(n))
        ),
        "counted over keys: count over frames, the first axis": _rows(
            count=lambda was, after: ((was * after).sum(1), was.sum(1))
        ),
        "these are counts: divide them": _rows(lambda n, of: n),
    },
    praise="two numbers for each key: it knows that notes are held, and nothing else",
)


def _observed() -> list[tuple[Tensor]]:
    """Return frames seen after one past: two chords, three frames that repeat, and one key at a time."""
    two = torch.tensor([[1.0, 1, 0, 1, 0], [1, 0, 1, 0, 1]])
    three = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 0]])[[0, 0, 0, 1, 1, 2]]
    return [(two,), (three,), (one_hot(torch.tensor([0, 1, 2, 2, 2]), 3).float(),)]


def _entropy(p: Tensor) -> Tensor:
    """Return the nats of each on-or-off choice."""
    return -torch.xlogy(p, p) - torch.xlogy(1 - p, 1 - p)


def _apart(frames: Tensor) -> Tensor:
    return _entropy(frames.mean(0)).sum()


def _together(frames: Tensor) -> Tensor:
    share = frames.unique(dim=0, return_counts=True)[1] / len(frames)
    return -torch.xlogy(share, share).sum()


independence_gap = Exercise(
    cases=_observed,
    solution=lambda frames: _apart(frames) - _together(frames),
    bugs={
        "0 · log 0 is NaN here: use torch.xlogy(p, p), which gives 0": lambda frames: (
            -(frames.mean(0) * frames.mean(0).log() + (1 - frames.mean(0)) * (1 - frames.mean(0)).log()).sum()
            - _together(frames)
        ),
        "only p log p is counted: a key that stays silent costs something, too": (
            lambda frames: -torch.xlogy(frames.mean(0), frames.mean(0)).sum() - _together(frames)
        ),
        "the sign is flipped: independent keys cost more": lambda frames: _together(frames) - _apart(frames),
        "these are the nats of independent keys: subtract those of whole frames": _apart,
        "these are the nats of whole frames: subtract them from those of independent keys": _together,
        "the two costs are added: their difference is asked for": lambda frames: _apart(frames) + _together(frames),
        "this is a ratio: subtract": lambda frames: _apart(frames) / _together(frames),
        "these are bits, of the logarithm to base 2: nats have the natural logarithm": (
            lambda frames: (_apart(frames) - _together(frames)) / math.log(2)
        ),
        "mean over keys: a frame costs the sum over its keys": (
            lambda frames: _entropy(frames.mean(0)).mean() - _together(frames)
        ),
        "all different frames count alike: a frame that is seen more often is more probable": (
            lambda frames: _apart(frames) - math.log(len(frames.unique(dim=0)))
        ),
        "every row counts as a frame of its own: equal rows are one frame, seen more often": (
            lambda frames: _apart(frames) - math.log(len(frames))
        ),
        "equal rows were thrown away: they say how probable a frame is": (
            lambda frames: _apart(frames.unique(dim=0)) - _together(frames.unique(dim=0))
        ),
    },
    praise="independent keys never cost less than whole frames; the gap is what the keys know of each other",
)
