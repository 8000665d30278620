"""Transformer and R-Transformer from a source to a target, with attention from the target to the source.

Vaswani et al. (2017), Attention Is All You Need, §3. The R-Transformer of this kind is future work in Wang et al.
(2019).
"""

import math
from typing import cast

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from rtx.models.backbone import Card, Translator
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, Residual, sinusoidal_positions
from rtx.nn.cross_attention import CrossAttention
from rtx.nn.padding import check_target, read_source, real_positions
from rtx.nn.recurrent import CELLS
from rtx.nn.streaming import State, check_state, read_through, readers, split
from rtx.nn.validate import check_choice, check_fraction, check_positive, check_tokens

Source = tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]
"""An encoded source, and True for its positions that are not padding."""


class Block(nn.Module):
    """LocalRNN (if there is a window), self-attention, attention to the source (if `cross`), feed-forward network.

    Each is in a residual connection. The other arguments are those of `EncoderDecoder`.
    """

    def __init__(
        self, d_model: int, heads: int, window: int | None, cell: str, dropout: float, norm: str, cross: bool
    ) -> None:
        super().__init__()

        def residual(sublayer: nn.Module) -> Residual:
            return Residual(sublayer, d_model, norm, dropout)

        # Eq. (8) of R-Transformer, from bottom to top, and the third sublayer of Vaswani et al.
        self.local = None if window is None else residual(LocalRNN(d_model, window, cell))
        self.attention = residual(MultiHeadAttention(d_model, heads, dropout))
        self.cross = residual(CrossAttention(d_model, heads, dropout)) if cross else None
        self.feed_forward = residual(FeedForward(d_model, dropout=dropout))

    def forward(
        self, x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B 1 T T"] | None = None, source: Source | None = None
    ) -> Float[Tensor, "B T D"]:
        """Return for each position a mixture of what the mask lets it see; by default itself and the past."""
        x = x if self.local is None else self.local(x)
        x = self.attention(x, mask)
        if self.cross is not None and source is not None:
            x = self.cross(x, self.cross_attention().encode(*source))
        return self.feed_forward(x)

    def start(self, source: Source) -> State:
        """Return the state before the first position: that of each sublayer. The cross-attention's is the source."""
        encoded = self.cross_attention().encode(*source)
        return tuple(encoded if residual is self.cross else None for residual in self.children())

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream."""
        return read_through(readers(self.children()), x, state)

    def cross_attention(self) -> CrossAttention:
        """Return the attention to the source of a decoder's block."""
        assert self.cross is not None
        return cast(CrossAttention, self.cross.sublayer)


