"""Checks of notebook 10: pixels in another order, and accuracy over the pixels read so far.

Le, Jaitly & Hinton (2015) for the permuted digits.
"""

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _images() -> list[tuple[Tensor, Tensor]]:
    """x (B, T, 1) and an order (T,); B = T in the second case, so that a wrong axis raises nothing."""
    draw = torch.Generator().manual_seed(0)
    return [(torch.rand(b, t, 1, generator=draw), torch.randperm(t, generator=draw)) for b, t in ((3, 9), (16, 16))]


def _own_order_each(x: Tensor, order: Tensor) -> Tensor:
    return torch.stack([image[order.roll(i)] for i, image in enumerate(x)])


reordered = Exercise(
    cases=_images,
    solution=lambda x, order: x[:, order],
    bugs={
        "this is the inverse: order[i] says which pixel is read at step i, not when pixel i is read": (
            lambda x, order: x[:, order.argsort()]
        ),
        "every image got an order of its own: then no place means anything": _own_order_each,
        "the images were reordered, not their pixels": lambda x, order: x[order % len(x)],
        "nothing was reordered": lambda x, order: x,
    },
    praise="one order for all images: every pixel still has its step, but neighbours are torn apart",
)


def _answers() -> list[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    return [
        (torch.randn(b, t, 10, generator=draw), torch.randint(10, (b,), generator=draw)) for b, t in ((6, 4), (5, 5))
    ]


def _right(logits: Tensor, labels: Tensor) -> Tensor:
    return (logits.argmax(-1) == labels[:, None]).float()


accuracy_so_far = Exercise(
    cases=_answers,
    solution=lambda logits, labels: 100 * _right(logits, labels).mean(0),
    bugs={
        "a share, not a percentage: multiply by 100": lambda logits, labels: _right(logits, labels).mean(0),
        "averaged over time: one number for each image": lambda logits, labels: 100 * _right(logits, labels).mean(1),
        "averaged over images and time: the curve is lost": lambda logits, labels: 100 * _right(logits, labels).mean(),
        "this is the share of errors": lambda logits, labels: 100 - 100 * _right(logits, labels).mean(0),
        "only the last step is scored": lambda logits, labels: 100 * _right(logits, labels)[:, -1].mean(),
    },
    praise="one number for each step: what the model knew by then",
)
