"""Explorer of who depends on whom: one input is changed, and the change runs through the layers of three models.

Wang et al. (2019), R-Transformer, §3 and Figure 2.
"""

from typing import Any, cast

import torch
from jaxtyping import Float
from safetensors.torch import save
from torch import Tensor, nn

from rtx.lab.explore.network import layer_of
from rtx.lab.explore.page import Page
from rtx.lab.seeded import seeded
from rtx.models import RNN, RTransformer
from rtx.nn import LocalRNN, Residual

POSITIONS, WIDTH, WINDOW, HEADS = 24, 8, 4, 2
TEXTS = {"rnn": "RNN", "local": "LocalRNN"}  # names of layers that differ from their kinds


class Row(nn.Module):
    """A model that reads a row of numbers: each becomes a vector, to which that of its position is added."""

    def __init__(self, model: nn.Module, embed: nn.Linear, places: Float[Tensor, "T D"]) -> None:
        super().__init__()
        self.model, self.embed, self.places = model, embed, places

    def forward(self, values: Float[Tensor, "B T 1"]) -> Float[Tensor, "B T D"]:
        """Return the model's outputs."""
        return self.model(self.embed(values) + self.places)


def models() -> dict[str, Row]:
    """The three models, untrained, with the same weights at each call."""
    with seeded(0):
        embed, places = nn.Linear(1, WIDTH, bias=False), torch.randn(POSITIONS, WIDTH) / 2
        nn.init.normal_(embed.weight)
        made = {
            "RNN": RNN(WIDTH, layers=2, cell="rnn"),
            f"LocalRNN, windows of {WINDOW}": nn.Sequential(
                *(Residual(LocalRNN(WIDTH, WINDOW), WIDTH) for _ in range(2))
            ),
            "R-Transformer": RTransformer(WIDTH, layers=2, heads=HEADS, window=WINDOW),
        }
    return {name: Row(model, embed, places).eval() for name, model in made.items()}


def depends() -> Page:
    """Drag one of 24 inputs, and see which positions change in an RNN, in LocalRNNs and in an R-Transformer.

    The state has `chosen` (the input, from 1), `value` (what it is changed to, from -1 to 1), `off` (the layers that
    are switched off, by name, such as "blocks.0.1") and `solved` (how many challenges are met).
    """
    made, base = models(), row()
    rnn, local, transformer = (cast(Any, one.model) for one in made.values())
    parts = nn.ModuleDict({"rnn": rnn, "local": local, "blocks": transformer.blocks, "embedding": made["RNN"].embed})
    layers: list[dict[str, Any]] = [
        {"kind": "rnn", "cell": "rnn", "name": f"rnn.{i}", "prefix": "rnn.network.", "layer": i} for i in range(2)
    ]
    layers += [layer_of(name, part) for name, part in parts.named_modules() if isinstance(part, Residual)]
    for layer in layers:
        layer["text"] = f"{TEXTS.get(layer['kind'], layer['kind'])} {int(layer['name'].split('.')[1]) + 1}"
    shown = [
        {"name": name, "layers": [layer for layer in layers if layer["name"].startswith(place)]}
        for name, place in zip(made, parts, strict=False)
    ]
    weights = parts.state_dict() | {"embedding.bias": torch.zeros(WIDTH), "backbone.table": made["RNN"].places}
    return Page(
        "depends.js",
        {"base": base, "models": shown, "width": WIDTH},
        "drag the first bar and compare how far the models carry the change. The weights are random.",
        title="Who depends on whom?",
        presets={
            "First input": {"chosen": 1, "off": []},
            "Without attention": {"off": ["blocks.0.1", "blocks.1.1"]},
            "Without LocalRNN (a Transformer)": {"off": ["blocks.0.0", "blocks.1.0"]},
        },
        weights=save(weights),
        chosen=6,
        value=0.9,
        off=[],
        solved=0,
    )


def row() -> list[float]:
    """The inputs before one is changed: 24 numbers from -1 to 1, in steps of 0.05."""
    noise = torch.rand(POSITIONS, generator=torch.Generator().manual_seed(3))
    return [round(float(number) * 24 - 12) / 20 for number in noise]
