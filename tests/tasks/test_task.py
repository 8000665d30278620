"""What all tasks share: lazy examples, padding, and losses and scores that padding never reaches."""

import math
import pickle
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from rtx.tasks import TASKS, task_by_name
from rtx.tasks.loader import BatchOrder
from rtx.tasks.losses import class_cross_entropy, percent_correct, summed_cross_entropy
from rtx.tasks.music import frame_nll, piano_roll_task
from rtx.tasks.task import IGNORED, Batch, Example, Examples, collate, mean_metric, real_steps
from rtx.tasks.toy.arithmetic import solved, squared_error


def numbers(size: int) -> Examples:
    return Examples(
        size, lambda many: [Example(torch.full((i + 1, 2), float(i)), torch.tensor([float(i)])) for i in many]
    )


def test_examples_are_a_sequence():
    examples = numbers(4)
    assert len(examples) == 4
    assert [float(e.target) for e in examples] == [0, 1, 2, 3]
    assert float(examples[-1].target) == 3
    assert [float(e.target) for e in examples[1:3]] == [1, 2]
    with pytest.raises(IndexError):
        examples[4]


@pytest.mark.parametrize("name", TASKS)
def test_a_task_can_be_pickled(name, monkeypatch, tmp_path):
    monkeypatch.setenv("RTX_CACHE", str(tmp_path))
    monkeypatch.setenv("RTX_DATA", str(tmp_path))  # nothing is read yet
    task = task_by_name(name)
    copy = pickle.loads(pickle.dumps(task))
    assert (copy.name, copy.inputs, copy.outputs, copy.metric) == (task.name, task.inputs, task.outputs, task.metric)


def test_a_changed_task_is_not_pickled_as_the_task_that_it_was():
    task = task_by_name("add", length=20)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(replace(task, loss=lambda predictions, batch: task.loss(predictions, batch)))


def test_a_spawned_worker_reads_the_examples():
    task = task_by_name("characters", context=4, scored=8)
    together = partial(collate, per=task.per)
    batches = DataLoader(task.split("test"), 4, collate_fn=together, num_workers=1, multiprocessing_context="spawn")
    assert torch.equal(next(iter(batches)).inputs, collate(task.split("test")[:4], task.per).inputs)


def test_batches_are_padded_at_the_end_and_know_their_lengths():
    batch = collate(list(numbers(3)), "sequence")
    assert batch.inputs.shape == (3, 3, 2) and batch.targets.shape == (3, 1)
    assert batch.lengths.tolist() == [1, 2, 3]
    assert real_steps(batch).sum(1).tolist() == [1, 2, 3]
    assert (batch.inputs[~real_steps(batch)] == 0).all()


@pytest.mark.parametrize("examples", [[], [Example(torch.zeros(0, 2), torch.zeros(1))]])
def test_an_empty_batch_and_an_empty_sequence_are_refused(examples):
    with pytest.raises(ValueError, match="examples: expected sequences of at least one step"):
        collate(examples, "sequence")


def music_batch(seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    rolls = [torch.randint(0, 2, (frames, 88), generator=generator).float() for frames in (3, 9, 5)]
    batch = collate([Example(roll, roll) for roll in rolls], "step")
    return batch, torch.randn(3, 9, 88, generator=generator)


PADDED = {
    "music": piano_roll_task("music", lambda: {"test": [np.eye(frames, 88) for frames in (4, 10, 6)]}),
    "copy-memory": task_by_name("copy-memory", length=3, longest=9),
    "look-up": task_by_name("look-up"),
    "characters": task_by_name("characters", context=4, scored=8),
    "dates": task_by_name("dates", size=600),
}


@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), 1e9])
@pytest.mark.parametrize("name", PADDED)
def test_padding_reaches_neither_loss_nor_gradient(name, rubbish):
    task = PADDED[name]
    batch = collate(task.split("test")[:5], task.per)
    padding = {"pair": batch.targets[:, 1:] == IGNORED, "token": batch.targets == IGNORED}.get(
        task.per, ~real_steps(batch)
    )
    assert padding.any()
    logits = torch.randn(*padding.shape, task.outputs)
    spoilt = logits.masked_fill(padding[..., None], rubbish).requires_grad_()
    loss = task.loss(spoilt, batch)
    loss.total.backward()
    assert (spoilt.grad[padding] == 0).all() and spoilt.grad[~padding].any()
    torch.testing.assert_close(loss.total, task.loss(logits, batch).total)
    each = [collate([example], task.per) for example in task.split("test")[:5]]
    sizes = [one.targets.shape[1] - (task.per == "pair") for one in each]
    alone = [task.loss(logits[i : i + 1, :size], one) for i, (size, one) in enumerate(zip(sizes, each, strict=True))]
    torch.testing.assert_close(loss.total, sum(one.total for one in alone))
    assert loss.count == sum(one.count for one in alone)


