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


def _own(logits: Tensor, targets: Tensor, axis: int = -1) -> Tensor:
    """The probabilities of the characters that are scored."""
    scored = targets != IGNORED
    return logits.softmax(axis)[scored].gather(1, targets[scored][:, None])


bits_per_character = Exercise(
    cases=_logits,
    solution=lambda logits, targets: _nats(logits, targets) / math.log(2),
    bugs={
        "these are nats: divide by the natural logarithm of 2": _nats,
        "a bit is 0.69 nats, so there are more bits than nats: divide by the logarithm of 2": (
            lambda z, y: _nats(z, y) * math.log(2)
        ),
        "this divides by the logarithm of 2 to base 10: cross_entropy uses the natural one, `math.log(2)`": (
            lambda z, y: _nats(z, y) / math.log10(2)
        ),
        "this is the binary logarithm of the mean: take the mean in nats, and divide it by ln 2": (
            lambda z, y: _nats(z, y).log2()
        ),
        "this is a perplexity: its binary logarithm is the number of bits": lambda z, y: _nats(z, y).exp(),
        "this is 2 to the power of nats: neither bits nor a perplexity": lambda z, y: 2 ** _nats(z, y),
        "the sign is missing: a probability below 1 has a negative logarithm": lambda z, y: -_nats(z, y) / math.log(2),
        "a sum: these are the bits of the whole text, not per character": (
            lambda z, y: _nats(z, y, "sum") / math.log(2)
        ),
        "context is counted among the characters: divide by the number of those that are scored": (
            lambda z, y: _nats(z, y, "sum") / len(y) / math.log(2)
        ),
        "context is scored as if it were symbol 0: leave the rows with target -100 out": (
            lambda z, y: cross_entropy(z, y.clamp(min=0)) / math.log(2)
        ),
        "softmax twice: cross_entropy applies it itself": lambda z, y: _nats(z.softmax(-1), y) / math.log(2),
        "the softmax is missing: logits are no probabilities": (
            lambda z, y: -z[y != IGNORED].gather(1, y[y != IGNORED][:, None]).mean() / math.log(2)
        ),
        "the softmax is over the wrong axis: each row has V logits, which become probabilities with sum 1": (
            lambda z, y: -_own(z, y, 0).log2().mean()
        ),
        "this is the logarithm of the mean probability: take the logarithms first, then their mean": (
            lambda z, y: -_own(z, y).mean().log2()
        ),
        "logits and targets are shifted against each other: row t already belongs to target t": (
            lambda z, y: _nats(z[:-1], y[1:]) / math.log(2)
        ),
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
        "these are nats: use log2": lambda train, test, V: _bits(_rows(_counts(train, V) + 1), test) * math.log(2),
        "the sign is missing: a probability below 1 has a negative logarithm": (
            lambda train, test, V: -_bits(_rows(_counts(train, V) + 1), test)
        ),
        "this is a perplexity: its binary logarithm is the number of bits": (
            lambda train, test, V: 2 ** _bits(_rows(_counts(train, V) + 1), test)
        ),
        "a softmax of counts: divide each row by its sum instead": (
            lambda train, test, V: _bits(_counts(train, V).softmax(1), test)
        ),
        "one is added only where a count is zero: add it to every count": (
            lambda train, test, V: _bits(_rows(_counts(train, V).clamp(min=1)), test)
        ),
        "this adds 0.1 to each count: the exercise asks for 1": (
            lambda train, test, V: _bits(_rows(_counts(train, V) + 0.1), test)
        ),
        "the last symbol and the first one are counted as a pair: `roll` goes round in a circle": (
            lambda train, test, V: _bits(_rows(_counts(torch.cat([train, train[:1]]), V) + 1), test)
        ),
        "this is the logarithm of the mean probability: take the logarithms first, then their mean": (
            lambda train, test, V: -_rows(_counts(train, V) + 1)[test[:-1], test[1:]].mean().log2()
        ),
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
        "zeros and ones, not truth values: `p[mask]` would take the tokens 0 and 1. Compare, and keep True and False": (
            lambda p, reach: _kept(p, reach).long()
        ),
        "floats: a mask has truth values. Compare, and keep True and False": lambda p, reach: _kept(p, reach).float(),
        "a threshold of 1 - share for single probabilities: it is their sum that has to reach the share": (
            lambda p, reach: p >= 1 - reach
        ),
        "this compares with the largest probability: it is the sum that has to reach the share": (
            lambda p, reach: p >= reach * p.max()
        ),
        "the mask is inverted: True is for what is kept": lambda p, reach: ~_kept(p, reach),
        "not sorted: the nucleus takes the likeliest first": lambda p, reach: _kept(p, reach, order=False),
        "the unlikeliest first: sort in descending order": lambda p, reach: _kept(p, reach, descending=False),
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
    weigh: Callable[[int, int, int, float], float],
    unseen: Callable[[float, int], float] = lambda shorter, V: shorter,
    shorten: Callable[[str], str] = lambda context: context[1:],
    last: Callable[[int], float] = lambda V: 1 / V,
) -> Callable[[Follow, str, str, int], float]:
    """Return an answer that weighs a count, all counts, the number of different symbols, and the shorter p."""

    def p(follow: Follow, context: str, symbol: str, V: int) -> float:
        shorter = p(follow, shorten(context), symbol, V) if context else last(V)
        seen = follow(context)
        return weigh(seen[symbol], sum(seen.values()), len(seen), shorter) if seen else unseen(shorter, V)

    return p


def _witten_bell(count: int, n: int, kinds: int, shorter: float) -> float:
    return (count + kinds * shorter) / (n + kinds)


def _one_step(follow: Follow, context: str, symbol: str, V: int) -> float:
    every = follow("")
    unigram = every[symbol] / sum(every.values())
    seen = follow(context)
    return _witten_bell(seen[symbol], sum(seen.values()), len(seen), unigram) if seen else unigram


backed_off = Exercise(
    cases=_contexts,
    solution=_mixed(_witten_bell),
    bugs={
        "the newest symbol is dropped: the shorter context lacks the oldest, `context[1:]`": _mixed(
            _witten_bell, shorten=lambda context: context[:-1]
        ),
        "a symbol that never followed this context gets 0, and costs infinitely many bits: mix in the shorter one": (
            _mixed(lambda count, n, kinds, shorter: count / n)
        ),
        "the shorter context is used only where the count is 0: then the probabilities have a sum above 1": _mixed(
            lambda count, n, kinds, shorter: count / n if count else shorter
        ),
        "the shorter context always weighs 1: its weight is the number of different symbols that followed": _mixed(
            lambda count, n, kinds, shorter: (count + shorter) / (n + 1)
        ),
        "the shorter context weighs as much as all counts: its weight is the number of different symbols": _mixed(
            lambda count, n, kinds, shorter: (count + n * shorter) / (2 * n)
        ),
        "the shorter context weighs V: its weight is the number of different symbols that followed": (
            lambda f, c, s, V: _mixed(lambda count, n, kinds, shorter: (count + V * shorter) / (n + V))(f, c, s, V)
        ),
        "the two weights are exchanged: the counts weigh n, the shorter context weighs d": _mixed(
            lambda count, n, kinds, shorter: (kinds * count / n + n * shorter) / (n + kinds)
        ),
        "divided by n alone: the weights n and d need the sum n + d below the line": _mixed(
            lambda count, n, kinds, shorter: (count + kinds * shorter) / n
        ),
        "the shorter context is not multiplied by d": _mixed(
            lambda count, n, kinds, shorter: (count + shorter) / (n + kinds)
        ),
        "one is added to each count: that is the bigram's rule, and it forgets the shorter context": (
            lambda f, c, s, V: (f(c)[s] + 1) / (sum(f(c).values()) + V)
        ),
        "after a context that was never seen, use the shorter context, not 1 / V": _mixed(
            _witten_bell, unseen=lambda shorter, V: 1 / V
        ),
        "the empty context is not mixed with 1 / V: a symbol that training never showed gets 0": _mixed(
            _witten_bell, last=lambda V: 0.0
        ),
        "from the whole context straight to the empty one: drop one symbol at a time": _one_step,
        "these are bits: return the probability": lambda f, c, s, V: -math.log2(_mixed(_witten_bell)(f, c, s, V)),
    },
    praise="long contexts where training has them, shorter ones where it has not",
)
