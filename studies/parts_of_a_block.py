"""What does each sublayer add, with the norm after and before it? (Notebook 04.)

A sequence of 24 symbols holds a key (A or B) in its first half and a pair (XY or YX) just before its end. The last
output says which key it was and which order. `python -m studies.parts_of_a_block` trains blocks with a part left out,
blocks with sinusoids or relative positions, and deep stacks with and without warm-up, and writes
`parts_of_a_block.json`. It takes about 45 minutes of one core.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

import rtx
from rtx.models import CausalModel
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, Residual
from rtx.nn.streaming import State
from rtx.tasks.build import SequenceModel
from studies.fair import Problem, Scores, compare

STORED = Path(__file__).with_suffix(".json")
WIDTH, SYMBOLS, LENGTH, TESTED = 32, 9, 24, 500
LENGTHS = (24, 28, 32, 36, 40, 48, 56, 64, 72, 84, 96, 120)
SUBLAYERS: dict[str, Callable[[], nn.Module]] = {
    "LocalRNN": lambda: LocalRNN(WIDTH, window=4),
    "attention": lambda: MultiHeadAttention(WIDTH, heads=2),
    "feed-forward": lambda: FeedForward(WIDTH),
}


class Stack(CausalModel):
    """Residual sublayers, one after the other."""

    def __init__(self, names: tuple[str, ...], layers: int, norm: str) -> None:
        super().__init__()
        self.d_model = WIDTH
        steps = (Residual(SUBLAYERS[name](), WIDTH, norm) for _ in range(layers) for name in names)
        self.steps = nn.Sequential(*steps)

    def forward(self, x: Tensor, state: State | None = None) -> Tensor:
        """Return the last sublayer's output."""
        out: Tensor = self.steps(x)
        return out


def answering(make: Callable[..., CausalModel]) -> SequenceModel:
    """Return a model that reads a sequence and gives the logits of the two answers."""
    return SequenceModel(make(), inputs=SYMBOLS, outputs=2, per="sequence")


ALL = ("LocalRNN", "attention", "feed-forward")
MAKERS: dict[str, Callable[..., CausalModel]] = {
    "all sublayers": partial(Stack, ALL, 1),
    "no LocalRNN": partial(Stack, ALL[1:], 1),
    "no LocalRNN, 2 blocks": partial(Stack, ALL[1:], 2),
    "no attention": partial(Stack, (ALL[0], ALL[2]), 1),
    "no feed-forward": partial(Stack, ALL[:2], 1),
    "sinusoids, no LocalRNN": partial(rtx.Transformer, WIDTH, 1, 2),
    "sinusoids, no LocalRNN, 2 blocks": partial(rtx.Transformer, WIDTH, 2, 2),
    "relative, no LocalRNN": partial(rtx.Transformer, WIDTH, 1, 2, position="relative"),
}
PARTS = {f"{name}, {norm}-norm": partial(make, norm=norm) for name, make in MAKERS.items() for norm in ("post", "pre")}
DEEP = {f"8 blocks, {norm}-norm": partial(Stack, ALL, 8, norm=norm) for norm in ("post", "pre")}


def draw(size: int, T: int = LENGTH) -> tuple[Tensor, Tensor]:
    """Return one-hot symbols (B, T, 9), and two answers (B, 2): is the key B, is the pair YX."""
    x = torch.randint(4, (size, T))  # 0 to 3: noise
    key, order = torch.randint(2, (2, size))
    rows = torch.arange(size)
    x[rows, torch.randint(T // 2, (size,))] = 4 + key  # 4 or 5, early
    x[rows, T - 3], x[rows, T - 2] = 6 + order, 7 - order  # 6 then 7, or 7 then 6, late
    x[:, T - 1] = 8  # the question
    return one_hot(x, SYMBOLS).float(), torch.stack([key, order], 1).float()


def loss(model: nn.Module, x: Tensor, answers: Tensor) -> Tensor:
    """Return the cross-entropy per answer."""
    return binary_cross_entropy_with_logits(model(x), answers)


def right(lengths: tuple[int, ...], model: nn.Module) -> Scores:
    """Return the share of right answers at the trained length, and of right keys and orders at all lengths."""
    keys, orders = [], []
    for T in lengths:
        x, answers = draw(TESTED, T)
        key, order = ((model(x) > 0) == (answers > 0)).float().mean(0).tolist()
        keys.append(key)
        orders.append(order)
    return {"both": [(keys[0] + orders[0]) / 2], "key": keys, "order": orders}


PROBLEMS = {
    name: Problem(
        {model: partial(answering, make) for model, make in makers.items()},
        draw,
        loss,
        partial(right, lengths),
        after=after,
        warm_up=warm_up,
    )
    for name, makers, lengths, after, warm_up in (
        ("parts", PARTS, LENGTHS, (100, 400), 0),
        ("deep", DEEP, (LENGTH,), (100, 250), 0),
        ("deep, warm-up", DEEP, (LENGTH,), (100, 250), 100),
    )
}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
