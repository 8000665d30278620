"""A stream whose state stays in place says what the ordinary one says."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch
from torch.overrides import TorchFunctionMode

import rtx
from rtx.nn import validate
from rtx.nn.attention import MultiHeadAttention
from rtx.nn.kernels.dispatch import implementation
from rtx.nn.kernels.graphs import FixedStream, following, recorded, tensors
from rtx.nn.relative import RelativeAttention
from rtx.nn.state import Cache, FixedCache, detach
from rtx.tasks import task_by_name
from rtx.tasks.task import Batch, collate


def language_model(cell: str) -> rtx.LanguageModel:
    torch.manual_seed(0)
    return rtx.LanguageModel(rtx.RTransformer(8, 2, 2, 4, cell), 11).double().eval()


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("capacity", [9, 40])
@torch.no_grad()
def test_a_fixed_stream_says_what_the_stream_says(cell, capacity):
    model, tokens = language_model(cell), torch.randint(0, 11, (2, 9), generator=torch.Generator().manual_seed(1))
    _, state = model.step(tokens[:, 0])
    _, state = model.step(tokens[:, 1], state)
    stream = FixedStream(model.step, tokens[:, 0], state, capacity)
    places = [one.data_ptr() for one in tensors(stream.state)]
    for column in tokens[:, 2:].unbind(1):
        expected, state = model.step(column, state)
        torch.testing.assert_close(stream(column), expected, rtol=0, atol=1e-12)
    assert [one.data_ptr() for one in tensors(stream.state)] == places


@torch.no_grad()
def test_the_ordinary_state_is_left_as_it_was():
    model, token = language_model("gru"), torch.tensor([3])
    _, state = model.step(token)
    stream = FixedStream(model.step, token, state, 5)
    before, _ = model.step(token, state)
    stream(token), stream(token)
    assert torch.equal(model.step(token, state)[0], before)


@torch.no_grad()
def test_room_ends_with_a_clear_error():
    model, token = language_model("gru"), torch.tensor([3])
    _, state = model.step(token)
    stream = FixedStream(model.step, token, state, 2)
    stream(token)
    with pytest.raises(ValueError, match="capacity: expected more than the 2 positions"):
        stream(token)
    with pytest.raises(ValueError, match="capacity: expected room for the 1 positions that were read, got 0"):
        FixedStream(model.step, token, state, 0)


@torch.no_grad()
def test_models_that_count_their_positions_are_refused():
    x = torch.randn(1, 8)
    for backbone in (rtx.Transformer(8, 1, 2), rtx.TransformerXL(8, 1, 2)):
        _, state = backbone.eval().step(x)
        with pytest.raises(ValueError, match="state: "):
            FixedStream(backbone.step, x, state, 5)(x)
    relative = RelativeAttention(8, 2, 3).eval()
    with pytest.raises(ValueError, match="RelativeAttention needs to know where a key is"):
        FixedStream(relative.step, x, relative.step(x)[1], 5)(x)


def test_what_is_not_filled_is_not_seen():
    attention, x = MultiHeadAttention(4, 1).eval(), torch.randn(1, 4)
    with torch.no_grad():
        _, state = attention.step(x)
        cache = FixedCache(state, 3)
        cache.buffer[:, :, :, 1:] = 100.0
        torch.testing.assert_close(attention.step(x, cache)[0], attention.step(x, state)[0])
    assert cache.mask.tolist() == [[True, True, False]]
    with pytest.raises(ValueError, match="stays where it is"):
        detach((cache,))
    assert isinstance(state, Cache)


def test_without_a_gpu_nothing_is_recorded():
    with pytest.raises(ValueError, match="device: expected a CUDA device, which graphs are made for, got 'cpu'"):
        recorded(lambda: None, "cpu")


@pytest.fixture
def no_device(monkeypatch) -> list[Mock]:
    """What `recorded` asks of CUDA, without it; gives the current stream, in a list."""
    current, torchs_own = [Mock()], Mock()

    @contextmanager
    def stream(other: Mock) -> Iterator[None]:
        before, current[0] = current[0], other
        try:
            yield
        finally:
            current[0] = before

    @contextmanager
    def graph(_: Mock, stream: Mock | None = None) -> Iterator[None]:
        before, current[0] = current[0], stream or torchs_own
        yield  # torch leaves the stream as it is where this raises
        current[0] = before

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: current[0])
    for name, stand_in in (("stream", stream), ("graph", graph), ("Stream", Mock), ("CUDAGraph", Mock)):
        monkeypatch.setattr(torch.cuda, name, stand_in)
    return current


def test_weights_that_an_autocast_has_rounded_are_rounded_again_in_each_run(no_device):
    """Else a recorded training step would go on with the weights of its recording."""
    layer, found = torch.nn.Linear(1, 1), []

    def step() -> None:
        found.append(layer(torch.ones(1, 1)).item())
        with torch.no_grad():
            layer.weight += 1

    with torch.autocast("cpu", torch.bfloat16):
        recorded(step, "cuda")
    assert len(set(found)) == len(found) == 4


def test_it_is_recorded_in_the_stream_of_its_warm_ups(no_device):
    """That is of its device; torch's own is of the device that was recorded on first."""
    streams = []
    recorded(lambda: streams.append(torch.cuda.current_stream()), "cuda")
    assert len(streams) == 4 and len(set(map(id, streams))) == 1 and streams[0] is not no_device[0]


