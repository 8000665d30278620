"""A text's perplexity read as one stream, by the model alone and with the continuous cache behind it.

Grave, Joulin & Usunier (2017); Xu et al. (2019), MC-RNN, §4.3.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rtx.models import LanguageModel
from rtx.models.awd_lstm import Cached, cache_pointer
from rtx.tasks.task import Example, Scores, Split, collate
from rtx.tasks.windows import perplexity, tokens_measured


@torch.no_grad()
def examine_stream(
    examples: Callable[[Split], Sequence[Example]], model: LanguageModel, split: Split, limit: int | None = None
) -> Scores:
    """The perplexity of a split that is read in order, the state carried; and the one with a cache of words.

    A model that carries no state reads each piece by itself, and has no cache.

    Args:
        examples: split → pieces that follow one another.
        model: a language model.
        split: which split.
        limit: the first so many pieces only.
    """
    pieces = examples(split)
    plain, cached = perplexity(), perplexity()
    device = next(model.parameters()).device
    stateful = model.backbone.stateful
    state: Any = None
    past: Cached | None = None
    for i in range(len(pieces) if limit is None else min(limit, len(pieces))):
        batch = collate([pieces[i]], "token")
        inputs, targets = batch.inputs.to(device), batch.targets.to(device)
        if not stateful:
            plain.update(*tokens_measured(model(inputs).float().cpu(), batch))
            continue
        hidden, state = model.backbone.read(model.embed(inputs), state)
        logits = model.decoder(hidden)
        mixed, past = cache_pointer(hidden, targets, logits, past)
        plain.update(*tokens_measured(logits.float().cpu(), batch))
        cached.update(*tokens_measured(mixed.float().cpu(), batch))
    found: Scores = {"perplexity": float(plain.compute())}
    return found | {"perplexity with cache": float(cached.compute())} if stateful else found