def test_frame_nll_is_the_bernoulli_likelihood_and_stays_finite_for_sure_logits():
    batch, logits = music_batch()
    real = real_steps(batch)
    p, y = torch.sigmoid(logits.double())[real], batch.targets[real].double()
    expected = -(y * p.log() + (1 - y) * (1 - p).log()).sum()
    torch.testing.assert_close(frame_nll(logits, batch).total.double(), expected)
    assert frame_nll(torch.full_like(logits, 1e4), batch).total.isfinite()


def test_sums_in_half_precision_keep_small_terms():
    batch, logits = music_batch()
    half = frame_nll(logits.bfloat16(), batch).total
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, frame_nll(logits.bfloat16().float(), batch).total)
    many = collate([Example(torch.zeros(1, 1), torch.tensor(0))] * 3000, "sequence")
    total = class_cross_entropy(torch.zeros(3000, 10).bfloat16(), many).total
    torch.testing.assert_close(total, 3000 * torch.tensor(10.0).log())


def test_sequence_losses_and_scores_are_the_textbook_ones():
    batch = collate([Example(torch.zeros(t, 2), torch.tensor([0.5])) for t in (2, 4, 3, 5)], "sequence")
    predictions = torch.tensor([[0.5], [0.539], [0.541], [0.4]])
    torch.testing.assert_close(squared_error(predictions, batch).total, torch.tensor(0.039**2 + 0.041**2 + 0.01))
    assert solved(predictions, batch).total == 2
    assert solved(predictions, batch).count == squared_error(predictions, batch).count == 4

    batch = collate(
        [Example(torch.zeros(t, 1), torch.tensor(label)) for t, label in ((2, 7), (3, 0), (1, 7))], "sequence"
    )
    logits = torch.zeros(3, 10)
    logits[:, 7] = 2.0
    sure = torch.log_softmax(logits[0], 0)
    torch.testing.assert_close(class_cross_entropy(logits, batch).total, -(2 * sure[7] + sure[0]))
    correct = percent_correct(10)
    correct.update(logits, batch.targets)
    torch.testing.assert_close(correct.compute(), torch.tensor(200 / 3))


def test_buckets_hold_sequences_of_about_the_same_length_and_come_in_any_order():
    lengths = torch.randint(1, 200, (1000,), generator=torch.Generator().manual_seed(0)).tolist()

    def padding(batches):
        return sum(max(lengths[i] for i in batch) - lengths[j] for batch in batches for j in batch)

    batches, shuffled = (list(BatchOrder(lengths, 4, order, seed=1)) for order in ("bucketed", "shuffled"))
    assert sorted(i for batch in batches for i in batch) == list(range(1000))
    assert padding(batches) < padding(shuffled) / 20
    longest = [max(lengths[i] for i in batch) for batch in batches]
    assert 0.4 < sum(a <= b for a, b in pairwise(longest)) / 249 < 0.6  # not the short ones first
    order = BatchOrder(lengths, 4, "bucketed", seed=1)
    assert list(order) == batches
    order.set_epoch(1)
    assert list(order) != batches and list(BatchOrder(lengths, 4, "bucketed", seed=2)) != batches


def test_batches_by_length_hold_every_sequence_once_with_the_least_padding():
    lengths = [3, 9, 1, 7, 9, 2, 5]
    batches = list(BatchOrder(lengths, 2, "by length"))
    assert batches == [[1, 4], [3, 6], [0, 5], [2]]
    padding = sum(max(lengths[i] for i in batch) * len(batch) - sum(lengths[i] for i in batch) for batch in batches)
    assert padding == 3


def test_columns_are_consecutive_pieces_and_a_text_that_is_too_short_is_refused():
    """26 pieces make six columns of four; the last two are left out."""
    batches = list(BatchOrder([3] * 26, 6, "columns"))
    assert batches[:2] == [[0, 4, 8, 12, 16, 20], [1, 5, 9, 13, 17, 21]] and len(batches) == 4
    assert list(BatchOrder([3] * 3, 1, "columns")) == [[0], [1], [2]]
    with pytest.raises(ValueError, match="^batch_size: .*10.* got 11$"):
        BatchOrder([3] * 10, 11, "columns")


def test_the_mean_of_values_weighs_them_and_is_nan_if_one_of_them_is():
    metric = mean_metric()
    for value, weight in ((1.0, 3), (5.0, 1)):
        metric.update(torch.tensor(value), torch.tensor(weight))
    assert metric.compute() == 2
    metric.update(torch.tensor(float("nan")), torch.tensor(2))
    assert metric.compute().isnan()


@pytest.mark.parametrize("offset", [0.0, 1e12, -1e12])
def test_a_large_offset_of_all_logits_changes_no_loss_and_no_gradient(offset):
    logits, targets = torch.full((4, 1000), offset, requires_grad=True), torch.tensor([0, 1, 500, 999])
    batch = Batch(torch.zeros(4, 1, 1), targets, torch.ones(4, dtype=torch.long))
    expected = torch.full((4, 1000), 1 / 1000)
    expected[torch.arange(4), targets] -= 1
    for loss in (summed_cross_entropy(logits, targets), class_cross_entropy(logits, batch).total):
        assert loss.item() == pytest.approx(4 * math.log(1000))
        torch.testing.assert_close(torch.autograd.grad(loss, logits)[0], expected)
