"""Exercise of notebook 11: the negative log-likelihood of piano-roll frames.

Wang et al. (2019), R-Transformer, Table 2; Boulanger-Lewandowski et al. (2012).
"""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, binary_cross_entropy_with_logits

from rtx.lab.exercises.exercise import Exercise


def _notes(logits: Tensor, targets: Tensor) -> Tensor:
    """Each note's NLL, (T, 88)."""
    return binary_cross_entropy_with_logits(logits, targets, reduction="none")


def _frames() -> list[tuple[Tensor, Tensor]]:
    """Small logits, ordinary ones, and some so large that exp overflows and 1 - sigmoid is 0."""
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
        "mean over notes: the NLL of a frame is the sum over its 88 notes": lambda z, y: _notes(z, y).mean(),
        "sum over frames: take the mean, or longer tunes cost more": lambda z, y: _notes(z, y).sum(),
        "mean over notes and sum over frames: it is the other way round": lambda z, y: _notes(z, y).mean(1).sum(),
        "one number per frame: the mean over frames is missing": lambda z, y: _notes(z, y).sum(1),
        "the sign is flipped: this is the log-likelihood": lambda z, y: -_notes(z, y).sum(1).mean(),
        "the sigmoid is missing: logits are no probabilities": _from_probability,
        "sigmoid twice: binary_cross_entropy_with_logits applies it itself": (
            lambda z, y: _notes(z.sigmoid(), y).sum(1).mean()
        ),
        "only the notes that sound are counted: a note that keeps silent has a probability, too": (
            lambda z, y: (y * _notes(z, y)).sum(1).mean()
        ),
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
    praise="a sum over notes, a mean over frames, from logits of any size",
)
