"""Feed-forward attention's pooling: the weighted mean of the states of all steps.

Raffel & Ellis (2015), Eq. 1-2. A score is a tanh and so lies between -1 and 1. Therefore the softmax needs no running
maximum: one pass adds up exp(e_t) and exp(e_t) h_t, and the backward pass computes the states again. Two
implementations use this and never store the states of all steps.
"""

from typing import Any

from torch import Tensor, int32, int64

from rtx.nn import reference
from rtx.nn.ops.conditions import no_custom_gradient, no_native_code, not_on_cpu, other_sizes
from rtx.nn.ops.dispatch import Implementation, Operation
from rtx.nn.ops.pooling.blocks import blocked_pooling
from rtx.nn.ops.pooling.native import native_pooling
from rtx.nn.ops.pooling.torch import torch_pooling


def _not_native(x: Tensor, lengths: Tensor, weight: Tensor, *more: Any) -> str | None:
    return no_native_code(x, weight, *more) or _not_blocked(x, lengths, weight, *more)


def _not_blocked(x: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor, *more: Any) -> str | None:
    reason = not_on_cpu(x, weight, bias, *more) or no_custom_gradient(lengths)
    if reason or lengths.device != x.device or lengths.dtype not in (int32, int64):
        return reason or f"it needs lengths of int32 or int64 on the CPU, and these are {lengths.dtype}"
    D, F, (score, shift, _) = weight.shape[:1], x.shape[-1:], more
    scorer = {} if score is None else {"score": (score, (1, *D)), "shift": (shift, (1,))}
    reason = other_sizes(
        x=(x, (None, None, *F)), weight=(weight, (*D, *F)), bias=(bias, D), lengths=(lengths, x.shape[:1]), **scorer
    )
    longest = 0 if reason else max(lengths.tolist())
    return f"it needs lengths up to {x.shape[1]}, and one is {longest}" if longest > x.shape[1] else reason


pooling = Operation(
    "pooling",
    {
        "native": Implementation(native_pooling, _not_native),
        "blocks": Implementation(blocked_pooling, _not_blocked),
        "torch": Implementation(torch_pooling),
        "reference": Implementation(reference.pooling, opt_in=True),
    },
)
"""`pooling(x, lengths, weight, bias, score, shift, leak)`: sequences x (B, T, F) to contexts (B, D).

`weight` (D, F) and `bias` (D,) map a step to its state; `score` (1, D) and `shift` (1,) give its score, or are None for
the plain mean. `leak` is a name in `LEAKS`. The padding beyond `lengths` is not read.
"""
