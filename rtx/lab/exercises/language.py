"""Checks of notebook 13: bits per character, a bigram model, counts that use shorter contexts, and the nucleus.

Holtzman et al. (2020), The Curious Case of Neural Text Degeneration, §3.1 (nucleus). Bell, Cleary & Witten (1990), Text
Compression, and Chen & Goodman (1999), An Empirical Study of Smoothing Techniques for Language Modeling
(`backed_off`, Witten-Bell smoothing).
"""

import math
from collections import Counter
from collections.abc import Callable

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
        "a bit is 0.69 nats, so there are more bits than nats: divide by ln 2": lambda z, y: _nats(z, y) * math.log(2),
        "this is a perplexity: its binary logarithm is the number of bits": lambda z, y: _nats(z, y).exp(),
        "a sum: these are the bits of the text, not per character": lambda z, y: _nats(z, y, "sum") / math.log(2),
        "context is counted, too: divide by the number of characters that are scored": (
            lambda z, y: _nats(z, y, "sum") / len(y) / math.log(2)
        ),
        "softmax twice: cross_entropy applies it itself": lambda z, y: _nats(z.softmax(-1), y) / math.log(2),
    },
    praise="the mean of -log₂ p over the characters that are scored",
)


def _texts() -> list[tuple[Tensor, Tensor, int]]:
    """Of V symbols, the training text lacks one. The other text has the last symbol of training before its first."""
    draw, texts = torch.Generator().manual_seed(0), []
    for n, m, V in ((40, 15, 4), (60, 25, 6)):
        train, other = torch.randint(V - 1, (n,), generator=draw), torch.randint(V, (m,), generator=draw)
        texts.append((train, torch.cat([train[-1:], train[:1], other]), V))
    return texts


def _counts(text: Tensor, V: int) -> Tensor:
    pairs = torch.zeros(V, V, dtype=torch.double)
    pairs.index_put_((text[:-1], text[1:]), torch.ones(len(text) - 1, dtype=torch.double), accumulate=True)
    return pairs


