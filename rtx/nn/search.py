"""Beam search: find a likely sequence under a model that gives the logits of the next token.

It works with any `step(tokens, state) -> (logits, state)` and on a batch of sentences at once. A width of 1 is greedy
search. To divide by length^alpha is the first of two normalisations in Wu et al. (2016), Google's Neural Machine
Translation System, §7, with alpha best at 0.6 to 0.7. Their second one also has a penalty for coverage.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rtx.nn.streaming import select
from rtx.nn.validate import check_at_least_zero, check_positive, is_whole

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]


class Hypotheses(NamedTuple):
    """The result of a search for each of B sentences: K hypotheses, the best first.

    Args:
        tokens: without the begin token, with the end token, and filled up with end tokens to the longest length L.
        scores: log-probability / length^alpha. It is -inf if there is no further hypothesis; the length is then 0.
        lengths: number of tokens, the end token included. A hypothesis without an end token was cut off.
    """

    tokens: Int[Tensor, "B K L"]
    scores: Float[Tensor, "B K"]
    lengths: Int[Tensor, "B K"]


def beam_search(
    step: Step,
    state: Any,
    batch: int,
    vocabulary: int,
    *,
    begin: int,
    end: int,
    width: int = 5,
    length: int,
    alpha: float = 1.0,
    device: torch.device | None = None,
) -> Hypotheses:
    """Return the `width` best hypotheses that a beam of this width finds.

    Each step extends every hypothesis by every token and keeps the `width` most likely ones. A hypothesis that ends is
    complete and leaves the beam, and the best `width` complete ones are kept. The others go on, and may branch to fill
    the beam again. At `length` tokens a hypothesis is cut off and counts as complete.

    The search stops when in no sentence a hypothesis on the beam can become one of its best. Log-probabilities only
    fall, so a hypothesis with log-probability p cannot score more than p / length^alpha. Stopping changes no result.

    Args:
        step: maps tokens (R,) and a state to logits (R, vocabulary) and the next state. It must not depend on the
            order or number of the rows.
        state: of B sentences, as `rtx.nn.streaming.select` takes it.
        batch: B.
        vocabulary: V.
        begin: the token before the first one.
        end: the token that completes a hypothesis.
        width: K, the number of hypotheses on the beam.
        length: the largest number of tokens, the end token included.
        alpha: scores are log-probability / length^alpha. 0 compares log-probabilities, which favours short hypotheses;
            1 compares their mean over the tokens. (Wu et al. divide by ((5 + length) / 6)^alpha instead.)
        device: of the first tokens.
    """
    _check(batch, vocabulary, begin, end, width, length, alpha)
    rows = torch.arange(batch, device=device)[:, None]
    state = select(state, rows.expand(-1, width).flatten())
    # all K copies of a sentence are the same at first, so only the first one counts
    live = torch.zeros(batch, width, device=device, dtype=torch.float32).index_fill(
        1, torch.arange(1, width, device=device), -math.inf
    )
    tokens = torch.full((batch, width, length), end, device=device)
    found = Hypotheses(tokens, torch.full_like(live, -math.inf), torch.zeros_like(tokens[..., 0]))
    last = torch.full((batch * width,), begin, device=device)
    for t in range(1, length + 1):
        logits, state = step(last, state)
        scores = live[..., None] + _log_probabilities(logits, batch * width, vocabulary).view(batch, width, -1)
        live, best = scores.flatten(1).topk(width)  # (B, K), from K · V
        parent, token = best // vocabulary, best % vocabulary
        tokens = _rows(tokens, parent)
        tokens[..., t - 1] = token
        ended = (token == end) | (t == length)
        complete = (live / t**alpha).masked_fill(~ended, -math.inf)
        found = _best(found, Hypotheses(tokens, complete, torch.full_like(token, t)), width)
        live = live.masked_fill(ended, -math.inf)
        if bool((live.amax(1) / length**alpha <= found.scores[:, -1]).all()):
            break
        state, last = select(state, (rows * width + parent).flatten()), token.flatten()
    return _tidy(found, end)


def _best(found: Hypotheses, new: Hypotheses, width: int) -> Hypotheses:
    """Return the best `width` hypotheses of both, the best first."""
    tokens, scores, lengths = (torch.cat(pair, 1) for pair in zip(found, new, strict=True))
    scores, order = scores.topk(width)
    return Hypotheses(_rows(tokens, order), scores, lengths.gather(1, order))


def _rows(tokens: Tensor, order: Tensor) -> Tensor:
    return tokens.gather(1, order[..., None].expand(-1, -1, tokens.shape[-1]))


def _tidy(found: Hypotheses, end: int) -> Hypotheses:
    """Empty the places without a hypothesis, and cut the columns after the longest one."""
    none = found.scores == -math.inf
    lengths = found.lengths.masked_fill(none, 0)
    tokens = found.tokens.masked_fill(none[..., None], end)
    return Hypotheses(tokens[..., : int(lengths.max())], found.scores, lengths)


def _log_probabilities(logits: Tensor, rows: int, vocabulary: int) -> Tensor:
    if logits.shape != (rows, vocabulary):
        raise ValueError(f"step: expected logits of shape ({rows}, {vocabulary}), got {tuple(logits.shape)}")
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    if bool(scores.isnan().any()):
        given = "a row of -inf" if bool((logits == -math.inf).all(-1).any()) else "NaN or inf"
        raise ValueError(f"step: expected numbers, or -inf for a forbidden token but not for all tokens, got {given}")
    return scores


def _check(batch: int, vocabulary: int, begin: int, end: int, width: int, length: int, alpha: float) -> None:
    for name, size in {"batch": batch, "vocabulary": vocabulary, "width": width, "length": length}.items():
        check_positive(name, size)
    if width > vocabulary:
        raise ValueError(f"width: expected at most the vocabulary's {vocabulary} tokens, got {width}")
    for name, token in {"begin": begin, "end": end}.items():
        if not is_whole(token) or not 0 <= token < vocabulary:
            raise ValueError(f"{name}: expected a token from 0 to {vocabulary - 1}, got {token!r}")
    check_at_least_zero("alpha", alpha)
