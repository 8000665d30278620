"""`trace`: a model at work, as named arrays. The model is left as it is, and one that is not traced pays nothing."""

import inspect
from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from rtx.nn.mode import evaluating
from rtx.nn.validate import check_module

Trace = dict[str, Tensor]


def trace(model: nn.Module, *inputs: Any) -> Trace:
    """What goes on inside any model, without dropout, when it is called with these inputs.

    A brick shows what it computes by a method `introspect`, which is called with the brick's own arguments: attention
    its "weights" (B, H, T, S); LocalRNN its "states" in every window (B, T, M, D); MC-RNN "channels",
    "channel_weights", "in_degrees"; HM-RNN "boundaries"; Transformer-XL the four terms of its scores. A module of
    your own joins by having such a method. Of torch's own layers only `nn.MultiheadAttention` is shown, by its
    "weights" of all heads.

    Returns:
        Arrays by the brick's place in the model and their own name, "blocks.0.1.sublayer.weights"; where a brick is
        called more than once, for a segment each, the second call's end in ".2", and so on.
    """
    check_module("model", model)
    found: Trace = {}
    calls = Counter[str]()
    busy = False

    def look(place: str, brick: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        nonlocal busy
        if busy:  # called by a brick that is being looked into
            return
        busy = True
        shown = brick.introspect(*args, **kwargs) if hasattr(brick, "introspect") else _weights(brick, args, kwargs)
        busy = False
        calls[place] += 1
        suffix = f".{calls[place]}" if calls[place] > 1 else ""
        found.update({f"{place}.{name}{suffix}".lstrip("."): array for name, array in shown.items()})

    with torch.no_grad(), evaluating(model), ExitStack() as hooks:
        for place, brick in model.named_modules():
            if hasattr(brick, "introspect") or isinstance(brick, nn.MultiheadAttention):
                hooks.enter_context(brick.register_forward_pre_hook(partial(look, place), with_kwargs=True))
        model(*inputs)
    return found


def _weights(layer: nn.MultiheadAttention, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trace:
    """Return "weights" of torch's attention, (B, H, T, S), from the arguments of its `forward`."""
    given = inspect.signature(layer.forward).bind(*args, **kwargs).arguments
    _, weights = layer.forward(**given | {"need_weights": True, "average_attn_weights": False})
    return {"weights": cast(Tensor, weights)}
