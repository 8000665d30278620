"""R-Transformer: in each block, a local recurrent network, then attention to the whole past.

Wang et al. (2019), R-Transformer: Recurrent Neural Network Enhanced Transformer, Eq. 8.
"""

from jaxtyping import Float
from torch import Tensor, nn

from rtx.models.backbone import Card, CausalModel
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, Residual, sinusoidal_positions
from rtx.nn.attention import keys_so_far
from rtx.nn.convolution import LocalConv
from rtx.nn.recurrent import CELLS
from rtx.nn.relative import attention_with
from rtx.nn.streaming import State, read_through, readers, split
from rtx.nn.validate import check_choice, check_count, check_positive

POSITIONS = ("none", "sinusoidal", "relative")
STARTS = ("separate", "copies")


class RTransformer(CausalModel):
    """A stack of blocks. By default a block has a LocalRNN, multi-head attention and a feed-forward network.

    Each of these is in a `Residual`. There are no position embeddings by default. At the paper's sizes the model has
    0.20 M parameters on MNIST, 1.42 M on Nottingham, 14.2 M on characters and 2.3 M on words. These numbers include the
    input and output layers. The authors' code has 4 D more parameters that get gradients in each block, because its
    attention projections have biases. Eq. 4 and 6 have no biases. `docs/original-code.md` lists all differences.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        heads: H, attention heads; must divide D. With heads=0 there is no attention, for an ablation.
        window: M, number of positions that each LocalRNN reads, the current one included.
        cell: "rnn", "gru" or "lstm". "convolution" puts a causal convolution of the same window, with tanh,
            in place of each LocalRNN, for an ablation.
        local_layers: number of LocalRNNs at the bottom of each block. The authors use 2 on MNIST and 1 elsewhere.
            With local_layers=0 there is no LocalRNN, for an ablation.
        dropout: after each sublayer, on attention weights and in the feed-forward network.
        norm: "post" is Eq. 8. "pre" is the order of the authors' code, x + sublayer(LayerNorm(x)).
        position: "none", as in the paper; "sinusoidal", which adds sines and cosines of the position to the input; or
            "relative", which gives each attention Shaw's tables of clipped distances. Positions need heads > 0.
        max_distance: k of "relative", the distance from which on all keys share vectors.
        init: "separate" draws every weight. "copies" starts as the authors' code does: in a block W_q, W_k, W_v and W_o
            are equal, and so are all LocalRNNs. A position then prefers itself, because its query equals its key. After
            that they learn on their own.
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
        max_distance: int = 16,
        init: str = "separate",
    ) -> None:
        super().__init__()
        check_positive("layers", layers)
        check_count("local_layers", local_layers)
        check_count("heads", heads)
        if check_choice("position", position, POSITIONS) != "none" and not heads:
            raise ValueError(f"position: {position!r} needs heads > 0, got heads = 0")
        check_positive("window", window)
        check_positive("max_distance", max_distance)
        check_choice("cell", cell, [*CELLS, "convolution"])  # even if local_layers is 0
        self.position, self.local_layers = position, local_layers

        def local() -> nn.Module:
            return LocalConv(d_model, window) if cell == "convolution" else LocalRNN(d_model, window, cell)

        def block() -> nn.Sequential:
            # Eq. (8), from bottom to top
            sublayers = [
                *(local() for _ in range(local_layers)),
                *([attention_with(position, d_model, heads, max_distance, dropout)] if heads else []),
                FeedForward(d_model, dropout=dropout),
            ]
            return nn.Sequential(*(Residual(s, d_model, norm, dropout) for s in sublayers))

        self.d_model = check_positive("d_model", d_model)
        self.blocks = nn.Sequential(*(block() for _ in range(layers)))
        if check_choice("init", init, STARTS) == "copies":
            for made in self.blocks:
                _start_equal(made)

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Return the outputs for `x`. If a state is given, `x` continues the sequence that led to this state."""
        if state is not None:
            return super().forward(x, state)
        self.check_input(x)
        if self.position == "sinusoidal":
            x = x + sinusoidal_positions(x.shape[1], self.d_model, x)
        return self.blocks(x)

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has one part for each sublayer, block after block."""
        self.check_input(x)
        residuals = [residual for block in self.blocks for residual in block.children()]
        before = split(state, len(residuals))
        if self.position == "sinusoidal":
            read = keys_so_far(before[self.local_layers])  # in the first block, attention comes after the LocalRNNs
            x = x + sinusoidal_positions(x.shape[1], self.d_model, x, read)
        return read_through(readers(residuals), x, before)


def _start_equal(block: nn.Module) -> None:
    """Give all LocalRNNs of a block the weights of the first, and all projections of its attention those of W_q."""
    parts = list(block.modules())
    local = [part for part in parts if isinstance(part, LocalRNN | LocalConv)]
    projections = [linear for part in parts if isinstance(part, MultiHeadAttention) for linear in part.children()]
    for kind in (local, projections):
        for part in kind[1:]:
            part.load_state_dict(kind[0].state_dict())


def receptive_field(layers: int, heads: int, window: int, local_layers: int = 1, **others: object) -> int | None:
    """Return the number of positions that an output depends on. None means the whole past."""
    return None if heads else 1 + layers * local_layers * (window - 1)


CARD = Card(
    "r-transformer",
    RTransformer,
    "Wang et al. (2019)",
    "Table 2, Nottingham",
    {"d_model": 160, "layers": 3, "heads": 4, "window": 6},  # the paper prints only the first two
    receptive_field,
)
