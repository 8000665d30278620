"""Exercises of notebook 10: an interval for an accuracy, pixels in another order, and two models on the same images.

Wilson (1927) for the interval, McNemar (1947) for the comparison, Le, Jaitly & Hinton (2015) for the permuted digits.
"""

import math

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import bug, exercise


@exercise(lambda: [(9, 10, 1.96), (10, 10, 1.96), (0, 7, 1.96), (60, 80, 2.5)])
@bug("this is p ± z·√(p(1−p)/n): its width is 0 if all answers are right; use Wilson's formula", {"z**2": "0"})
@bug("the centre is not shifted: add z²/2n to p and divide by 1 + z²/n", {"(p + z**2 / (2 * total)) / stretch": "p"})
@bug("the half-width has z²/4n under the root: n is squared there", {"total**2": "total"})
def wilson(right: int, total: int, z: float) -> Tensor:
    """The interval has a width even if all answers are right, and stays between 0 and 1."""
    p, stretch = right / total, 1 + z**2 / total
    centre = (p + z**2 / (2 * total)) / stretch
    half = z * math.sqrt(p * (1 - p) / total + z**2 / (4 * total**2)) / stretch
    return torch.tensor([centre - half, centre + half])


# B = T in the second case, so that a wrong axis raises nothing
@exercise(lambda: [(torch.rand(B, T, 1), torch.randperm(T)) for B, T in ((3, 9), (16, 16))])
@bug("this is the inverse: order[i] says which pixel is read at step i", {"order]": "order.argsort()]"})
@bug("the images were reordered, not their pixels: pixels are the second axis", {"x[:, order]": "x[order % len(x)]"})
def reordered(x: Tensor, order: Tensor) -> Tensor:
    """All images have one order. Each step still has its pixel, but neighbours are torn apart."""
    return x[:, order]


def _answers() -> list[tuple[Tensor, Tensor]]:
    """Return which images each of two models names rightly. Counts: both, only the first, only the second, neither."""
    counts = ((9, 2, 7, 3), (1, 9, 1, 0), (5, 3, 3, 1), (8, 0, 0, 2), (3, 0, 5, 6))
    a, b = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    return [(a.repeat_interleave(torch.tensor(n)), b.repeat_interleave(torch.tensor(n))) for n in counts]


@exercise(_answers)
@bug("this is one-sided: double it, because either model could have been ahead", {"2 * tail": "tail"})
@bug("a probability is at most 1: take the smaller of 1 and the doubled tail", {"1.0, ": "2.0, "})
@bug("the tail starts one too late: *at least* as many belongs to it", {"range(": "range(1 + "})
@bug("only the first model may be ahead: start from the larger number", {"max(one, other)": "one"})
@bug("all images were thrown as coins: count only those where the models disagree", {"one + other": "len(a)"})
def paired_p(a: Tensor, b: Tensor) -> float:
    """Images on which both models agree say nothing about which one is better."""
    one, other = int((a & ~b).sum()), int((~a & b).sum())
    n = one + other
    tail = sum(math.comb(n, i) for i in range(max(one, other), n + 1)) / 2**n
    return min(1.0, 2 * tail)
