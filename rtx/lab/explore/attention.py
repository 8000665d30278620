"""Explorer of attention: where each head of each layer looks from each position, in any model that `trace` understands.

Wang et al. (2019), R-Transformer, §3.2.
"""

import re
from collections.abc import Sequence

import torch
from jaxtyping import Float
from safetensors.torch import save
from torch import Tensor, nn

from rtx.lab.explore.page import Page
from rtx.lab.tracing import Trace, trace

PLACE = re.compile(r"(?:(?P<place>.*)\.)?weights(?:\.(?P<call>\d+))?")


def attention(
    model: nn.Module,
    x: Tensor | Sequence[Tensor],
    labels: Sequence[str] | None = None,
    queries: Sequence[str] | None = None,
    caption: str = "step through the heads: which looks at its neighbour, which far back, which at everything alike?",
) -> Page:
    """Where a position looks, with controls `layer`, `head` and `position`: its weights as colours of the tokens.

    Args:
        model: with bricks that attend, your own too: see `rtx.lab.trace`. Where they look at sequences of several
            lengths, as encoders and decoders do, those are shown that look where the last one does.
        x: one sequence, in a batch of 1; a tuple if the model takes more than one argument.
        labels: what is attended to, a few letters each; numbers from 1 if not given.
        queries: what attends, where that is another sequence.
        caption: what to try.

    Raises:
        ValueError: if the model has no attention, `x` is not a batch of 1, or there are more or fewer labels than
            positions.
    """
    layers = attention_maps(trace(model, *((x,) if isinstance(x, Tensor) else x)))
    asking, keys = layers[-1][1].shape[1:]
    layers = [(name, weights) for name, weights in layers if weights.shape[1:] == (asking, keys)]
    labels = _labels("labels", labels, keys)
    rows = labels if queries is None and asking == keys else _labels("queries", queries, asking)
    data = {"layers": [name for name, _ in layers], "labels": labels, "queries": rows, "same": rows is labels}
    return Page(
        "attention.js",
        data,
        caption,
        title="Where does a position look?",
        weights=save({str(i): one.contiguous() for i, (_, one) in enumerate(layers)}),
        layer=len(layers) - 1,
        head=0,
        position=asking - 1,
    )


def attention_maps(found: Trace) -> list[tuple[str, Float[Tensor, "H T S"]]]:
    """The attention in a trace of one sequence, by the brick's place: from where (T) to where (S), for each head.

    Attention that looks once for the whole sequence has T = 1; one that is called once a step has its calls as T.

    Raises:
        ValueError: if there is none, or of a batch larger than 1.
    """
    looks: dict[str, Tensor] = {}
    for key, array in found.items():
        match = PLACE.fullmatch(key)
        if not match or array.ndim not in (2, 4):
            continue
        if len(array) != 1:
            raise ValueError(f"x: expected one sequence, a batch of 1, got {len(array)}")
        place, call, weights = match["place"] or "model", match["call"], array[0].float().cpu()
        if array.ndim == 4:
            looks[f"{place}.{call}" if call else place] = weights
        else:  # (1, S): of one step
            earlier = looks.get(place, weights.new_zeros(1, 0, len(weights)))
            looks[place] = torch.cat([earlier, weights[None, None]], 1)
    if not looks:
        raise ValueError(f"model: expected one whose bricks give attention weights, got {', '.join(found) or 'none'}")
    return list(looks.items())


def _labels(name: str, given: Sequence[str] | None, positions: int) -> list[str]:
    if given is None:
        return [str(i + 1) for i in range(positions)]
    if len(given) != positions:
        raise ValueError(f"{name}: expected one for each of {positions} positions, got {len(given)}")
    return [str(label) for label in given]
