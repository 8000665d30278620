"""Explorer of look-up: pairs and a question; a trained Transformer answers, and arcs show where its heads look.

Olsson et al. (2022), In-context Learning and Induction Heads.
"""

from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from rtx.lab.explore.network import described
from rtx.lab.explore.page import Page
from rtx.lab.pretrained import pretrained, weights
from rtx.lab.tracing import trace
from rtx.tasks.toy.look_up import SYMBOLS

TEXT = "c7 a2 h9 f0 d4 b3 f?"


def lookup(text: str = TEXT) -> Page:
    """Type pairs such as a1 b7 c3 and a question b?, and see how the heads of a trained Transformer find the answer.

    The state has `text`, `off` (the heads that are switched off, such as "1.0": layer, head, from 0) and `chosen` (the
    token whose arcs are drawn strongly, from 1; 0 is the last).
    """
    return Page(
        Path(__file__).with_name("lookup.js"),
        {"symbols": SYMBOLS, "network": described(pretrained("lookup"))},
        _still(text),
        "ask for another letter; then switch off one head after the other. Which head is not needed?",
        title="Which head finds the answer?",
        presets={
            "Eight pairs": {"text": "e4 b8 j1 c5 a0 h3 d6 g9 c?", "off": []},
            "Ask for all": {"text": "a1 b7 c3 d0 c? a? d? b?", "off": []},
            "One letter twice": {"text": "a1 b7 c3 b5 b?", "off": []},
        },
        weights=weights("lookup"),
        text=text,
        off=[],
        chosen=0,
    )


def attention(text: str) -> tuple[list[str], list[Tensor]]:
    """Return the tokens of a text, and the attention weights of each layer, (H, T, T)."""
    tokens = [token for token in text.lower() if token in SYMBOLS] or list(TEXT.replace(" ", ""))
    found = trace(pretrained("lookup"), torch.tensor([[SYMBOLS.index(token) for token in tokens]]))
    return tokens, [found[f"backbone.blocks.{layer}.0.sublayer.weights"][0] for layer in range(2)]


def _still(text: str) -> Figure:
    """The attention weights of every head, as maps."""
    tokens, layers = attention(text)
    heads, figure = (
        [(i, h) for i, layer in enumerate(layers) for h in range(len(layer))],
        Figure((9, 2.8), layout="constrained"),
    )
    for ax, (layer, head) in zip(figure.subplots(1, len(heads), sharey=True), heads, strict=True):
        ax.imshow(layers[layer][head].numpy(), vmin=0, vmax=1, cmap="viridis")
        ax.set(title=f"layer {layer + 1}, head {head + 1}", xlabel="looks at")
        ax.set_xticks(range(len(tokens)), tokens, parse_math=False)
        ax.set_yticks(range(len(tokens)), tokens, parse_math=False)
        ax.label_outer()
    return figure
