"""Exercises of notebook 01: inputs and targets of a text, a baseline of frequencies, and gradients by distance."""

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Layer, bug, exercise


@exercise(lambda: [(torch.tensor([3, 1, 4, 1, 5, 9, 2]),), (torch.tensor([2, 7, 1, 8]),)])
@bug("the target is the input itself: a model that copies is perfect", {"[:-1]": "", "[1:]": ""})
@bug("inputs and targets are swapped: that predicts the token before", {"[:-1], tokens[1:]": "[1:], tokens[:-1]"})
@bug("rolled: the last target is the text's first token", {"[:-1]": "", "[1:]": ".roll(-1)"})
def next_tokens(tokens: Tensor) -> Tensor:
    """Each token is a question, and the next one its answer."""
    return torch.stack([tokens[:-1], tokens[1:]])


def _letters() -> list[tuple[Tensor, Tensor, int]]:
    long = torch.randint(5, (60,)) * torch.randint(2, (60,))
    return [(torch.tensor([0, 1, 1, 3]), torch.tensor([1, 2, 0]), 4), (long, long[:7] + 1, 8)]


@exercise(_letters)
@bug("a character that the training text lacks has an infinite cost: add 1 to each count", {" + 1": ""})
@bug("the probabilities do not sum to 1: divide by the sum of the new counts", {"counts.sum()": "len(train)"})
@bug("these are nats: bits use log2", {"log2": "log"})
@bug("you counted the scored text: the model must not know it", {"bincount(train": "bincount(test"})
@bug("this is the log of the mean probability: take the logarithm first", {"log2().mean()": "mean().log2()"})
@bug("this is the sum over the text: per character means its mean", {".mean()": ".sum()"})
def unigram_bits(train: Tensor, test: Tensor, V: int) -> Tensor:
    """This is the mean of -log2 p, with frequencies from the training text."""
    counts = torch.bincount(train, minlength=V) + 1
    return -(counts / counts.sum())[test].log2().mean()


def _leaky(x: Tensor) -> Tensor:
    """Return causal sums, in which later inputs have more weight."""
    kept = 0.7 ** torch.arange(x.shape[1], dtype=x.dtype).flip(0)
    return torch.tanh((x * kept[:, None]).cumsum(1)) * 2


@exercise(lambda: [(_leaky, torch.randn(B, T, D), torch.randn(B, D)) for B, T, D in ((3, 5, 2), (2, 4, 3))])
@bug("the order is reversed: distance 0 is the last position", {".flip(0)": ""})
@bug("this sums all outputs: take y[:, -1] only", {"model(x)[:, -1] * weights": "model(x) * weights[:, None]"})
@bug("numbers of different sign cancel: square before you add", {".square()": "", ".sqrt()": ".abs()"})
@bug("take the mean over the sequences; you summed", {".mean(0)": ".sum(0)"})
def gradient_by_distance(model: Layer, x: Tensor, weights: Tensor) -> Tensor:
    """One backward pass gives the gradient at all distances."""
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad((model(x)[:, -1] * weights).sum(), x)
    return gradient.square().sum(-1).mean(0).sqrt().flip(0)
