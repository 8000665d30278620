"""Tiny recipes on generated data: running sums, and a text that repeats itself with random errors."""

import torch

from rtx.tasks import Example, Task
from rtx.tasks.task import Sum, mean_of, real_steps
from rtx.training.recipe import Recipe

CPU = {"accelerator": "cpu", "enable_progress_bar": False}
"""How all tests train."""
SEEDS = {"train": 0, "validation": 1, "test": 2}


def running_sum(split: str) -> list[Example]:
    """Return 16 sequences of 6 numbers; the target of a step is the sum so far."""
    generator = torch.Generator().manual_seed(SEEDS[split])
    x = torch.randn(16, 6, 1, generator=generator)
    return [Example(a, b) for a, b in zip(x, x.cumsum(1), strict=True)]


def squared_error(predictions, batch) -> Sum:
    error = (predictions - batch.targets).square()
    return Sum(error.sum(), torch.tensor(error.numel()))


def tiny() -> Task:
    return Task("tiny", 1, 1, "step", running_sum, squared_error, mean_of(squared_error), "squared error", "min")


def ragged_sum(split: str) -> list[Example]:
    """Return running sums of sequences with 2 to 6 numbers."""
    return [Example(x[: 2 + i % 5], y[: 2 + i % 5]) for i, (x, y) in enumerate(running_sum(split))]


def real_error(predictions, batch) -> Sum:
    real = real_steps(batch)
    return Sum(((predictions - batch.targets).squeeze(-1).square() * real).sum(), real.sum())


def ragged() -> Task:
    return Task("ragged", 1, 1, "step", ragged_sum, real_error, mean_of(real_error), "squared error", "min")


def faulty_text(split: str) -> list[Example]:
    """Return a text in 16 pieces. It repeats 0 1 2 3, with about one random token in eight."""
    generator = torch.Generator().manual_seed(SEEDS[split])
    text = torch.arange(16 * 5 + 1) % 4
    faults = torch.rand(len(text), generator=generator) < 0.125
    text[faults] = torch.randint(4, (int(faults.sum()),), generator=generator)
    return [Example(text[i : i + 5], text[i + 1 : i + 6]) for i in range(0, 80, 5)]


def surprise(predictions, batch) -> Sum:
    total = torch.nn.functional.cross_entropy(predictions.transpose(1, 2), batch.targets, reduction="sum")
    return Sum(total, torch.tensor(batch.targets.numel()))


def tiny_text() -> Task:
    return Task("tiny-text", 4, 4, "token", faulty_text, surprise, mean_of(surprise), "nats", "min")


def tiny_recipe() -> Recipe:
    base = {"epochs": 4, "batch_size": 4, "optimizer": "adam", "learning_rate": 1e-2}
    return Recipe(
        name="tiny",
        title="Running sums",
        source="no paper",
        task="tiny",
        default_variant="plain",
        variants={"plain": base, "pre": base | {"model": {"norm": "pre"}}},
        models={
            "r-transformer": {"paper": 0.5, "d_model": 8, "layers": 1, "heads": 2, "window": 3, "dropout": 0.1},
            "gru": {"d_model": 8},
        },
    )


def tiny_text_recipe() -> Recipe:
    base = {"epochs": 4, "batch_size": 2, "optimizer": "adam", "learning_rate": 1e-2}
    base |= {"batching": "columns", "carry": True}
    small = {"d_model": 8, "layers": 2, "dropout": 0.2}
    return Recipe(
        name="tiny-text",
        title="A text that repeats itself",
        source="no paper",
        task="tiny-text",
        default_variant="carried",
        variants={"carried": base},
        models={
            "lstm": small,
            "hm-rnn": small,
            "transformer-xl": small | {"heads": 2, "segment": 3, "memory": 4},
            "character-transformer": small | {"heads": 2, "segment": 3},
        },
    )


TASKS = {"tiny": tiny, "ragged": ragged, "tiny-text": tiny_text}
