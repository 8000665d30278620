"""Griffin: a gated linear recurrence in most blocks, attention to a sliding window in every third one.

De et al. (2024), Griffin: Mixing Gated Linear Recurrences with Local Attention for Efficient Language Models, §2.
"""

from functools import partial
from typing import cast

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.models.backbone import Card, CausalModel
from rtx.nn.convolution import CausalConv
from rtx.nn.linear_recurrence import RGLRU
from rtx.nn.local_attention import LocalAttention
from rtx.nn.streaming import State, Streaming, read_through, readers, split
from rtx.nn.validate import check_fraction, check_positive

EXPANSION = 3  # hidden width of the gated network, in widths of the model
CONVOLVED = 4  # positions that the convolution before the recurrence reads
NORM = partial(nn.RMSNorm, eps=1e-6)


class RecurrentBlock(nn.Module):
    """Two branches, of which one gates the other: GeLU of a linear layer × RG-LRU of a short convolution.

    The convolution has a filter for each number and reads 4 positions. The branches are as wide as the model; the
    paper's are about 4/3 as wide.

    Args:
        d_model: D, width of the input, of the branches and of the output.
        heads: H, number of blocks of the RG-LRU's gates; must divide D.
    """

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.gate, self.input, self.output = (nn.Linear(d_model, d_model) for _ in range(3))
        self.convolution = CausalConv(d_model, d_model, CONVOLVED, normalised=False, groups=d_model)
        self.recurrence = RGLRU(d_model, heads)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Mix each position with all positions before it."""
        return self.output(F.gelu(self.gate(x)) * self.recurrence(self.convolution(self.input(x))))

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has those of the convolution and of the recurrence."""
        before = split(state, 2)
        y, convolved = self.convolution.read(self.input(x), before[0])
        y, recurrent = self.recurrence.read(y, before[1])
        return self.output(F.gelu(self.gate(x)) * y), (convolved, recurrent)


class GatedFeedForward(nn.Module):
    """The same network at every position: GeLU(u W_1 + b_1) × (u W_2 + b_2) between its layers, hidden width 3 D.

    Args:
        d_model: D, width of the input and of the output.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gate, self.expand = (nn.Linear(d_model, EXPANSION * d_model) for _ in range(2))
        self.contract = nn.Linear(EXPANSION * d_model, d_model)

    def forward(self, u: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        """Transform each position on its own."""
        return self.contract(F.gelu(self.gate(u)) * self.expand(u))


class GriffinBlock(nn.Module):
    """Temporal mixing, then the gated network, each after an RMSNorm and with a residual connection.

    Args:
        d_model: D.
        mixing: a `RecurrentBlock` or a `LocalAttention`.
        dropout: probability that a number of a sublayer's output is set to zero in training.
    """

    def __init__(self, d_model: int, mixing: nn.Module, dropout: float) -> None:
        super().__init__()
        self.mixing, self.forward_network = mixing, GatedFeedForward(d_model)
        self.mixing_norm, self.forward_norm = NORM(d_model), NORM(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Return x + mixing(norm(x)), then the same with the gated network."""
        return self._transform(x + self.dropout(self.mixing(self.mixing_norm(x))))

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state is the temporal mixing's."""
        y, state = cast(Streaming, self.mixing).read(self.mixing_norm(x), state)
        return self._transform(x + self.dropout(y)), state

    def _transform(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.forward_network(self.forward_norm(x)))


class Griffin(CausalModel):
    """A stack of blocks whose temporal mixing is recurrent, recurrent, attention, and so on. An RMSNorm is on top.

    Some details differ from the paper or are not in it. The recurrence is as wide as the model (the paper: about 4/3).
    Its gates have as many diagonal blocks as the attention has heads, as in the authors' code. GeLU is the exact one.
    The projections of the attention have no biases. The paper has no dropout.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks, each with temporal mixing and a gated network; every third one is attention.
        heads: H, number of query heads, which share one head of keys and values, and number of blocks of the gates.
            H must divide D, and from 3 layers on, where there is attention, into even widths.
        window: W, number of positions that attention sees, the current one included.
        dropout: after each sublayer, and on attention weights.
    """

    def __init__(self, d_model: int, layers: int, heads: int, window: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_positive("layers", layers), check_positive("window", window), check_fraction("dropout", dropout)

        def mixing(i: int) -> nn.Module:
            if i % 3 == 2:
                return LocalAttention(d_model, heads, window, dropout)
            return RecurrentBlock(d_model, heads)

        self.d_model = check_positive("d_model", d_model)
        self.blocks = nn.Sequential(*(GriffinBlock(d_model, mixing(i), dropout) for i in range(layers)))
        self.norm = NORM(d_model)

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Return the outputs for `x`. If a state is given, `x` continues the sequence that led to this state."""
        if state is not None:
            return super().forward(x, state)
        self.check_input(x)
        return self.norm(self.blocks(x))

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The cost of a position stops growing after `window` positions."""
        self.check_input(x)
        y, state = read_through(readers(self.blocks), x, state)
        return self.norm(y), state


CARD = Card(
    "griffin",
    Griffin,
    "De et al. (2024)",
    "ours; the paper's begin at 100M parameters",
    {"d_model": 160, "layers": 3, "heads": 4, "window": 64},
)
