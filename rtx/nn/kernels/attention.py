"""Causal attention with dropout on its weights, a block of queries at a time, so that no (T, T) tensor stays.

Rabe & Staats (2021), Self-attention Does Not Need O(n²) Memory; Dao et al. (2022), FlashAttention: of the weights only
the logarithm of each row's sum is kept, and the backward pass computes each block again, with the same dropout.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.kernels.derivatives import gradients_again, only_by_torch
from rtx.nn.kernels.dispatch import Kernel, Operation
from rtx.nn.kernels.dropout import Masks, no_masks
from rtx.nn.kernels.native.attention import native_attention
from rtx.nn.kernels.native.masks import draw_seed
from rtx.nn.kernels.obstacles import no_hand_written_gradient, no_native_code
from rtx.nn.kernels.precision import autocast_inputs, without_autocast

QUERIES = 64  # of a block, Q: longer ones waste more work above the diagonal, shorter ones are more calls
SCORES = 2**17  # numbers in a block, so that the few arrays of that size stay in a core's cache


def torch_attention(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H T K"], v: Float[Tensor, "B H T K"], dropout: float = 0.0
) -> Float[Tensor, "B H T K"]:
    """The same by torch's function, which is fast without dropout; with it, its CPU version makes (T, T) tensors.

    Where a query or key is NaN, torch's answer is 0 and not NaN; its gradients are NaN. On the CPU, without dropout, it
    has no second derivative and none in forward mode; the implementation "fused" has the former.
    """
    return F.scaled_dot_product_attention(q, k, v, None, dropout, is_causal=True)


def fused_attention(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H T K"], v: Float[Tensor, "B H T K"], dropout: float = 0.0
) -> Float[Tensor, "B H T K"]:
    """The same in blocks; half precision is computed in float32, as the sums of a softmax need it."""
    q, k, v = autocast_inputs(q, k, v)
    work = q.dtype if q.dtype == torch.float64 else torch.float32
    seed = draw_seed() if dropout else 0
    out: Tensor = _BlockedAttention.apply(q.to(work), k.to(work), v.to(work), dropout, seed)
    return out.to(q.dtype)


class _BlockedAttention(torch.autograd.Function):
    @staticmethod
    @without_autocast
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, dropout: float, seed: int) -> Tensor:
        out, log_sums = torch.empty_like(v, memory_format=torch.contiguous_format), q.new_empty(*q.shape[:-1], 1)
        masks = Masks(dropout, seed)
        for part in _groups(q / math.sqrt(q.shape[-1]), k, v, out, log_sums):
            _attend(masks, *part)
        ctx.save_for_backward(q, k, v, out, log_sums)
        ctx.dropout, ctx.seed = dropout, seed
        return out

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, log_sums = ctx.saved_tensors
        if only_by_torch(gradients):
            return gradients_again(explicit_attention, (q, k, v, ctx.dropout, ctx.seed), gradients)
        d_out, masks, scale = gradients[0], Masks(ctx.dropout, ctx.seed), 1 / math.sqrt(q.shape[-1])
        dots = (d_out * out).sum(-1, keepdim=True)
        # one more column, so that a product is already the score less the logarithm of its row's sum
        queries, keys = torch.cat([q * scale, -log_sums], -1), torch.cat([k, torch.ones_like(log_sums)], -1)
        d_q, d_k, d_v = (torch.zeros_like(v, memory_format=torch.contiguous_format) for _ in range(3))
        for part in _groups(queries, keys, v, d_out / (1 - ctx.dropout), dots, d_q, d_k, d_v):
            _attend_backward(masks, *part)
        return d_q.mul_(scale), d_k, d_v, None, None


def _attend(masks: Masks, q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sums: Tensor) -> None:
    """Fill `out` and `log_sums` of some heads, (G, T, ·)."""
    for t, past, future in _blocks(q):
        # Eq. (5): softmax(<q, k_i> / sqrt(d_k)) v, its division left to the end, where there is less to divide
        scores = torch.bmm(q[:, t], k[:, : t.stop].mT)  # (G, Q, S)
        beside = scores[..., t]
        beside.masked_fill_(future, -math.inf)
        top = scores.amax(-1, keepdim=True)
        scores.sub_(top)
        beside.clamp_(min=-64.0)  # exp is slow where its result is zero or nearly so
        weights = scores.exp_()
        beside.mul_(past)
        sums = weights.sum(-1, keepdim=True)
        log_sums[:, t] = sums.log().add_(top)
        if masks.dropout:
            weights.mul_(masks.draw(weights.shape))
        out[:, t] = torch.bmm(weights, v[:, : t.stop]).div_(sums.mul_(1 - masks.dropout))


def _attend_backward(
    masks: Masks,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    d_out: Tensor,
    dots: Tensor,
    d_q: Tensor,
    d_k: Tensor,
    d_v: Tensor,
) -> None:
    """Fill the gradients of some heads.

    With weights P, mask M and A = P ∘ M / (1 - dropout): dV = Aᵀ dO, and dS = A ∘ dO Vᵀ - P ∘ <dO, O>.
    """
    K = v.shape[-1]
    for t, past, _ in _blocks(q):
        weights = torch.bmm(q[:, t], k[:, : t.stop].mT)  # (G, Q, S)
        beside = weights[..., t]
        beside.clamp_(max=0.0)
        weights.exp_()
        beside.mul_(past)
        kept = weights * masks.draw(weights.shape) if masks.dropout else weights
        d_here = d_out[:, t]
        d_v[:, : t.stop].baddbmm_(kept.mT, d_here)
        d_scores = torch.bmm(d_here, v[:, : t.stop].mT)
        d_scores.mul_(kept).addcmul_(weights, dots[:, t], value=-1)
        d_q[:, t] = torch.bmm(d_scores, k[:, : t.stop, :K])
        d_k[:, : t.stop].baddbmm_(d_scores.mT, q[:, t, :K])


def _groups(first: Tensor, *more: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """The heads of all sequences, (B · H, T, ·), G of them at a time."""
    G = max(1, SCORES // (QUERIES * first.shape[2]))
    return zip(*(x.flatten(0, 1).split(G) for x in (first, *more)), strict=True)


def _blocks(q: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Each block's queries; for them and the keys beside them, (Q, Q), 1 in the past, and True in the future."""
    T = q.shape[1]
    past = q.new_ones(QUERIES, QUERIES).tril_()
    future = past == 0
    for start in range(0, T, QUERIES):
        Q = min(QUERIES, T - start)
        yield slice(start, start + Q), past[:Q, :Q], future[:Q, :Q]


