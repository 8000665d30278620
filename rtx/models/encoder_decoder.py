"""Transformer and R-Transformer from a source to a target: attention within each, and from the target to the source.

Vaswani et al. (2017), Attention Is All You Need, §3; with a window, what Wang et al. (2019), R-Transformer, leave as
future work.
"""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, Residual, sinusoidal_positions
from rtx.nn.cross_attention import CrossAttention
from rtx.nn.padding import check_target, read_source, real_positions
from rtx.nn.recurrent import CELLS
from rtx.nn.search import Hypotheses, beam_search
from rtx.nn.state import State, check_state, parts, step_through
from rtx.nn.validate import check_choice, check_fraction, check_positive, check_tokens

Source = tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]
"""An encoded source, and which of its positions are real."""


class Block(nn.Module):
    """LocalRNN (with a window), self-attention, attention to a source (with `cross`), feed-forward, each a residual.

    The other arguments are those of `EncoderDecoder`.
    """

    def __init__(
        self, d_model: int, heads: int, window: int | None, cell: str, dropout: float, norm: str, cross: bool
    ) -> None:
        super().__init__()

        def residual(sublayer: nn.Module) -> Residual:
            return Residual(sublayer, d_model, norm, dropout)

        # Eq. (8) of R-Transformer, bottom to top, and Vaswani et al.'s third sublayer
        self.local = None if window is None else residual(LocalRNN(d_model, window, cell))
        self.attention = residual(MultiHeadAttention(d_model, heads, dropout))
        self.cross = residual(CrossAttention(d_model, heads, dropout)) if cross else None
        self.feed_forward = residual(FeedForward(d_model, dropout=dropout))

    def forward(
        self, x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B 1 T T"] | None = None, source: Source | None = None
    ) -> Float[Tensor, "B T D"]:
        """A sequence of the same shape, each position from those the mask lets it see: by default no later ones."""
        x = x if self.local is None else self.local(x)
        x = self.attention(x, mask)
        if self.cross is not None and source is not None:
            x = self.cross(x, self.cross.sublayer.remember(*source))  # type: ignore[operator]
        return self.feed_forward(x)

    def start(self, source: Source) -> State:
        """The state before the first position, one for each sublayer: the cross-attention's is the source's."""
        return tuple(
            residual.sublayer.remember(*source) if residual is self.cross else None  # type: ignore[operator]
            for residual in self.children()
        )

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream."""
        return step_through(self.children(), x, state)


class EncoderDecoder(nn.Module):
    """Maps a source sentence and the target so far to the logits of the target's next token.

    In the encoder every position attends to every real one, in the decoder to itself and the past, then to the
    source. Without a window it is the Transformer: embeddings times √D plus sinusoids. With one it is the
    R-Transformer: a LocalRNN stands below each self-attention, in the decoder and, left to right as well, in the
    encoder; there are no positions, and √D stays. Ours: embeddings begin as N(0, 1/D), the two vocabularies and the
    output share no weights, and "pre" normalises once more behind each stack, as Xiong et al. (2020) do.

    Args:
        source_vocabulary: number of tokens of the source.
        target_vocabulary: V, number of tokens of the target.
        d_model: D, width of every layer.
        layers: blocks of the encoder, and of the decoder.
        heads: H, attention heads; must divide D.
        window: M, positions each LocalRNN reads, the present one included; None for no LocalRNNs.
        cell: of the LocalRNNs: "rnn", "gru" or "lstm".
        dropout: on the embeddings with their positions, after each sublayer, on attention weights, in the feed-forward.
        norm: "post", LayerNorm(x + sublayer(x)), as in both papers, or "pre", x + sublayer(LayerNorm(x)).

    Raises:
        ValueError: if an argument is out of its range.
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
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        source_lengths: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """The logits of the token after each token of the target, given the source and the target up to there.

        Args:
            source: what to translate.
            target: begins with the begin token. Padding at its end changes nothing before it.
            source_lengths: real tokens in each source, S if not given. What stands behind them does not matter.

        Raises:
            ValueError: if a token is not in its vocabulary, a tensor is empty, or the batches or lengths do not fit.
        """
        check_target(target, source, self.target_vocabulary)
        encoded = self._encode(source, source_lengths)
        x = self._embed(self.target_embedding, target)
        for block in self.decoder:
            x = block(x, None, encoded)
        return self.output(self.decoder_norm(x))

    def align(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        source_lengths: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B T S"]:
        """Where the decoder looks in the source to predict the token after each token: the last block's mean head.

        Each row sums to 1; the sum over T is the coverage of each position of the source.

        Raises:
            ValueError: as `forward`.
        """
        seen: list[Tensor] = []
        *_, attention = (module for module in self.modules() if isinstance(module, CrossAttention))
        hook = attention.register_forward_pre_hook(lambda module, args: seen.append(module.weights(*args)))
        try:
            self(source, target, source_lengths)
        finally:
            hook.remove()
        return seen[0].mean(1)

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"] | None = None) -> State:
        """The state before the first token: how many tokens were read, and each block's state with its source.

        Raises:
            ValueError: if the source is not (B, S) of its tokens or is empty, or the lengths do not fit.
        """
        encoded = self._encode(source, source_lengths)
        return 0, tuple(block.start(encoded) for block in self.decoder)  # type: ignore[operator]

    def step(self, tokens: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        """The logits of the token after this one, and the state behind it.

        Raises:
            ValueError: if `tokens` is not (B,) of target tokens, or `state` is another model's or batch's.
        """
        check_tokens("tokens", tokens, self.target_vocabulary, 1)
        if len(parts(state)) != 2:
            raise ValueError(f"state: expected what start or step returned, got {len(state)} parts")
        read, blocks = state
        check_state((read,), None)
        x = self._embed(self.target_embedding, tokens[:, None], read).squeeze(1)
        x, after = step_through(self.decoder, x, blocks)
        return self.output(self.decoder_norm(x)), (read + 1, after)

    @torch.no_grad()
    def translate(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"] | None = None, **how: Any
    ) -> Hypotheses:
        """Beam search for the target; call `eval()` first, or dropout stays on.

        `how` is `begin`, `end`, `length`, and perhaps `width` and `alpha`: see `rtx.nn.search.beam_search`.

        Raises:
            ValueError: as `start` and `beam_search`.
        """
        state = self.start(source, source_lengths)
        return beam_search(self.step, state, len(source), self.target_vocabulary, device=source.device, **how)

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
