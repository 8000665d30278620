"""Exercises of notebook 13: bits per character, a bigram model, counts that use shorter contexts, and the nucleus.

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

from rtx.lab.exercises.exercise import bug, exercise

Follow = Callable[[str], Counter[str]]


def _logits() -> list[tuple[Tensor, Tensor]]:
    """Return logits (N, V) and targets, the first two of which are context."""
    cases = [(3 * torch.randn(N, V), torch.randint(V, (N,))) for N, V in ((6, 4), (9, 30))]
    for _, targets in cases:
        targets[:2] = -100
    return cases


@exercise(_logits)
@bug("these are nats: divide by the natural logarithm of 2", {" / math.log(2)": ""})
@bug("a sum: these are the bits of the text, not per character", {"=-100)": '=-100, reduction="sum")'})
@bug("divide by the number of scored characters, not of all", {"=-100)": '=-100, reduction="sum") / len(targets)'})
@bug("softmax twice: cross_entropy applies it itself", {"(logits, ": "(logits.softmax(-1), "})
def bits_per_character(logits: Tensor, targets: Tensor) -> Tensor:
    """This is the mean of -log₂ p over the characters that are scored."""
    return cross_entropy(logits, targets, ignore_index=-100) / math.log(2)


def _texts() -> list[tuple[Tensor, Tensor, int]]:
    """Of V symbols, the training text lacks one. The other text has the last symbol of training before its first."""
    drawn = [(torch.randint(V - 1, (n,)), torch.randint(V, (m,)), V) for n, m, V in ((40, 15, 4), (60, 25, 6))]
    return [(train, torch.cat([train[-1:], train[:1], other]), V) for train, other, V in drawn]


@exercise(_texts)
@bug("`counts[a, b] += 1` counts a repeated pair once: try bincount", {".view(V, V)": ".view(V, V).clamp(max=1)"})
@bug("one is added to all V counts of a row, so its sum grows by V", {"keepdim=True)": "keepdim=True).sub(V - 1)"})
@bug("each sum divides a column: use sum(1, keepdim=True)", {"sum(1, keepdim=True)": "sum(1)"})
@bug("this is p(this, next): divide each row by its own sum", {"sum(1, keepdim=True)": "sum()"})
@bug("these are nats: use log2", {"log2": "log"})
def bigram_bits(train: Tensor, test: Tensor, V: int) -> Tensor:
    """A table of counts is a language model, and one that a network has to beat."""
    counts = torch.bincount(train[:-1] * V + train[1:], minlength=V * V).view(V, V) + 1.0
    p = counts / counts.sum(1, keepdim=True)
    return -p[test[:-1], test[1:]].log2().mean()


def _distributions() -> list[tuple[Tensor, float]]:
    p = torch.tensor([0.05, 0.4, 0.15, 0.3, 0.1])
    halves = torch.tensor([0.125, 0.5, 0.125, 0.25])  # sums without rounding: two of them are 0.75
    return [(p, 0.5), (p, 0.69), (p, 0.9), (p, 1.0), (torch.tensor([0.6, 0.3, 0.1]), 0.5), (halves, 0.75)]


@exercise(_distributions)
@bug("the token that crosses the line belongs, too: sum those before", {" - ranked": "", "- 1e-6": "+ 1e-6"})
@bug("a threshold for single probabilities: their sum has to reach the share", lambda p, share: p >= share)
@bug("in the order of `sort`: put each token back in its place", {"kept.scatter(0, tokens, inside)": "inside"})
@bug("put back wrongly: mask[order] = kept, not kept[order]", {"kept.scatter(0, tokens, inside)": "inside[tokens]"})
def nucleus(p: Tensor, share: float) -> Tensor:
    """These are the fewest likeliest tokens that together reach the share. The model decides how many they are."""
    ranked, tokens = p.double().sort(descending=True)
    inside = ranked.cumsum(0) - ranked < share - 1e-6
    kept = torch.zeros_like(inside)
    return kept.scatter(0, tokens, inside)


def _followers(text: str) -> Follow:
    """Return a function: context → how often each symbol followed it. Contexts have up to three symbols."""
    places = [(i, i + length) for length in range(4) for i in range(len(text) - length)]
    return lambda context: Counter(text[end] for start, end in places if text[start:end] == context)


def _contexts() -> list[tuple[Follow, str, str, int]]:
    asked = (("", "b"), ("a", "b"), ("a", "r"), ("bra", "c"), ("abr", "b"), ("zab", "r"), ("da", "z"), ("zz", "a"))
    return [(_followers("abracadabra"), context, symbol, 6) for context, symbol in asked]


@exercise(_contexts)
@bug("drop the oldest symbol, not the newest: `context[1:]`", {"context[start:]": "context[: len(context) - start]"})
@bug("always mix in the shorter context, or p adds up to over 1", {" + d * p) / (n + d) if n": ") / n if seen[symbol]"})
@bug("the shorter context is not multiplied by d", {"d * p": "p"})
@bug("after a context that is new, use the shorter context, not 1 / V", {"else p": "else 1 / V"})
@bug("an unseen symbol gets 0: mix in the shorter context", {" + d * p) / (n + d)": ") / n"})
def backed_off(follow: Follow, context: str, symbol: str, V: int) -> float:
    """Long contexts count where training has them, and shorter ones where it has not."""
    p = 1 / V
    for start in range(len(context), -1, -1):  # from the shortest context to the longest
        seen = follow(context[start:])
        n, d = sum(seen.values()), len(seen)
        p = (seen[symbol] + d * p) / (n + d) if n else p
    return p
