"""Multi-head attention from one sequence to another: what a decoder reads its source with.

Vaswani et al. (2017), Attention Is All You Need, §3.2.3, "encoder-decoder attention".
"""

from jaxtyping import Bool, Float
from torch import Tensor

from rtx.nn.attention import MultiHeadAttention
from rtx.nn.state import State, check_state
from rtx.nn.validate import check_sequence, check_step


class CrossAttention(MultiHeadAttention):
    """Each position of the target looks at every real position of the source, with H heads of width K = D / H.

    The source is projected to keys and values once (`remember`), however many positions of the target then read it.
    Arguments and errors are those of `MultiHeadAttention`.
    """

    def remember(self, source: Float[Tensor, "B S D"], real: Bool[Tensor, "B S"]) -> State:
        """The source's keys and values, (B, H, S, K) each, and which positions are real; each sequence needs one.

        Raises:
            ValueError: if `source` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("source", source, self.d_model, like=self.query.weight)
        return self._heads(self.key(source)), self._heads(self.value(source)), real

    def forward(self, x: Float[Tensor, "B T D"], remembered: State) -> Float[Tensor, "B T D"]:  # type: ignore[override]
        """Refine every position of the target by what it finds in the source.

        Args:
            x: the target.
            remembered: what `remember` returned for the source.

        Raises:
            ValueError: if `x` has the wrong shape, dtype or device, or `remembered` is another model's or batch's.
        """
        keys, values, mask = self._source(x, remembered)
        return self._join(self._attend(self._heads(self.query(x)), keys, values, mask))

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:  # type: ignore[override]
        """One position of the target; the state is what `remember` returned, and stays so.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's, or missing.
        """
        check_step("x", x, self.d_model, like=self.query.weight)
        if state is None:
            raise ValueError("state: expected what remember returned for the source, got None")
        return self(x[:, None], state).squeeze(1), state

    def weights(self, x: Float[Tensor, "B T D"], remembered: State) -> Float[Tensor, "B H T S"]:  # type: ignore[override]
        """The attention weights that `forward` applies without dropout: each row sums to 1, padding has 0.

        Raises:
            ValueError: as `forward`.
        """
        keys, _, mask = self._source(x, remembered)
        return self._weights(self._heads(self.query(x)), keys, mask)

    def inside(self, x: Float[Tensor, "B T D"], remembered: State) -> dict[str, Tensor]:  # type: ignore[override]
        """What `forward` computes with, by name: "weights", (B, H, T, S)."""
        return {"weights": self.weights(x, remembered)}

    def _source(self, x: Tensor, remembered: State) -> tuple[Tensor, Tensor, Tensor]:
        """Keys, values, and the mask (B, 1, T, S)."""
        check_sequence("x", x, self.d_model, like=self.query.weight)
        B, T, D = x.shape
        shape = (B, self.heads, None, D // self.heads)
        check_state(remembered, shape, shape, (B, None))
        keys, values, real = remembered
        return keys, values, real[:, None, None].expand(B, 1, T, -1)
