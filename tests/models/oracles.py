"""What several tests of models need: streams, gradients, and torch's own layers with our weights."""

from collections.abc import Iterable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rtx.nn.streaming import State

# three sentences with their padding, and their translations
LENGTHS = torch.tensor([5, 2, 1])
SOURCE = torch.tensor([[2, 3, 8, 0, 4], [5, 6, 0, 0, 0], [7, 0, 0, 0, 0]])
TARGET = torch.tensor([[0, 2, 3, 4], [0, 6, 5, 1], [0, 3, 3, 1]])


def stream(model: Any, x: Tensor, state: State | None = None) -> tuple[Tensor, State | None]:
    """Read `x` step by step."""
    rows = []
    for x_t in x.unbind(1):
        y, state = model.step(x_t, state)
        rows.append(y)
    return torch.stack(rows, 1), state


def gradients(y: Tensor, of: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Return the derivatives of a weighted sum of `y`. The weights depend on the shape only."""
    weights = torch.arange(y.numel(), dtype=y.dtype).view(y.shape).cos()
    return torch.autograd.grad((y * weights).sum(), list(of))


def assert_same(y: Tensor, expected: Tensor, of: Iterable[Tensor], of_expected: Iterable[Tensor] | None = None) -> None:
    """Compare two outputs and their gradients. The second network may have its own parameters, in the same order."""
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    of = list(of)
    theirs = gradients(expected, of if of_expected is None else of_expected)
    for one, other in zip(gradients(y, of), theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def count(*modules: nn.Module) -> int:
    return sum(p.numel() for module in modules for p in module.parameters())


def skip_without_lstm_under_autocast(model: nn.Module) -> None:
    """Skip the test if the model has an LSTM and torch's own cannot run in bfloat16 on this processor."""
    if any(isinstance(module, nn.LSTM) for module in model.modules()):
        try:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                nn.LSTM(8, 8)(torch.randn(1, 1, 8))
        except RuntimeError as error:
            pytest.skip(f"torch: {error}")


def torch_state(attention: nn.Module, feed_forward: nn.Module) -> dict[str, Tensor]:
    """Return the state dict of torch's Transformer layer, from the residuals of our block.

    Torch's attention has biases, and ours (Eq. 4 and 6) has none: zeros.
    """
    ours, network = attention.sublayer, feed_forward.sublayer
    zero = ours.output.weight.new_zeros(ours.d_model)
    found = {
        "self_attn.in_proj_weight": torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]),
        "self_attn.in_proj_bias": zero.repeat(3),
        "self_attn.out_proj.weight": ours.output.weight,
        "self_attn.out_proj.bias": zero,
    }
    parts = {"linear1": network.expand, "linear2": network.contract}
    parts |= {"norm1": attention.norm, "norm2": feed_forward.norm}
    return found | {f"{name}.{key}": value for name, part in parts.items() for key, value in part.state_dict().items()}


def torch_layer(block: nn.Sequential, norm: str) -> nn.TransformerEncoderLayer:
    """Return torch's encoder layer with the weights of a block of width 8 and 2 heads."""
    layer = nn.TransformerEncoderLayer(8, 2, 32, 0.0, batch_first=True, norm_first=norm == "pre").double()
    layer.load_state_dict(torch_state(*block))
    return layer.eval()
