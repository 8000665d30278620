"""Who predicts a text best after few updates, and where? (Notebook 13.)

An LSTM, two Transformers and an R-Transformer read the characters of the Python reference manual. They have about the
same number of parameters, and the same windows: 16 characters of context, then 64 that are scored. The test sorts
characters by how long a context the training text has: by the longest run of characters before them, up to 16, that
occurs there. Each trained model writes a text, too. `python -m studies.three_writers` writes `three_writers.json`. It
takes about 15 minutes of one core.
"""

from collections.abc import Callable
from functools import cache, partial
from math import log
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import rtx
from rtx.nn.sampling import sample_token, seeded_generator
from rtx.tasks.task import Split
from rtx.tasks.text import manual, split
from studies.fair import Problem, Scores, compare

STORED = Path(__file__).with_suffix(".json")
CONTEXT, SCORED = 16, 64
KINDS = (0, 5, 10, 16)  # shortest context of each kind that the training text has
PROMPT, LETTERS, TEMPERATURE, TOP_P = "The name of a method is ", 200, 0.8, 0.95
TASK = rtx.tasks.task_by_name("characters", context=CONTEXT, scored=SCORED)

transformer = partial(rtx.Transformer, 40, layers=2, heads=4, norm="pre")
BACKBONES: dict[str, Callable[[], rtx.models.backbone.Backbone]] = {
    "LSTM": partial(rtx.RNN, 65, cell="lstm"),
    "Transformer, sinusoids": transformer,
    "Transformer, relative": partial(transformer, position="relative", max_distance=CONTEXT),
    "R-Transformer": partial(rtx.RTransformer, 45, layers=1, heads=3, window=8, norm="pre"),
}


def model(name: str) -> nn.Module:
    """Return a model of characters, with embeddings of size 1."""
    made = rtx.LanguageModel(BACKBONES[name](), TASK.inputs, tied=False)
    nn.init.normal_(made.embedding.weight)
    return made


def text_of(part: Split) -> str:
    """Return the text of a split."""
    return "".join("".join(piece) for piece in split([manual()])[part])


@cache
def tokens(part: Split) -> Tensor:
    """Return the characters of a split as numbers."""
    return torch.tensor(TASK.texts[0].encode(text_of(part)))


def windows(part: Split, first: Tensor) -> tuple[Tensor, Tensor]:
    """Return windows that read from these places on (N, 80), and the characters to score (N, 64)."""
    window = tokens(part)[first[:, None] + torch.arange(CONTEXT + SCORED + 1)]
    return window[:, :-1], window[:, CONTEXT + 1 :]


def draw(size: int) -> tuple[Tensor, Tensor]:
    """Return windows of the training text from random places on."""
    return windows("train", torch.randint(len(tokens("train")) - CONTEXT - SCORED, (size,)))


def cost(network: nn.Module, x: Tensor, following: Tensor) -> Tensor:
    """Return the bits of each scored character, (N, 64)."""
    return cross_entropy(network(x)[:, CONTEXT:].mT, following, reduction="none") / log(2)


def places(part: Split) -> Tensor:
    """Return where the tested windows score their characters, (N, 64). The first 64 characters are not scored."""
    return torch.arange(SCORED, len(tokens(part)) // SCORED * SCORED).view(-1, SCORED)


@cache
def kinds(part: Split) -> Tensor:
    """Return for each tested place how many of the lengths 5, 10 and 16 the training text has, (N, 64)."""
    train, text = text_of("train"), text_of(part)
    found = torch.zeros(len(text), dtype=torch.long)
    for length in KINDS[1:]:
        seen = {train[i : i + length] for i in range(len(train) - length)}  # each of them has a successor
        found += torch.tensor([text[max(0, t - length) : t] in seen for t in range(len(text))])
    return found[places(part)]


def scores(part: Split, network: nn.Module) -> Scores:
    """Return the bits per character, on the whole and by kind of context."""
    batches = (places(part)[:, 0] - CONTEXT - 1).split(64)
    bits = torch.cat([cost(network, *windows(part, first)) for first in batches])
    return {"bits": [bits.mean().item()], "by kind": [bits[kinds(part) == k].mean().item() for k in range(len(KINDS))]}


def write(network: nn.Module) -> str:
    """Return the prompt and what a model writes after it. It reads at most the last 80 characters, as in training."""
    known, generator = TASK.texts[0], seeded_generator(0)
    text = torch.tensor([known.encode(PROMPT)])
    for _ in range(LETTERS):
        logits = network(text[:, -CONTEXT - SCORED :])[:, -1]
        text = torch.cat([text, sample_token(logits, TEMPERATURE, top_p=TOP_P, generator=generator)[:, None]], 1)
    return known.decode(text[0].tolist())


PROBLEMS = {
    "characters": Problem(
        {name: partial(model, name) for name in BACKBONES},
        draw,
        lambda network, x, following: cost(network, x, following).mean(),
        partial(scores, "test"),
        after=(100, 300, 1000),
        batch=8,
        best="min",
        validate=partial(scores, "validation"),
        write=write,
        rates=(0.003, 0.01, 0.03),
    )
}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
