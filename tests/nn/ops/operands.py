"""Each operation with arguments, and its reference version. The tests of all operations use them."""

import math
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from comparison import COMPILED, leaves
from torch import Tensor

from rtx.nn import reference
from rtx.nn.ops.attention import causal_attention
from rtx.nn.ops.dispatch import Operation
from rtx.nn.ops.local_rnn import local_rnn
from rtx.nn.ops.pooling import pooling

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
CELLS = sorted(GATES)
LENGTHS = torch.tensor([7, 1, 66])


def masked_attention(q: Tensor, k: Tensor, v: Tensor, kept: Tensor | None = None, dropout: float = 0.0) -> Tensor:
    """Causal attention with the (T, T) weights as a tensor, R-Transformer, Eq. (5); `kept` is a mask of dropout."""
    future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
    weights = (q @ k.mT / math.sqrt(q.shape[3])).masked_fill(future, -math.inf).softmax(-1)
    return (weights if kept is None else weights * kept / (1 - dropout)) @ v


def local_rnn_inputs(cell: str, B: int, T: int, D: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Return x, w_ih, w_hh, b_ih and b_hh."""
    G = GATES[cell] * D
    return leaves([torch.randn(shape) for shape in ((B, T, D), (G, D), (G, D), (G,), (G,))], dtype)


class Case(NamedTuple):
    """An operation, tensors that it learns from, and how to call both the operation and its reference version."""

    operation: Operation
    inputs: list[Tensor]
    arguments: Callable[..., tuple]  # from the inputs to all arguments of the operation
    reference: Callable[..., Tensor]

    def run(self, *inputs: Tensor, impl: str | None = None) -> Tensor:
        return self.operation(*self.arguments(*inputs), impl=impl)


def case(name: str, dtype: torch.dtype = torch.float32) -> Case:
    torch.manual_seed(0)
    if name == "local_rnn":
        arguments = lambda *inputs: (*inputs, 3, "gru")  # noqa: E731
        inputs = local_rnn_inputs("gru", 2, 5, 3, dtype)
        return Case(local_rnn, inputs, arguments, lambda *inputs: reference.local_rnn(*arguments(*inputs)))
    if name == "causal_attention":
        inputs = leaves([torch.randn(2, 2, 9, 3) for _ in range(3)], dtype)
        return Case(causal_attention, inputs, lambda *inputs: (*inputs, 0.0), masked_attention)
    arguments = lambda x, *weights: (x, LENGTHS, *weights, "coded")  # noqa: E731
    inputs = leaves([torch.randn(shape) for shape in ((3, 66, 2), (4, 2), (4,), (1, 4), (1,))], dtype)
    return Case(pooling, inputs, arguments, lambda *inputs: reference.pooling(*arguments(*inputs)))


OPERATIONS = ("local_rnn", "causal_attention", "pooling")
# implementations with a backward pass of their own, on a CPU
EACH = pytest.mark.parametrize(
    ("name", "impl"),
    [
        *(pytest.param(name, "native", marks=COMPILED) for name in OPERATIONS),
        ("pooling", "blocks"),
        ("causal_attention", "blocks"),
    ],
)


def precision(impl: str) -> tuple[torch.dtype, float]:
    """Return the most precise dtype that an implementation takes, and how near the reference version it then is."""
    return (torch.float32, 2e-5) if impl == "native" else (torch.float64, 1e-10)
