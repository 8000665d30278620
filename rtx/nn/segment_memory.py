"""A memory of the segment before: attention by segments that see further back than they begin.

Dai et al. (2019), Transformer-XL: Attentive Language Models beyond a Fixed-Length Context, §3.2.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.relative import XLAttention
from rtx.nn.state import Cache, State, check_cache, check_state, parts
from rtx.nn.validate import check_count, check_positive, check_sequence, check_step


class SegmentMemory(nn.Module):
    """Attention by segments: each position sees its segment up to itself, and the `memory` positions before that.

    The memory is what the layer read there, without a way back for gradients. So layers on one another see further
    than one does, and training does not. The segments of a sequence are computed all at once: what a layer remembers
    is its own input, which the layer below has already made.

    A state is (inputs, cache, count): what the layer has read in the memory and in the `count` positions of the
    segment so far, (B, P, D), and the keys and values of the first of these positions. The others get theirs when
    `step` needs them: a segment's memory at its first step.

    Args:
        attention: what attends.
        segment: positions in a segment.
        memory: positions before the segment that are seen as well; 0 for none.

    Raises:
        ValueError: if a size is out of its range.
    """

    def __init__(self, attention: XLAttention, segment: int = 32, memory: int = 32) -> None:
        super().__init__()
        self.attention, self.memory = attention, check_count("memory", memory)
        self.segment = check_positive("segment", segment)

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Refine every position of a sequence, or of its continuation.

        Args:
            x: the sequence.
            state: what `after` or `step` returned for all that came before; None at the start.

        Raises:
            ValueError: if `x` has the wrong shape, dtype or device, or is empty, or `state` is another layer's or
                batch's.
        """
        check_sequence("x", x, self.attention.d_model, like=self.attention.query.weight)
        past, _, count = self._checked(state, x)
        queries, context, mask = self._segments(x, past, count)
        q, k, v = self._heads(queries, context)
        y = self._attend(q, k, v, mask)  # (B · C, S, D)
        return y.unflatten(0, (x.shape[0], -1)).flatten(1, 2)[:, count : count + x.shape[1]]

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another layer's or batch's.
        """
        check_step("x", x, self.attention.d_model, like=self.attention.query.weight)
        present = x[:, None]
        past, cache, count = self._checked(state, present)
        inputs = torch.cat([past, present], 1)
        q, k, v = self._heads(present, inputs[:, cache.length :])
        cache = cache.append(k, v)
        return self._attend(q, cache.keys, cache.values).squeeze(1), self._kept(inputs, cache, count + 1)

    def after(self, x: Float[Tensor, "B T D"], state: State | None = None) -> State:
        """The state behind `x`, from the state before it.

        Raises:
            ValueError: if `state` is another layer's or batch's.
        """
        past, cache, count = self._checked(state, x)
        return self._kept(torch.cat([past, x], 1), cache, count + x.shape[1])

    def inside(self, x: Float[Tensor, "B T D"], state: State | None = None) -> dict[str, Float[Tensor, "B H T S"]]:
        """The four terms of the scores, scaled, and the weights that they become, without dropout.

        Rows are the T positions of `x`; columns are the positions in `state`, then those of `x`. Where a position
        does not see another, all are 0.

        Raises:
            ValueError: as `forward`.
        """
        check_sequence("x", x, self.attention.d_model, like=self.attention.query.weight)
        past, _, count = self._checked(state, x)
        queries, context, mask = self._segments(x, past, count)
        q, k, _ = self._heads(queries, context)
        found = self.attention.terms(q, k)
        found["weights"] = self._weights(q, k, mask)
        padded = context.shape[1] - queries.shape[1] - (past.shape[1] - count)  # columns before the first real one
        rows, columns = slice(count, count + x.shape[1]), slice(padded, padded + past.shape[1] + x.shape[1])
        return {name: _on_one_axis(part * mask, x.shape[0])[:, :, rows, columns] for name, part in found.items()}

    def _segments(self, x: Tensor, past: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Segments as a batch: queries (B · C, S, D), what they may see (B · C, M + S, D), mask (B · C, 1, S, M + S).

        The segment that `past` has begun is the first. S and M are no larger than needed.
        """
        before, length = past.shape[1] - count, count + x.shape[1]
        S = min(self.segment, length)
        C = -(-length // S)
        M = min(self.memory, before + (C - 1) * S)
        inputs = F.pad(torch.cat([past, x], 1), (0, 0, M - before, C * S - length))
        windows = inputs.unfold(1, M + S, S).transpose(2, 3).flatten(0, 1)  # (B · C, M + S, D)
        # §3.2: SG(memory) ∘ segment
        context = torch.cat([windows[:, :M].detach(), windows[:, M:]], 1)
        key = torch.arange(M + S, device=x.device)
        real = key + S * torch.arange(C, device=x.device)[:, None] >= M - before  # (C, M + S)
        mask = real[:, None, None] & (key <= key[M:, None])
        return windows[:, M:], context, mask.repeat(x.shape[0], 1, 1, 1)

    def _heads(self, queries: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        layer = self.attention
        q, k, v = layer.query(queries), layer.key(context), layer.value(context)
        q, k, v = (part.unflatten(-1, (layer.heads, -1)).transpose(1, 2) for part in (q, k, v))
        return q, k, v

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        scores = self.attention.scores(q, k)
        return (scores if mask is None else scores.masked_fill(~mask, -math.inf)).softmax(-1)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        weights = F.dropout(self._weights(q, k, mask), self.attention.dropout, self.training)
        return self.attention.output(self.attention.gather(weights, v).transpose(1, 2).flatten(2))

    def _kept(self, inputs: Tensor, cache: Cache, count: int) -> State:
        """The state once the segment has `count` positions; one that is full makes way for the next."""
        if count < self.segment:
            return inputs, cache, count
        count %= self.segment
        end = inputs.shape[1] - count
        memory = inputs[:, max(0, end - self.memory) : end].detach()
        return torch.cat([memory, inputs[:, end:]], 1), self._empty_cache(inputs), count

    def _empty_cache(self, like: Tensor) -> Cache:
        B, _, D = like.shape
        return Cache(like.new_empty(B, 2, self.attention.heads, 0, D // self.attention.heads))

    def _checked(self, state: Any, x: Tensor) -> tuple[Tensor, Cache, int]:
        B, _, D = x.shape
        if state is None:
            return x[:, :0], self._empty_cache(x), 0
        if len(parts(state)) != 3:
            raise ValueError(f"state: expected (inputs, cache, count), got {len(state)} parts")
        inputs, cache, count = state
        check_state((inputs, count), (B, None, D), None)
        check_cache(cache, B, self.attention.heads, D // self.attention.heads)
        if not 0 <= count < self.segment or not 0 <= inputs.shape[1] - count <= self.memory:
            raise ValueError(
                f"state: expected at most {self.memory} positions before a segment of {self.segment}, "
                f"got {inputs.shape[1] - count} before {count}"
            )
        return inputs, cache, count


def _on_one_axis(part: Float[Tensor, "N H S W"], batch: int) -> Float[Tensor, "B H T columns"]:
    """Segments' windows, (B · C, H, S, M + S), each at its place among C · S rows and M + C · S columns."""
    windows = part.unflatten(0, (batch, -1))  # (B, C, H, S, M + S)
    _, C, H, S, W = windows.shape
    found = part.new_zeros(batch, H, C * S, W + (C - 1) * S)
    for c in range(C):
        found[:, :, c * S : (c + 1) * S, c * S : c * S + W] = windows[:, c]
    return found
