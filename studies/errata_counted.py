"""Errata that counting settles."""

import math
from collections import Counter
from functools import cache
from pydoc_data.topics import topics

import torch
from torch import nn

from rtx.evidence.counted import beyond_path_bound
from rtx.models import RTransformer
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.tasks import task_by_name
from rtx.tasks.build import build
from rtx.training.recipe import load_recipe
from studies.evidence import Erratum, Evidence

SENTENCES = 40_000  # characters of text


class WithDeadModules(nn.Module):
    """The R-Transformer with what the authors' code makes and never calls: it is theirs by size, not by text."""

    def __init__(self, d_model: int, layers: int, heads: int, window: int, cell: str, local_layers: int) -> None:
        super().__init__()
        self.model = RTransformer(d_model, layers, heads, window, cell, local_layers)
        self.outputs = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(layers * local_layers))
        self.norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model))


def dead_parameters() -> Evidence:
    """The share of parameters without a gradient after a backward pass, at three sizes of the paper."""
    sizes = {
        "MNIST": (32, 8, 2, 7, "gru", 2),
        "music": (160, 3, 4, 6, "gru", 1),
        "words": (128, 3, 8, 9, "lstm", 1),
    }
    bars = {}
    for name, size in sizes.items():
        whole = WithDeadModules(*size)
        whole.model(torch.randn(1, 4, size[0])).sum().backward()
        dead = sum(p.numel() for p in whole.parameters() if p.grad is None)
        bars[name] = 100 * dead / sum(p.numel() for p in whole.parameters())
    tenth = all(share > 10 for share in bars.values())
    return Evidence(
        bars, "parameters without a gradient (%)", "More than a tenth of the parameters get no gradient.", tenth
    )


def unequal_sizes() -> Evidence:
    """Parameters of three models of Table 1, as the recipe builds them. The others have about 70,000 in the paper."""
    recipe = load_recipe("mnist")
    bars = {}
    for row in ("tcn", "transformer", "r-transformer"):
        plan = recipe.plan(row)
        task = task_by_name(plan.task, **plan.task_arguments)
        bars[row] = sum(p.numel() for p in build(task, plan.model, **plan.hyperparameters).parameters()) / 1000
    most = max(bars, key=lambda row: bars[row])
    return Evidence(
        bars,
        "parameters as built here (thousands)",
        "The winner of Table 1 is also the largest.",
        most == "r-transformer",
    )


def block_starts() -> Evidence:
    """Steps at which Eq. 1 and the text of §3.1 disagree on a channel's in-degree."""
    bars = {}
    for n in (2, 3, 4, 5, 6):
        equation, text = (MultiChannelRNN(4, block=n, phase=phase).in_degrees(60) for phase in ("equation", "text"))
        bars[f"n = {n}"] = 100 * (equation != text).double().mean().item()
    agree = bars["n = 2"] == bars["n = 3"] == 0 < bars["n = 4"]
    return Evidence(bars, "in-degrees that differ (%)", "The two agree up to n = 3, and differ from n = 4 on.", agree)


def path_bound() -> Evidence:
    """The shortest path through the worst channel, beside the printed bound, for n = 4."""
    bars = beyond_path_bound(max)
    broken = any(value > 0 for value in bars.values())
    return Evidence(bars, "steps more than the bound", "Some channel needs more steps than the bound allows.", broken)


@cache
def _forms() -> dict[str, list[str]]:
    """The same text in the three ways that are all called characters of the Penn Treebank."""
    lines = [" ".join(line.split()) for text in topics.values() for line in text.splitlines() if line.strip()]
    text = "\n".join(lines)[:SENTENCES]
    return {
        "spaces as _, newlines kept": list(text.replace(" ", "_")),
        "words, no newlines": list(text.replace("\n", " ")),
        "newlines as <eos>": list(text.replace("\n", " <eos> ")),
    }


def three_forms() -> Evidence:
    """Bits per character of the same counted model, of three characters before each, on three forms of one text."""
    bars = {name: trigram_bits(text) for name, text in _forms().items()}
    lowest = min(bars, key=lambda name: bars[name])
    verdict, supported = (
        "The form with certain extra characters has the fewest bits per character.",
        lowest == "newlines as <eos>",
    )
    return Evidence(bars, "bits per character", verdict, supported)


def trigram_bits(text: list[str]) -> float:
    """Of the last tenth of a text, by counts of the rest: what follows three characters, each count plus a little."""
    cut = len(text) * 9 // 10
    after = Counter(tuple(text[i : i + 4]) for i in range(cut - 4))
    before = Counter(tuple(text[i : i + 3]) for i in range(cut - 4))
    kinds, little = len(set(text)), 0.02
    chances = (
        (after[tuple(text[i : i + 4])] + little) / (before[tuple(text[i : i + 3])] + little * kinds)
        for i in range(cut, len(text) - 4)
    )
    bits = [-math.log2(chance) for chance in chances]
    return sum(bits) / len(bits)


def similar_trends() -> Evidence:
    """Perplexities that the paper prints for words."""
    recipe = load_recipe("ptb-word")
    bars = {row: float(recipe.paper(row) or 0) for row in ("rnn", "gru", "lstm", "tcn", "transformer", "r-transformer")}
    worst = max(bars, key=lambda row: bars[row])
    return Evidence(
        bars, "perplexity, as printed", "The Transformer is last, behind the plain RNN.", worst == "transformer"
    )


COUNTED = (
    Erratum(
        "modules that nobody calls",
        "R-Transformer, code",
        "A last norm, a last feed-forward network, and an output layer in each LocalRNN are made, and never used.",
        "What share of the core's parameters gets no gradient?",
        dead_parameters,
    ),
    Erratum(
        "models of the same size?",
        "R-Transformer, Table 1",
        "Models are compared at the same depth, or at sizes taken from another paper.",
        "Which of the compared models has the most parameters?",
        unequal_sizes,
    ),
    Erratum(
        '"similar trends"',
        "R-Transformer, on Table 4",
        "On words, the models are said to show trends similar to those on characters, but for the LSTM, which is best.",
        "Which model is the last of Table 4?",
        similar_trends,
    ),
    Erratum(
        "three character corpora of one name",
        "R-Transformer, Table 3; Mikolov's files; the code",
        "The Penn Treebank in characters keeps newlines, leaves them out, or spells each as the five signs <eos>.",
        "One counted model, one text, three forms: for which are the bits per character the fewest?",
        three_forms,
    ),
    Erratum(
        "where a block starts",
        "MC-RNN, Eq. 1 against §3.1",
        "Eq. 1 starts blocks at t ≡ k (mod n - 1), the text at 2 - k.",
        "From which n on do the two differ?",
        block_starts,
    ),
    Erratum(
        "the bound on path lengths",
        "MC-RNN, §5.2",
        "A path over l steps is said to take at most ⌊l / (n - 1)⌋ + 1.",
        "With n = 4, is there an l for which some channel needs more?",
        path_bound,
    ),
)
