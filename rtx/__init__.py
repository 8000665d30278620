"""rtx: the interactive companion to the papers on recurrence and attention.

The bricks are in `rtx.nn`, the papers' models in `rtx.models`, the experiments in `rtx.tasks`.
"""

from rtx.models import (
    AWDLSTM,
    HMRNN,
    HORNN,
    MCRNN,
    MODELS,
    RNN,
    TCN,
    CharacterTransformer,
    EncoderDecoder,
    FeedForwardAttention,
    Griffin,
    LanguageModel,
    RTransformer,
    Seq2Seq,
    Transformer,
    TransformerXL,
    rnnsearch,
)
from rtx.tasks import TASKS, build

__all__ = [
    "AWDLSTM",
    "HMRNN",
    "HORNN",
    "MCRNN",
    "MODELS",
    "RNN",
    "TASKS",
    "TCN",
    "CharacterTransformer",
    "EncoderDecoder",
    "FeedForwardAttention",
    "Griffin",
    "LanguageModel",
    "RTransformer",
    "Seq2Seq",
    "Transformer",
    "TransformerXL",
    "build",
    "rnnsearch",
]
__version__ = "0.1.0"
