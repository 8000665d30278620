"""Causal attention with dropout in torch, a block of queries at a time, without a (T, T) tensor.

Rabe & Staats (2021), Self-attention Does Not Need O(n²) Memory; Dao et al. (2022), FlashAttention. The forward pass
stores only the largest score and the sum of each row. The backward pass computes each block again, with the same mask.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int8
from torch import Tensor

from rtx.nn.ops.gradients import autocast_inputs, first_derivatives_only, without_autocast

QUERIES = 64  # Q of a block: longer blocks waste work above the diagonal, shorter ones are more calls
SCORES = 2**17  # numbers in a block, so that the arrays of this size stay in a core's cache


def blocked_attention(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H T K"], v: Float[Tensor, "B H T K"], dropout: float
) -> Float[Tensor, "B H T K"]:
    """Compute attention block by block, in float32 at least."""
    q, k, v = autocast_inputs(q, k, v)
    work = torch.promote_types(q.dtype, torch.float32)
    seed = draw_seed() if dropout else 0
    out: Tensor = _BlockedAttention.apply(q.to(work), k.to(work), v.to(work), dropout, seed)
    return out.to(q.dtype)


def draw_seed() -> int:
    """Draw the seed of a mask from torch's generator, so that `torch.manual_seed` makes masks repeatable."""
    return int(torch.randint(2**62, (), device="cpu"))


class Masks:
    """A sequence of dropout masks, the same for the same seed.

    Each weight gets a random byte, which is 15 times faster than torch's own masks. A rate that 256ths cannot express
    is met on average: each row draws one of the two neighbouring rates.
    """

    def __init__(self, dropout: float, seed: int) -> None:
        self.dropout, self.generator = dropout, torch.Generator().manual_seed(seed)

    def draw(self, shape: torch.Size) -> Int8[Tensor, "*rows S"]:
        """Return the next mask: 1 for a weight that is kept, else 0."""
        count = math.prod(shape)
        words = torch.empty((count + 7) // 8, dtype=torch.int64, device="cpu")
        words.random_(-(2**63), None, generator=self.generator)
        rows = torch.rand(*shape[:-1], 1, generator=self.generator, device="cpu")
        # 255 plus a row's fraction may round up to 256, which no byte can hold
        least = rows.add_(256 * self.dropout).floor_().clamp_(max=255).sub_(128).to(torch.int8)
        return words.view(torch.int8)[:count].view(shape).ge_(least)


class _BlockedAttention(torch.autograd.Function):
    @staticmethod
    @without_autocast
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, dropout: float, seed: int) -> Tensor:
        out, rows = torch.empty_like(v, memory_format=torch.contiguous_format), q.new_empty(*q.shape[:-1], 2)
        masks = Masks(dropout, seed)
        for heads in _groups(q / math.sqrt(q.shape[-1]), k, v, out, rows):
            _attend(masks, *heads)
        ctx.save_for_backward(q, k, v, out, rows)
        ctx.dropout, ctx.seed = dropout, seed
        return out

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, rows = ctx.saved_tensors
        first_derivatives_only("causal_attention", gradients)
        masks, root, (tops, sums) = Masks(ctx.dropout, ctx.seed), math.sqrt(q.shape[-1]), rows.split(1, -1)
        d_out = gradients[0] / sums  # instead of the weights: there is less to divide
        dots = (d_out * out).sum(-1, keepdim=True)
        d_q, d_k, d_v = (torch.zeros_like(v, memory_format=torch.contiguous_format) for _ in range(3))
        for heads in _groups(q / root, k, v, d_out / (1 - ctx.dropout), tops, dots, d_q, d_k, d_v):
            _attend_backward(masks, *heads)
        return d_q.div_(root), d_k, d_v, None, None


def _attend(masks: Masks, q: Tensor, k: Tensor, v: Tensor, out: Tensor, rows: Tensor) -> None:
    """Fill `out`, and in `rows` the largest score and the sum of the powers, for a group of heads, (G, T, ·)."""
    for t, past, future in _blocks(q):
        # Eq. (5) of R-Transformer, softmax(<q, k_i> / sqrt(d_k)) v. The division comes last: there is less to divide.
        scores = torch.bmm(q[:, t], k[:, : t.stop].mT)  # (G, Q, S)
        diagonal = scores[..., t]
        diagonal.masked_fill_(future, -math.inf)
        top = scores.amax(-1, keepdim=True)
        empty = top == -math.inf  # torch returns zeros for such a row
        weights = _powers(scores, top.masked_fill_(empty, 0.0), diagonal, past)
        sums = weights.sum(-1, keepdim=True).masked_fill_(empty, math.inf)
        rows[:, t] = torch.cat([top, sums], -1)
        if masks.dropout:
            weights.mul_(masks.draw(weights.shape))
        out[:, t] = torch.bmm(weights, v[:, : t.stop]).div_(sums.mul_(1 - masks.dropout))


def _powers(scores: Tensor, top: Tensor, diagonal: Tensor, past: Tensor) -> Tensor:
    """Turn scores into exp(score - top), and into 0 in the future, which is in the diagonal square."""
    scores.sub_(top)
    diagonal.clamp_(min=-64.0, max=0.0)  # exp is slow if its result is a denormal number
    scores.exp_()
    diagonal.mul_(past)
    return scores


def _attend_backward(masks: Masks, *heads: Tensor) -> None:
    """Fill the gradients of a group of heads.

    With weights P, mask M and A = P ∘ M / (1 - dropout): dV = Aᵀ dO, and dS = A ∘ dO Vᵀ - P ∘ <dO, O>. Here P is not
    yet divided by its sums, but dO and <dO, O> are.
    """
    q, k, v, d_out, tops, dots, d_q, d_k, d_v = heads
    for t, past, _ in _blocks(q):
        weights = torch.bmm(q[:, t], k[:, : t.stop].mT)  # (G, Q, S)
        weights = _powers(weights, tops[:, t], weights[..., t], past)
        dropped = weights * masks.draw(weights.shape) if masks.dropout else weights
        d_block = d_out[:, t]
        d_v[:, : t.stop].baddbmm_(dropped.mT, d_block)
        d_scores = torch.bmm(d_block, v[:, : t.stop].mT)
        d_scores.mul_(dropped).addcmul_(weights, dots[:, t], value=-1)
        d_q[:, t] = torch.bmm(d_scores, k[:, : t.stop])
        d_k[:, : t.stop].baddbmm_(d_scores.mT, q[:, t])


def _groups(first: Tensor, *more: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield all heads of all sequences, (B · H, T, ·), G of them at a time."""
    G = max(1, SCORES // (QUERIES * first.shape[2]))
    return zip(*(x.flatten(0, 1).split(G) for x in (first, *more)), strict=True)


def _blocks(q: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield each block's queries, and masks of its diagonal square, (Q, Q): 1 in the past, True in the future."""
    T = q.shape[1]
    past = q.new_ones(QUERIES, QUERIES).tril_()
    future = past == 0
    for start in range(0, T, QUERIES):
        Q = min(QUERIES, T - start)
        yield slice(start, start + Q), past[:Q, :Q], future[:Q, :Q]
