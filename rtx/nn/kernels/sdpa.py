"""Which of torch's attention kernels computes `scaled_dot_product_attention` on a GPU, as a rule one can read.

There our own blocks, which are made for a CPU's caches, are never used: torch's kernels do the same, dropout too,
without a (T, T) tensor. Dao et al. (2022), FlashAttention; Rabe & Staats (2021), the memory-efficient one.
"""

import torch

WIDEST = 256  # K, of a head, that FlashAttention takes
HALVES = (torch.float16, torch.bfloat16)


def backend(dtype: torch.dtype, width: int, capability: tuple[int, int]) -> str:
    """The name in `torch.nn.attention.SDPBackend` of the kernel to expect for causal attention without a mask.

    Args:
        dtype: of queries, keys and values; under autocast its dtype, as they come out of products.
        width: K, of a head.
        capability: the device's compute capability.
    """
    if dtype in HALVES and width <= WIDEST and capability >= (8, 0):
        return "FLASH_ATTENTION"
    if dtype in (*HALVES, torch.float32):
        return "EFFICIENT_ATTENTION"
    return "MATH"  # float64: the weights as a (T, T) tensor
