"""RNNSearch: a recurrent encoder, and a recurrent decoder that attends to the source at each step.

Bahdanau, Cho & Bengio (2015), Neural Machine Translation by Jointly Learning to Align and Translate. Xu et al. (2019),
MC-RNN, use it for translation and summarisation.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rtx.models.backbone import Backbone, Translator, check_backbone
from rtx.nn.additive_attention import AdditiveAttention
from rtx.nn.padding import check_target, read_source, real_positions, reverse
from rtx.nn.streaming import State, check_state, split
from rtx.nn.validate import check_fraction, check_positive, check_tokens


class Seq2Seq(Translator):
    """Maps a source sentence and the target so far to the logits of the target's next token.

    Any recurrent backbone may take the place of the paper's GRUs. Therefore five details differ from the paper. A
    backbone starts from its own zero state, so the paper's s_0 = tanh(W_s h) is only the first query. The two
    directions are joined by a linear layer to width D; in the paper they stay side by side. The last token and the
    context are mapped together to width D before the cell; in the paper each gate has matrices for both. The output g
    is a layer of tanh, where the paper has a layer of maxout. It reads s_i, as in the paper's Eq. 4; the paper's
    appendix prints s_{i-1}.

    With LSTMs of width 256 there are 23.0 M parameters for 2 layers and vocabularies of 25,000, and 30.0 M for 4 layers
    and 30,000. Xu et al. print 25 M (Table 2) and 36 M (Table 3) for their baselines. They say "about 25k", and nothing
    about the sizes of attention and output layers or the directions of the encoder, so we cannot explain the rest.

    Args:
        source_vocabulary: number of tokens of the source.
        target_vocabulary: V, number of tokens of the target.
        encoder: backbone of width D that reads the source forwards.
        decoder: backbone of width D.
        backward: backbone of width D that reads the source backwards; None for an encoder with one direction.
        dropout: on the embeddings of both sides and on the last hidden layer.
    """

    encoder: Backbone
    decoder: Backbone
    backward_encoder: Backbone | None

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        encoder: Backbone,
        decoder: Backbone,
        backward: Backbone | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.source_vocabulary = check_positive("source_vocabulary", source_vocabulary)
        self.target_vocabulary = check_positive("target_vocabulary", target_vocabulary)
        D = self.d_model = check_backbone("encoder", encoder)
        check_backbone("decoder", decoder, D)
        if backward is not None:
            check_backbone("backward", backward, D)
        self.source_embedding = nn.Embedding(source_vocabulary, D)
        self.target_embedding = nn.Embedding(target_vocabulary, D)
        self.encoder, self.backward_encoder, self.decoder = encoder, backward, decoder
        self.join = None if backward is None else nn.Linear(2 * D, D)
        self.first_query = nn.Linear(D, D)
        self.attention = AdditiveAttention(D)
        self.decoder_input = nn.Linear(2 * D, D)
        self.hidden, self.output = nn.Linear(3 * D, D), nn.Linear(D, target_vocabulary)
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
        logits, _ = self._teach(source, target, source_lengths)
        return logits

    def align(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"], source_lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B T S"]:
        """Return the weights of Eq. 6: row i shows where the decoder looked to predict the token after target[:, i].

        Each row sums to 1. The sum over T is the coverage of each position of the source.
        """
        _, weights = self._teach(source, target, source_lengths)
        return weights

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"] | None = None) -> State:
        """Return the state before the first token: the encoded source, the first query, and the decoder's None."""
        source, lengths = read_source(source, source_lengths, self.source_vocabulary)
        x = self.dropout(self.source_embedding(source))
        annotations = self.encoder(x)
        if self.backward_encoder is None or self.join is None:
            read = annotations[torch.arange(x.shape[0], device=x.device), lengths - 1]
        else:
            backwards = reverse(self.backward_encoder(reverse(x, lengths)), lengths)
            read = backwards[:, 0]  # at the first position it has read the whole source
            # the paper's h_j = [forwards; backwards], mapped to width D
            annotations = self.join(torch.cat([annotations, backwards], -1))
        encoded = self.attention.encode(annotations, real_positions(lengths, source.shape[1]))
        return encoded, torch.tanh(self.first_query(read)), None

    def step(self, tokens: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        """Read one token of the target; return the logits of the next token, and the next state."""
        check_tokens("tokens", tokens, self.target_vocabulary, 1)
        y = self.dropout(self.target_embedding(tokens))
        s, c, _, state = self._advance(y, state)
        return self._read_out(s, c, y), state

    def _teach(self, source: Tensor, target: Tensor, source_lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return logits (B, T, V) and weights (B, T, S) for a given target. The output layers run once, at the end."""
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
        """Return s_i, c_i, the weights and the next state, from the embedding of y_{i-1} and the state before."""
        encoded, query, inner = split(state, 3)
        check_state((query,), (y.shape[0], self.d_model))
        # Eq. (5)-(6), with the query s_{i-1}
        c, weights = self.attention(query, encoded)
        # s_i = f(s_{i-1}, y_{i-1}, c_i)
        s, inner = self.decoder.step(self.decoder_input(torch.cat([y, c], -1)), inner)
        return s, c, weights, (encoded, s, inner)

    def _read_out(self, s: Tensor, c: Tensor, y: Tensor) -> Tensor:
        # Eq. (4): g(y_{i-1}, s_i, c_i)
        return self.output(self.dropout(torch.tanh(self.hidden(torch.cat([s, c, y], -1)))))
