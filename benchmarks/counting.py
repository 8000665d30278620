"""Multiply-adds that a forward pass needs, from the sizes alone; a test holds them against what torch counts.

What every model of a comparison computes alike is in all of them: embedding and decoder. Additions, activations and
norms are left out, as usual.
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.case import OURS, PUBLISHED
from benchmarks.measure import PRODUCTS

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


def published(sizes: Mapping[str, Any], length: int) -> int:
    """The same stack as the published code computes it.

    Each position is projected in every window that it is in, a window's first state, zero, is multiplied, too, and so
    are the pairs that the causal mask hides. With it come the recurrent products, as many as ours and that one.
    """
    D, window = sizes["d_model"], sizes["window"]
    local = sizes.get("local_layers", 1) * GATES[sizes.get("cell", "gru")] * length * D**2 * 2 * window
    return sizes["layers"] * (local + attention(D, length, causal=False) + feed_forward(D, length))


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


def add_bound(case: dict[str, Any], best: dict[str, float], clock: str) -> None:
    """Add what the published code's time over ours could be at most here: if ours were its products alone.

    They are three times the multiply-adds of a forward pass, two operations each, at the rate of a large product. A
    target beyond it no implementation reaches on this machine.
    """
    published, ours = (next((row for row in case["rows"] if row["name"] == name), None) for name in (PUBLISHED, OURS))
    if published is None or ours is None:
        return
    rate = best[PRODUCTS]
    products = 6 * ours["multiply_adds_g"] / rate * 1e3
    text = f"{PUBLISHED} / the products of {OURS} alone, {products:.3g} ms at {rate:.3g} GFLOP/s"
    bound = {"text": text, "value": published[f"{clock}_ms"] / products, "bound": None, "sense": ">="}
    case["targets"].append(bound | {"quantity": "time"})
