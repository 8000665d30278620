"""The models of the papers, one file for each paper. `backbone` says what they have in common."""

from rtx.models.awd_lstm import AWDLSTM
from rtx.models.backbone import Backbone, Card, CausalModel
from rtx.models.bidirectional import Bidirectional
from rtx.models.causal_encoder import CausalEncoder
from rtx.models.character_transformer import CharacterTransformer
from rtx.models.encoder_decoder import EncoderDecoder
from rtx.models.export import export_sequence, export_step
from rtx.models.ff_attention import FeedForwardAttention
from rtx.models.griffin import Griffin
from rtx.models.hm_rnn import HMRNN
from rtx.models.ho_rnn import HORNN
from rtx.models.language_model import LanguageModel
from rtx.models.mc_rnn import MCRNN
from rtx.models.r_transformer import RTransformer
from rtx.models.registry import CARDS, MODELS, RECURRENT, TRANSLATORS, WHOLE, rnnsearch
from rtx.models.rnn import RNN
from rtx.models.seq2seq import Seq2Seq
from rtx.models.size import parameter_bytes
from rtx.models.tcn import TCN
from rtx.models.transformer import Transformer
from rtx.models.transformer_xl import TransformerXL

__all__ = [
    "AWDLSTM",
    "CARDS",
    "HMRNN",
    "HORNN",
    "MCRNN",
    "MODELS",
    "RECURRENT",
    "RNN",
    "TCN",
    "TRANSLATORS",
    "WHOLE",
    "Backbone",
    "Bidirectional",
    "Card",
    "CausalEncoder",
    "CausalModel",
    "CharacterTransformer",
    "EncoderDecoder",
    "FeedForwardAttention",
    "Griffin",
    "LanguageModel",
    "RTransformer",
    "Seq2Seq",
    "Transformer",
    "TransformerXL",
    "export_sequence",
    "export_step",
    "parameter_bytes",
    "rnnsearch",
]
