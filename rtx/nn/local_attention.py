"""Attention to the last positions only: memory linear in the length, and a stream's state that stops growing.

Sliding window: Beltagy, Peters & Cohan (2020), Longformer; one head of keys and values: Shazeer (2019), Fast
Transformer Decoding; both with rotary positions as in De et al. (2024), Griffin, §2.3.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.rotary import rotate
from rtx.nn.state import State, check_state
from rtx.nn.validate import check_fraction, check_positive, check_sequence, check_step


class LocalAttention(nn.Module):
    """Each position looks at the last `window` positions, itself included: H heads of queries, one of keys and values.

    Only distances count with rotary positions, so they are numbered from the start of the keys in view: angles stay
    small however long the stream. The projections have no biases.

    Args:
        d_model: D, width of the input and of the output.
        heads: H, must divide D into an even width.
        window: W, positions in view.
        dropout: share of the attention weights set to zero in training.

    Raises:
        ValueError: if a size is below 1, D / H is not whole and even, or dropout is not in [0, 1).
    """

    def __init__(self, d_model: int, heads: int, window: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model, self.heads = check_positive("d_model", d_model), check_positive("heads", heads)
        self.window, self.dropout = check_positive("window", window), check_fraction("dropout", dropout)
        if d_model % (2 * heads):
            raise ValueError(f"heads: expected heads of even width in d_model = {d_model}, got {heads}")
        width = d_model // heads
        self.query, self.output = (nn.Linear(d_model, d_model, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(d_model, width, bias=False) for _ in range(2))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Refine every position by what it attends to.

        The sequence is cut into blocks as long as the window: a block's queries see keys of their own block and of
        the one before, so that no more than 2 W scores are made for a query.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("x", x, self.d_model, like=self.query.weight)
        T, S = x.shape[1], min(self.window, x.shape[1])  # S positions in a block
        q, k, v = self._project(F.pad(x, (0, 0, 0, -T % S)))
        q = rotate(q.unflatten(2, (-1, S)).transpose(1, 2), S)  # (B, blocks, H, S, K)
        k, v = rotate(_with_block_before(k, S)), _with_block_before(v, S)  # (B, blocks, 1, 2 S, K)
        mask = self._sees(S, 2 * S, x.device).repeat(*q.shape[:2], 1, 1, 1)  # (B, blocks, 1, S, 2 S)
        mask[:, 0, :, :, :S] = False  # before the first block there is nothing
        # as one batch of blocks, (B · blocks, H, S, K): torch's fast kernels take no more dimensions
        seen = self._attend(*(each.flatten(0, 1) for each in (q, k, v, mask))).unflatten(0, q.shape[:2])
        return self._join(seen.transpose(1, 2).flatten(2, 3)[:, :, :T])

    def step(
        self, x: Float[Tensor, "B D"], state: State | None = None
    ) -> tuple[Float[Tensor, "B D"], tuple[Float[Tensor, "B S K"], Float[Tensor, "B S K"]]]:
        """One position of a stream; the state holds the keys and values in view, the oldest first, W at most.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=self.query.weight)
        q, k, v = self._project(x[:, None])
        k, v = k.squeeze(1), v.squeeze(1)  # (B, 1, K)
        if state is not None:
            check_state(state, *[(len(x), None, k.shape[-1])] * 2)
            k, v = (torch.cat(both, 1)[:, -self.window :] for both in zip(state, (k, v), strict=True))
        seen = self._attend(rotate(q, k.shape[1] - 1), rotate(k)[:, None], v[:, None])
        return self._join(seen).squeeze(1), (k, v)

    def weights(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B H T T"]:
        """The attention weights that `forward` applies to `x` without dropout, zero outside the window.

        Raises:
            ValueError: as `forward`.
        """
        check_sequence("x", x, self.d_model, like=self.query.weight)
        q, k, _ = self._project(x)
        scores = rotate(q) @ rotate(k).transpose(-2, -1) / math.sqrt(q.shape[-1])
        return scores.masked_fill(~self._sees(x.shape[1], x.shape[1], x.device), -math.inf).softmax(-1)

    def inside(self, x: Float[Tensor, "B T D"]) -> dict[str, Tensor]:
        """By name: the weights, `attention`, (B, H, T, T)."""
        return {"attention": self.weights(x)}

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, T, K), keys and values (B, 1, T, K)."""
        q = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return q, self.key(x)[:, None], self.value(x)[:, None]

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, H, T, K); the one head of keys and values, (B, 1, S, K), serves all."""
        k, v = k.expand(-1, self.heads, -1, -1), v.expand(-1, self.heads, -1, -1)
        return F.scaled_dot_product_attention(q, k, v, mask, self.dropout if self.training else 0.0)

    def _join(self, heads: Tensor) -> Tensor:
        return self.output(heads.transpose(1, 2).flatten(2))

    def _sees(self, queries: int, keys: int, device: torch.device) -> Bool[Tensor, "T S"]:
        """(T, S), True where a key is one of the last W; the queries are the last T of the S positions."""
        at = torch.arange(keys, device=device)
        back = at[keys - queries :, None] - at
        return (back >= 0) & (back < self.window)


def _with_block_before(x: Float[Tensor, "B 1 T K"], size: int) -> Float[Tensor, "B blocks 1 twice K"]:
    """Each block of `size` positions behind the one before it; before the first stand zeros."""
    blocks = F.pad(x, (0, 0, size, 0)).unflatten(2, (-1, size))  # (B, 1, 1 + blocks, size, K)
    return torch.cat([blocks[:, :, :-1], blocks[:, :, 1:]], 3).transpose(1, 2)
