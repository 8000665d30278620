"""A text's perplexity when it is read as one stream, by the model alone and together with the continuous cache.

Grave, Joulin & Usunier (2017); Xu et al. (2019), MC-RNN, §4.3.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rtx.models import LanguageModel
from rtx.tasks.losses import perplexity, tokens_measured
from rtx.tasks.task import Example, Scores, Split, collate, where_it_is, widened

# the last steps of a text: the model's states, and the word that came after each
Cached = tuple[Float[Tensor, "B S D"], Int[Tensor, "B S"]]


def cache_pointer(
    hidden: Float[Tensor, "B T D"],
    words: Int[Tensor, "B T"],
    logits: Float[Tensor, "B T V"],
    past: Cached | None = None,
    window: int = 500,
    theta: float = 1.0,
    mix: float = 0.1,
) -> tuple[Float[Tensor, "B T V"], Cached]:
    """Return log-probabilities of the next word, mixed with those of words that recently followed similar states.

    Grave et al. (2017), Eq. 2-4, computed in float32 at least. The defaults are those of Merity et al.'s code on PTB.
    Their code starts to mix when the cache is full; here this starts at the second word.

    `hidden` are the states h_t that predicted each word, and `words` the words x_{t+1} that came. A word is in the
    cache from the next step on. `past` is the cache after the piece of the text before this one, and the second result
    is the next cache. It has `window` steps. `theta` is θ, the weight of similarity, and `mix` is λ, the cache's share.
    """
    hidden, logits = widened(hidden), widened(logits)  # in half precision the probabilities would not sum to 1
    (B, T, D), V = hidden.shape, logits.shape[-1]
    before = (hidden.new_zeros(B, 0, D), words.new_zeros(B, 0)) if past is None else past
    keys, values = torch.cat([before[0], hidden], 1), torch.cat([before[1], words], 1)
    S = keys.shape[1]
    age = torch.arange(S - T, S, device=hidden.device)[:, None] - torch.arange(S, device=hidden.device)
    seen = (age > 0) & (age <= window)  # (T, S)
    # p_cache(w) ∝ Σ_i 1[w = x_{i+1}] exp(θ h_t · h_i)
    scores = (theta * hidden @ keys.transpose(1, 2)).masked_fill(~seen, -torch.inf)
    weights = torch.where(seen.any(-1)[:, None], scores.softmax(-1), 0)  # (B, T, S); zero in a row that sees nothing
    p_cache = logits.new_zeros(B, T, V).scatter_add(-1, values[:, None].expand(-1, T, -1), weights.to(logits.dtype))
    share = mix * seen.any(-1)[:, None].to(logits.dtype)
    # added as logarithms, because a very small probability would become 0
    mixed = torch.logaddexp(torch.log1p(-share) + logits.log_softmax(-1), (share * p_cache).log())
    return mixed, (keys[:, -window:], values[:, -window:])


@torch.no_grad()
def examine_stream(
    examples: Callable[[Split], Sequence[Example]], model: LanguageModel, split: Split, limit: int | None = None
) -> Scores:
    """Return the perplexity of a split that a stateful model reads in order, without and with a cache of words."""
    plain, cached = perplexity(), perplexity()
    state: Any = None
    past: Cached | None = None
    for piece in examples(split)[:limit]:
        batch = collate([piece], "token")
        inputs, targets, _ = where_it_is(model, batch)
        hidden, state = model.backbone.read(model.embed(inputs), state)
        logits = model.decoder(hidden)
        mixed, past = cache_pointer(hidden, targets, logits, past)
        plain.update(*tokens_measured(logits.float().cpu(), batch))
        cached.update(*tokens_measured(mixed.float().cpu(), batch))
    return {"perplexity": float(plain.compute()), "perplexity with cache": float(cached.compute())}
