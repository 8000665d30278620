"""The shapes in signatures are right: beartype checks them at each call of every brick and model."""

import subprocess
import sys

import pytest

# In a process of its own: the hook must come before the import of rtx, and would refuse bad input before rtx does.
PROGRAM = """
from jaxtyping import TypeCheckError, install_import_hook
install_import_hook("rtx", "beartype.beartype")

import torch
import rtx
from rtx.lab import receptive_field, trace
from rtx.models import MODELS, RECURRENT, EncoderDecoder, FeedForwardAttention, LanguageModel, rnnsearch
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, Residual, causal_mask, reference, sinusoidal_positions
from rtx.training.auxiliary_losses import AuxiliaryLosses
from rtx.nn.streaming import select
from rtx.tasks.build import hyperparameter_names
from rtx.tasks.cache_pointer import cache_pointer
from rtx.tasks.generate import continue_roll
from rtx.training.auxiliary_losses import activation_penalty

tokens = torch.randint(0, 11, (2, 7))
x = torch.randn(2, 7, 8)
for cell in ("rnn", "gru", "lstm"):
    layer = LocalRNN(8, 3, cell)
    layer(x)
    reference.local_rnn(x, *layer.state_dict().values(), 3, cell)
attention = MultiHeadAttention(8, 2)
attention(x, causal_mask(7)), attention.weights(x)
reference.multi_head_attention(x, *attention.state_dict().values(), 2)
Residual(FeedForward(8), 8)(x)
sinusoidal_positions(7, 8, x), reference.sinusoidal_positions(7, 8)
continue_roll(rtx.build("nottingham", "gru", d_model=4), torch.zeros(2, 88), 3)
sizes = {"d_model": 8, "layers": 1, "heads": 2, "window": 3}
for name in MODELS:
    mine = {k: v for k, v in sizes.items() if k in hyperparameter_names(name)}
    for task, inputs in (("add", 2), ("nottingham", 88)):
        rtx.build(task, name, **mine)(torch.randn(2, 7, inputs), torch.tensor([3, 7]))
    model = MODELS[name](**mine)
    trace(model, x), receptive_field(model, x[:1, :3])
    y, state = model.step(x[:, 0])
    model.step(x[:, 1], select(state, torch.tensor([1, 0])))
    text = LanguageModel(model, 11)
    text(tokens), text.generate(tokens, 2, seed=1), text.slide(tokens)
    text.read(tokens, text.read(tokens)[1]), model(x, state)
model = FeedForwardAttention(8, 2)
model(x, torch.tensor([3, 7])), model.step(x[:, 0]), trace(model, x, torch.tensor([3, 7]))
for recurrent in RECURRENT:
    model = rnnsearch(11, 12, recurrent, d_model=8)
    model(tokens, tokens), model.align(tokens, tokens), trace(model, tokens, tokens)
for window in (None, 3):
    model = EncoderDecoder(11, 12, 8, 2, 2, window)
    model(tokens, tokens), model.align(tokens, tokens), trace(model, tokens, tokens)
    model.translate(tokens, torch.tensor([3, 7]), begin=1, end=2, length=4, width=3)
characters = MODELS["character-transformer"](8, 2, 2, 4)
losses = AuxiliaryLosses(LanguageModel(characters, 11), 2)
characters.slide(x), losses(characters.hidden(x), torch.randint(0, 11, (2, 9)), 0.3)
cache_pointer(x, tokens, torch.randn(2, 7, 11)), activation_penalty(x, x)
try:
    sinusoidal_positions("seven", 8)
except TypeCheckError:
    print("all shapes are right, and a wrong one is refused")
"""


@pytest.mark.filterwarnings("ignore")
def test_shapes_in_signatures_are_right():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.strip() == "all shapes are right, and a wrong one is refused", done.stderr[-2000:]
