"""TCN: dilated causal convolutions, each layer seeing twice as far as the one below.

Bai, Kolter & Koltun (2018), An Empirical Evaluation of Generic Convolutional and Recurrent Networks for Sequence
Modeling.
"""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.convolution import CausalConv
from rtx.nn.state import State, parts, step_through
from rtx.nn.validate import check_choice, check_fraction, check_positive, check_sequence, check_step

DROPS = {"channels": F.dropout1d, "elements": F.dropout}


class TemporalBlock(nn.Module):
    """Two convolutions of the same dilation, each with ReLU and dropout, and a way around them.

    Args:
        d_model: D, width of the input and of the output.
        kernel: k, positions a convolution reads.
        dilation: d, distance between two of them.
        dropout: share set to zero in training.
        drop: "channels" or "elements", as in `TCN`.
    """

    def __init__(self, d_model: int, kernel: int, dilation: int, dropout: float, drop: str) -> None:
        super().__init__()
        self.first, self.second = (CausalConv(d_model, d_model, kernel, dilation) for _ in range(2))
        self.dropout, self.drop = check_fraction("dropout", dropout), check_choice("drop", drop, DROPS)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """ReLU(x + the convolutions of x)."""
        y = self._dropped(self.first(x).relu())
        return (x + self._dropped(self.second(y).relu())).relu()

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream; the state holds each convolution's past."""
        before = (None, None) if state is None else parts(state)
        if len(before) != 2:
            raise ValueError(f"state: expected one of 2 convolutions, got one of {len(before)}")
        y, first = self.first.step(x, before[0])
        y, second = self.second.step(self._dropped(y.relu()[:, None]).squeeze(1), before[1])
        return (x + self._dropped(y.relu()[:, None]).squeeze(1)).relu(), (first, second)

    def _dropped(self, y: Tensor) -> Tensor:
        """(B, T, D); torch's dropout of channels takes them in the middle."""
        return DROPS[self.drop](y.transpose(1, 2), self.dropout, self.training).transpose(1, 2)


class TCN(nn.Module):
    """A stack of L blocks with dilations 1, 2, 4, …; the last output sees 1 + 2 (k - 1) (2^L - 1) positions.

    All layers have the width D, behind a linear embedding of the F inputs. The authors' first convolution reads the
    F inputs themselves, past a 1×1 convolution as the way around, which has as many parameters as our embedding: so
    a model of ours has (D - F) D k more (Nottingham 929,038 for 882,538, MNIST 71,110 for 66,910). On words, where
    F = D, theirs has no such convolution, and the blocks are the same. On characters their widths are 450, 450, 100
    behind embeddings of 100; here they are all D.

    Weights start as torch's `Conv1d` does: the authors draw theirs from N(0, .01), but into the product g v / ||v||,
    which the next forward pass computes anew.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        kernel: k, positions a convolution reads.
        dropout: after each convolution's ReLU.
        drop: "channels" is the paper's spatial dropout, which zeroes a channel at all positions of a sequence;
            "elements" is the authors' code, each number by itself. A stream in training draws anew at every step.

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(
        self, d_model: int, layers: int, kernel: int = 3, dropout: float = 0.0, drop: str = "channels"
    ) -> None:
        super().__init__()
        self.d_model, depth = check_positive("d_model", d_model), check_positive("layers", layers)
        self.blocks = nn.Sequential(*(TemporalBlock(d_model, kernel, 2**i, dropout, drop) for i in range(depth)))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on positions 1 … t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("x", x, self.d_model, like=next(self.parameters()))
        return self.blocks(x)

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream: each convolution remembers the last (k - 1) d inputs.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=next(self.parameters()))
        return step_through(self.blocks, x, state)