class EncoderDecoder(Translator):
    """Maps a source sentence and the target so far to the logits of the target's next token.

    In the encoder every position attends to every real position. In the decoder a position attends to itself and the
    past, then to the source. Without a window this is the Transformer, with embeddings times √D plus sinusoids. With a
    window it is the R-Transformer: a LocalRNN is below each self-attention, in the encoder also from left to right.
    There are then no positions, and √D stays.

    Some details are ours. Embeddings start as N(0, 1/D). The two vocabularies and the output share no weights. "pre"
    normalises once more after each stack, as Xiong et al. (2020) do.

    Args:
        source_vocabulary: number of tokens of the source.
        target_vocabulary: V, number of tokens of the target.
        d_model: D, width of every layer.
        layers: number of blocks of the encoder, and of the decoder.
        heads: H, attention heads; must divide D.
        window: M, number of positions that each LocalRNN reads; None for no LocalRNNs.
        cell: of the LocalRNNs: "rnn", "gru" or "lstm".
        dropout: on the embeddings with their positions, after each sublayer, on attention weights, in the feed-forward
            network.
        norm: "post", LayerNorm(x + sublayer(x)), as in both papers, or "pre", x + sublayer(LayerNorm(x)).
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        d_model: int,
        layers: int,
        heads: int,
        window: int | None = None,
        cell: str = "gru",
        dropout: float = 0.0,
        norm: str = "post",
    ) -> None:
        super().__init__()
        self.source_vocabulary = check_positive("source_vocabulary", source_vocabulary)
        self.target_vocabulary = check_positive("target_vocabulary", target_vocabulary)
        self.d_model, self.window = check_positive("d_model", d_model), window
        check_positive("layers", layers), check_choice("cell", cell, CELLS)

        def stack(cross: bool) -> nn.ModuleList:
            return nn.ModuleList(Block(d_model, heads, window, cell, dropout, norm, cross) for _ in range(layers))

        def last_norm() -> nn.Module:
            return nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()

        self.source_embedding = nn.Embedding(source_vocabulary, d_model)
        self.target_embedding = nn.Embedding(target_vocabulary, d_model)
        for table in (self.source_embedding, self.target_embedding):
            nn.init.normal_(table.weight, std=d_model**-0.5)
        self.encoder, self.encoder_norm = stack(cross=False), last_norm()
        self.decoder, self.decoder_norm = stack(cross=True), last_norm()
        self.output = nn.Linear(d_model, target_vocabulary)
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))

    def forward(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"], source_lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B T V"]:
        """Return the logits of the token after each token of the target, given the source and the target up to there.

        Args:
            source: what to translate.
            target: begins with the begin token. Padding at its end changes nothing before it.
            source_lengths: number of real tokens in each source; by default S. The padding after them is ignored.
        """
        check_target(target, source, self.target_vocabulary)
        encoded = self._encode(source, source_lengths)
        x = self._embed(self.target_embedding, target)
        for block in self.decoder:
            x = block(x, None, encoded)
        return self.output(self.decoder_norm(x))

    def align(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"], source_lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B T S"]:
        """Return where the decoder looks to predict the token after each token: the mean over the last block's heads.

        Each row sums to 1. The sum over T is the coverage of each position of the source.
        """
        seen: list[Tensor] = []
        attention = cast(Block, self.decoder[-1]).cross_attention()
        hook = attention.register_forward_pre_hook(lambda module, args: seen.append(module.weights(*args)))
        try:
            self(source, target, source_lengths)
        finally:
            hook.remove()
        return seen[0].mean(1)

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"] | None = None) -> State:
        """Return the state before the first token: the number of tokens so far, and the state of each block."""
        encoded = self._encode(source, source_lengths)
        return 0, tuple(cast(Block, block).start(encoded) for block in self.decoder)

    def step(self, tokens: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        """Read one token of the target; return the logits of the next token, and the next state."""
        check_tokens("tokens", tokens, self.target_vocabulary, 1)
        read, blocks = split(state, 2)
        check_state((read,), None)
        x, after = read_through(
            readers(self.decoder), self._embed(self.target_embedding, tokens[:, None], read), blocks
        )
        return self.output(self.decoder_norm(x)).squeeze(1), (read + 1, after)

    def _encode(self, source: Tensor, source_lengths: Tensor | None) -> Source:
        source, lengths = read_source(source, source_lengths, self.source_vocabulary)
        real = real_positions(lengths, source.shape[1])
        mask = real[:, None, None].expand(-1, 1, source.shape[1], -1)  # (B, 1, S, S)
        x = self._embed(self.source_embedding, source)
        for block in self.encoder:
            x = block(x, mask)
        return self.encoder_norm(x), real

    def _embed(self, table: nn.Embedding, tokens: Tensor, start: int = 0) -> Tensor:
        # Vaswani et al., §3.4 and §3.5
        x = table(tokens) * math.sqrt(self.d_model)
        if self.window is None:
            x = x + sinusoidal_positions(tokens.shape[1], self.d_model, x, start)
        return self.dropout(x)


CARD = Card(
    "encoder-decoder",
    EncoderDecoder,
    "Vaswani et al. (2017)",
    "Table 3, base",
    {"source_vocabulary": 37_000, "target_vocabulary": 37_000, "d_model": 512, "layers": 6, "heads": 8},
)
