"""Attention by segments: each for itself, or with a memory of the segment before.

Al-Rfou et al. (2019), Character-Level Language Modeling with Deeper Self-Attention; Dai et al. (2019), Transformer-XL:
Attentive Language Models beyond a Fixed-Length Context, §3.2.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.attention import MultiHeadAttention
from rtx.nn.relative import XLAttention
from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_count, check_positive


class SegmentAttention(MultiHeadAttention):
    """Attention in one segment of at most S positions. After S positions of a stream a new segment begins.

    `forward` and `read` read positions of one segment and do not check this: `CharacterTransformer` cuts the text.

    A state is (keys, values, count): those of the last positions, (B, H, P, K) with P at most S, and how many positions
    of the segment have been read.
    """

    def __init__(self, d_model: int, heads: int, segment: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, heads, dropout)
        self.segment = check_positive("segment", segment)

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a segment."""
        (q, k, v), count = self.project(x), 0
        if state is not None:
            check_state(state, *[(x.shape[0], self.heads, None, k.shape[-1])] * 2, None)
            *before, count = state
            check_place(count, self.segment)
            k, v = (torch.cat(both, 2) for both in zip(before, (k, v), strict=True))
        end = count + x.shape[1]
        (k, v), mask = last_seen((k, v), end, self.segment)
        return self.join(self.attend(q, k, v, mask)), (k, v, end % self.segment)


