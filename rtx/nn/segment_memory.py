"""Attention by segments, with a memory of the segment before.

Dai et al. (2019), Transformer-XL: Attentive Language Models beyond a Fixed-Length Context, §3.2.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.relative import XLAttention
from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_count, check_positive


class SegmentMemory(nn.Module):
    """Each position attends to its segment up to itself, and to the `memory` positions before the segment.

    The memory is what this layer read there. No gradient flows into it. A stack of layers therefore sees further back
    than one layer does, but is not trained to. All segments of a sequence are computed at once, because a layer
    remembers its own inputs, which the layer below has already computed.

    A state is (inputs, keys, values, count). The inputs, (B, P, D), are those of the memory and of the `count`
    positions of the segment so far. The keys and values, (B, H, P', K), belong to the first P' of these positions;
    `step` computes the others when it needs them.

    Args:
        attention: the attention to use.
        segment: number of positions in a segment.
        memory: number of positions before the segment that are visible; 0 for none.
    """

    def __init__(self, attention: XLAttention, segment: int = 32, memory: int = 32) -> None:
        super().__init__()
        self.attention, self.memory = attention, check_count("memory", memory)
        self.segment = check_positive("segment", segment)

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Return for each position a mixture of the positions that it attends to.

        Args:
            x: a sequence, or its continuation.
            state: what `after` or `step` returned for all that came before; None at the start.
        """
        past, _, _, count = self._checked(state, x)
        queries, context, mask = self._segments(x, past, count)
        y = self.attention(queries, mask, context)  # (B · C, S, D)
        return y.unflatten(0, (x.shape[0], -1)).flatten(1, 2)[:, count : count + x.shape[1]]

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """Read one position of a stream."""
        present = x[:, None]
        past, keys, values, count = self._checked(state, present)
        inputs = torch.cat([past, present], 1)
        q, k, v = self.attention.project(present, inputs[:, keys.shape[2] :])
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        y = self.attention.join(self.attention.attend(q, keys, values)).squeeze(1)
        return y, self._kept(inputs, keys, values, count + 1)

    def after(self, x: Float[Tensor, "B T D"], state: State | None = None) -> State:
        """Return the state after `x`, from the state before it."""
        past, keys, values, count = self._checked(state, x)
        return self._kept(torch.cat([past, x], 1), keys, values, count + x.shape[1])

    def introspect(self, x: Float[Tensor, "B T D"], state: State | None = None) -> dict[str, Float[Tensor, "B H T S"]]:
        """Return the four terms of the scores by name, and "weights", the attention weights without dropout.

        Rows are the T positions of `x`. Columns are the positions in `state`, then those of `x`. All values are 0
        where a position does not attend to another.
        """
        past, _, _, count = self._checked(state, x)
        queries, context, mask = self._segments(x, past, count)
        q, k, _ = self.attention.project(queries, context)
        found = self.attention.terms(q, k) | {"weights": self.attention.softmax(q, k, mask)}
        padded = context.shape[1] - queries.shape[1] - (past.shape[1] - count)  # columns before the first real one
        rows, columns = slice(count, count + x.shape[1]), slice(padded, padded + past.shape[1] + x.shape[1])
        return {name: _on_one_axis(part * mask, x.shape[0])[:, :, rows, columns] for name, part in found.items()}

    def _segments(self, x: Tensor, past: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return C segments as a batch: queries (B · C, S, D), context (B · C, M + S, D), mask (B · C, 1, S, M + S).

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

    def _kept(self, inputs: Tensor, keys: Tensor, values: Tensor, count: int) -> State:
        """Return the state of a segment with `count` positions. A full segment becomes the memory of the next one."""
        if count < self.segment:
            return inputs, keys, values, count
        count %= self.segment
        end = inputs.shape[1] - count
        memory = inputs[:, max(0, end - self.memory) : end].detach()
        return torch.cat([memory, inputs[:, end:]], 1), keys[:, :, :0], values[:, :, :0], count

    def _checked(self, state: State | None, x: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
        B, _, D = x.shape
        H = self.attention.heads
        if state is None:
            none = x.new_empty(B, H, 0, D // H)
            return x[:, :0], none, none, 0
        check_state(state, (B, None, D), (B, H, None, D // H), (B, H, None, D // H), None)
        inputs, keys, values, count = state
        fits = isinstance(count, int)  # an exported program cannot leave open whether a segment ends
        if not fits or not 0 <= count < self.segment or not 0 <= inputs.shape[1] - count <= self.memory:
            raise ValueError(
                f"state: expected at most {self.memory} positions before a segment of {self.segment}, "
                f"got {inputs.shape[1] - count} before {count}"
            )
        return inputs, keys, values, count


def _on_one_axis(part: Float[Tensor, "N H S W"], batch: int) -> Float[Tensor, "B H T columns"]:
    """Put the windows of all segments, (B · C, H, S, M + S), at their places among C · S rows and M + C · S columns."""
    windows = part.unflatten(0, (batch, -1))  # (B, C, H, S, M + S)
    _, C, H, S, W = windows.shape
    found = part.new_zeros(batch, H, C * S, W + (C - 1) * S)
    for c in range(C):
        found[:, :, c * S : (c + 1) * S, c * S : c * S + W] = windows[:, c]
    return found
