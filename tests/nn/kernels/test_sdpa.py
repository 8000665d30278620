"""On a GPU attention is torch's: which of its kernels is a rule, and our own blocks are never in the way."""

import pytest
import torch

from rtx.nn.kernels.attention import causal_attention
from rtx.nn.kernels.sdpa import backend


@pytest.mark.parametrize(
    ("dtype", "width", "capability", "expected"),
    [
        (torch.bfloat16, 64, (9, 0), "FLASH_ATTENTION"),
        (torch.float16, 256, (8, 0), "FLASH_ATTENTION"),
        (torch.bfloat16, 20, (9, 0), "FLASH_ATTENTION"),
        (torch.bfloat16, 264, (9, 0), "EFFICIENT_ATTENTION"),
        (torch.bfloat16, 257, (9, 0), "MATH"),
        (torch.bfloat16, 64, (7, 5), "MATH"),
        (torch.float16, 64, (7, 5), "EFFICIENT_ATTENTION"),
        (torch.float32, 64, (9, 0), "EFFICIENT_ATTENTION"),
        (torch.float32, 20, (8, 0), "EFFICIENT_ATTENTION"),
        (torch.float32, 30, (8, 0), "MATH"),
        (torch.float32, 30, (7, 5), "EFFICIENT_ATTENTION"),
        (torch.float64, 64, (9, 0), "MATH"),
    ],
)
def test_the_rule(dtype, width, capability, expected):
    assert backend(dtype, width, capability) == expected
    assert hasattr(torch.nn.attention.SDPBackend, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_beside_the_cpu_torchs_own_function_is_taken(dtype, dropout):
    """A tensor on the device "meta" is on none that the blocks are made for; it holds no numbers."""
    q = torch.empty(1, 2, 8, 4, dtype=dtype, device="meta")
    assert causal_attention.choose(q, q, q, dropout) == "torch"
    assert causal_attention(q, q, q, dropout).shape == (1, 2, 8, 4)
