"""Multi-head attention from a target sequence to a source sequence.

Vaswani et al. (2017), Attention Is All You Need, §3.2.3, "encoder-decoder attention".
"""

from jaxtyping import Bool, Float
from torch import Tensor

from rtx.nn.attention import Heads
from rtx.nn.masks import masked_softmax
from rtx.nn.ops.attention import masked_attention
from rtx.nn.streaming import State, check_state


class CrossAttention(Heads):
    """Each target position attends to every real source position, with H heads of width K = D / H.

    `encode` projects the source to keys and values once, however many target positions then read it.

    Args:
        d_model: D, width of both sequences.
        heads: H; must divide D.
        dropout: probability that an attention weight is set to zero in training.
    """

    def encode(self, source: Float[Tensor, "B S D"], real: Bool[Tensor, "B S"]) -> State:
        """Return the source's keys and values, (B, H, S, K) each, and `real`: True where a position is not padding."""
        source = source.masked_fill(~real[..., None], 0.0)  # see `rtx.nn.masks`
        return self.split(self.key(source)), self.split(self.value(source)), real

    def forward(self, x: Float[Tensor, "B T D"], encoded: State) -> Float[Tensor, "B T D"]:
        """Return for each target position a mixture of the source's positions.

        Args:
            x: the target.
            encoded: what `encode` returned for the source.
        """
        keys, values, mask = self._source(x, encoded)
        dropout = self.dropout if self.training else 0.0
        return self.join(masked_attention(self.split(self.query(x)), keys, values, mask, dropout))

    def read(self, x: Float[Tensor, "B T D"], state: State) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of the target. The state is what `encode` returned; it does not change."""
        return self(x, state), state

    def weights(self, x: Float[Tensor, "B T D"], encoded: State) -> Float[Tensor, "B H T S"]:
        """Return the attention weights of `forward`, without dropout. Each row sums to 1; padding has weight 0."""
        keys, _, mask = self._source(x, encoded)
        q = self.split(self.query(x))
        return masked_softmax(self.scores(q, keys), mask)

    def introspect(self, x: Float[Tensor, "B T D"], encoded: State) -> dict[str, Tensor]:
        """Return "weights", (B, H, T, S)."""
        return {"weights": self.weights(x, encoded)}

    def _source(self, x: Tensor, encoded: State) -> tuple[Tensor, Tensor, Tensor]:
        """Return the keys, the values, and the mask (B, 1, T, S)."""
        B, T, D = x.shape
        shape = (B, self.heads, None, D // self.heads)
        check_state(encoded, shape, shape, (B, None))
        keys, values, real = encoded
        return keys, values, real[:, None, None].expand(B, 1, T, -1)
