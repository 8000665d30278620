"""Explorer of sampling: what a language model would write next, and how temperature, top-k and nucleus change it.

Fan, Lewis & Dauphin (2018), top-k; Holtzman et al. (2020), nucleus.
"""

from functools import cache

import ipywidgets as widgets
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rtx.lab.explore.explorer import Explorer
from rtx.lab.plots import COLOURS, freeze, new_figure
from rtx.models import LanguageModel
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite, check_positive
from rtx.tasks.generate import continue_text
from rtx.tasks.vocabulary import Vocabulary

SHOWN = 20  # tokens in the picture


def sampling(model: LanguageModel, vocabulary: Vocabulary, prompt: str, tokens: int = 60, seed: int = 1) -> Explorer:
    """The next token's probabilities and a continuation, with controls `temperature`, `top_k` and `top_p`.

    Args:
        model: a language model, trained or not.
        vocabulary: how it reads and writes.
        prompt: the text so far.
        tokens: how many are drawn behind it.
        seed: of the draws, the same at every move.

    Raises:
        ValueError: if the vocabulary is another model's or lacks a symbol of the prompt, or the logits are not finite.
    """
    if vocabulary.size != model.vocabulary:
        raise ValueError(f"vocabulary: expected the model's {model.vocabulary} symbols, got {vocabulary.size}")
    check_positive("tokens", tokens)
    logits = next_logits(model, vocabulary.encode(prompt) or [vocabulary.start])
    shown = min(SHOWN, vocabulary.size)
    order = logits.argsort(descending=True, stable=True)[:shown]
    picture = _Picture([_written(vocabulary, int(token)) for token in order])

    @cache
    def written(temperature: float, top_k: int, top_p: float) -> str:
        return "".join(continue_text(model, vocabulary, prompt, tokens, temperature, top_k, top_p, seed))

    def update(temperature: float, top_k: int, top_p: float) -> str:
        p = kept(logits, temperature, top_k, top_p)
        picture.show(logits.softmax(-1)[order], p[order])
        number = int((p > 0).sum())
        return f"{number} of {len(p)} tokens can be drawn. {prompt!r} goes on: {written(temperature, top_k, top_p)!r}"

    numbers = [*(k for k in (1, 2, 3, 5, 10, 20, 50) if k < vocabulary.size), vocabulary.size]
    return Explorer(
        picture.figure,
        update,
        "lower the temperature until the text repeats itself; go back to 1 and cut the tail instead, by k or by p",
        temperature=widgets.FloatSlider(1.0, min=0.0, max=2.0, step=0.1, description="temperature"),
        top_k=widgets.SelectionSlider(options=numbers, value=vocabulary.size, description="top k"),
        top_p=widgets.SelectionSlider(
            options=[0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0], value=1.0, description="top p"
        ),
    )


@torch.no_grad()
def next_logits(model: LanguageModel, tokens: list[int]) -> Float[Tensor, " V"]:
    """The logits of the token after these.

    Raises:
        ValueError: if they are not finite.
    """
    with evaluating(model):
        logits = model(torch.tensor([tokens], device=model.embedding.weight.device))[0, -1].double().cpu()
    check_finite("logits of the model", logits)
    return logits


def kept(logits: Float[Tensor, " V"], temperature: float, top_k: int, top_p: float) -> Float[Tensor, " V"]:
    """The probabilities by which `rtx.nn.sampling.sample_token` draws; 0 for what is cut off."""
    scores, tokens = logits.sort(descending=True, stable=True)
    if temperature == 0:
        temperature, top_k = 1.0, 1
    p = ((scores - scores[0]) / temperature)[:top_k].softmax(-1)
    p = p * (p.cumsum(-1) - p < top_p)
    return torch.zeros_like(logits).scatter(0, tokens[: len(p)], p / p.sum())


def _written(vocabulary: Vocabulary, token: int) -> str:
    symbol = vocabulary.symbols[token]
    return {" ": "blank", "\n": "newline"}.get(symbol, symbol)


class _Picture:
    """The likeliest tokens: what the model says as outlines, what is drawn from as bars."""

    def __init__(self, names: list[str]) -> None:
        self.figure, [ax] = new_figure(8, 3.2)
        places = np.arange(len(names))
        self.bars = ax.bar(places, np.ones(len(names)), color=COLOURS[0], width=0.7, label="drawn from")
        outline = {"fill": False, "edgecolor": COLOURS[1], "linewidth": 1.4}
        self.model = ax.bar(places, np.ones(len(names)), width=0.9, label="the model's", **outline)
        turned = max(map(len, names)) > 1
        side = "right" if turned else "center"
        ax.set_xticks(places, names, rotation=60 if turned else 0, ha=side, parse_math=False)
        self.ax = ax
        # the longest numbers that the axis will have, so that the frozen layout has room for them
        ax.set(ylim=(0, 0.25), ylabel="probability", xlabel="the likeliest next tokens")
        ax.legend(frameon=False, loc="upper right")
        freeze(self.figure)

    def show(self, model: Tensor, drawn: Tensor) -> None:
        """Two probabilities of each token shown."""
        for bars, values in ((self.model, model), (self.bars, drawn)):
            for bar, value in zip(bars, values.tolist(), strict=True):
                bar.set_height(value)
        self.ax.set_ylim(0, max(0.25, 1.05 * max(model.max().item(), drawn.max().item())))
