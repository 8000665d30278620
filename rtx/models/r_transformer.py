"""R-Transformer: local recurrence below, attention to the whole past above, no positions unless asked for.

Wang et al. (2019), R-Transformer: Recurrent Neural Network Enhanced Transformer, Eq. 8.
"""

from jaxtyping import Float
from torch import Tensor, nn

from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, Residual, sinusoidal_positions
from rtx.nn.recurrent import CELLS
from rtx.nn.state import State, step_through, steps_so_far
from rtx.nn.validate import check_choice, check_count, check_positive, check_sequence, check_step

POSITIONS = ("none", "sinusoidal")


class RTransformer(nn.Module):
    """A stack of blocks: LocalRNN, multi-head attention, feed-forward, each with its residual and LayerNorm.

    Parameters, with the layers around it: MNIST 0.20 M, Nottingham 1.42 M, characters 14.2 M and words 2.3 M, as many
    as are alive in the authors' code but for 4 D a block, the biases of its projections, which Eq. 4 and 6 lack.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        heads: H, attention heads; must divide D; 0 leaves attention out, an ablation.
        window: M, positions each LocalRNN reads, the present one included.
        cell: "rnn", "gru" or "lstm".
        local_layers: LocalRNNs at the bottom of each block (the authors use 2 on MNIST, 1 elsewhere); 0 leaves them
            out, an ablation: what is left of order is the causal mask.
        dropout: after each sublayer, on attention weights and in the feed-forward network.
        norm: "post" is Eq. 8; "pre" is the order of the authors' code, x + sublayer(LayerNorm(x)). Their
            LayerNorm divides by the unbiased deviation: the same function, its gain scaled by √(1 - 1/D), but for
            the place of ε.
        position: "none" is the paper's; "sinusoidal" adds sines and cosines of the position to the input, the test of
            its claim that none are needed. `step` counts positions by attention's cache, so it needs heads.

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(
        self,
        d_model: int,
        layers: int,
        heads: int,
        window: int,
        cell: str = "gru",
        local_layers: int = 1,
        dropout: float = 0.0,
        norm: str = "post",
        position: str = "none",
    ) -> None:
        super().__init__()
        check_positive("layers", layers)
        check_count("local_layers", local_layers), check_count("heads", heads)
        if check_choice("position", position, POSITIONS) != "none" and not heads:
            raise ValueError(f"position: {position!r} needs attention, whose cache counts the positions, got heads = 0")
        check_positive("window", window), check_choice("cell", cell, CELLS)  # also where no LocalRNN is built of them
        self.positions, self.local_layers = position == "sinusoidal", local_layers

        def block() -> nn.Sequential:
            # Eq. (8), bottom to top
            sublayers = [
                *(LocalRNN(d_model, window, cell) for _ in range(local_layers)),
                *([MultiHeadAttention(d_model, heads, dropout)] if heads else []),
                FeedForward(d_model, dropout=dropout),
            ]
            return nn.Sequential(*(Residual(s, d_model, norm, dropout) for s in sublayers))

        self.d_model = d_model
        self.blocks = nn.Sequential(*(block() for _ in range(layers)))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on positions 1 … t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("x", x, self.d_model, like=next(self.parameters()))
        return self.blocks(x + sinusoidal_positions(x.shape[1], self.d_model, x) if self.positions else x)

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream: each LocalRNN remembers a window, each attention the keys and values so far.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=next(self.parameters()))
        if self.positions:
            x = x + sinusoidal_positions(1, self.d_model, x, steps_so_far(state, self.local_layers))
        return step_through((sublayer for block in self.blocks for sublayer in block.children()), x, state)
