"""Attention to the last positions only: the memory is linear in the length, and a stream's state has a fixed size.

Sliding window: Beltagy, Peters & Cohan (2020), Longformer. One head of keys and values: Shazeer (2019), Fast
Transformer Decoding. Rotary positions: Su et al. (2021). All three as in De et al. (2024), Griffin, §2.3.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

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
        """Return for each position a mixture of the positions in its window."""
        return self.read(x)[0]

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has the keys and values in view, (B, W, K) each at most.

        A long piece is read in pieces as long as the window, so that each query has at most 2 W scores (with a window
        below 64 at most W + 64).
        """
        outputs = []
        for piece in x.split(max(self.window, LEAST), 1):
            y, state = self._read(piece, state)
            outputs.append(y)
        assert state is not None
        return torch.cat(outputs, 1), state

    def _read(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Read a few positions."""
        q, k, v, T = self._queries(x), self.key(x), self.value(x), x.shape[1]
        if state is not None:
            check_state(state, *[(x.shape[0], None, k.shape[-1])] * 2)
            k, v = (torch.cat(both, 1) for both in zip(state, (k, v), strict=True))
            # an exported program leaves the length open, so it must not depend on whether a position leaves the window
            kept = torch.arange(torch.sym_max(k.shape[1] - self.window - T + 1, 0), k.shape[1], device=x.device)
            k, v = k.index_select(1, kept), v.index_select(1, kept)
        S = k.shape[1]
        mask = self._visible(T, S, x.device) if T > 1 else None  # one position sees all that is kept
        q, dropout = rotate(q, S - T), self.dropout if self.training else 0.0
        keys, values = (part[:, None].expand(-1, self.heads, -1, -1) for part in (rotate(k), v))  # all heads share them
        y = self.output(masked_attention(q, keys, values, mask, dropout).transpose(1, 2).flatten(2))
        return y, (k, v) if T == 1 else (k[:, -self.window :], v[:, -self.window :])

    def weights(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B H T T"]:
        """Return the attention weights of `forward`, without dropout. They are zero outside the window."""
        q, k = self._queries(x), self.key(x)[:, None]
        scores = rotate(q) @ rotate(k).transpose(-2, -1) / math.sqrt(q.shape[-1])
        return masked_softmax(scores, self._visible(x.shape[1], x.shape[1], x.device))

    def introspect(self, x: Float[Tensor, "B T D"]) -> dict[str, Tensor]:
        """Return "weights", the attention weights, (B, H, T, T)."""
        return {"weights": self.weights(x)}

    def _queries(self, x: Tensor) -> Float[Tensor, "B H T K"]:
        return self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _visible(self, queries: int, keys: int, device: torch.device) -> Bool[Tensor, "T S"]:
        """Return True where a key is one of the last W. The queries are the last T of the S positions."""
        at = torch.arange(keys, device=device)
        back = at[keys - queries :, None] - at
        return (back >= 0) & (back < self.window)
