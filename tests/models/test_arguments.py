"""Bad arguments of every constructor, of models and of bricks: one ValueError that names the argument and the value.

test_properties.py has `d_model`, `layers` and `dropout`, which all backbones have.
"""

import re
from functools import partial

import pytest

from rtx.models import (
    AWDLSTM,
    HORNN,
    MCRNN,
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
)
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, RelativeAttention, Residual
from rtx.nn.convolution import CausalConv
from rtx.nn.linear_recurrence import RGLRU
from rtx.nn.local_attention import LocalAttention

COUNTS, RATES = [-1, 1.0, True], [1.0, -0.1, "0.1"]
r_transformer = partial(RTransformer, d_model=8, layers=2, heads=2, window=3)
translator = partial(EncoderDecoder, source_vocabulary=9, target_vocabulary=7, d_model=8, layers=2, heads=2)
BAD = [
    (r_transformer, {"heads": [*COUNTS, 3], "local_layers": COUNTS, "window": [0]}),
    (r_transformer, {"position": ["sines"], "norm": ["no"], "init": ["equal"]}),
    (partial(r_transformer, local_layers=0), {"window": [-3], "cell": ["gruu"]}),  # also what is not used
    (partial(r_transformer, heads=0), {"position": ["sinusoidal"]}),  # a step counts the keys of the attention
    (partial(Transformer, 8, 2, heads=2), {"heads": [3], "position": ["sinusoid"], "norm": ["no"]}),
    (partial(Transformer, 8, 2, heads=2), {"max_length": [0], "max_distance": [0]}),
    (partial(Transformer, 6, 2, position="rotary"), {"heads": [2, 6]}),
    (partial(TransformerXL, 8, 2, heads=2), {"heads": [3], "segment": [0], "memory": [-1, True]}),
    (partial(TransformerXL, 8, 2, heads=2), {"norm": ["no"]}),
    (partial(CharacterTransformer, 8, 2, heads=2), {"heads": [3], "segment": [0], "norm": ["no"]}),
    (partial(TCN, 8, 2), {"kernel": [0]}),
    (partial(CausalConv, 8, 6, kernel=2), {"kernel": [0], "dilation": [0], "groups": [4]}),
    (partial(RNN, 8), {"cell": ["LSTM"]}),
    (partial(AWDLSTM, 4), dict.fromkeys(["dropout_input", "dropout_hidden", "weight_dropout"], RATES)),
    (partial(MCRNN, 4, 2), dict.fromkeys(["dropout_input", "dropout_hidden", "weight_dropout"], RATES)),
    (partial(MCRNN, 4, 2), {"block": [1], "cell": ["LSTM"], "start": ["clip"], "phase": ["figure"], "d_hidden": [0]}),
    (partial(MCRNN, 4, 2), {"mapping_start": ["0"]}),
    (partial(MCRNN, 4, 2), {"weight_dropout_on": ["gates"]}),
    (partial(HORNN, 4), {"order": [0], "cell": ["tanh"]}),
    (partial(Griffin, 8, 2, heads=2, window=4), {"window": [0], "heads": [3]}),
    (partial(Griffin, 8, 3, window=4), {"heads": [8]}),  # the third layer has attention: heads of even width
    (FeedForwardAttention, {"inputs": [0], "outputs": [0], "d_hidden": [0], "pooling": ["max"], "leak": ["print"]}),
    (partial(LanguageModel, RNN(8), vocabulary=5), {"vocabulary": [0], "tied": [1]}),
    (partial(LanguageModel, RNN(8), 5), dict.fromkeys(["embedding_dropout", "input_dropout"], RATES)),
    (partial(Seq2Seq, encoder=RNN(8), decoder=RNN(8), target_vocabulary=7), {"source_vocabulary": [0]}),
    (partial(Seq2Seq, 9, encoder=RNN(8), decoder=RNN(8)), {"target_vocabulary": [0]}),
    (partial(Seq2Seq, 9, 7, RNN(8), RNN(8)), {"dropout": RATES}),
    (translator, {"source_vocabulary": [0], "target_vocabulary": [0], "d_model": [0], "layers": [0], "heads": [3]}),
    (partial(MultiHeadAttention, d_model=4, heads=2), {"d_model": [0], "heads": [3], "dropout": [*RATES, False, None]}),
    (partial(RelativeAttention, 8, 2), {"clip": [0]}),
    (
        partial(LocalAttention, 6, heads=1, window=3),
        {"heads": [2, 4], "window": [0], "dropout": [1.0]},
    ),  # heads of odd width
    (partial(LocalRNN, d_model=4, window=3), {"d_model": [0, True], "window": [0, 2.0], "cell": ["gruu", "LSTM"]}),
    (partial(RGLRU, d_model=6), {"d_model": [0], "heads": [4]}),
    (partial(Residual, None, 4), {"norm": ["prae"], "dropout": [1]}),
    (partial(FeedForward, 4), {"d_hidden": [0]}),
    (translator, {"window": [0], "cell": ["gruu"], "norm": ["before"], "dropout": RATES}),
]


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [(make, name, value) for make, bad in BAD for name, values in bad.items() for value in values],
)
def test_a_bad_argument_is_refused(make, name, value):
    with pytest.raises(ValueError, match=f"^{name}: .*{re.escape(repr(value))}"):
        make(**{name: value})
