"""What does it cost to read a text in segments, and which cure gives how much? (Notebook 06.)

All models read the characters of the Python reference manual in segments of 16. From one model to the next one thing
changes: learnt absolute positions become relative ones; then a memory of the last segment is added. Each model is
tested segment by segment. The models without memory are also tested with a window that slides by one character.
`python -m studies.text_in_pieces` writes `text_in_pieces.json`. It takes about 15 minutes of one core.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import rtx
from rtx.tasks.task import Split
from studies.fair import Problem, Scores, compare

STORED = Path(__file__).with_suffix(".json")
WIDTH, LAYERS, HEADS, SEGMENT, LENGTH = 64, 2, 4, 16, 64
WINDOWS = 80  # that are tested
MEMORIES = (0, 1, 2, 4, 8, 16, 32, 48)  # characters remembered in a test; 16 in training

xl = partial(rtx.TransformerXL, WIDTH, LAYERS, HEADS, SEGMENT)
MAKERS: dict[str, Callable[..., nn.Module]] = {
    "separate segments, learnt positions": partial(rtx.CharacterTransformer, WIDTH, LAYERS, HEADS, SEGMENT),
    "separate segments, relative positions": partial(xl, 0),
    "memory, relative positions": partial(xl, SEGMENT),
}
BACKBONES = {
    f"{name}, {norm}-norm": partial(make, norm=norm) for norm in ("post", "pre") for name, make in MAKERS.items()
}
TASK = rtx.tasks.task_by_name("characters", context=0, scored=LENGTH)


def writer(make: Callable[[], nn.Module]) -> rtx.LanguageModel:
    """Return a model of characters, with embeddings of size 1."""
    model = rtx.LanguageModel(make(), TASK.inputs, tied=False)  # type: ignore[arg-type]
    nn.init.normal_(model.embedding.weight)
    return model


@cache
def windows(split: Split) -> tuple[Tensor, Tensor]:
    """Return all whole windows of a split (N, 64), and the characters that follow (N, 64)."""
    whole = [one for one in TASK.split(split) if len(one.inputs) == LENGTH]
    return torch.stack([one.inputs for one in whole]), torch.stack([one.target for one in whole])


def draw(size: int) -> tuple[Tensor, Tensor]:
    """Return random windows of the training text (B, 64), and the characters that follow."""
    x, following = windows("train")
    chosen = torch.randint(len(x), (size,))
    return x[chosen], following[chosen]


def loss(model: nn.Module, x: Tensor, following: Tensor) -> Tensor:
    """Return the cross-entropy per character."""
    return cross_entropy(model(x).flatten(0, 1), following.flatten())


def bits(logits: Tensor, following: Tensor) -> Tensor:
    """Return the bits for each character, (N, T)."""
    return cross_entropy(logits.mT, following, reduction="none") / math.log(2)


def with_memory(model: Any, memory: int) -> rtx.LanguageModel:
    """Return a model with the same weights that remembers so many characters."""
    norm = model.backbone.blocks[0][0].order
    other = rtx.LanguageModel(xl(memory, norm=norm), TASK.inputs, tied=False)
    other.load_state_dict(model.state_dict())
    return other.eval()


def scores(split: Split, model: Any) -> Scores:
    """Return bits per character from the second segment on, at each place of a segment, sliding, and by memory.

    The scores by memory are of the last segment, which has the longest memory behind it.
    """
    x, following = (part[:WINDOWS] for part in windows(split))
    cost = bits(model(x), following)[:, SEGMENT:]
    found = {"bits": [cost.mean().item()], "by place": cost.unflatten(1, (-1, SEGMENT)).mean((0, 1)).tolist()}
    if getattr(model.backbone, "stateful", False) and model.backbone.blocks[0][0].sublayer.memory:
        last = [bits(with_memory(model, M)(x), following)[:, -SEGMENT:].mean().item() for M in MEMORIES]
        return found | {"by memory": last}
    pieces = x.unfold(1, SEGMENT, 1)[:, 1:]  # each ends one character later
    last_of_each = torch.cat([model(part.flatten(0, 1))[:, -1] for part in pieces.split(64)])
    slid = bits(last_of_each.unflatten(0, pieces.shape[:2]), following[:, SEGMENT:])
    return found | {"sliding": [slid.mean().item()]}


PROBLEMS = {
    "characters": Problem(
        {name: partial(writer, make) for name, make in BACKBONES.items()},
        draw,
        loss,
        partial(scores, "test"),
        after=(200, 800),
        batch=24,
        best="min",
        validate=partial(scores, "validation"),
    )
}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
