"""Checks of notebook 13: bits per character, a bigram model by counting, and the nucleus of a distribution.

Holtzman et al. (2020), The Curious Case of Neural Text Degeneration, §3.1 (nucleus).
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from rtx.lab.exercises.exercise import Exercise

IGNORED = -100


def _logits() -> list[tuple[Tensor, Tensor]]:
    """Logits (N, V) and targets, the first two of which are context."""
    draw = torch.Generator().manual_seed(0)
    made = []
    for rows, symbols in ((6, 4), (9, 30)):
        targets = torch.randint(symbols, (rows,), generator=draw)
        targets[:2] = IGNORED
        made.append((3 * torch.randn(rows, symbols, generator=draw), targets))
    return made


def _nats(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    return cross_entropy(logits, targets, reduction=reduction, ignore_index=IGNORED)


bits_per_character = Exercise(
    cases=_logits,
    solution=lambda logits, targets: _nats(logits, targets) / math.log(2),
    bugs={
        "these are nats: divide by the natural logarithm of 2": _nats,
        "the logarithm of 2 belongs below the line: a bit is 0.69 nats, so there are more bits": (
            lambda z, y: _nats(z, y) * math.log(2)
        ),
        "this is a perplexity: its binary logarithm are the bits": lambda z, y: _nats(z, y).exp(),
        "a sum: bits of the whole text, not per character": lambda z, y: _nats(z, y, "sum") / math.log(2),
        "context is counted among the characters: divide by those that are scored": (
            lambda z, y: _nats(z, y, "sum") / len(y) / math.log(2)
        ),
        "softmax twice: cross_entropy applies it itself": lambda z, y: _nats(z.softmax(-1), y) / math.log(2),
        "the softmax is missing: logits are no probabilities": (
            lambda z, y: -z[y != IGNORED].gather(1, y[y != IGNORED][:, None]).mean() / math.log(2)
        ),
    },
    praise="the mean of -log₂ p over the characters that are scored",
)


def _texts() -> list[tuple[Tensor, Tensor, int]]:
    """Of V symbols, the training text lacks one."""
    draw = torch.Generator().manual_seed(0)
    sizes = ((40, 15, 4), (60, 25, 6))
    return [
        (torch.randint(V - 1, (n,), generator=draw), torch.randint(V, (m,), generator=draw), V) for n, m, V in sizes
    ]


def _counts(text: Tensor, V: int) -> Tensor:
    pairs = torch.zeros(V, V, dtype=torch.double)
    pairs.index_put_((text[:-1], text[1:]), torch.ones(len(text) - 1, dtype=torch.double), accumulate=True)
    return pairs


def _counted_once(text: Tensor, V: int) -> Tensor:
    """As `counts[a, b] += 1` does with tensors a and b."""
    return (_counts(text, V) > 0).double()


def _bits(p: Tensor, test: Tensor) -> Tensor:
    return -p[test[:-1], test[1:]].log2().mean()


def _rows(counts: Tensor) -> Tensor:
    return counts / counts.sum(1, keepdim=True)


bigram_bits = Exercise(
    cases=_texts,
    solution=lambda train, test, V: _bits(_rows(_counts(train, V) + 1), test),
    bugs={
        "nothing is added to the counts: a pair that was never seen costs infinitely many bits": (
            lambda train, test, V: _bits(_rows(_counts(train, V)), test)
        ),
        "a pair is counted once, however often it comes: `counts[a, b] += 1` does that; try bincount": (
            lambda train, test, V: _bits(_rows(_counted_once(train, V) + 1), test)
        ),
        "one is added to all V counts of a row, so its sum grows by V": (
            lambda train, test, V: _bits((_counts(train, V) + 1) / (_counts(train, V).sum(1, keepdim=True) + 1), test)
        ),
        "the table is read the wrong way round: p[this, next], as counts[this, next]": (
            lambda train, test, V: _bits(_rows(_counts(train, V) + 1).T, test)
        ),
        "the table says what stands before, not what comes next: counts[this, next]": (
            lambda train, test, V: _bits(_rows(_counts(train, V).T + 1), test)
        ),
        "counted on the text that is scored: that is looking at the answers": (
            lambda train, test, V: _bits(_rows(_counts(test, V) + 1), test)
        ),
        "counted on the text that is scored, too: that is looking at the answers": (
            lambda train, test, V: _bits(_rows(_counts(train, V) + _counts(test, V) + 1), test)
        ),
        "counted on both texts as one: the text that is scored tells its own pairs": (
            lambda train, test, V: _bits(_rows(_counts(torch.cat([train, test]), V) + 1), test)
        ),
        "divided by the sums of the columns: p(next | this) sums to 1 over the next": (
            lambda train, test, V: _bits((_counts(train, V) + 1) / (_counts(train, V) + 1).sum(0), test)
        ),
        "each sum divides a column: the sums of the rows have to keep their axis, sum(1, keepdim=True)": (
            lambda train, test, V: _bits((_counts(train, V) + 1) / (_counts(train, V) + 1).sum(1), test)
        ),
        "the last symbol of the training text has none behind it: divide by the counts of its pairs alone": (
            lambda train, test, V: _bits(
                (_counts(train, V) + 1) / (torch.bincount(train, minlength=V)[:, None] + V), test
            )
        ),
        "divided by the sum of all: that is p(this, next), not p(next | this)": (
            lambda train, test, V: _bits((_counts(train, V) + 1) / (_counts(train, V) + 1).sum(), test)
        ),
        "this is the unigram: what stands before is not used": (
            lambda train, test, V: _bits(
                _rows(torch.bincount(train, minlength=V).double() + 1 + torch.zeros(V, 1)), test
            )
        ),
        "these are nats": lambda train, test, V: _bits(_rows(_counts(train, V) + 1), test) * math.log(2),
        "divided by all symbols: the first has none before it, so there is one pair fewer": (
            lambda train, test, V: _bits(_rows(_counts(train, V) + 1), test) * (len(test) - 1) / len(test)
        ),
        "a sum over the text: take the mean": (
            lambda train, test, V: _bits(_rows(_counts(train, V) + 1), test) * (len(test) - 1)
        ),
    },
    praise="a table of counts is a language model, and one that a network has to beat",
)


def _distributions() -> list[tuple[Tensor, float]]:
    p = torch.tensor([0.05, 0.4, 0.15, 0.3, 0.1])
    halves = torch.tensor([0.125, 0.5, 0.125, 0.25])  # sums without rounding: two of them are 0.75
    return [(p, 0.5), (p, 0.69), (p, 0.9), (p, 1.0), (torch.tensor([0.6, 0.3, 0.1]), 0.5), (halves, 0.75)]


def _kept(p: Tensor, reach: float, before: bool = True, order: bool = True, descending: bool = True) -> Tensor:
    ranked, tokens = p.sort(descending=descending) if order else (p, torch.arange(len(p)))
    sums = ranked.double().cumsum(0) - (ranked.double() if before else 0)
    return torch.zeros(len(p), dtype=torch.bool).scatter(0, tokens, sums < reach - 1e-6)


def _in_sorted_order(p: Tensor, reach: float) -> Tensor:
    return _kept(p, reach)[p.argsort(descending=True)]


nucleus = Exercise(
    cases=_distributions,
    solution=lambda p, share: _kept(p, share),
    bugs={
        "the token that crosses the line belongs to the nucleus: without it the share is not reached": (
            lambda p, reach: _kept(p, reach, before=False)
        ),
        "the token that crosses the line belongs to the nucleus: ask what those before it come to": (
            lambda p, reach: _kept(p, reach + 2e-6, before=False)  # a sum that equals the share is kept here
        ),
        "the token that crosses the line belongs to the nucleus wherever it stands, not as the first one only": (
            lambda p, reach: _kept(p, reach + 2e-6, before=False) | (p == p.max())
        ),
        "one too many where a sum is just the share: it is reached there, so ask whether those before are below it": (
            lambda p, reach: _kept(p, reach + 2e-6)
        ),
        "a threshold for single probabilities: it is their sum that has to reach the share": lambda p, reach: (
            p >= reach
        ),
        "in the order of `sort`: each token's place in the mask is the one that it has in p": _in_sorted_order,
        "put back the wrong way: with order = p.argsort(…), it is mask[order] = kept, not kept[order]": (
            lambda p, reach: _in_sorted_order(p, reach)[p.argsort(descending=True)]
        ),
        "these are probabilities: a mask says which are kept, True or False": lambda p, reach: p * _kept(p, reach),
        "the mask is inverted: True is for what is kept": lambda p, reach: ~_kept(p, reach),
        "not sorted: the nucleus takes the likeliest first": lambda p, reach: _kept(p, reach, order=False),
        "the unlikeliest first: sort in descending order": lambda p, reach: _kept(p, reach, descending=False),
    },
    praise="the fewest likeliest tokens that together reach the share; how many, the model decides",
)