def _bigram(
    counts: Callable[[Tensor, Tensor, int], Tensor] = lambda train, test, V: _counts(train, V),
    sums: Callable[[Tensor, Tensor], Tensor] = lambda table, train: table.sum(1, keepdim=True),
) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Return the bits of a bigram model with one thing changed."""

    def bits(train: Tensor, test: Tensor, V: int) -> Tensor:
        table = counts(train, test, V) + 1
        p = table / sums(table, train)
        return -p[test[:-1], test[1:]].log2().mean()

    return bits


bigram_bits = Exercise(
    cases=_texts,
    solution=_bigram(),
    bugs={
        "a pair is counted once, however often it comes: `counts[a, b] += 1` does that; try bincount": _bigram(
            lambda train, test, V: (_counts(train, V) > 0).double()
        ),
        "one is added to all V counts of a row, so its sum grows by V": _bigram(
            sums=lambda table, train: (table - 1).sum(1, keepdim=True) + 1
        ),
        "the table is transposed: counts[this, next]": _bigram(lambda train, test, V: _counts(train, V).T),
        "each sum divides a column: use sum(1, keepdim=True)": _bigram(sums=lambda table, train: table.sum(1)),
        "the last symbol of the training text has none behind it: divide by the counts of its pairs alone": _bigram(
            sums=lambda table, train: (torch.bincount(train, minlength=len(table)) + len(table))[:, None]
        ),
        "divided by the sum of all, so this is p(this, next): divide each row by its own sum": _bigram(
            sums=lambda table, train: table.sum()
        ),
        "these are nats: use log2": lambda *given: _bigram()(*given) * math.log(2),
        "divided by all symbols: the first has none before it, so there is one pair fewer": (
            lambda train, test, V: _bigram()(train, test, V) * (len(test) - 1) / len(test)
        ),
    },
    praise="a table of counts is a language model, and one that a network has to beat",
)


def _distributions() -> list[tuple[Tensor, float]]:
    p = torch.tensor([0.05, 0.4, 0.15, 0.3, 0.1])
    halves = torch.tensor([0.125, 0.5, 0.125, 0.25])  # sums without rounding: two of them are 0.75
    return [(p, 0.5), (p, 0.69), (p, 0.9), (p, 1.0), (torch.tensor([0.6, 0.3, 0.1]), 0.5), (halves, 0.75)]


def _kept(p: Tensor, share: float, before: bool = True) -> Tensor:
    """Return the tokens for which the sum of the likelier ones, or their own sum with them, is below the share."""
    ranked, tokens = p.sort(descending=True)
    sums = ranked.double().cumsum(0) - (ranked.double() if before else 0)
    return torch.zeros(len(p), dtype=torch.bool).scatter(0, tokens, sums < share - 1e-6)


def _in_sorted_order(p: Tensor, share: float) -> Tensor:
    return _kept(p, share)[p.argsort(descending=True)]


nucleus = Exercise(
    cases=_distributions,
    solution=lambda p, share: _kept(p, share),
    bugs={
        "the token that crosses the line belongs to the nucleus: without it the share is not reached": (
            lambda p, share: _kept(p, share, before=False)
        ),
        "the token that crosses the line belongs to the nucleus: ask what those before it come to": (
            lambda p, share: _kept(p, share + 2e-6, before=False)  # a sum that equals the share is kept here
        ),
        "one too many where a sum is just the share: it is reached there": lambda p, share: _kept(p, share + 2e-6),
        "a threshold for single probabilities: their sum has to reach the share": lambda p, share: p >= share,
        "in the order of `sort`: each token's place in the mask is the one that it has in p": _in_sorted_order,
        "put back the wrong way: with order = p.argsort(…), it is mask[order] = kept, not kept[order]": (
            lambda p, share: _in_sorted_order(p, share)[p.argsort(descending=True)]
        ),
        "zeros and ones, not truth values: p[mask] would take tokens 0 and 1": lambda p, share: _kept(p, share).long(),
    },
    praise="the fewest likeliest tokens that together reach the share; how many, the model decides",
)


def _followers(text: str) -> Callable[[str], Counter[str]]:
    """Return a function: context → how often each symbol followed it. Contexts have up to three symbols."""
    places = [(i, i + length) for length in range(4) for i in range(len(text) - length)]
    return lambda context: Counter(text[end] for start, end in places if text[start:end] == context)


def _contexts() -> list[tuple[Callable[[str], Counter[str]], str, str, int]]:
    follow = _followers("abracadabra")
    asked = (("", "b"), ("a", "b"), ("a", "r"), ("bra", "c"), ("abr", "b"), ("zab", "r"), ("da", "z"), ("zz", "a"))
    return [(follow, context, symbol, 6) for context, symbol in asked]


Follow = Callable[[str], Counter[str]]


def _mixed(
    weigh: Callable[[int, int, int, float], float] = lambda count, n, d, shorter: (count + d * shorter) / (n + d),
    unseen: Callable[[float, int], float] = lambda shorter, V: shorter,
    shorten: Callable[[str], str] = lambda context: context[1:],
) -> Callable[[Follow, str, str, int], float]:
    """Return Witten-Bell smoothing with one thing changed. `d` is the number of different symbols."""

    def p(follow: Follow, context: str, symbol: str, V: int) -> float:
        shorter = p(follow, shorten(context), symbol, V) if context else 1 / V
        seen = follow(context)
        return weigh(seen[symbol], sum(seen.values()), len(seen), shorter) if seen else unseen(shorter, V)

    return p


backed_off = Exercise(
    cases=_contexts,
    solution=_mixed(),
    bugs={
        "the newest symbol is dropped: drop the oldest, `context[1:]`": _mixed(shorten=lambda context: context[:-1]),
        "an unseen symbol gets 0: mix in the shorter context": _mixed(lambda count, n, d, shorter: count / n),
        "the shorter context is used only where the count is 0: then the probabilities have a sum above 1": _mixed(
            lambda count, n, d, shorter: count / n if count else shorter
        ),
        "the shorter context is not multiplied by d": _mixed(lambda count, n, d, shorter: (count + shorter) / (n + d)),
        "after a context that is new, use the shorter context, not 1 / V": _mixed(unseen=lambda shorter, V: 1 / V),
    },
    praise="long contexts where training has them, shorter ones where it has not",
)
