"""Explorer of look-up: pairs and a question; a trained Transformer answers, and arcs show where its heads look.

Olsson et al. (2022), In-context Learning and Induction Heads.
"""

from pathlib import Path

import torch
from matplotlib.figure import Figure

from rtx.lab.explore.network import described
from rtx.lab.explore.page import Page
from rtx.lab.pretrained import pretrained, weights
from rtx.lab.tracing import trace
from rtx.tasks.toy.look_up import SYMBOLS


def lookup(text: str = "c7 a2 h9 f0 d4 b3 f?") -> Page:
    """Type pairs such as a1 b7 c3 and a question b?, and see how the heads of a trained Transformer find the answer.

    The state has `text`, `off` (the heads that are switched off, such as "1.0": layer, head, from 0) and `chosen` (the
    token whose arcs are drawn strongly, from 1; 0 is the last).
    """
    return Page(
        Path(__file__).with_name("lookup.js"),
        {"symbols": SYMBOLS, "network": described(pretrained("lookup"))},
        _still([token for token in text.lower() if token in SYMBOLS]),
        "ask for another letter; then switch off one head after the other. Which head is not needed?",
        title="Which head finds the answer?",
        presets={
            "Eight pairs": {"text": "e4 b8 j1 c5 a0 h3 d6 g9 c?", "off": []},
            "One letter twice": {"text": "a1 b7 c3 b5 b?", "off": []},
        },
        weights=weights("lookup"),
        text=text,
        off=[],
        chosen=0,
    )


def _still(tokens: list[str]) -> Figure:
    """The attention weights of every head, as maps."""
    layers = trace(pretrained("lookup"), torch.tensor([[SYMBOLS.index(token) for token in tokens]])).values()
    maps = {f"layer {i}, head {j}": one for i, layer in enumerate(layers, 1) for j, one in enumerate(layer[0], 1)}
    figure = Figure((9, 2.8), layout="constrained")
    for ax, (title, looked) in zip(figure.subplots(1, len(maps), sharey=True), maps.items(), strict=True):
        ax.imshow(looked.numpy(), vmin=0, vmax=1)
        ax.set(title=title, xlabel="looks at")
        ax.set_xticks(range(len(tokens)), tokens, parse_math=False)
        ax.set_yticks(range(len(tokens)), tokens, parse_math=False)
        ax.label_outer()
    return figure
