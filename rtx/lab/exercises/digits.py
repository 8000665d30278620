"""Exercises of notebook 10: an interval for an accuracy, pixels in another order, and two models on the same images.

Wilson (1927) for the interval, McNemar (1947) for the comparison, Le, Jaitly & Hinton (2015) for the permuted digits.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise

Part = Callable[[float, int, float], float]


def _interval(
    centre: Part = lambda p, n, z: (p + z**2 / (2 * n)) / (1 + z**2 / n),
    half: Part = lambda p, n, z: z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n),
) -> Callable[[int, int, float], Tensor]:
    """Return Wilson's interval with one part changed."""

    def interval(right: int, total: int, z: float) -> Tensor:
        p = right / total
        middle, width = centre(p, total, z), half(p, total, z)
        return torch.tensor([middle - width, middle + width])

    return interval


wilson = Exercise(
    cases=lambda: [(9, 10, 1.96), (10, 10, 1.96), (0, 7, 1.96), (60, 80, 2.5)],
    solution=_interval(),
    bugs={
        "this is p ± z·√(p(1−p)/n): its width is 0 if all answers are right; use Wilson's formula": _interval(
            lambda p, n, z: p, lambda p, n, z: z * math.sqrt(p * (1 - p) / n)
        ),
        "the centre is not shifted: add z²/2n to p and divide by 1 + z²/n": _interval(lambda p, n, z: p),
        "the half-width has z²/4n under the root: n is squared there": _interval(
            half=lambda p, n, z: z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n)) / (1 + z**2 / n)
        ),
        "the centre is not divided by 1 + z²/n": _interval(lambda p, n, z: p + z**2 / (2 * n)),
        "the half-width is not divided by 1 + z²/n": _interval(
            half=lambda p, n, z: z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        ),
    },
    praise="the interval has a width even if all answers are right, and stays between 0 and 1",
)


def _images() -> list[tuple[Tensor, Tensor]]:
    """Return x (B, T, 1) and an order (T,). B = T in the second case, so that a wrong axis raises nothing."""
    draw = torch.Generator().manual_seed(0)
    return [(torch.rand(b, t, 1, generator=draw), torch.randperm(t, generator=draw)) for b, t in ((3, 9), (16, 16))]


reordered = Exercise(
    cases=_images,
    solution=lambda x, order: x[:, order],
    bugs={
        "this is the inverse: order[i] says which pixel is read at step i": lambda x, order: x[:, order.argsort()],
        "the images were reordered, not their pixels: pixels are the second axis": lambda x, order: x[order % len(x)],
    },
    praise="one order for all images: each step still has its pixel, but neighbours are torn apart",
)


def _answers() -> list[tuple[Tensor, Tensor]]:
    """Return which images each of two models names rightly. Counts: both, only the first, only the second, neither."""
    cases = []
    for counts in ((9, 2, 7, 3), (1, 9, 1, 0), (5, 3, 3, 1), (8, 0, 0, 2), (3, 0, 5, 6)):
        a, b = (
            torch.cat([torch.full((count,), answer) for count, answer in zip(counts, pattern, strict=True)])
            for pattern in ((True, True, False, False), (True, False, True, False))
        )
        cases.append((a, b))
    return cases


def _only(a: Tensor, b: Tensor) -> tuple[int, int]:
    """Return how many images only the first, and only the second model names rightly."""
    return int((a & ~b).sum()), int((~a & b).sum())


def _tail(least: int, n: int) -> float:
    """Return the probability of at least so many heads in n throws of a coin."""
    return sum(math.comb(n, i) for i in range(max(least, 0), n + 1)) / 2**n


def _sign_test(
    counts: Callable[[Tensor, Tensor], tuple[int, int]] = _only,
    start: Callable[[int, int], int] = max,
    throws: Callable[[int, int], int] = lambda differing, images: differing,
    factor: int = 2,
    limit: float = 1.0,
) -> Callable[[Tensor, Tensor], float]:
    """Return the test with one thing changed."""

    def p(a: Tensor, b: Tensor) -> float:
        one, other = counts(a, b)
        return min(limit, factor * _tail(start(one, other), throws(one + other, len(a))))

    return p


paired_p = Exercise(
    cases=_answers,
    solution=_sign_test(),
    bugs={
        "this is one-sided: double it, because either model could have been ahead": _sign_test(factor=1),
        "a probability is at most 1: take the smaller of 1 and the doubled tail": _sign_test(limit=2),
        "the tail starts one too late: *at least* as many belongs to it": _sign_test(
            start=lambda one, other: max(one, other) + 1
        ),
        "only the first model may be ahead: start from the larger number": _sign_test(start=lambda one, other: one),
        "all images were thrown as coins: count only those where the models disagree": _sign_test(
            throws=lambda differing, images: images
        ),
        "all right answers were counted: count only images that one model names rightly and the other does not": (
            _sign_test(counts=lambda a, b: (int(a.sum()), int(b.sum())))
        ),
    },
    praise="images on which both models agree say nothing about which one is better",
)
