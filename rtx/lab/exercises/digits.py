"""Exercises of notebook 10: an interval for an accuracy, pixels in another order, and two models on the same images.

Wilson (1927) for the interval, McNemar (1947) for the comparison, Le, Jaitly & Hinton (2015) for the permuted digits.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise

Interval = Callable[[int, int, float], Tensor]


def _interval(
    centre: Callable[[float, int, float], float] = lambda p, n, z: (p + z**2 / (2 * n)) / (1 + z**2 / n),
    half: Callable[[float, int, float], float] = lambda p, n, z: (
        z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    ),
) -> Interval:
    """Return a function that computes an interval of shares, with one part changed."""

    def interval(right: int, total: int, z: float) -> Tensor:
        p = right / total
        middle, width = centre(p, total, z), half(p, total, z)
        return torch.tensor([middle - width, middle + width])

    return interval


def _share(p: float, n: int, z: float) -> float:
    return p


def _simple(p: float, n: int, z: float) -> float:
    return z * math.sqrt(p * (1 - p) / n)


_wilson = _interval()
wilson = Exercise(
    cases=lambda: [(9, 10, 1.96), (10, 10, 1.96), (0, 7, 1.96), (60, 80, 2.5)],
    solution=_wilson,
    bugs={
        "this is p ± z·√(p(1−p)/n): its width is 0 if all answers are right; use Wilson's formula": (
            _interval(_share, _simple)
        ),
        "this is p ± z·√(p(1−p)/n), cut off at 0 and 1: its width is 0 if all answers are right": (
            lambda right, total, z: _interval(_share, _simple)(right, total, z).clamp(0, 1)
        ),
        "this is p ± one standard error: use Wilson's formula, with z": (
            _interval(_share, lambda p, n, z: _simple(p, n, 1.0))
        ),
        "the centre is not shifted: add z²/2n to p and divide by 1 + z²/n": _interval(_share),
        "the half-width lacks z²/4n² under the root": _interval(half=lambda p, n, z: _simple(p, n, z) / (1 + z**2 / n)),
        "the half-width has z²/4n under the root: n is squared there": _interval(
            half=lambda p, n, z: z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n)) / (1 + z**2 / n)
        ),
        "the half-width lacks its factor z": _interval(
            half=lambda p, n, z: math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        ),
        "the root is missing": _interval(
            half=lambda p, n, z: z * (p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        ),
        "the centre is not divided by 1 + z²/n": _interval(lambda p, n, z: p + z**2 / (2 * n)),
        "the half-width is not divided by 1 + z²/n": _interval(
            half=lambda p, n, z: z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        ),
        "neither centre nor half-width is divided by 1 + z²/n": _interval(
            lambda p, n, z: p + z**2 / (2 * n), lambda p, n, z: z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        ),
        "the centre has z²/n: half of it is added": _interval(lambda p, n, z: (p + z**2 / n) / (1 + z**2 / n)),
        "the centre is shifted the wrong way: z²/2n is added": _interval(
            lambda p, n, z: (p - z**2 / (2 * n)) / (1 + z**2 / n)
        ),
        "these are percentages: return shares between 0 and 1": lambda right, total, z: 100 * _wilson(right, total, z),
        "these are numbers of images: return shares between 0 and 1": (
            lambda right, total, z: total * _wilson(right, total, z)
        ),
        "the lower end comes first": lambda right, total, z: _wilson(right, total, z).flip(0),
        "this is the interval of the errors: count the right answers": (
            lambda right, total, z: _wilson(total - right, total, z)
        ),
    },
    praise="the interval has a width even if all answers are right, and stays between 0 and 1",
)


def _images() -> list[tuple[Tensor, Tensor]]:
    """Return x (B, T, 1) and an order (T,). B = T in the second case, so that a wrong axis raises nothing."""
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
        "every image got an order of its own: then no step means anything": _own_order_each,
        "the images were reordered, not their pixels: pixels are counted by the second axis": (
            lambda x, order: x[order % len(x)]
        ),
        "nothing was reordered": lambda x, order: x,
        "the pixels were reversed: use `order`": lambda x, order: x.flip(1),
        "the order was applied twice": lambda x, order: x[:, order][:, order],
        "the last axis is missing: keep (B, T, 1)": lambda x, order: x[:, order, 0],
        "only the first image was reordered": lambda x, order: torch.cat([x[:1, order], x[1:]]),
        "only the first image came back": lambda x, order: x[0, order],
        "this is read from the last step to the first": lambda x, order: x[:, order.flip(0)],
        "the pixels were shifted by order[0]: read pixel order[i] at step i": (
            lambda x, order: x.roll(-int(order[0]), 1)
        ),
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


def _sign_test(a: Tensor, b: Tensor) -> float:
    one, other = _only(a, b)
    return min(1.0, 2 * _tail(max(one, other), one + other))


paired_p = Exercise(
    cases=_answers,
    solution=_sign_test,
    bugs={
        "this is one-sided: double it, because either model could have been ahead": (
            lambda a, b: _tail(max(_only(a, b)), sum(_only(a, b)))
        ),
        "a probability is at most 1: take the smaller of 1 and the doubled tail": (
            lambda a, b: 2 * _tail(max(_only(a, b)), sum(_only(a, b)))
        ),
        "the tail starts one too late: *at least* as many belongs to it": (
            lambda a, b: min(1.0, 2 * _tail(max(_only(a, b)) + 1, sum(_only(a, b))))
        ),
        "this is the probability of exactly so many: add the more extreme numbers": (
            lambda a, b: min(1.0, 2 * math.comb(sum(_only(a, b)), max(_only(a, b))) / 2 ** sum(_only(a, b)))
        ),
        "this is the wrong tail: start from the larger of the two numbers": (
            lambda a, b: min(1.0, 2 * _tail(min(_only(a, b)), sum(_only(a, b))))
        ),
        "only the first model may be ahead here: start from the larger of the two numbers": (
            lambda a, b: min(1.0, 2 * _tail(_only(a, b)[0], sum(_only(a, b))))
        ),
        "only the second model may be ahead here: start from the larger of the two numbers": (
            lambda a, b: min(1.0, 2 * _tail(_only(a, b)[1], sum(_only(a, b))))
        ),
        "all images were thrown as coins: count only those where the models disagree": (
            lambda a, b: min(1.0, 2 * _tail(max(_only(a, b)), len(a)))
        ),
        "all right answers were counted: count only images that one model names rightly and the other does not": (
            lambda a, b: min(1.0, 2 * _tail(max(int(a.sum()), int(b.sum())), int(a.sum() + b.sum())))
        ),
        "images with the same answer were counted: count those where the models disagree": (
            lambda a, b: min(1.0, 2 * _tail(max(_only(a, ~b)), sum(_only(a, ~b))))
        ),
        "this is the opposite probability: subtract it from 1": lambda a, b: 1 - _sign_test(a, b),
        "this is the approximation by a normal distribution: count the throws exactly": (
            lambda a, b: math.erfc(abs(_only(a, b)[0] - _only(a, b)[1]) / math.sqrt(2 * max(sum(_only(a, b)), 1)))
        ),
        "this compares the two shares as if they were of different images: use the images where the models disagree": (
            lambda a, b: math.erfc(
                abs(float(a.float().mean() - b.float().mean()))
                / math.sqrt(2 * float((a.float().var(correction=0) + b.float().var(correction=0)) / len(a)))
            )
        ),
    },
    praise="images on which both models agree say nothing about which one is better",
)
