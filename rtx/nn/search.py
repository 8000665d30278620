"""Find a likely sequence under a model that gives the next token's logits: beam search, and so greedy search.

It works on any `step(tokens, state) -> (logits, state)` and on a batch of sentences at once. Length normalisation as in
Wu et al. (2016), Google's Neural Machine Translation System, §7, in a simpler form.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rtx.nn.state import select
from rtx.nn.validate import check_positive, is_number, is_whole

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]


class Hypotheses(NamedTuple):
    """What a search found for each of B sentences: K hypotheses, the best first.

    Args:
        tokens: without the begin token, with the end token; behind it, more of them. L is the longest one's length.
        scores: log-probability / length^alpha; -inf where there is no further hypothesis (its length is 0).
        lengths: tokens in each, the end token included. One whose last token is another was cut off.
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
    """The `width` best hypotheses that a beam of this width meets.

    Each step extends every hypothesis by every token and keeps the `width` likeliest. Those of them that end are
    complete and leave the beam, and the best `width` complete ones are kept; the others go on, and may branch to fill
    the beam again. At `length` tokens a hypothesis is cut off and counts as complete.

    A sentence's search stops when no hypothesis on its beam can still come among its best: log-probabilities only
    fall, so one that has log-probability p now scores at most p / length^alpha. Hence stopping changes no result.

    Args:
        step: tokens (R,) and a state to logits (R, vocabulary) and the next state; it must not depend on the order or
            number of rows.
        state: of B sentences, as `rtx.nn.state.select` takes it.
        batch: B.
        vocabulary: V.
        begin: the token that stands before the first.
        end: the token that completes a hypothesis.
        width: K; 1 is greedy search.
        length: greatest number of tokens, the end token included.
        alpha: scores are log-probability / length^alpha. 0 compares the log-probabilities themselves, which favours
            short hypotheses; 1 their mean over the tokens. (Wu et al. divide by ((5 + length) / 6)^alpha instead.)
        device: where the first tokens are made.

    Raises:
        ValueError: if an argument is out of its range, the beam is wider than the vocabulary, or the logits are not
            of shape (B · K, V) or not numbers.
    """
    _check(batch, vocabulary, begin, end, width, length, alpha)
    rows = torch.arange(batch, device=device)[:, None]
    state = select(state, rows.expand(-1, width).flatten())
    # all K copies of a sentence begin alike, so all but the first are out
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
    """The best `width` of both, the best first."""
    tokens, scores, lengths = (torch.cat(pair, 1) for pair in zip(found, new, strict=True))
    scores, order = scores.topk(width)
    return Hypotheses(_rows(tokens, order), scores, lengths.gather(1, order))


def _rows(tokens: Tensor, order: Tensor) -> Tensor:
    return tokens.gather(1, order[..., None].expand(-1, -1, tokens.shape[-1]))


def _tidy(found: Hypotheses, end: int) -> Hypotheses:
    """Places without a hypothesis emptied; no column behind the longest."""
    none = found.scores == -math.inf
    lengths = found.lengths.masked_fill(none, 0)
    tokens = found.tokens.masked_fill(none[..., None], end)
    return Hypotheses(tokens[..., : int(lengths.max())], found.scores, lengths)


def _log_probabilities(logits: Tensor, rows: int, vocabulary: int) -> Tensor:
    if logits.shape != (rows, vocabulary):
        raise ValueError(f"step: expected logits of shape ({rows}, {vocabulary}), got {tuple(logits.shape)}")
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    if bool(scores.isnan().any()):
        raise ValueError(
            "step: expected logits that are numbers, or -inf for a token that is forbidden, got NaN or inf"
        )
    return scores


def _check(batch: int, vocabulary: int, begin: int, end: int, width: int, length: int, alpha: float) -> None:
    for name, size in {"batch": batch, "vocabulary": vocabulary, "width": width, "length": length}.items():
        check_positive(name, size)
    if width > vocabulary:
        raise ValueError(f"width: expected at most the vocabulary's {vocabulary} tokens, got {width}")
    for name, token in {"begin": begin, "end": end}.items():
        if not is_whole(token) or not 0 <= token < vocabulary:
            raise ValueError(f"{name}: expected a token from 0 to {vocabulary - 1}, got {token!r}")
    if not (is_number(alpha) and 0 <= alpha < math.inf):
        raise ValueError(f"alpha: expected a finite number of at least 0, got {alpha!r}")
