"""Attention to the last positions only: the memory is linear in the length, and a stream's state has a fixed size.

Sliding window: Beltagy, Peters & Cohan (2020), Longformer. One head of keys and values: Shazeer (2019), Fast
Transformer Decoding. Rotary positions: Su et al. (2021). All three as in De et al. (2024), Griffin, §2.3.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.masks import masked_softmax
from rtx.nn.ops.attention import masked_attention
from rtx.nn.position import rotate
from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_fraction, check_positive

LEAST = 64  # positions that are read at a time


class LocalAttention(nn.Module):
    """Each position attends to the last `window` positions, itself included. H heads share one key and one value.

    With rotary positions only distances matter. So the positions are counted from the first visible key, and the angles
    stay small however long the stream is. The projections have no biases. The authors' code of Griffin differs: it
    rotates the first half of each head, has a bias on the output, and sees W + 1 positions.

    Args:
        d_model: D, width of the input and of the output.
        heads: H; must divide D into heads of even width.
        window: W, number of visible positions.
        dropout: probability that an attention weight is set to zero in training.
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
        """Return for each position a mixture of the positions in its window.

        The sequence is cut into blocks as long as the window. The queries of a block see the keys of their own block
        and of the block before, so each query has at most 2 W scores.
        """
        T, S = x.shape[1], min(self.window, x.shape[1])  # S positions in a block
        q, k, v = self._project(F.pad(x, (0, 0, 0, -T % S)))
        q = rotate(q.unflatten(2, (-1, S)).transpose(1, 2), S)  # (B, blocks, H, S, K)
        k, v = rotate(_with_block_before(k, S)), _with_block_before(v, S)  # (B, blocks, 1, 2 S, K)
        mask = self._visible(S, 2 * S, x.device).repeat(*q.shape[:2], 1, 1, 1)  # (B, blocks, 1, S, 2 S)
        mask[:, 0, :, :, :S] = False  # there is nothing before the first block
        # as one batch of blocks, (B · blocks, H, S, K): torch's fast implementations take four dimensions
        seen = self._attend(*(each.flatten(0, 1) for each in (q, k, v, mask))).unflatten(0, q.shape[:2])
        return self._join(seen.transpose(1, 2).flatten(2, 3)[:, :, :T])

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has the keys and values in view, (B, W, K) each at most."""
        outputs = []
        for piece in x.split(max(self.window, LEAST), 1):  # a query then has few scores, at most W more than positions
            y, state = self._read(piece, state)
            outputs.append(y)
        assert state is not None
        return torch.cat(outputs, 1), state

    def _read(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Read a few positions."""
        q, k, v = self._project(x)
        k, v, T = k.squeeze(1), v.squeeze(1), x.shape[1]  # (B, T, K)
        if state is not None:
            check_state(state, *[(x.shape[0], None, k.shape[-1])] * 2)
            k, v = (torch.cat(both, 1) for both in zip(state, (k, v), strict=True))
            # an exported program leaves the length open, so it must not depend on whether a position leaves the window
            kept = torch.arange(torch.sym_max(k.shape[1] - self.window - T + 1, 0), k.shape[1], device=x.device)
            k, v = k.index_select(1, kept), v.index_select(1, kept)
        S = k.shape[1]
        mask = self._visible(T, S, x.device) if T > 1 else None  # one position sees all that is kept
        seen = self._attend(rotate(q, S - T), rotate(k)[:, None], v[:, None], mask)
        return self._join(seen), (k, v) if T == 1 else (k[:, -self.window :], v[:, -self.window :])

    def weights(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B H T T"]:
        """Return the attention weights of `forward`, without dropout. They are zero outside the window."""
        q, k, _ = self._project(x)
        scores = rotate(q) @ rotate(k).transpose(-2, -1) / math.sqrt(q.shape[-1])
        return masked_softmax(scores, self._visible(x.shape[1], x.shape[1], x.device))

    def introspect(self, x: Float[Tensor, "B T D"]) -> dict[str, Tensor]:
        """Return "weights", the attention weights, (B, H, T, T)."""
        return {"weights": self.weights(x)}

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries (B, H, T, K), and keys and values (B, 1, T, K)."""
        q = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return q, self.key(x)[:, None], self.value(x)[:, None]

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend with all H heads of queries to the one head of keys and values."""
        k, v = k.expand(-1, self.heads, -1, -1), v.expand(-1, self.heads, -1, -1)
        y: Tensor = masked_attention(q, k, v, mask, self.dropout if self.training else 0.0)
        return y

    def _join(self, heads: Tensor) -> Tensor:
        return self.output(heads.transpose(1, 2).flatten(2))

    def _visible(self, queries: int, keys: int, device: torch.device) -> Bool[Tensor, "T S"]:
        """Return True where a key is one of the last W. The queries are the last T of the S positions."""
        at = torch.arange(keys, device=device)
        back = at[keys - queries :, None] - at
        return (back >= 0) & (back < self.window)


def _with_block_before(x: Float[Tensor, "B 1 T K"], size: int) -> Float[Tensor, "B blocks 1 twice K"]:
    """Return each block of `size` positions together with the block before it; zeros before the first."""
    blocks = F.pad(x, (0, 0, size, 0)).unflatten(2, (-1, size))  # (B, 1, 1 + blocks, size, K)
    return torch.cat([blocks[:, :, :-1], blocks[:, :, 1:]], 3).transpose(1, 2)
