"""The shapes in signatures are true: every brick and model runs with beartype checking them at each call."""

import subprocess
import sys

import pytest

# The hook must stand before rtx is imported, and it would answer bad input before rtx's own errors do: so it has a
# process of its own.
PROGRAM = """
from jaxtyping import TypeCheckError, install_import_hook
install_import_hook("rtx", "beartype.beartype")

import torch
import rtx
from rtx.lab import reach, trace
from rtx.models import MODELS
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, Residual, causal_mask, naive, sinusoidal_positions
from rtx.tasks.build import hyperparameter_names, last_step

x = torch.randn(2, 7, 8)
for cell in ("rnn", "gru", "lstm"):
    layer = LocalRNN(8, 3, cell)
    layer(x)
    naive.local_rnn(x, *layer.state_dict().values(), 3, cell)
attention = MultiHeadAttention(8, 2)
attention(x, causal_mask(7)), attention.weights(x)
naive.multi_head_attention(x, *attention.state_dict().values(), 2)
Residual(FeedForward(8), 8)(x)
sinusoidal_positions(7, 8, x), naive.sinusoidal_positions(7, 8)
last_step(x, torch.tensor([3, 7]))
sizes = {"d_model": 8, "layers": 1, "heads": 2, "window": 3}
for name in MODELS:
    mine = {k: v for k, v in sizes.items() if k in hyperparameter_names(name)}
    for task, inputs in (("add", 2), ("nottingham", 88)):
        rtx.build(task, name, **mine)(torch.randn(2, 7, inputs), torch.tensor([3, 7]))
    trace(MODELS[name](**mine), x), reach(MODELS[name](**mine), x[:1])
try:
    sinusoidal_positions("seven", 8)
except TypeCheckError:
    print("shapes hold, and the checker checks")
"""


@pytest.mark.filterwarnings("ignore")
def test_signatures_tell_the_truth():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.strip() == "shapes hold, and the checker checks", done.stderr[-2000:]
