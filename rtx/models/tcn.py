"""TCN: dilated causal convolutions. The dilation doubles from block to block, and the receptive field about doubles.

Bai, Kolter & Koltun (2018), An Empirical Evaluation of Generic Convolutional and Recurrent Networks for Sequence
Modeling.
"""

from jaxtyping import Float
from torch import Tensor, nn

from rtx.models.backbone import Card, CausalModel
from rtx.nn.convolution import CausalConv
from rtx.nn.dropout import LockedDropout
from rtx.nn.streaming import State, read_through, readers, split
from rtx.nn.validate import check_fraction, check_positive


class TemporalBlock(nn.Module):
    """Two convolutions with the same dilation, each with ReLU and dropout, and a residual connection.

    Args:
        d_model: D, width of the input and of the output.
        kernel: k, number of positions that a convolution reads.
        dilation: d, distance between two of them.
        dropout: probability that a channel is set to zero in training.
    """

    def __init__(self, d_model: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = (CausalConv(d_model, d_model, kernel, dilation) for _ in range(2))
        self.dropout = LockedDropout(dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Return ReLU(x + the convolutions of x)."""
        y = self.dropout(self.first(x).relu())
        # Eq. (3): Activation(x + F(x))
        return (x + self.dropout(self.second(y).relu())).relu()

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has the past inputs of both convolutions."""
        before = split(state, 2)
        y, first = self.first.read(x, before[0])
        y, second = self.second.read(self.dropout(y.relu()), before[1])
        return (x + self.dropout(y.relu())).relu(), (first, second)


class TCN(CausalModel):
    """A stack of L blocks with dilations 1, 2, 4, …

    All layers have the width D, after a linear embedding of the F inputs. The authors' first convolution reads the F
    inputs directly, and its residual connection is a 1×1 convolution with as many parameters as our embedding.
    Therefore our model has (D - F) D k parameters more: 929,038 instead of 882,538 on Nottingham, and 71,110 instead of
    66,910 on MNIST. On words F = D, so the blocks are the same. On characters the authors' widths are 450, 450, 100
    after embeddings of 100; here all widths are D.

    Weights start as in torch's `Conv1d`. The authors draw theirs from N(0, .01²), but they write them into the product
    g v / ||v||, which the next forward pass computes anew. Only their 1×1 convolution keeps them.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        kernel: k, number of positions that a convolution reads.
        dropout: after the ReLU of each convolution. It is the paper's spatial dropout, which hides a channel at all
            positions of a sequence. The authors' code hides single numbers. A stream in training draws anew for every
            piece.
    """

    def __init__(self, d_model: int, layers: int, kernel: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model, depth = check_positive("d_model", d_model), check_positive("layers", layers)
        check_fraction("dropout", dropout)
        self.blocks = nn.Sequential(*(TemporalBlock(d_model, kernel, 2**i, dropout) for i in range(depth)))

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Return the outputs for `x`. If a state is given, `x` continues the sequence that led to this state."""
        if state is not None:
            return super().forward(x, state)
        self.check_input(x)
        return self.blocks(x)

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. Each convolution remembers its last (k - 1) d inputs."""
        self.check_input(x)
        return read_through(readers(self.blocks), x, state)


def receptive_field(layers: int, kernel: int = 3, **others: object) -> int:
    """Return 1 + 2 (k - 1) (2^L - 1): there are two convolutions in a block, and the dilation doubles each time."""
    return 1 + 2 * (kernel - 1) * (2**layers - 1)


CARD = Card(
    "tcn",
    TCN,
    "Bai, Kolter & Koltun (2018)",
    "Wang et al., Table 2, Nottingham",
    {"d_model": 150, "layers": 4, "kernel": 5},
    receptive_field,
)