def test_after_a_recording_that_fails_work_goes_on_in_the_stream_of_before(no_device):
    before, runs = no_device[0], []

    def run() -> None:
        runs.append(None)
        if len(runs) == 4:
            raise RuntimeError("operation not permitted when stream is capturing\nand more")

    with pytest.raises(ValueError, match=r"torch says: operation not permitted when stream is capturing$"):
        recorded(run, "cuda")
    assert no_device == [before]


# A stream as a function of its next input


@pytest.mark.parametrize("in_place", [None, False, True])
@torch.no_grad()
def test_what_follows_is_the_same_wherever_the_state_stands(in_place):
    model, tokens = language_model("lstm"), torch.randint(0, 11, (2, 9), generator=torch.Generator().manual_seed(1))
    _, state = model.step(tokens[:, 0])
    advance = following(model.step, state, tokens[:, 0], 8, in_place)
    assert isinstance(advance, FixedStream) == (in_place is True)  # by itself only on a CUDA device
    for column in tokens[:, 1:].unbind(1):
        expected, state = model.step(column, state)
        torch.testing.assert_close(advance(column), expected, rtol=0, atol=1e-12)


@torch.no_grad()
def test_a_state_that_cannot_stay_is_refused_only_where_it_shall():
    model, x = rtx.Transformer(8, 1, 2).eval(), torch.randn(1, 8)
    y, state = model.step(x)
    assert following(model.step, state, x, 5)(x).shape == y.shape
    with pytest.raises(ValueError, match="state: this model counts its positions on the CPU"):
        following(model.step, state, x, 5, in_place=True)(x)
    griffin = rtx.models.Griffin(8, 3, 2, window=4).eval()
    _, short = griffin.step(x)  # less than a window, so that what is kept grows
    with pytest.raises(ValueError, match=r"state: expected tensors of one shape, got \(1, 1, 4\), then \(1, 2, 4\)"):
        following(griffin.step, short, x, 5, in_place=True)(x)
    with pytest.raises(ValueError, match="state: expected tensors and caches, which can stay in place, got int"):
        following(model.step, (x, 3), x, 5, in_place=True)


# What a recorded training step may not do


class NoQuestions(TorchFunctionMode):
    """Refuses numbers that come from the CPU; those that go there are refused by the device "meta", which has none."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        assert function not in (torch.tensor, torch.as_tensor, torch.from_numpy, torch.Tensor.new_tensor), function
        return function(*args, **kwargs or {})


@pytest.mark.parametrize(
    ("task", "model", "sizes"),
    [
        ("digits", "r-transformer", {"layers": 1, "heads": 2, "window": 3, "dropout": 0.1}),
        ("digits", "lstm", {}),
        ("nottingham", "r-transformer", {"layers": 1, "heads": 2, "window": 3}),
        ("nottingham", "tcn", {"layers": 2}),
        ("characters", "r-transformer", {"layers": 1, "heads": 2, "window": 3, "dropout": 0.1}),
        ("characters", "mc-rnn", {"dropout": 0.1}),
        ("characters", "transformer", {"layers": 1, "heads": 2}),
    ],
)
def test_a_training_step_asks_the_device_for_no_number_and_sends_none(task, model, sizes):
    from benchmarks.training import random_batch

    task = replace(task_by_name(task), sparse=False)
    network = rtx.build(task, model, d_model=8, **sizes).to("meta")
    batch = Batch(*(one.to("meta") for one in random_batch(task, 2, 9, 9)))
    # the checks of a batch, which a recording leaves out, are questions
    with NoQuestions(), implementation("torch"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(validate, "_has_numbers", lambda x: False)
        loss = task.loss(task.predict(network, batch), batch)
        (loss.total / loss.count).backward()
    assert all(p.grad is not None for p in network.parameters())


@pytest.mark.parametrize("name", ["copy-memory", "locality-dial", "dates"])
def test_a_loss_of_some_steps_asks_for_no_number_and_is_the_cpus(name):
    task = task_by_name(name)
    batch = collate([task.split("test")[i] for i in range(3)], task.per)
    predicted = batch.targets[:, 1:] if task.per == "pair" else batch.targets  # the begin token is not
    logits = torch.randn(*predicted.shape, task.outputs, generator=torch.Generator().manual_seed(0))
    there = Batch(*(one.to("meta") for one in batch))
    with NoQuestions():
        assert task.loss(logits.to("meta"), there).total.is_meta
    elsewhere = Batch(*(one.as_subclass(Elsewhere) for one in batch))
    expected, found = task.loss(logits, batch), task.loss(logits.as_subclass(Elsewhere), elsewhere)
    torch.testing.assert_close(found.total.as_subclass(torch.Tensor), expected.total)
    assert found.count == expected.count


class Elsewhere(torch.Tensor):
    """Says that it is not on the CPU."""

    is_cpu = False


def test_such_a_question_would_be_found():
    with NoQuestions():
        with pytest.raises(RuntimeError, match="meta"):
            torch.zeros(2, device="meta").sum().item()
        with pytest.raises(AssertionError):
            torch.tensor([1], device="meta")
