"""The batches of a run: each sequence once, in an order that depends on the seed and the epoch."""

import torch

from rtx.tasks import Example, Task
from rtx.tasks.task import Sum, mean_of
from rtx.training.batches import evaluation_batches, training_batches
from rtx.training.settings import Settings


def numbers(split: str) -> list[Example]:
    """Return 22 sequences; all numbers of a sequence are its index."""
    return [Example(torch.full((1 + i % 5, 1), float(i)), torch.zeros(1 + i % 5, 1)) for i in range(22)]


def nothing(predictions, batch) -> Sum:
    return Sum(predictions.sum(), batch.lengths.sum())


TASK = Task("numbers", 1, 1, "step", numbers, nothing, mean_of(nothing), "nothing", "min")


def training(seed: int = 0, epoch: int = 0, skip: int = 0, **settings) -> list[list[int]]:
    loader = training_batches(TASK, Settings(1, 4, "sgd", 0.1, **settings), seed, skip)
    loader.batch_sampler.set_epoch(epoch)
    return seen(loader)


def seen(loader) -> list[list[int]]:
    return [[int(sequence[0]) for sequence in batch.inputs] for batch in loader]


def together(batches: list[list[int]]) -> list[int]:
    return sorted(i for batch in batches for i in batch)


def test_an_epoch_has_each_sequence_once_and_the_last_batch_is_smaller():
    batches = training()
    assert [len(batch) for batch in batches] == [4, 4, 4, 4, 4, 2]
    assert together(batches) == list(range(22))


def test_the_order_depends_on_seed_and_epoch_only():
    assert training(3, 2) == training(3, 2)
    orders = [training(seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert all(one != other for i, one in enumerate(orders) for other in orders[:i])


def test_a_limit_keeps_the_first_sequences():
    assert together(training(limit=10)) == list(range(10))
    assert together(training(limit=99)) == list(range(22))


def test_the_settings_choose_which_sequences_share_a_batch():
    lengths = [{1 + i % 5 for i in batch} for batch in training(batching="bucketed")]
    assert sum(map(len, lengths)) <= 5 + len(lengths) - 1  # sorted by length, and then cut
    assert training(batching="as it is")[0] == [0, 1, 2, 3]


def test_a_resumed_run_skips_batches_of_its_first_epoch_only():
    loader = training_batches(TASK, Settings(1, 4, "sgd", 0.1), 5, skip=4)
    assert len(loader) == 6
    assert seen(loader) == training(5)[4:]
    loader.batch_sampler.set_epoch(1)
    assert seen(loader) == training(5, 1)


def test_an_evaluation_has_each_sequence_once_up_to_its_limit():
    for limit, expected in ((None, 22), (7, 7), (99, 22)):
        assert together(seen(evaluation_batches(TASK, "test", False, limit))) == list(range(expected))
        assert seen(evaluation_batches(TASK, "test", True, limit)) == [[i] for i in range(expected)]