class SegmentMemory(nn.Module):
    """Each position attends to its segment up to itself, and to the `memory` positions before the segment.

    The memory holds the inputs of this layer at these positions. In a stack they come from the layer below, which has a
    memory of its own. So a stack sees further back than one layer. No gradient flows into the memory: a layer learns to
    read it, but the layers below do not learn what to put there. All segments of a sequence are computed at once,
    because the layer below has already computed the inputs.

    A state is (inputs, keys, values, count), where `count` positions of the segment have been read. The inputs,
    (B, P, D), are those of the last P positions: the memory, as far as there is one, and the `count` positions of the
    segment. P is at most M + S. The keys and values, (B, H, P', K), belong to the first P' of the inputs. They are kept
    for pieces of one position; other pieces leave them out.

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
            state: what `read` returned for all that came before; None at the start.
        """
        past, count = self._visible(state, x)
        queries, context, mask = self._segments(x, past, count)
        y = self.attention(queries, mask, context)  # (B · C, S, D)
        return y.unflatten(0, (x.shape[0], -1)).flatten(1, 2)[:, count : count + x.shape[1]]

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream, of any length."""
        return self._step(x, state) if x.shape[1] == 1 else (self(x, state), self._after(x, state))

    def _step(self, x: Float[Tensor, "B 1 D"], state: State | None) -> tuple[Float[Tensor, "B 1 D"], State]:
        """Read one position, and compute only the keys and values that are not known yet."""
        past, keys, values, count = self._checked(state, x)
        if torch.is_grad_enabled() and count == 0:  # keys of the segment before would lead gradients into the memory
            past, keys, values = past.detach(), keys[:, :, :0], values[:, :, :0]
        inputs = torch.cat([past, x], 1)
        q, k, v = self.attention.project(x, inputs[:, keys.shape[2] :])  # those that have no keys yet
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        seen, most = self.memory + count + 1, self.memory + self.segment
        (inputs, keys, values), mask = last_seen((inputs, keys, values), seen, most)
        y = self.attention.join(self.attention.attend(q, keys, values, mask))
        return y, (inputs, keys, values, (count + 1) % self.segment)

    def _after(self, x: Float[Tensor, "B T D"], state: State | None) -> State:
        """Return the state after `x`, from the state before it. A full segment becomes the memory of the next one."""
        past, count = self._visible(state, x)
        _, keys, values, _ = self._checked(None, x)  # empty: `_step` computes them from the inputs
        inputs, read = torch.cat([past, x], 1), count + x.shape[1]
        count = read % self.segment
        end = inputs.shape[1] - count
        begin = max(0, end - self.memory)
        return torch.cat([inputs[:, begin:end].detach(), inputs[:, end:]], 1), keys, values, count

    def introspect(self, x: Float[Tensor, "B T D"], state: State | None = None) -> dict[str, Float[Tensor, "B H T S"]]:
        """Return the four terms of the scores by name, and "weights", the attention weights without dropout.

        Rows are the T positions of `x`. Columns are the positions in `state` that `x` can see (the memory and the
        segment so far), then those of `x`. All values are 0 where a position does not attend to another.
        """
        past, count = self._visible(state, x)
        queries, context, mask = self._segments(x, past, count)
        q, k, _ = self.attention.project(queries, context)
        found = self.attention.terms(q, k) | {"weights": self.attention.attention_weights(q, k, mask)}
        padded = context.shape[1] - queries.shape[1] - (past.shape[1] - count)  # columns before the first real one
        rows, columns = slice(count, count + x.shape[1]), slice(padded, padded + past.shape[1] + x.shape[1])
        found = {name: _on_one_axis(part.masked_fill(~mask, 0.0), x.shape[0]) for name, part in found.items()}
        return {name: part[:, :, rows, columns] for name, part in found.items()}

    def _segments(self, x: Tensor, past: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return C segments as a batch: queries (B · C, S, D), context (B · C, M + S, D), mask (B · C, 1, S, M + S).

        The segment that `past` has begun is the first. S and M are no larger than needed.
        """
        before, length = past.shape[1] - count, count + x.shape[1]
        S = min(self.segment, length)
        C = -(-length // S)  # rounded up
        M = min(self.memory, before + (C - 1) * S)
        # with zeros in front up to M positions, and zeros behind up to whole segments
        inputs = F.pad(torch.cat([past, x], 1), (0, 0, M - before, C * S - length))
        # window c: the M positions before segment c, and its S positions
        windows = inputs.unfold(1, M + S, S).transpose(2, 3).flatten(0, 1)  # (B · C, M + S, D)
        # §3.2: SG(memory) ∘ segment
        context = torch.cat([windows[:, :M].detach(), windows[:, M:]], 1)
        key = torch.arange(M + S, device=x.device)
        real = key + S * torch.arange(C, device=x.device)[:, None] >= M - before  # (C, M + S)
        mask = real[:, None, None] & (key <= key[M:, None])
        return windows[:, M:], context, mask.repeat(x.shape[0], 1, 1, 1)

    def _visible(self, state: State | None, x: Tensor) -> tuple[Tensor, int]:
        """Return the inputs of the memory and of the segment so far, and the number of the latter."""
        inputs, _, _, count = self._checked(state, x)
        return inputs[:, max(0, inputs.shape[1] - self.memory - count) :], count

    def _checked(self, state: State | None, x: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
        B, _, D = x.shape
        H = self.attention.heads
        if state is None:
            none = x.new_empty(B, H, 0, D // H)
            return x[:, :0], none, none, 0
        check_state(state, (B, None, D), (B, H, None, D // H), (B, H, None, D // H), None)
        inputs, keys, values, count = state
        check_place(count, self.segment)
        if isinstance(count, int) and not count <= inputs.shape[1] <= self.memory + self.segment:
            allowed = f"the inputs of {count} to {self.memory + self.segment} positions"
            raise ValueError(f"state: expected {allowed}, got those of {inputs.shape[1]}")
        return inputs, keys, values, count


def last_seen(parts: Sequence[Tensor], seen: int, most: int) -> tuple[list[Tensor], Bool[Tensor, "1 last"] | None]:
    """Return the last `seen` positions of parts of the shape (…, P, width), and a mask if more are returned.

    An exported program leaves `seen` open. Its sizes must not depend on where a segment ends, so it keeps the last
    `most` positions, and the mask hides those that can no longer be seen.
    """
    if isinstance(seen, int):
        return [part[..., -seen:, :] for part in parts], None
    end, device = parts[0].shape[-2], parts[0].device
    places = torch.arange(torch.sym_max(end - most, 0), end, device=device)
    return [part.index_select(-2, places) for part in parts], (places >= end - seen)[None]


def place_in_segment(state: State | None, segment: int) -> int:
    """Return how many positions of the segment have been read: the last part of a state of `SegmentAttention`."""
    if state is None:
        return 0
    check_state(state, (None,) * 4, (None,) * 4, None)
    return check_place(state[-1], segment)


def check_place(count: int, segment: int) -> int:
    """Return a state's count if it is a place in a segment. An exported program leaves the count open."""
    if isinstance(count, int) and not 0 <= count < segment:
        raise ValueError(f"state: expected a position in a segment of {segment}, got {count}")
    return count


def _on_one_axis(part: Float[Tensor, "N H S W"], batch: int) -> Float[Tensor, "B H T columns"]:
    """Put the windows of all segments, (B · C, H, S, M + S), at their places among C · S rows and M + C · S columns."""
    windows = part.unflatten(0, (batch, -1))  # (B, C, H, S, M + S)
    _, C, H, S, W = windows.shape
    found = part.new_zeros(batch, H, C * S, W + (C - 1) * S)
    for c in range(C):
        found[:, :, c * S : (c + 1) * S, c * S : c * S + W] = windows[:, c]
    return found
