"""The locality dial: half of a text's symbols follow from the few before, half from what came at its beginning.

The task is ours. R-Transformer's claim is that local structure needs one tool, a recurrent network in a window, and
long recall needs another, attention. Here each has a strength that you can turn, and the best possible loss is known.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rtx.checks import check_seed, check_whole, is_number
from rtx.tasks.losses import scored_cross_entropy
from rtx.tasks.task import IGNORED, Batch, Example, Scores, Sum, Task, collate, mean_of, real_steps, where_it_is
from rtx.tasks.toy.drawn import drawn

RULE = 3  # the rule's number among the seeds; the splits have 0, 1, 2
CONTEXT = 2  # symbols that a local one follows from
BATCH = 100
METRIC = "NLL per symbol (nats)"


def locality_dial(
    length: int = 50, local: float = 0.9, long: float = 0.9, symbols: int = 8, size: int = 10_000, seed: int = 0
) -> Task:
    """Predict the next symbol. A flag says whether it follows from the last two symbols or from the sequence's book.

    A sequence begins with its book: V steps, each with a symbol and its partner, from a permutation drawn for this
    sequence. Then come T steps of text. The input is the symbol (one-hot, V), the partner (one-hot, V; 0 in the text),
    and a flag: 1 if the next symbol is a recall, 0 if it is local, with equal probability. A recalled symbol is the
    partner of the last symbol. A local symbol follows from the last two symbols by a fixed rule, and the older of them
    matters. With the probability of its strength, `local` or `long`, a symbol follows so; otherwise it is any symbol.

    A model that knows rule and book has the loss `optimal_loss(local)` at local symbols and `optimal_loss(long)` at
    recalled ones. A model that does not look back far enough has ln V. `examine` gives both losses. The first two
    symbols are not scored. `symbols` is V, and `length` is T.
    """
    check_whole("symbols", symbols, 2)
    check_whole("length", length, CONTEXT + 1)
    for name, strength in (("local", local), ("long", long)):
        if not (is_number(strength) and 0 <= strength <= 1):
            raise ValueError(f"{name}: expected a strength from 0 to 1, got {strength!r}")
    rule = draw_rule(np.random.default_rng((check_seed("seed", seed), RULE)), symbols)
    draw = partial(draw_sequence, steps=length, rule=rule, strengths=(local, long))
    best = {"optimal, local": optimal_loss(local, symbols), "optimal, recalled": optimal_loss(long, symbols)}
    return Task(
        name="locality-dial",
        inputs=2 * symbols + 1,
        outputs=symbols,
        per="step",
        examples=(examples := drawn(draw, size, seed)),
        loss=symbol_nll,
        measured=mean_of(symbol_nll),
        metric=METRIC,
        baseline=lambda: math.log(symbols),
        examine=lambda model, split, limit: losses_by_kind(model, examples(split)[:limit]) | best,
    )


def optimal_loss(strength: float, symbols: int = 8) -> float:
    """Return the entropy in nats of a symbol that follows with this probability and is otherwise any symbol."""
    other = (1 - strength) / symbols
    right = strength + other
    return -sum(p * math.log(p) for p in (right, *[other] * (symbols - 1)) if p > 0)


def symbol_nll(predictions: Tensor, batch: Batch, recall: bool | None = None) -> Sum:
    """-ln p of the next symbol, of (B, T, V) logits, summed over the scored steps: all, or one kind of them."""
    scored = real_steps(batch) & (batch.targets != IGNORED)
    if recall is not None:
        scored &= (batch.inputs[..., -1] == 1) == recall
    return scored_cross_entropy(predictions, batch.targets, scored)


def draw_rule(rng: np.random.Generator, symbols: int) -> NDArray[np.int64]:
    """Return the next symbol by the last two, the older one first. For a fixed newer one it is a permutation."""
    return rng.permuted(np.tile(np.arange(symbols)[:, None], symbols), axis=0)


def draw_sequence(
    rng: np.random.Generator, steps: int, rule: NDArray[np.int64], strengths: tuple[float, float]
) -> Example:
    """Return book and text (V + T, 2V + 1), and the next symbols (V + T,)."""
    symbols = len(rule)
    keys, partners = rng.permutation(symbols), rng.permutation(symbols)
    text, recall = rng.integers(symbols, size=steps + 1), rng.integers(2, size=steps + 1)
    follows = rng.random(steps + 1) < np.take(strengths, recall)
    for t in np.flatnonzero(follows[CONTEXT:]) + CONTEXT:
        text[t] = partners[text[t - 1]] if recall[t] else rule[text[t - 2], text[t - 1]]
    inputs, eye = np.zeros((symbols + steps, 2 * symbols + 1), np.float32), np.eye(symbols, dtype=np.float32)
    inputs[:symbols, :-1] = np.hstack([eye[keys], eye[partners[keys]]])
    inputs[symbols:, :symbols], inputs[symbols:, -1] = eye[text[:-1]], recall[1:]
    target = np.full(symbols + steps, IGNORED)
    target[symbols + CONTEXT - 1 :] = text[CONTEXT:]
    return Example(torch.from_numpy(inputs), torch.from_numpy(target))


def losses_by_kind(model: nn.Module, examples: Sequence[Example]) -> Scores:
    """Return the mean loss of a model at all scored symbols, at local ones, and at recalled ones, if there are any."""
    kinds = {METRIC: None, "local": False, "recalled": True}
    sums = {name: torch.zeros(2, dtype=torch.float64) for name in kinds}
    dtype = next(model.parameters()).dtype
    for start in range(0, len(examples), BATCH):
        batch = where_it_is(model, collate(examples[start : start + BATCH], "step"))
        predictions = model(batch.inputs.to(dtype), batch.lengths)
        for name, recall in kinds.items():
            found = symbol_nll(predictions, batch, recall)
            sums[name] += torch.stack([found.total, found.count]).cpu()
    return {name: float(total / count) for name, (total, count) in sums.items() if count}
