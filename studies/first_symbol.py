"""Who learns to say, after the last of T random symbols, which symbol came first? (Notebook 01.)

`python -m studies.first_symbol` trains recurrent networks and models with attention at T = 5 and T = 20, and writes
`first_symbol.json`. It takes about 20 minutes of one core.
"""

from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import rtx
from studies.fair import Problem, Scores, compare

STORED = Path(__file__).with_suffix(".json")
WIDTH, SYMBOLS, TESTED = 32, 8, 1000


def open_gates() -> rtx.RNN:
    """Return an LSTM whose forget gates start at sigmoid(5) = 0.993."""
    network = rtx.RNN(WIDTH, cell="lstm")
    with torch.no_grad():
        network.network.bias_ih_l0[WIDTH : 2 * WIDTH] = 5.0
    return network


BACKBONES = {
    "RNN": lambda: rtx.RNN(WIDTH, cell="rnn"),
    "GRU": lambda: rtx.RNN(WIDTH, cell="gru"),
    "LSTM": lambda: rtx.RNN(WIDTH, cell="lstm"),
    "LSTM, gates open": open_gates,
    "Transformer, sinusoids": lambda: rtx.Transformer(WIDTH, layers=1, heads=2, norm="pre"),
    "Transformer, no positions": lambda: rtx.Transformer(WIDTH, layers=1, heads=2, norm="pre", position="none"),
    "LocalRNN alone": lambda: rtx.RTransformer(WIDTH, layers=1, heads=0, window=4, norm="pre"),
    "R-Transformer": lambda: rtx.RTransformer(WIDTH, layers=1, heads=2, window=4, norm="pre"),
}


def reader(backbone: nn.Module) -> rtx.LanguageModel:
    """Return a model of eight symbols, with embeddings of size 1."""
    model = rtx.LanguageModel(backbone, SYMBOLS, tied=False)  # type: ignore[arg-type]
    nn.init.normal_(model.embedding.weight)
    return model


def draw(T: int, size: int) -> tuple[Tensor, Tensor]:
    """Return random symbols (B, T), and the first of each sequence."""
    x = torch.randint(SYMBOLS, (size, T))
    return x, x[:, 0]


def loss(model: nn.Module, x: Tensor, first: Tensor) -> Tensor:
    """Return the cross-entropy of the last output."""
    return cross_entropy(model(x)[:, -1], first)


def right(T: int, model: nn.Module) -> Scores:
    """Return the share of sequences whose first symbol is named; a guess is right in one of eight."""
    x, first = draw(T, TESTED)
    return {"right": [(model(x)[:, -1].argmax(-1) == first).float().mean().item()]}


PROBLEMS = {
    f"T = {T}": Problem(
        {name: lambda make=make: reader(make()) for name, make in BACKBONES.items()},  # type: ignore[misc]
        partial(draw, T),
        loss,
        partial(right, T),
        after=(200, 500, 1000),
    )
    for T in (5, 20)
}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
