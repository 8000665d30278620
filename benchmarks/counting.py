"""Multiply-adds that a forward pass needs, from the sizes alone; a test holds them against what torch counts.

What every model of a comparison computes alike is in all of them: embedding and decoder. Additions, activations and
norms are left out, as usual.
"""

from collections.abc import Mapping
from typing import Any

GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def attention(d_model: int, length: int, causal: bool = True) -> int:
    """Four projections, then scores and sums: of T (T + 1) / 2 pairs if causal, else of all T²."""
    pairs = length * (length + 1) // 2 if causal else length**2
    return 4 * length * d_model**2 + 2 * pairs * d_model


def feed_forward(d_model: int, length: int) -> int:
    """Eq. 7, with 4 D hidden units."""
    return 8 * length * d_model**2


def local_rnn(d_model: int, length: int, window: int, cell: str) -> int:
    """One projection a position, and a recurrent product at each of a window's steps but the first."""
    return GATES[cell] * length * d_model**2 * window


def r_transformer(sizes: Mapping[str, Any], length: int, causal: bool = True) -> int:
    """A stack with `rtx.RTransformer`'s arguments, on one sequence."""
    D = sizes["d_model"]
    local = sizes.get("local_layers", 1) * local_rnn(D, length, sizes["window"], sizes.get("cell", "gru"))
    return sizes["layers"] * (local + attention(D, length, causal) + feed_forward(D, length))


def transformer(sizes: Mapping[str, Any], length: int, causal: bool = True) -> int:
    """The same stack without its LocalRNNs."""
    D = sizes["d_model"]
    return sizes["layers"] * (attention(D, length, causal) + feed_forward(D, length))


def around(d_model: int, inputs: int, outputs: int, per: str, length: int, scored: int) -> int:
    """Embedding and decoder: a table of tokens costs no product; what is not scored need not be decoded."""
    decoded = 1 if per == "sequence" else scored
    return (0 if per == "token" else length * inputs * d_model) + decoded * d_model * outputs


def lstm(d_model: int, length: int) -> int:
    """One layer of torch's."""
    return 8 * length * d_model**2


def mc_rnn(d_model: int, length: int, block: int) -> int:
    """One layer with LSTM cells: in each of n - 1 channels n - 1 maps W_j, the gates, and attention's V_h and r."""
    D, channels = d_model, block - 1
    per_channel = channels * D**2 + 4 * D**2 + D**2 + D
    return length * (4 * D**2 + D**2 + channels * per_channel)
