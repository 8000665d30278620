"""Feed-forward attention's pooling: the weighted mean of the states of all steps.

Raffel & Ellis (2015), Eq. 1-2. A score is a tanh and so lies between -1 and 1. Therefore the softmax needs no running
maximum: one pass adds up exp(e_t) and exp(e_t) h_t, and the backward pass computes the states again. Two
implementations use this and never store the states of all steps.
"""

from torch import Tensor

from rtx.nn import reference
from rtx.nn.ops.conditions import no_native_code, not_on_cpu
from rtx.nn.ops.dispatch import Implementation, Operation
from rtx.nn.ops.pooling.fused import fused_pooling
from rtx.nn.ops.pooling.native import native_pooling
from rtx.nn.ops.pooling.torch import torch_pooling


def _not_native(x: Tensor, lengths: Tensor, weight: Tensor, *more: object) -> str | None:
    return no_native_code(x) or no_native_code(weight, *more)


pooling = Operation(
    "pooling",
    {
        "native": Implementation(native_pooling, _not_native),
        "fused": Implementation(fused_pooling, not_on_cpu),
        "torch": Implementation(torch_pooling),
        "reference": Implementation(reference.pooling, opt_in=True),
    },
)
"""`pooling(x, lengths, weight, bias, score, shift, leak)`: sequences x (B, T, F) to contexts (B, D).

`weight` (D, F) and `bias` (D,) map a step to its state; `score` (1, D) and `shift` (1,) give its score, or are None for
the plain mean. `leak` is a name in `LEAKS`. The padding beyond `lengths` is not read.
"""
