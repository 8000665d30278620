"""Griffin: a gated linear recurrence in most blocks, attention to a sliding window in every third.

De et al. (2024), Griffin: Mixing Gated Linear Recurrences with Local Attention for Efficient Language Models, §2.
"""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.convolution import CausalConv
from rtx.nn.linear_recurrence import RGLRU
from rtx.nn.local_attention import LocalAttention
from rtx.nn.state import State, parts, step_through
from rtx.nn.validate import check_fraction, check_positive, check_sequence, check_step

EXPANSION = 3  # the gated network's hidden width, in widths of the model
CONVOLVED = 4  # positions that the convolution in front of the recurrence reads


class RecurrentBlock(nn.Module):
    """Two branches, one gating the other: GeLU of a linear layer × RG-LRU of a short convolution of a linear layer.

    The convolution has a filter for each number and reads 4 positions. The branches are as wide as the model; the
    paper's are about 4/3 as wide.

    Args:
        d_model: D, width of the input, the branches and the output.
        heads: H, blocks of the RG-LRU's gates; must divide D.
    """

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.gate, self.input, self.output = (nn.Linear(d_model, d_model) for _ in range(3))
        self.convolution = CausalConv(d_model, d_model, CONVOLVED, normalised=False, groups=d_model)
        self.recurrence = RGLRU(d_model, heads)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Mix each position with all before it."""
        return self.output(F.gelu(self.gate(x)) * self.recurrence(self.convolution(self.input(x))))

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream; the state holds the convolution's past and the recurrence's state."""
        before = (None, None) if state is None else parts(state)
        if len(before) != 2:
            raise ValueError(f"state: expected one of a convolution and a recurrence, got {len(before)} parts")
        y, convolved = self.convolution.step(self.input(x), before[0])
        y, recurrent = self.recurrence.step(y, before[1])
        return self.output(F.gelu(self.gate(x)) * y), (convolved, recurrent)


class GatedFeedForward(nn.Module):
    """The same network at every position, GeLU(u W_1 + b_1) × (u W_2 + b_2) between its layers; hidden width 3 D.

    Args:
        d_model: D, width of the input and of the output.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gate, self.expand = (nn.Linear(d_model, EXPANSION * d_model) for _ in range(2))
        self.contract = nn.Linear(EXPANSION * d_model, d_model)

    def forward(self, u: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        """Transform each position by itself."""
        return self.contract(F.gelu(self.gate(u)) * self.expand(u))


class GriffinBlock(nn.Module):
    """Temporal mixing, then the gated network, each behind an RMSNorm and with a way around it.

    Args:
        d_model: D.
        mixing: a `RecurrentBlock` or a `LocalAttention`.
        dropout: share of each sublayer's output set to zero in training.
    """

    def __init__(self, d_model: int, mixing: nn.Module, dropout: float) -> None:
        super().__init__()
        self.mixing, self.forward_network = mixing, GatedFeedForward(d_model)
        self.mixing_norm, self.forward_norm = _norm(d_model), _norm(d_model)
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """x + mixing(norm(x)), then the same with the gated network."""
        return self._transform(x + self.dropout(self.mixing(self.mixing_norm(x))))

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream; the state is the temporal mixing's."""
        y, state = self.mixing.step(self.mixing_norm(x), state)  # type: ignore[operator]
        return self._transform(x + self.dropout(y)), state

    def _transform(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.forward_network(self.forward_norm(x)))


class Griffin(nn.Module):
    """A stack of blocks whose temporal mixing is recurrent, recurrent, attention, and so on; an RMSNorm on top.

    What the paper leaves open or we do otherwise: the recurrence is as wide as the model (about 4/3 there); its
    gates have as many diagonal blocks as the attention has heads (16 there); GeLU is the exact one; attention's
    projections have no biases; the paper has no dropout.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks, each with temporal mixing and a gated network; every third is attention.
        heads: H, query heads, for one of keys and values, and blocks of the gates; must divide D, and, where there is
            attention, from 3 layers on, into even widths.
        window: W, positions that attention looks at, the present one included.
        dropout: after each sublayer, and on attention weights.

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(self, d_model: int, layers: int, heads: int, window: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_positive("layers", layers), check_positive("window", window)

        def mixing(i: int) -> nn.Module:
            if i % 3 == 2:
                return LocalAttention(d_model, heads, window, dropout)
            return RecurrentBlock(d_model, heads)

        self.d_model = check_positive("d_model", d_model)
        self.blocks = nn.Sequential(*(GriffinBlock(d_model, mixing(i), dropout) for i in range(layers)))
        self.norm = _norm(d_model)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on positions 1 … t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("x", x, self.d_model, like=self.norm.weight)
        return self.norm(self.blocks(x))

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream, at a cost that stops growing after `window` of them.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=self.norm.weight)
        y, state = step_through(self.blocks, x, state)
        return self.norm(y), state


def _norm(d_model: int) -> nn.RMSNorm:
    return nn.RMSNorm(d_model, eps=1e-6)
