"""RNNSearch: a recurrent encoder, and a recurrent decoder that looks for what it needs in the source at each step.

Bahdanau, Cho & Bengio (2015), Neural Machine Translation by Jointly Learning to Align and Translate. Xu et al. (2019),
MC-RNN, translate and summarise with it.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rtx.nn.additive_attention import AdditiveAttention
from rtx.nn.padding import check_target, read_source, real_positions, reverse
from rtx.nn.search import Hypotheses, beam_search
from rtx.nn.state import State, check_state, parts
from rtx.nn.validate import check_backbone, check_fraction, check_positive, check_tokens


class Seq2Seq(nn.Module):
    """Maps a source sentence and the target so far to the logits of the target's next token.

    The paper's GRUs may be any recurrent backbones. That leaves three places where this is not the paper: a backbone
    starts from its own zero state, so the paper's s_0 = tanh(W_s h) is the first query only; the two directions are
    joined by a linear layer to width D, which the paper's attention does implicitly; and the output g is a layer of
    tanh where the paper has a layer of maxout.

    Parameters over LSTMs of 256: 23.0 M with 2 layers and vocabularies of 25,000, 30.0 M with 4 and 30,000, where Xu et
    al. print 25 M (Table 2) and 36 M (Table 3) for their baselines. They say "about 25k", and nothing of the sizes of
    attention and output layers or of the encoder's direction, so we cannot tell where the rest is.

    Args:
        source_vocabulary: number of tokens of the source.
        target_vocabulary: V, number of tokens of the target.
        encoder: backbone of width D that reads the source forwards.
        decoder: backbone of width D with a `step`.
        backward: backbone of width D that reads each source backwards; None for an encoder in one direction.
        dropout: on the embeddings of both sides and on the last hidden layer.

    Raises:
        ValueError: if an argument is out of its range, or a module is no backbone of the encoder's width.
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        encoder: nn.Module,
        decoder: nn.Module,
        backward: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.source_vocabulary = check_positive("source_vocabulary", source_vocabulary)
        self.target_vocabulary = check_positive("target_vocabulary", target_vocabulary)
        D = self.d_model = check_backbone("encoder", encoder)
        check_backbone("decoder", decoder, D)
        if backward is not None:
            check_backbone("backward", backward, D)
        self.source_embedding, self.target_embedding = (
            nn.Embedding(source_vocabulary, D),
            nn.Embedding(target_vocabulary, D),
        )
        self.encoder, self.backward_encoder, self.decoder = encoder, backward, decoder
        self.join = None if backward is None else nn.Linear(2 * D, D)
        self.first_query = nn.Linear(D, D)
        self.attention = AdditiveAttention(D)
        self.decoder_input = nn.Linear(2 * D, D)
        self.hidden, self.output = nn.Linear(3 * D, D), nn.Linear(D, target_vocabulary)
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
        logits, _ = self._teach(source, target, source_lengths)
        return logits

    def align(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        source_lengths: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B T S"]:
        """Eq. 6's weights: row i says where in the source the decoder looked to predict the token after target[:, i].

        Each row sums to 1; the sum over T is the coverage of each position of the source.

        Raises:
            ValueError: as `forward`.
        """
        _, weights = self._teach(source, target, source_lengths)
        return weights

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"] | None = None) -> State:
        """The state before the first token: the encoded source, the first query, and no step of the decoder yet.

        Raises:
            ValueError: if the source is not (B, S) of its tokens or is empty, or the lengths do not fit.
        """
        source, lengths = read_source(source, source_lengths, self.source_vocabulary)
        x = self.dropout(self.source_embedding(source))
        annotations = self.encoder(x)
        if self.backward_encoder is None or self.join is None:
            read = annotations[torch.arange(x.shape[0], device=x.device), lengths - 1]
        else:
            backwards = reverse(self.backward_encoder(reverse(x, lengths)), lengths)
            # it has read all of the source when it comes to the first position
            read = backwards[:, 0]
            # the paper's h_j = [forwards; backwards], brought to width D
            annotations = self.join(torch.cat([annotations, backwards], -1))
        remembered = self.attention.remember(annotations, real_positions(lengths, source.shape[1]))
        return remembered, torch.tanh(self.first_query(read)), None

    def step(self, tokens: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        """The logits of the token after this one, and the state behind it.

        Raises:
            ValueError: if `tokens` is not (B,) of target tokens, or `state` is another model's or batch's.
        """
        check_tokens("tokens", tokens, self.target_vocabulary, 1)
        y = self.dropout(self.target_embedding(tokens))
        s, c, _, state = self._advance(y, state)
        return self._read_out(s, c, y), state

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

    def _teach(self, source: Tensor, target: Tensor, source_lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits (B, T, V) and weights (B, T, S) along a given target. Only the output layers wait for the end."""
        check_target(target, source, self.target_vocabulary)
        state = self.start(source, source_lengths)
        y = self.dropout(self.target_embedding(target))
        steps = []
        for y_i in y.unbind(1):
            *found, state = self._advance(y_i, state)
            steps.append(found)
        s, c, weights = (torch.stack(part, 1) for part in zip(*steps, strict=True))
        return self._read_out(s, c, y), weights

    def _advance(self, y: Tensor, state: State) -> tuple[Tensor, Tensor, Tensor, State]:
        """s_i, c_i, the weights, and the next state, from the embedding of y_{i-1} and the state before."""
        if len(parts(state)) != 3:
            raise ValueError(f"state: expected what start or step returned, got {len(state)} parts")
        remembered, query, inner = state
        check_state((query,), (y.shape[0], self.d_model))
        # Eq. (5)-(6), asked by s_{i-1}
        c, weights = self.attention(query, remembered)
        # s_i = f(s_{i-1}, y_{i-1}, c_i)
        s, inner = self.decoder.step(self.decoder_input(torch.cat([y, c], -1)), inner)  # type: ignore[operator]
        return s, c, weights, (remembered, s, inner)

    def _read_out(self, s: Tensor, c: Tensor, y: Tensor) -> Tensor:
        # Eq. (4): g(y_{i-1}, s_i, c_i)
        return self.output(self.dropout(torch.tanh(self.hidden(torch.cat([s, c, y], -1)))))
