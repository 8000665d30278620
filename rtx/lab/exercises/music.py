"""Exercises of notebook 11: the cost of a frame, a reference point that knows one frame, and the cost of independence.

Wang et al. (2019), R-Transformer, Table 2; Boulanger-Lewandowski et al. (2012).
"""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rtx.lab.exercises.exercise import bug, exercise


def _frames() -> list[tuple[Tensor, Tensor]]:
    """Return small logits, ordinary ones, and some so large that exp overflows and 1 - sigmoid is 0."""
    small, ordinary = torch.rand(3, 88), 2 * torch.randn(5, 88)
    return [(logits, (torch.rand(logits.shape) < 0.2).float()) for logits in (small, ordinary, 100 * ordinary)]


@exercise(_frames)
@bug("mean over keys: the NLL of a frame is the sum over its 88 keys", {".sum(1)": ""})
@bug("sum over frames: take the mean, or longer tunes cost more", {".mean()": ".sum()"})
@bug("this is a softmax over keys: each key has its own sigmoid", lambda z, y: -(y * z.log_softmax(1)).sum(1).mean())
@bug("sigmoid twice: the loss with_logits applies it itself", {"(logits, ": "(logits.sigmoid(), "})
@bug(
    "right for small logits; for large ones 1 - sigmoid(z) is 0, its log infinite: use logsigmoid(-z)",
    lambda z, y: -(y * z.sigmoid().log() + (1 - y) * (1 - z.sigmoid()).log()).sum(1).mean(),
)
@bug("only the notes that sound are counted: count silent keys, too", {".sum(1)": ".mul(targets).sum(1)"})
def nll_per_frame(logits: Tensor, targets: Tensor) -> Tensor:
    """This is a sum over keys and a mean over frames, from logits of any size."""
    return binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(1).mean()


def _pairs() -> list[tuple[Tensor, Tensor]]:
    """Return frames and the frames after them. A key never sounds, and a case has as many keys as frames."""
    tune = (torch.rand(12, 5) < 0.5).float()
    tune[:, 0] = 0
    return [(tune[:-1], tune[1:]), (tune[:5], tune[1:6])]


@exercise(_pairs)
@bug("the rows are swapped: row 0 is for a key that was silent", {"(1 - before, before)": "(before, 1 - before)"})
@bug("a key that never sounds gives 0/0: add ½ above and 1 below", {" + 0.5": "", " + 1)": ")"})
@bug("divide by the frames in which the key was silent, or sounding, before", {"was.sum(0) + 1": "len(was) + 1"})
@bug("row 0 says how often it stays silent: say how often it sounds", {"(rows)": "([1 - rows[0], rows[1]])"})
def markov_per_key(before: Tensor, after: Tensor) -> Tensor:
    """The model has two numbers for each key. It knows that notes are held, and nothing else."""
    rows = [((was * after).sum(0) + 0.5) / (was.sum(0) + 1) for was in (1 - before, before)]
    return torch.stack(rows)


def _observed() -> list[tuple[Tensor]]:
    """Return frames seen after one past: two chords, and three frames that repeat."""
    two = torch.tensor([[1.0, 1, 0, 1, 0], [1, 0, 1, 0, 1]])
    three = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 0]])[[0, 0, 0, 1, 1, 2]]
    return [(two,), (three,)]


@exercise(_observed)
@bug("0 · log 0 is NaN here: torch.xlogy(p, p) gives 0", {"torch.xlogy(both, both)": "(both * both.log())"})
@bug("only p log p is counted: a key that stays silent costs something, too", {"[p, 1 - p]": "[p]"})
@bug("these are the nats of independent keys: subtract those of whole frames", {" - together": ""})
@bug("equal rows were dropped: they say how likely a frame is", {"p = frames": "p = (frames := frames.unique(dim=0))"})
def independence_gap(frames: Tensor) -> Tensor:
    """Independent keys never cost less than whole frames. The gap is what the keys know of each other."""
    p = frames.mean(0)
    both = torch.stack([p, 1 - p])  # the probabilities of a note and of silence
    apart = -torch.xlogy(both, both).sum()
    share = frames.unique(dim=0, return_counts=True)[1] / len(frames)
    together = -torch.xlogy(share, share).sum()
    return apart - together
