"""Who learns to look up the digit that belongs to a letter? (Notebook 03.)

Six letters, each followed by its digit; then the same letters in another order. The digit after each of them is asked
for. `python -m studies.recall_by_content` trains recurrent networks, Transformers with and without positions, of one
and two layers, and R-Transformers, and writes `recall_by_content.json`. It takes about 40 minutes of one core.
"""

from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import rtx
from studies.fair import Problem, Scores, compare

STORED = Path(__file__).with_suffix(".json")
WIDTH, SYMBOLS, PAIRS, LONGER, TESTED = 32, 36, 6, 24, 500


def _transformer(layers: int, position: str, norm: str) -> rtx.Transformer:
    return rtx.Transformer(WIDTH, layers=layers, heads=2, norm=norm, position=position)


BACKBONES = {
    "GRU": lambda: rtx.RNN(WIDTH, cell="gru"),
    "LSTM": lambda: rtx.RNN(WIDTH, cell="lstm"),
    **{
        f"Transformer, {layers} layer{'s' * (layers > 1)}, {position}, {norm}-norm": partial(
            _transformer, layers, position, norm
        )
        for layers, norm in ((1, "pre"), (2, "post"), (2, "pre"))
        for position in ("none", "sinusoidal", "relative")
    },
    **{
        f"R-Transformer, window 2, {norm}-norm": partial(
            rtx.RTransformer, WIDTH, layers=1, heads=2, window=2, norm=norm
        )
        for norm in ("post", "pre")
    },
    "LocalRNN alone, window 2": partial(rtx.RTransformer, WIDTH, layers=1, heads=0, window=2, norm="pre"),
}


def reader(backbone: nn.Module) -> rtx.LanguageModel:
    """Return a model of 26 letters and ten digits, with embeddings of size 1."""
    model = rtx.LanguageModel(backbone, SYMBOLS, tied=False)  # type: ignore[arg-type]
    nn.init.normal_(model.embedding.weight)
    return model


def draw(size: int, pairs: int = PAIRS) -> tuple[Tensor, Tensor]:
    """Return texts (B, 4 · pairs) of letters (0 to 25) and digits (26 to 35), and the digits of their second half."""
    letters = torch.rand(size, 26).argsort(1)[:, :pairs]
    digits = torch.randint(26, 36, (size, pairs))
    order = torch.rand(size, pairs).argsort(1)
    again = [part.gather(1, order) for part in (letters, digits)]
    x = torch.cat([torch.stack(two, 2) for two in ((letters, digits), again)], 1).flatten(1)
    return x, again[1]


def loss(model: nn.Module, x: Tensor, digits: Tensor) -> Tensor:
    """Return the cross-entropy at the letters of the second half."""
    return cross_entropy(model(x)[:, x.shape[1] // 2 :: 2].flatten(0, 1), digits.flatten())


def right(model: nn.Module) -> Scores:
    """Return the share of right digits with as many pairs as in training, and with more."""
    found = {}
    for name, pairs in (("6 pairs", PAIRS), ("24 pairs", LONGER)):
        x, digits = draw(TESTED, pairs)
        found[name] = [(model(x)[:, 2 * pairs :: 2].argmax(-1) == digits).float().mean().item()]
    return found


PROBLEMS = {
    "recall": Problem(
        {name: lambda make=make: reader(make()) for name, make in BACKBONES.items()},  # type: ignore[misc]
        draw,
        loss,
        right,
        after=(200, 800),
    )
}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
