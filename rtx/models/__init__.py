"""The backbones of the papers, one file per paper. Each maps (B, T, D) to (B, T, D), causally."""

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
from rtx.models.language_model import LanguageModel
from rtx.models.mc_rnn import MCRNN
from rtx.models.r_transformer import RTransformer
from rtx.models.rnn import RNN
from rtx.models.seq2seq import Seq2Seq
from rtx.models.tcn import TCN
from rtx.models.transformer import Transformer
from rtx.models.transformer_xl import TransformerXL

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

WHOLE: dict[str, Callable[..., nn.Module]] = {"feed-forward-attention": FeedForwardAttention}
"""Models that map a task's `inputs` to its `outputs` themselves, one prediction per sequence, by name."""

__all__ = [
    "AWDLSTM",
    "HMRNN",
    "HORNN",
    "MCRNN",
    "MODELS",
    "RNN",
    "TCN",
    "WHOLE",
    "CharacterTransformer",
    "EncoderDecoder",
    "FeedForwardAttention",
    "Griffin",
    "LanguageModel",
    "RTransformer",
    "Seq2Seq",
    "Transformer",
    "TransformerXL",
]
