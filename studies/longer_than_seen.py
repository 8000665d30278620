"""Which encodings of position still work at lengths that no training has shown? (Notebook 05.)

At each step of a sequence of eight random symbols, say which symbol stood three steps back. All models have one
layer, are trained at 24 steps and tested up to step 120. ALiBi is also trained for longer, with its slopes and with
steeper ones. `python -m studies.longer_than_seen` writes `longer_than_seen.json`. It takes about 30 minutes of one
core.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import rtx
from rtx.nn import MultiHeadAttention
from rtx.nn.relative import LinearBiasAttention, RotaryAttention
from studies.fair import Problem, Scores, compare

STORED = Path(__file__).with_suffix(".json")
WIDTH, SYMBOLS, BACK, LENGTH, LONGEST, TESTED = 32, 8, 3, 24, 120, 300


def transformer(position: str, norm: str, layers: int = 1) -> rtx.Transformer:
    """Return a Transformer with one of its own kinds of position, or with rotations, or with a linear bias."""
    own = {"rotary": RotaryAttention, "linear bias": LinearBiasAttention}
    made = rtx.Transformer(
        WIDTH,
        layers,
        2,
        norm=norm,
        position="none" if position in own else position,
        max_length=LONGEST,
        max_distance=8,
    )
    if position in own:
        for block in made.blocks:
            block[0].sublayer = own[position](WIDTH, 2)  # type: ignore[index]
    return made


NAMES = {
    "none": "none",
    "sinusoids": "sinusoidal",
    "learned": "learned",
    "Shaw, k = 8": "relative",
    "RoPE": "rotary",
    "ALiBi": "linear bias",
}
MAKERS: dict[str, Callable[..., nn.Module]] = {
    **{name: partial(transformer, position) for name, position in NAMES.items()},
    "none, 2 layers": partial(transformer, "none", layers=2),
    "Transformer-XL": partial(rtx.TransformerXL, WIDTH, 1, 2, segment=LONGEST, memory=0),
    "R-Transformer, window 4": partial(rtx.RTransformer, WIDTH, 1, 2, window=4),
    "R-Transformer, window 3": partial(rtx.RTransformer, WIDTH, 1, 2, window=3),
    "LocalRNN alone, window 4": partial(rtx.RTransformer, WIDTH, 1, 0, window=4),
}
BACKBONES = {
    f"{name}, {norm}-norm": partial(make, norm=norm) for norm in ("post", "pre") for name, make in MAKERS.items()
}


class Steep(LinearBiasAttention):
    """ALiBi with slopes of 1 and 2 for its two heads."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Return the scores by content, less slope times distance."""
        places = torch.arange(k.shape[-2])
        distance = places[-q.shape[-2] :, None] - places
        return MultiHeadAttention.scores(self, q, k) - torch.tensor([1.0, 2.0])[:, None, None] * distance


def steep() -> rtx.Transformer:
    """Return the Transformer with these slopes."""
    made = transformer("none", "pre")
    made.blocks[0][0].sublayer = Steep(WIDTH, 2)  # type: ignore[index]
    return made


SLOPES = {"ALiBi": partial(transformer, "linear bias", "pre"), "ALiBi, slopes 1 and 2": steep}


def reader(backbone: nn.Module) -> rtx.LanguageModel:
    """Return a model of eight symbols, with embeddings of size 1."""
    model = rtx.LanguageModel(backbone, SYMBOLS, tied=False)  # type: ignore[arg-type]
    nn.init.normal_(model.embedding.weight)
    return model


def draw(size: int, T: int = LENGTH) -> tuple[Tensor, Tensor]:
    """Return random symbols (B, T), and for each step from the fourth on the symbol three steps back."""
    x = torch.randint(SYMBOLS, (size, T))
    return x, x[:, :-BACK]


def loss(model: nn.Module, x: Tensor, back: Tensor) -> Tensor:
    """Return the cross-entropy of all steps that have an answer."""
    return cross_entropy(model(x)[:, BACK:].flatten(0, 1), back.flatten())


def right(model: nn.Module) -> Scores:
    """Return the mean share of right answers up to the trained length, and the share at each step after the third."""
    x, back = draw(TESTED, LONGEST)
    share = (model(x)[:, BACK:].argmax(-1) == back).float().mean(0).tolist()
    seen = share[: LENGTH - BACK]
    return {"seen": [sum(seen) / len(seen)], "by step": share}


PROBLEMS = {
    name: Problem(
        {name: lambda make=make: reader(make()) for name, make in makers.items()},  # type: ignore[misc]
        draw,
        loss,
        right,
        after=after,
    )
    for name, makers, after in (("three back", BACKBONES, (300, 600)), ("slopes", SLOPES, (300, 600, 2000)))
}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
