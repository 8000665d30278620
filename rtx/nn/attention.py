"""Multi-head attention over the past.

Wang et al. (2019), R-Transformer, §3.2, Eq. 4-6; Vaswani et al. (2017), §3.2.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.masks import causal_mask, masked_softmax
from rtx.nn.ops.attention import causal_attention, masked_attention
from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_divides, check_fraction, check_positive, check_sequence, check_tensor

BLOCK = 256  # queries whose scores exist at a time, if `scores` is overridden and there is no mask


class Heads(nn.Module):
    """The projections of multi-head attention. They have no biases, as in Eq. 4 and 6.

    `MultiHeadAttention` documents the arguments.
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model, self.heads = check_positive("d_model", d_model), check_divides("heads", heads, d_model)
        self.dropout = check_fraction("dropout", dropout)
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def split(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B H T K"]:
        """Split the last axis into heads."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def scores(self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T S"]:
        """Return how well each query matches each key, before masking."""
        # Eq. (5): <q, k_i> / sqrt(d_k)
        return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])

    def join(self, heads: Float[Tensor, "B H T K"]) -> Float[Tensor, "B T D"]:
        """Put the heads side by side, then apply W^o."""
        # Eq. (4)
        return self.output(heads.transpose(1, 2).flatten(2))


class MultiHeadAttention(Heads):
    """By default, each position attends to itself and to every earlier position, with H heads of width K = D / H.

    One call of torch or of the native code computes scores, softmax and sum together. `scores`, `attention_weights` and
    `weighted_sum` spell the same out, for `weights` and for subclasses. A subclass can compute the scores in another
    way, for example with relative positions. It sets `own_scores` to True and overrides `scores`. If the values depend
    on positions as well, it also overrides `weighted_sum`.

    Args:
        d_model: D, width of the input and of the output.
        heads: H; must divide D.
        dropout: probability that an attention weight is set to zero in training.
    """

    own_scores = False  # True in a subclass that overrides `scores`: the fast implementations never call `scores`

    def weighted_sum(self, weights: Float[Tensor, "B H T S"], v: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T K"]:
        """Return the weighted sum of the values."""
        # Eq. (5): Σ_i α_i v_i
        return weights @ v

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: Bool[Tensor, "*shared T S"] | None = None,
        context: Float[Tensor, "B S D"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return for each position a mixture of the positions that it attends to.

        Args:
            x: the sequence.
            mask: True where a query (row) may attend to a key (column). The shape is (T, S), or (B, H, T, S) if the
                sequences or the heads have different masks; B and H may be 1. A query that may see nothing mixes
                nothing: see `rtx.nn.masks`. Attention by distance (`rtx.nn.relative`) is defined for the past only, so
                there the mask must hide all later keys.
            context: the S positions that are attended to; by default `x`. Without a mask, `x` are the last T of them.
        """
        check_sequence("x", x, self.d_model)
        q, k, v = self.project(x, context)
        self._check_mask(mask, q, k)
        return self.join(self.attend(q, k, v, mask))

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has the keys and values so far, (B, H, S, K) each."""
        check_sequence("x", x, self.d_model)
        q, k, v = self.project(x)
        if state is not None:
            check_state(state, *[(x.shape[0], self.heads, None, k.shape[-1])] * 2)
            k, v = torch.cat([state[0], k], 2), torch.cat([state[1], v], 2)
        return self.join(self.attend(q, k, v)), (k, v)

    def weights(
        self, x: Float[Tensor, "B T D"], mask: Bool[Tensor, "*shared T T"] | None = None
    ) -> Float[Tensor, "B H T T"]:
        """Return the attention weights of `forward`, without dropout. A row that may see nothing is 0."""
        q, k, _ = self.project(x)
        self._check_mask(mask, q, k)
        return self.attention_weights(q, k, mask)

    def introspect(
        self, x: Tensor, mask: Tensor | None = None, context: Tensor | None = None
    ) -> dict[str, Float[Tensor, "B H T T"]]:
        """Return "weights", the attention weights. With a context it is empty: `SegmentMemory` shows them itself."""
        return {} if context is not None else {"weights": self.weights(x, mask)}

    def project(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries of `x`, and the keys and values of the context, which is `x` by default."""
        context = x if context is None else context
        # Eq. (6), all heads in one product
        return self.split(self.query(x)), self.split(self.key(context)), self.split(self.value(context))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Float[Tensor, "B H T K"]:
        """Let T queries attend to S keys. Without a mask, the queries are at the last T of the S positions."""
        dropout = self.dropout if self.training else 0.0
        T, S = q.shape[-2], k.shape[-2]
        if not self.own_scores:
            # Eq. (5) in one call: softmax(q K^T / sqrt(d_k)) V
            if mask is None and T == S > 1:
                return causal_attention(q, k, v, dropout)
            if mask is None and T > 1:  # nothing is hidden from a single query, which is at the last position
                mask = causal_mask(T, S, q.device)
            return masked_attention(q, k, v, mask, dropout)
        # An exported program has one block. Several would limit it to lengths with the same number of blocks.
        if mask is not None or torch.compiler.is_compiling() or T <= BLOCK:
            return self.weighted_sum(F.dropout(self.attention_weights(q, k, mask), dropout), v)
        outputs = []
        for start in range(0, T, BLOCK):
            block = q[..., start : start + BLOCK, :]
            end = S - T + start + block.shape[-2]  # this block of queries does not see later keys
            weights = F.dropout(self.attention_weights(block, k[..., :end, :], None), dropout)
            outputs.append(self.weighted_sum(weights, v[..., :end, :]))
        return torch.cat(outputs, -2)

    def attention_weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Float[Tensor, "B H T S"]:
        """Return the attention weights of queries and keys, Eq. (5); the mask is causal by default."""
        mask = causal_mask(q.shape[-2], k.shape[-2], q.device) if mask is None else mask
        return masked_softmax(self.scores(q, k), mask)

    @staticmethod
    def _check_mask(mask: Tensor | None, q: Tensor, k: Tensor) -> None:
        if mask is None:
            return
        check_tensor("mask", mask)
        (B, H, T, _), S = q.shape, k.shape[-2]
        fits = mask.dtype == torch.bool and mask.device == q.device and mask.shape[-2:] == (T, S)
        if mask.ndim == 4:
            fits = fits and mask.shape[0] in (B, 1) and mask.shape[1] in (1, H)
        elif mask.ndim != 2:  # torch would use the first axis of (B, T, T) for the heads
            fits = False
        if not fits:
            allowed = f"bool of shape ({T}, {S}) or ({B} or 1, {H} or 1, {T}, {S}) on {q.device}"
            raise ValueError(f"mask: expected {allowed}, got {mask.dtype} of {tuple(mask.shape)} on {mask.device}")


def keys_so_far(state: State | None) -> int:
    """Return how many positions an attention layer has read in a stream: the number of keys in its state."""
    if state is None:
        return 0
    check_state(state, (None,) * 4, (None,) * 4)
    return state[0].shape[2]
