"""Explorer of who depends on whom: one input is changed, and the change runs through the layers of three models.

Wang et al. (2019), R-Transformer, §3 and Figure 2.
"""

from copy import deepcopy
from pathlib import Path

import torch
from jaxtyping import Float
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from safetensors.torch import save
from torch import Tensor, nn

from rtx.lab.explore.page import Page
from rtx.lab.plots import whole_numbers
from rtx.lab.seeded import seeded
from rtx.models import RNN, RTransformer
from rtx.nn import LocalRNN, Residual

POSITIONS, WIDTH, WINDOW, HEADS = 24, 8, 4, 2
KINDS = {"local": "LocalRNN", "attention": "attention", "feed-forward": "feed-forward"}
LAYERS = {
    "RNN": [{"kind": "rnn", "name": f"rnn.{i}", "text": f"RNN {i + 1}"} for i in range(2)],
    f"LocalRNN, windows of {WINDOW}": [
        {"kind": "local", "name": f"local.{i}", "text": f"LocalRNN {i + 1}"} for i in range(2)
    ],
    "R-Transformer": [
        {"kind": kind, "name": f"blocks.{block}.{i}", "text": f"{text} {block + 1}"}
        for block in range(2)
        for i, (kind, text) in enumerate(KINDS.items())
    ],
}
"""The models by the names shown; of each layer its kind, where its weights are, and the text shown."""


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
        made: tuple[nn.Module, ...] = (
            RNN(WIDTH, layers=2, cell="rnn"),
            nn.Sequential(*(Residual(LocalRNN(WIDTH, WINDOW), WIDTH) for _ in range(2))),
            RTransformer(WIDTH, layers=2, heads=HEADS, window=WINDOW),
        )
    return {name: Row(model, embed, places).eval() for name, model in zip(LAYERS, made, strict=True)}


def depends() -> Page:
    """Drag one of 24 inputs, and see which positions change in an RNN, in LocalRNNs and in an R-Transformer.

    The state has `chosen` (the input, from 1), `value` (what it is changed to, from -1 to 1), `off` (the layers that
    are switched off, by name, such as "blocks.0.1") and `solved` (how many challenges are met).
    """
    made, base = models(), row()
    weights = {"embed.weight": made["RNN"].embed.weight, "places": made["RNN"].places}
    for model, prefix in zip(made.values(), ("rnn.", "local.", "blocks."), strict=True):
        inner = model.model.network if isinstance(model.model, RNN) else model.model
        weights |= {prefix + key.removeprefix("blocks."): value for key, value in inner.state_dict().items()}
    shown = [{"name": name, "layers": layers} for name, layers in LAYERS.items()]
    data = {"base": base, "window": WINDOW, "heads": HEADS, "models": shown}
    attention = [f"blocks.{block}.1" for block in range(2)]
    local = [f"blocks.{block}.0" for block in range(2)]
    return Page(
        Path(__file__).with_name("depends.js"),
        data,
        _still(made, base),
        "drag the first bar and compare how far the models carry the change. The weights are random.",
        title="Who depends on whom?",
        presets={
            "First input": {"chosen": 1},
            "Without attention": {"off": attention},
            "Without LocalRNN (a Transformer)": {"off": local},
        },
        weights=save({name: value.detach().contiguous() for name, value in weights.items()}),
        chosen=6,
        value=0.9,
        off=[],
        solved=0,
    )


def row() -> list[float]:
    """The inputs before one is changed: 24 numbers from -1 to 1, in steps of 0.05."""
    noise = torch.rand(POSITIONS, generator=torch.Generator().manual_seed(3))
    return [round(float(number) * 24 - 12) / 20 for number in noise]


def _still(made: dict[str, Row], base: list[float], chosen: int = 6) -> Figure:
    """Draw how much each position of the last layer changes when one input is changed. White squares do not change."""
    inputs = torch.tensor(base, dtype=torch.float64).repeat(2, 1)
    inputs[1, chosen - 1] += 1
    with torch.no_grad():
        pairs = [deepcopy(model).double()(inputs[..., None]) for model in made.values()]
    changes = torch.stack([(after - before).norm(dim=-1) for before, after in pairs])
    figure = Figure(figsize=(9, 2.2), layout="constrained")
    ax = figure.subplots()
    image = ax.imshow(changes.where(changes > 0, torch.nan), norm=LogNorm(1e-4, 1), cmap="Blues", aspect="auto")
    image.set_extent((0.5, POSITIONS + 0.5, len(made) - 0.5, -0.5))
    ax.set_yticks(range(len(made)), list(made))
    ax.set(xlabel="position", title=f"input {chosen} is changed: which outputs change?")
    whole_numbers(ax.xaxis)
    figure.colorbar(image, ax=ax, label="change")
    return figure
