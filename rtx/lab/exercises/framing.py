"""Exercises of notebook 01: inputs and targets of a text, a baseline of frequencies, and gradients by distance."""

from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _texts() -> list[tuple[Tensor]]:
    return [(torch.tensor([3, 1, 4, 1, 5, 9, 2]),), (torch.tensor([2, 7, 1, 8]),)]


def _pair(inputs: Tensor, targets: Tensor) -> Tensor:
    return torch.stack([inputs, targets])


next_tokens = Exercise(
    cases=_texts,
    solution=lambda tokens: _pair(tokens[:-1], tokens[1:]),
    bugs={
        "the target is the input itself: a model that copies is perfect": lambda tokens: _pair(tokens, tokens),
        "inputs and targets are swapped: that predicts the token before": lambda tokens: _pair(tokens[1:], tokens[:-1]),
        "rolled: the last target is the text's first token": lambda tokens: _pair(tokens, tokens.roll(-1)),
        "the last target is made up: the text's last token has no next one": lambda tokens: _pair(
            tokens, torch.cat([tokens[1:], tokens.new_zeros(1)])
        ),
        "floats cannot be looked up: tokens are whole numbers": lambda tokens: _pair(tokens[:-1], tokens[1:]).float(),
    },
    praise="each token is a question, and the next one its answer",
)


def _bits(
    start: int = 1,
    over: Callable[[Tensor, Tensor], Tensor] = lambda counts, train: counts.sum(),
    unit: Callable[[Tensor], Tensor] = torch.log2,
    end: Callable[[Tensor], Tensor] = lambda bits: bits.mean(),
) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Return the bits per character with one thing changed."""

    def bits(train: Tensor, test: Tensor, V: int) -> Tensor:
        counts = torch.bincount(train, minlength=V) + start
        return end(-unit(counts / over(counts, train))[test])

    return bits


def _letters() -> list[tuple[Tensor, Tensor, int]]:
    draw = torch.Generator().manual_seed(0)
    long = torch.randint(5, (60,), generator=draw) * torch.randint(2, (60,), generator=draw)
    return [(torch.tensor([0, 1, 1, 3]), torch.tensor([1, 2, 0]), 4), (long, long[:7] + 1, 8)]


unigram_bits = Exercise(
    cases=_letters,
    solution=_bits(),
    bugs={
        "a character that the training text lacks has an infinite cost: add 1 to each count": _bits(start=0),
        "the probabilities do not sum to 1: divide by the sum of the counts with the added ones": _bits(
            over=lambda counts, train: torch.tensor(len(train))
        ),
        "these are nats: bits use log2": _bits(unit=torch.log),
        "this is the sum over the text: per character means its mean": _bits(end=lambda bits: bits.sum()),
        "you counted the scored text: the model must not know it": lambda train, test, V: _bits()(test, test, V),
        "these are bits of the mean probability: take the logarithm first, then the mean": lambda train, test, V: (
            -((torch.bincount(train, minlength=V) + 1) / (len(train) + V))[test].mean().log2()
        ),
    },
    praise="the mean of -log2 p, with frequencies from the training text",
)


Model = Callable[[Tensor], Tensor]


def _leaky(x: Tensor) -> Tensor:
    """Return causal sums, in which later inputs have more weight."""
    kept = 0.7 ** torch.arange(x.shape[1], dtype=x.dtype).flip(0)
    return torch.tanh((x * kept[:, None]).cumsum(1)) * 2


def _gradients() -> list[tuple[Model, Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    shapes = ((3, 5, 2), (2, 4, 3))
    drawn = [(torch.randn(B, T, D, generator=draw), torch.randn(B, D, generator=draw)) for B, T, D in shapes]
    return [(_leaky, x, weights) for x, weights in drawn]


def _gradient(
    scalar: Callable[[Tensor, Tensor], Tensor] = lambda y, weights: (y[:, -1] * weights).sum(),
    size: Callable[[Tensor], Tensor] = lambda g: g.square().sum(-1).mean(0).sqrt(),
    order: Callable[[Tensor], Tensor] = lambda sizes: sizes.flip(0),
) -> Callable[[Model, Tensor, Tensor], Tensor]:
    """Return the size of the gradient by distance with one thing changed."""

    def by_distance(model: Model, x: Tensor, weights: Tensor) -> Tensor:
        x = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(scalar(model(x), weights), x)
        return order(size(gradient))

    return by_distance


gradient_by_distance = Exercise(
    cases=_gradients,
    solution=_gradient(),
    bugs={
        "the order is reversed: distance 0 is the last position": _gradient(order=lambda sizes: sizes),
        "this sums all outputs: take y[:, -1] only": _gradient(lambda y, weights: (y * weights[:, None]).sum()),
        "numbers of different sign cancel: square before you add": _gradient(size=lambda g: g.sum(-1).mean(0).abs()),
        "the square root is missing": _gradient(size=lambda g: g.square().sum(-1).mean(0)),
        "take the mean over the sequences; you summed": _gradient(size=lambda g: g.square().sum(-1).sum(0).sqrt()),
        "average the squares over the sequences, then take the root; you averaged the roots": _gradient(
            size=lambda g: g.square().sum(-1).sqrt().mean(0)
        ),
    },
    praise="one backward pass gives the gradient at all distances",
)
