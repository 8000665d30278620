"""Every backbone step by step: the same numbers as the whole sequence, at a cost that does not grow, refused states."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from rtx.models import MODELS
from rtx.nn import LocalRNN
from rtx.nn.state import Cache, State, detach, map_state, select


def stream(model: torch.nn.Module, x: torch.Tensor, state: State | None = None) -> tuple[torch.Tensor, State]:
    rows = []
    for x_t in x.unbind(1):
        y, state = model.step(x_t, state)
        rows.append(y)
    return torch.stack(rows, 1), state


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("gradients", [False, True])
def test_step_by_step_equals_the_whole_sequence(small_model, dtype, tolerance, gradients):
    model, x = small_model().to(dtype).eval(), torch.randn(3, 23, 8, dtype=dtype)
    with torch.set_grad_enabled(gradients):
        torch.testing.assert_close(stream(model, x)[0], model(x), rtol=0, atol=tolerance)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_a_window_of_one_remembers_nothing(cell):
    layer, x = LocalRNN(5, 1, cell).double(), torch.randn(2, 4, 5, dtype=torch.float64)
    y, state = stream(layer, x)
    torch.testing.assert_close(y, layer(x), rtol=0, atol=1e-12)
    assert all(part.shape == (2, 0, 5) for part in state)


def test_gradients_flow_through_a_stream_as_through_the_whole(small_model):
    model, x = small_model().double(), torch.randn(2, 6, 8, dtype=torch.float64)
    weight, grads = torch.randn(2, 6, 8, dtype=torch.float64), []
    for run in (model, lambda piece: stream(model, piece)[0]):
        model.zero_grad()
        (run(x) * weight).sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for whole, streamed in zip(*grads, strict=True):
        torch.testing.assert_close(streamed, whole, rtol=0, atol=1e-10)


def test_a_state_can_be_continued_in_two_ways(small_model):
    model, x = small_model().double().eval(), torch.randn(2, 12, 8, dtype=torch.float64)
    other = torch.cat([x[:, :7], torch.randn(2, 5, 8, dtype=torch.float64)], 1)
    with torch.no_grad():
        _, fork = stream(model, x[:, :7])
        one, _ = stream(model, x[:, 7:], fork)
        two, _ = stream(model, other[:, 7:], fork)
        torch.testing.assert_close(one, model(x)[:, 7:], rtol=0, atol=1e-10)
        torch.testing.assert_close(two, model(other)[:, 7:], rtol=0, atol=1e-10)


def test_rows_of_a_state_can_be_reordered_and_repeated(small_model):
    model, x = small_model().double().eval(), torch.randn(3, 9, 8, dtype=torch.float64)
    rows = torch.tensor([2, 0, 0, 1])
    with torch.no_grad():
        _, state = stream(model, x[:, :6])
        y, _ = stream(model, x[rows, 6:], select(detach(state), rows))
        torch.testing.assert_close(y, model(x)[rows, 6:], rtol=0, atol=1e-10)


@pytest.mark.parametrize("copy", [detach, lambda state: select(state, torch.tensor([0, 1]))], ids=["detach", "select"])
def test_a_state_and_a_copy_of_it_go_on_without_touching_each_other(small_model, copy):
    model, x = small_model().double().eval(), torch.randn(2, 9, 8, dtype=torch.float64)
    other = torch.cat([x[:, :5], torch.randn(2, 4, 8, dtype=torch.float64)], 1)
    with torch.no_grad():
        _, state = stream(model, x[:, :5])
        twin = copy(state)
        _, state = stream(model, x[:, 5:7], state)
        _, twin = stream(model, other[:, 5:7], twin)
        torch.testing.assert_close(stream(model, x[:, 7:], state)[0], model(x)[:, 7:], rtol=0, atol=1e-10)
        torch.testing.assert_close(stream(model, other[:, 7:], twin)[0], model(other)[:, 7:], rtol=0, atol=1e-10)


def flops(model: torch.nn.Module, x: torch.Tensor, state: State) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.step(x, state)
    return counter.get_total_flops()


def numbers(state: State) -> tuple[int, int]:
    """How many numbers a state holds outside its caches, and in them."""
    fixed, cached = [], []

    def count(part: object) -> None:
        if isinstance(part, Cache):
            cached.append(part.keys.numel() + part.values.numel())
        elif isinstance(part, tuple):
            for inner in part:
                count(inner)
        elif isinstance(part, torch.Tensor):
            fixed.append(part.numel())

    count(state)
    return sum(fixed), sum(cached)


def test_a_step_costs_the_same_however_late_but_for_attentions_reads(small_model):
    model, x = small_model().eval(), torch.randn(1, 97, 8)
    costs, sizes, state = {}, {}, None
    with torch.no_grad():
        for t, x_t in enumerate(x.unbind(1)):
            if t in (32, 64, 96):  # the same place in a segment
                costs[t], sizes[t] = flops(model, x_t, state), numbers(state)
            _, state = model.step(x_t, state)
    assert sizes[32][0] == sizes[96][0]
    assert sizes[96][1] - sizes[64][1] == sizes[64][1] - sizes[32][1]  # caches grow by a constant, or not at all
    assert costs[96] - costs[64] == costs[64] - costs[32]
    if not sizes[96][1]:
        assert costs[96] == costs[32]


def test_a_cache_copies_little_however_long_it_gets():
    cache = Cache(torch.empty(1, 2, 1, 0, 4))
    buffers = set()
    with torch.no_grad():
        for t in range(1000):
            row = torch.full((1, 1, 1, 4), float(t))
            cache = cache.append(row, -row)
            buffers.add(cache.buffer.data_ptr())
    assert len(buffers) <= 10
    assert cache.keys[0, 0, :, 0].tolist() == list(range(1000))
    assert torch.equal(cache.values, -cache.keys)


@pytest.mark.parametrize("steps", [1, 4, 6])
def test_a_state_of_another_batch_is_refused(small_model, steps):
    """Also where a segment has come to its end, after 4."""
    model = small_model()
    _, state = stream(model, torch.randn(3, steps, 8))
    with pytest.raises(ValueError, match="state: expected"):
        model.step(torch.randn(2, 8), state)


def test_a_state_of_another_width_is_refused(small_model):
    _, state = small_model(d_model=16, d_hidden=24).step(torch.randn(2, 16))
    with pytest.raises(ValueError, match="state: expected"):
        small_model().step(torch.randn(2, 8), state)


@pytest.mark.parametrize("state", [0, [], (), "state", (None,), (torch.zeros(3, 8),), ((), (), (), ())])
def test_what_is_no_state_is_refused(small_model, state):
    with pytest.raises(ValueError, match="state: expected"):
        small_model().step(torch.randn(2, 8), state)


def test_a_state_of_another_kind_of_model_is_refused(small_model, variant):
    kinds = ("lstm", "transformer", "r-transformer", "mc-rnn", "awd-lstm")
    theirs = {name: MODELS[name] for name in kinds if not variant.startswith(name)}
    if variant == "r-transformer-no-local":
        del theirs["transformer"]  # the same layers: its state is no other kind's
    sizes = {"transformer": {"heads": 2}, "r-transformer": {"heads": 2, "window": 3}}
    for name, make in theirs.items():
        _, state = make(8, layers=2, **sizes.get(name, {})).step(torch.randn(2, 8))
        with pytest.raises(ValueError, match=r"state: expected [^\n]*$"):
            small_model().step(torch.randn(2, 8), state)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.randn(2, 9, 8), r"x: expected one step of at least one stream, \(batch, 8\), got \(2, 9, 8\)"),
        (torch.randn(2, 7), r"x: expected one step of at least one stream, \(batch, 8\), got \(2, 7\)"),
        (torch.randn(0, 8), r"x: expected one step of at least one stream, \(batch, 8\), got \(0, 8\)"),
        (torch.ones(2, 8, dtype=torch.long), "x: expected floating-point numbers, got torch.int64"),
        (torch.randn(2, 8, dtype=torch.float64), "x: is torch.float64, but the model is torch.float32"),
    ],
)
def test_a_bad_step_is_refused(small_model, x, message):
    with pytest.raises(ValueError, match=message):
        small_model().step(x)


def test_reading_in_pieces_equals_reading_at_once(small_model):
    model, x = small_model().double().eval(), torch.randn(2, 19, 8, dtype=torch.float64)
    if not hasattr(model, "read"):
        assert not any(isinstance(m, torch.nn.RNNBase) for m in model.modules())
        return
    first, state = model.read(x[:, :8])
    then, state = model.read(x[:, 8:12], state)
    last, _ = stream(model, x[:, 12:], state)
    torch.testing.assert_close(torch.cat([first, then, last], 1), model(x), rtol=0, atol=1e-10)


def test_map_state_reaches_every_tensor():
    state = (torch.ones(2, 3), 7, (Cache(torch.ones(2, 2, 1, 5, 3), 4), ()))
    doubled = map_state(lambda part: 2 * part, state)
    assert doubled[1] == 7 and doubled[0].sum() == 12
    assert doubled[2][0].length == 4 and doubled[2][0].keys.sum() == 2 * 2 * 4 * 3
