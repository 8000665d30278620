"""Which of torch's attention kernels computes `scaled_dot_product_attention` on a GPU, as a rule one can read.

There our own blocks, which are made for a CPU's caches, are never used: torch's kernels do the same, dropout too,
without a (T, T) tensor. Dao et al. (2022), FlashAttention; Rabe & Staats (2021), the memory-efficient one.

The rule leaves cuDNN's kernel out. In half precision torch takes that one before FlashAttention on devices of compute
capability 9.0 and 10.0, if its cuDNN is newer than 9.15 (torch 2.13, sdp_utils.cpp, check_prefer_cudnn_attention).
"""

import torch

WIDEST = 256  # K, of a head, that FlashAttention takes
HALVES = (torch.float16, torch.bfloat16)


def backend(dtype: torch.dtype, width: int, capability: tuple[int, int]) -> str:
    """The name in `torch.nn.attention.SDPBackend` of the kernel for causal attention without a mask, but for cuDNN's.

    Args:
        dtype: of queries, keys and values; under autocast its dtype, as they come out of products.
        width: K, of a head.
        capability: the device's compute capability.
    """
    half, tensor_cores = dtype in HALVES, capability >= (8, 0)  # those that know bfloat16 and tf32
    if half and width <= WIDEST and tensor_cores:
        return "FLASH_ATTENTION"
    known = dtype in (torch.float16, torch.float32) or (half and tensor_cores)
    if known and width % (8 if half else 4 if tensor_cores else 1) == 0:  # it reads 16 bytes at a time
        return "EFFICIENT_ATTENTION"
    return "MATH"  # the weights as a (T, T) tensor
