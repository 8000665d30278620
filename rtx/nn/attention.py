"""Multi-head attention over the past.

Wang et al. (2019), R-Transformer, §3.2, Eq. 4-6; Vaswani et al. (2017), §3.2.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.kernels.attention import causal_attention
from rtx.nn.state import Cache, FixedCache, check_cache, empty_cache
from rtx.nn.validate import check_fraction, check_positive, check_sequence, check_step, check_tensor

BLOCK = 256  # queries whose explicit weights exist at the same time


class MultiHeadAttention(nn.Module):
    """Each position looks at itself and at every earlier one, with H heads of width K = D / H.

    The projections have no biases, as in Eq. 4 and 6. A variant (relative positions, say) overrides `scores`
    alone; plain causal scores go through kernels that never keep the (T, T) weights (`rtx.nn.kernels.attention`),
    and those with a mask through torch's, which on a CPU keeps the weights where there is dropout.

    Args:
        d_model: D, width of the input and of the output.
        heads: H, must divide D.
        dropout: share of the attention weights set to zero in training.

    Raises:
        ValueError: if a size is below 1, the heads do not divide the width, or dropout is not in [0, 1).
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model, self.heads = check_positive("d_model", d_model), check_positive("heads", heads)
        if d_model % heads:
            divisors = [h for h in range(1, d_model + 1) if d_model % h == 0]
            raise ValueError(f"heads: expected a divisor of d_model = {d_model}, {divisors}, got {heads}")
        self.dropout = check_fraction("dropout", dropout)
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def scores(self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T S"]:
        """How well each query matches each key, before masking. The method a variant overrides."""
        # Eq. (5): <q, k_i> / sqrt(d_k)
        return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])

    def gather(self, weights: Float[Tensor, "B H T S"], v: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T K"]:
        """What the attention weights gather from the values. A variant with positions in its values overrides it."""
        # Eq. (5): Σ_i α_i v_i
        return weights @ v

    def forward(
        self, x: Float[Tensor, "B T D"], mask: Bool[Tensor, "*shared T T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """Refine every position by what it attends to.

        Args:
            x: the sequence.
            mask: True where a query (row) may attend to a key (column), (T, T), or (B, 1, T, T) if the sequences
                differ; by default the past and the present. Each row needs a True.

        Raises:
            ValueError: if `x` or `mask` has the wrong shape, dtype or device, or `x` is empty.
        """
        check_sequence("x", x, self.d_model, like=self.query.weight)
        return self._join(self._attend(*self._project(x), mask))

    def step(
        self, x: Float[Tensor, "B D"], state: Cache | FixedCache | None = None
    ) -> tuple[Float[Tensor, "B D"], Cache | FixedCache]:
        """One position of a stream; the state holds the keys and values of the past.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's, or of fixed capacity where a
                variant's scores depend on the distance.
        """
        check_step("x", x, self.d_model, like=self.query.weight)
        q, k, v = self._project(x[:, None])
        cache = empty_cache(k) if state is None else check_cache(state, len(x), self.heads, k.shape[-1])
        if isinstance(cache, FixedCache) and self._is_variant():
            raise ValueError(f"state: {type(self).__name__} needs to know where a key is, which a fixed cache hides")
        cache = cache.append(k, v)
        return self._join(self._attend(q, cache.keys, cache.values, cache.mask)).squeeze(1), cache

    def weights(
        self, x: Float[Tensor, "B T D"], mask: Bool[Tensor, "*shared T T"] | None = None
    ) -> Float[Tensor, "B H T T"]:
        """The attention weights that `forward` applies to `x` without dropout: each row sums to 1.

        Raises:
            ValueError: as `forward`.
        """
        check_sequence("x", x, self.d_model, like=self.query.weight)
        q, k, _ = self._project(x)
        return self._weights(q, k, mask)

    def inside(self, x: Tensor, mask: Tensor | None = None) -> dict[str, Float[Tensor, "B H T T"]]:
        """What `forward` goes through: "weights", as the method of that name gives them."""
        return {"weights": self.weights(x, mask)}

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # Eq. (6), all heads in one product
        return self._heads(self.query(x)), self._heads(self.key(x)), self._heads(self.value(x))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, D) → (B, H, T, K)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Queries are the last T of the S positions that have keys; by default each sees those up to itself."""
        dropout = self.dropout if self.training else 0.0
        if self._is_variant():
            return self._attend_explicitly(q, k, v, mask, dropout)
        self._check_mask(mask, q, k)
        T, S = q.shape[-2], k.shape[-2]
        if mask is None and 1 < T == S:
            return causal_attention(q, k, v, dropout)
        if mask is None and T > 1:
            mask = causal_mask(T, S, q.device)
        return F.scaled_dot_product_attention(q, k, v, mask, dropout)

    def _is_variant(self) -> bool:
        kind = type(self)
        return kind.scores is not MultiHeadAttention.scores or kind.gather is not MultiHeadAttention.gather

    def _attend_explicitly(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
        """With the weights as a tensor; causal ones a block of queries at a time, on the keys it can see."""
        if mask is not None or q.shape[-2] <= BLOCK:
            return self.gather(F.dropout(self._weights(q, k, mask), dropout), v)
        before = k.shape[-2] - q.shape[-2]
        found = []
        for start in range(0, q.shape[-2], BLOCK):
            block = q[..., start : start + BLOCK, :]
            end = before + start + block.shape[-2]
            found.append(self._attend_explicitly(block, k[..., :end, :], v[..., :end, :], None, dropout))
        return torch.cat(found, -2)

    def _join(self, heads: Tensor) -> Tensor:
        # Eq. (4): heads side by side, then W^o
        return self.output(heads.transpose(1, 2).flatten(2))

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        scores = self.scores(q, k)
        self._check_mask(mask, q, k)
        if mask is None:
            mask = causal_mask(q.shape[-2], k.shape[-2], scores.device)
        # Eq. (5); -inf rather than a large number, so that every dtype agrees
        return scores.masked_fill(~mask, -math.inf).softmax(-1)

    @staticmethod
    def _check_mask(mask: Tensor | None, q: Tensor, k: Tensor) -> None:
        if mask is None:
            return
        check_tensor("mask", mask)
        (B, H, T, _), S = q.shape, k.shape[-2]
        fits = mask.dtype == torch.bool and mask.device == q.device and mask.shape[-2:] == (T, S)
        if mask.ndim == 4:  # of three dimensions the first would count as the heads
            fits = fits and mask.shape[0] in (B, 1) and mask.shape[1] in (1, H)
        elif mask.ndim != 2:
            fits = False
        if not fits:
            allowed = f"bool of shape ({T}, {S}) or ({B}, 1, {T}, {S}) on {q.device}"
            raise ValueError(f"mask: expected {allowed}, got {mask.dtype} of {tuple(mask.shape)} on {mask.device}")


def causal_mask(queries: int, keys: int | None = None, device: torch.device | None = None) -> Bool[Tensor, "T S"]:
    """(T, S) bool, True where a query may attend to a key that is not later: the queries are the last T positions.

    Args:
        queries: T.
        keys: S, T if not given; at least T.
        device: where the mask is made.

    Raises:
        ValueError: if a size is below 1, or there are fewer keys than queries: the first would see nothing.
    """
    check_positive("queries", queries)
    S = queries if keys is None else check_positive("keys", keys)
    if not torch.jit.is_tracing() and queries > S:  # in a trace sizes are tensors
        raise ValueError(f"keys: expected at least {queries}, one for each query, got {S}")
    return torch.ones(queries, S, dtype=torch.bool, device=device).tril(S - queries)
