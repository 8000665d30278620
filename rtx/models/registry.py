"""The list of all models. A backbone in the list joins the property tests."""

from collections.abc import Callable
from functools import partial

from torch import nn

from rtx.models import (
    awd_lstm,
    character_transformer,
    encoder_decoder,
    ff_attention,
    griffin,
    hm_rnn,
    ho_rnn,
    mc_rnn,
    r_transformer,
    rnn,
    tcn,
    transformer,
    transformer_xl,
)
from rtx.models.backbone import Card, CausalModel
from rtx.models.seq2seq import Seq2Seq
from rtx.nn.validate import check_choice, check_flag

BACKBONES = [
    r_transformer.CARD,
    transformer.CARD,
    transformer_xl.CARD,
    character_transformer.CARD,
    tcn.CARD,
    rnn.RNN_CARD,
    rnn.GRU_CARD,
    rnn.LSTM_CARD,
    awd_lstm.CARD,
    mc_rnn.CARD,
    ho_rnn.CARD,
    hm_rnn.CARD,
    griffin.CARD,
]
MODELS: dict[str, Callable[..., CausalModel]] = {card.name: card.make for card in BACKBONES}
"""The backbones by the name that recipes and the command line use."""

RECURRENT = ("rnn", "gru", "lstm", "mc-rnn", "ho-rnn", "hm-rnn")
"""Backbones that RNNSearch can be built from by name."""


def rnnsearch(
    source_vocabulary: int,
    target_vocabulary: int,
    recurrent: str = "lstm",
    bidirectional: bool = True,
    seq2seq_dropout: float = 0.0,
    **hyperparameters: object,
) -> Seq2Seq:
    """Return an RNNSearch whose encoder and decoder are the named recurrent model.

    Args:
        source_vocabulary: number of tokens of the source.
        target_vocabulary: number of tokens of the target.
        recurrent: one of `RECURRENT`.
        bidirectional: whether the encoder also reads the source backwards.
        seq2seq_dropout: on the embeddings and before the output.
        hyperparameters: of the recurrent model, such as `d_model=256, layers=2, dropout=0.2`.
    """
    make = partial(MODELS[check_choice("recurrent", recurrent, RECURRENT)], **hyperparameters)
    backward = make() if check_flag("bidirectional", bidirectional) else None
    return Seq2Seq(source_vocabulary, target_vocabulary, make(), make(), backward, seq2seq_dropout)


RNNSEARCH = Card(
    "rnnsearch",
    rnnsearch,
    "Bahdanau, Cho & Bengio (2015)",
    "Xu et al., Table 2, IWSLT14, baseline",
    {"source_vocabulary": 25_000, "target_vocabulary": 25_000, "recurrent": "lstm", "d_model": 256, "layers": 2},
)
WHOLE: dict[str, Callable[..., nn.Module]] = {"feed-forward-attention": ff_attention.CARD.make}
"""Models without a backbone that make one prediction for each sequence, by name."""

TRANSLATORS: dict[str, Callable[..., nn.Module]] = {
    "rnnsearch": rnnsearch,
    "encoder-decoder": encoder_decoder.CARD.make,
}
"""Models from a source sentence to a target sentence, by name."""

CARDS = {card.name: card for card in [*BACKBONES, ff_attention.CARD, RNNSEARCH, encoder_decoder.CARD]}
"""The data sheets of all models by name."""
