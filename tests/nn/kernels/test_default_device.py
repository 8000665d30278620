"""Kernels compute where their arguments are, whatever device `torch.set_default_device` names."""

from collections.abc import Callable

import pytest
import torch

from rtx.nn.kernels.attention import causal_attention
from rtx.nn.kernels.dispatch import implementation
from rtx.nn.kernels.dropout import dropout, relu_dropout
from rtx.nn.kernels.native import build
from rtx.nn.multi_channel import MultiChannelRNN

CANNOT = build.obstacle()
COMPILED = pytest.mark.skipif(CANNOT is not None, reason=f"no kernels in C++: {CANNOT}")


def attention(x: torch.Tensor) -> torch.Tensor:
    heads = x[:, None]
    return causal_attention(heads, heads, heads, 0.3)


@pytest.mark.parametrize("impl", ["fused", pytest.param("native", marks=COMPILED)])
@pytest.mark.parametrize("name", ["attention", "dropout", "relu_dropout", "multi_channel"])
def test_another_default_device_changes_no_bit(impl: str, name: str) -> None:
    torch.manual_seed(0)
    layer, x = MultiChannelRNN(4, block=4), torch.randn(2, 9, 4).requires_grad_()
    run: Callable[[torch.Tensor], torch.Tensor] = {
        "attention": attention,
        "dropout": lambda x: dropout(x, 0.3),
        "relu_dropout": lambda x: relu_dropout(x, 0.3),
        "multi_channel": lambda x: layer(x)[0],
    }[name]

    def found() -> list[torch.Tensor]:
        torch.manual_seed(1)
        with implementation(impl):
            y = run(x)
            (once,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
            (twice,) = torch.autograd.grad(once.square().sum(), x)
        return [y, once, twice]

    expected = found()
    with torch.device("meta"):
        there = found()
    assert all(map(torch.equal, there, expected))
