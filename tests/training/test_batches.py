"""The batches of a run: each sequence once, in an order that depends on the seed and the epoch."""

import torch

from rtx.tasks import Example, Task
from rtx.tasks.task import Sum, mean_of
from rtx.training.evaluate import evaluation_batches
from rtx.training.module import Trainee
from rtx.training.settings import Settings


def numbers(split: str) -> list[Example]:
    """Return 22 sequences; all numbers of a sequence are its index."""
    return [Example(torch.full((1 + i % 5, 1), float(i)), torch.zeros(1 + i % 5, 1)) for i in range(22)]


def nothing(predictions, batch) -> Sum:
    return Sum(predictions.sum(), batch.lengths.sum())


TASK = Task("numbers", 1, 1, "step", numbers, nothing, mean_of(nothing), "nothing", "min")


def trainee(seed: int, **settings) -> Trainee:
    return Trainee(TASK, torch.nn.Linear(1, 1), Settings(1, 4, "sgd", 0.1, **settings), seed)


def training(seed: int = 0, epoch: int = 0, **settings) -> list[list[int]]:
    loader = trainee(seed, **settings).train_dataloader()
    loader.batch_sampler.set_epoch(epoch)
    return seen(loader)


def seen(loader) -> list[list[int]]:
    return [[int(sequence[0]) for sequence in batch.inputs] for batch in loader]


def together(batches: list[list[int]]) -> list[int]:
    return sorted(i for batch in batches for i in batch)


def test_the_settings_choose_size_order_and_limit():
    assert [len(batch) for batch in training()] == [4, 4, 4, 4, 4, 2] and together(training()) == list(range(22))
    assert training(3, 2) == training(3, 2) != training(3, 1) != training(0, 1)
    assert training(batching="as it is")[0] == [0, 1, 2, 3]
    assert together(training(limit=10)) == list(range(10)) and together(training(limit=99)) == list(range(22))


def test_an_evaluation_has_each_sequence_once_up_to_its_limit():
    for limit, expected in ((None, 22), (7, 7), (99, 22)):
        assert together(seen(evaluation_batches(TASK, "test", False, limit))) == list(range(expected))
        assert seen(evaluation_batches(TASK, "test", True, limit)) == [[i] for i in range(expected)]
