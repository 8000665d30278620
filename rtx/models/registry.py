"""Every model by name: the one place that knows them all. A backbone registered here joins the property tests."""

from collections.abc import Callable
from functools import partial

from torch import nn

from rtx.models.awd_lstm import AWDLSTM
from rtx.models.character_transformer import CharacterTransformer
from rtx.models.encoder_decoder import EncoderDecoder
from rtx.models.ff_attention import FeedForwardAttention
from rtx.models.griffin import Griffin
from rtx.models.hm_rnn import HMRNN
from rtx.models.ho_rnn import HORNN
from rtx.models.mc_rnn import MCRNN
from rtx.models.r_transformer import RTransformer
from rtx.models.rnn import RNN
from rtx.models.seq2seq import Seq2Seq
from rtx.models.tcn import TCN
from rtx.models.transformer import Transformer
from rtx.models.transformer_xl import TransformerXL
from rtx.nn.validate import check_choice, check_flag

MODELS: dict[str, Callable[..., nn.Module]] = {
    "r-transformer": RTransformer,
    "transformer": Transformer,
    "transformer-xl": TransformerXL,
    "character-transformer": CharacterTransformer,
    "tcn": TCN,
    "rnn": partial(RNN, cell="rnn"),
    "gru": partial(RNN, cell="gru"),
    "lstm": partial(RNN, cell="lstm"),
    "awd-lstm": AWDLSTM,
    "mc-rnn": MCRNN,
    "ho-rnn": HORNN,
    "hm-rnn": HMRNN,
    "griffin": Griffin,
}
"""Backbones by the name that recipes and the command line use. A model registered here joins the property tests."""

RECURRENT = ("rnn", "gru", "lstm", "mc-rnn", "ho-rnn", "hm-rnn")
"""Backbones that RNNSearch can be built over by name."""


def rnnsearch(
    source_vocabulary: int,
    target_vocabulary: int,
    recurrent: str = "lstm",
    bidirectional: bool = True,
    seq2seq_dropout: float = 0.0,
    **hyperparameters: object,
) -> Seq2Seq:
    """RNNSearch whose encoder and decoder are the named recurrent model.

    Args:
        source_vocabulary: number of tokens of the source.
        target_vocabulary: number of tokens of the target.
        recurrent: one of `RECURRENT`.
        bidirectional: read the source backwards, too.
        seq2seq_dropout: `Seq2Seq`'s own dropout, on embeddings and before the output.
        hyperparameters: of the recurrent model, such as `d_model=256, layers=2, dropout=0.2`.

    Raises:
        ValueError: if an argument is out of its range.
    """
    make = partial(MODELS[check_choice("recurrent", recurrent, RECURRENT)], **hyperparameters)
    backward = make() if check_flag("bidirectional", bidirectional) else None
    return Seq2Seq(source_vocabulary, target_vocabulary, make(), make(), backward, seq2seq_dropout)


WHOLE: dict[str, Callable[..., nn.Module]] = {"feed-forward-attention": FeedForwardAttention}
"""Models that map a task's `inputs` to its `outputs` themselves, one prediction per sequence, by name."""

TRANSLATORS: dict[str, Callable[..., nn.Module]] = {"rnnsearch": rnnsearch, "encoder-decoder": EncoderDecoder}
"""Models from a source sentence to a target sentence, by name."""