def explicit_attention(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H T K"], v: Float[Tensor, "B H T K"], dropout: float, seed: int
) -> Float[Tensor, "B H T K"]:
    """What the blocks compute, by one (T, T) tensor of weights with the same mask: for gradients of gradients."""
    T, masks = q.shape[2], Masks(dropout, seed)
    kept = q.new_ones(*q.shape[:3], T)
    for (heads,) in _groups(kept) if dropout else ():
        for t, _, _ in _blocks(heads):
            heads[:, t, : t.stop] = masks.draw(heads[:, t, : t.stop].shape).to(q.dtype)
    future = q.new_ones(T, T, dtype=torch.bool).triu_(1)
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -math.inf).softmax(-1)
    return weights * kept / (1 - dropout) @ v


def _cannot(q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> str | None:
    return no_masks(q, dropout) or no_hand_written_gradient(q, k, v) or _several_shapes(q, k, v)


def _cannot_natively(q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> str | None:
    return no_masks(q, dropout) or no_native_code(q, k, v) or _several_shapes(q, k, v)


def _several_shapes(q: Tensor, k: Tensor, v: Tensor) -> str | None:
    return None if q.shape == k.shape == v.shape else "it takes queries, keys and values of one shape"


def _gains_nothing(q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> str | None:
    return None if dropout else "without dropout torch's function is faster"


causal_attention = Operation(
    "causal_attention",
    {
        "native": Kernel(native_attention, _cannot_natively, _gains_nothing),
        "fused": Kernel(fused_attention, _cannot, _gains_nothing),
        "torch": Kernel(torch_attention),
    },
)
"""`causal_attention(q, k, v, dropout)`, (B, H, T, K): each position's look at itself and at every earlier one."""
