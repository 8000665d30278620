"""Every backbone step by step and in pieces: the outputs of the whole sequence, the cost of a step, and bad states."""

import io

import pytest
import torch
from oracles import assert_same, gradients, stream
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from rtx.models import MODELS, CausalModel, EncoderDecoder, rnnsearch
from rtx.nn.streaming import State, detach, map_state, select


def double(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@torch.no_grad()
def test_step_by_step_equals_the_whole_sequence(small_model, dtype, tolerance):
    model, x = small_model().to(dtype).eval(), torch.randn(3, 15, 8, dtype=dtype)
    torch.testing.assert_close(stream(model, x)[0], model(x), rtol=0, atol=tolerance)


def test_a_stream_has_the_gradients_of_the_whole_sequence(small_model):
    model, x = small_model().double(), double(2, 6, 8).requires_grad_()
    assert_same(stream(model, x)[0], model(x), [x, *model.parameters()])


@pytest.mark.parametrize("pieces", [(8, 1, 1, 1, 4), (1, 1, 1, 1, 2, 1, 5, 3), (2, 3, 6, 4)])  # a segment has 4
def test_reading_in_pieces_equals_reading_at_once(small_model, pieces):
    model, x = small_model().double(), double(2, 19, 8).requires_grad_()
    outputs, state = [], None
    for piece in x[:, : sum(pieces)].split(pieces, 1):
        y, state = (stream if piece.shape[1] == 1 else type(model).read)(model, piece, state)
        outputs.append(y)
    last = model(x[:, sum(pieces) :], state)
    assert_same(torch.cat([*outputs, last], 1), model(x), [x, *model.parameters()])


@torch.no_grad()
def test_a_state_can_be_continued_in_two_ways(small_model):
    model, x, y = small_model().double().eval(), double(2, 12, 8), double(2, 12, 8)
    y[:, :7] = x[:, :7]
    _, state = model.read(x[:, :7])
    for run in (stream, type(model).read):  # neither changes the state
        for whole in (x, y):
            torch.testing.assert_close(run(model, whole[:, 7:], state)[0], model(whole)[:, 7:], rtol=0, atol=1e-10)


def test_a_detached_state_gives_the_same_outputs_without_gradients(small_model):
    model, x = small_model().double(), double(2, 9, 8).requires_grad_()
    _, state = model.read(x[:, :5])
    map_state(lambda part: pytest.fail("has a gradient") if part.requires_grad else part, detach(state))
    y, _ = model.read(x[:, 5:], detach(state))
    torch.testing.assert_close(y, model.read(x[:, 5:], state)[0], rtol=0, atol=1e-12)
    assert not gradients(y, [x])[0][:, :5].any()


@torch.no_grad()
def test_rows_of_a_state_can_be_reordered_and_repeated(small_model):
    model, x, rows = small_model().double().eval(), double(3, 9, 8), torch.tensor([2, 0, 0, 1])
    y, _ = stream(model, x[rows, 6:], select(model.read(x[:, :6])[1], rows))
    torch.testing.assert_close(y, model(x)[rows, 6:], rtol=0, atol=1e-10)


def reloaded(state: State) -> State:
    """Return the state after it was saved and loaded without executing code."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    found: State = torch.load(buffer, weights_only=True)
    return found


@pytest.mark.parametrize("steps", [1, 4, 7])  # a segment ends after 4
@torch.no_grad()
def test_a_state_can_be_saved_and_loaded_without_executing_code(small_model, steps):
    model, x = small_model().eval(), torch.randn(2, 9, 8)
    for state in (model.read(x[:, :steps])[1], stream(model, x[:, :steps])[1]):
        assert torch.equal(model.read(x[:, steps:], reloaded(state))[0], model.read(x[:, steps:], state)[0])


@pytest.mark.parametrize("make", [
    lambda: rnnsearch(5, 5, "lstm", d_model=8), lambda: EncoderDecoder(5, 5, 8, 1, 2, window=2),
])  # fmt: skip
@torch.no_grad()
def test_the_state_of_a_translator_can_be_saved_and_loaded_without_executing_code(make):
    model, tokens = make().eval(), torch.tensor([[1, 2, 3], [3, 2, 1]])
    state = model.start(tokens)
    for token in tokens.unbind(1):
        expected, after = model.step(token, state)
        found, state = model.step(token, reloaded(state))
        assert torch.equal(found, expected)
        state = after


def flops(model: CausalModel, x: torch.Tensor, state: State | None) -> int:
    with FlopCounterMode(display=False) as counter:
        model.step(x, state)
    return counter.get_total_flops()


def size(state: State | None) -> int:
    found: list[int] = []
    map_state(lambda part: found.append(part.numel()), state)
    return sum(found)


@torch.no_grad()
def test_size_and_cost_of_a_step_do_not_grow_except_for_the_keys_of_attention(small_model):
    model, state, sizes, costs = small_model().eval(), None, [], []
    for t, x_t in enumerate(torch.randn(49, 1, 8)):
        if t in (16, 32, 48):  # the same position in a segment
            sizes.append(size(state)), costs.append(flops(model, x_t, state))
        _, state = model.step(x_t, state)
    for numbers in (sizes, costs):
        assert numbers[2] - numbers[1] == numbers[1] - numbers[0] >= 0
    assert sizes[0] < sizes[1] or costs[0] == costs[1]
    assert sizes[0] == sizes[1] or not model.stateful


def small(name: str, **changes: object) -> CausalModel:
    sizes = {"r-transformer": {"heads": 2, "window": 3}, "transformer": {"heads": 2}, "transformer-xl": {"heads": 2}}
    return MODELS[name](8, layers=2, **sizes.get(name, {}) | changes)


def assert_refused(model: CausalModel, state: object) -> None:
    for call in (model.step, lambda x, state: model.read(x[:, None], state), lambda x, state: model(x[:, None], state)):
        with pytest.raises(ValueError, match="^state: "):
            call(torch.randn(2, 8), state)


def test_a_state_of_a_wrong_type_batch_width_or_number_of_layers_is_refused(small_model):
    states = [0, [], (), "state", (None,), (torch.zeros(3, 8),), ((), (), (), ())]
    states += [stream(small_model(), torch.randn(3, steps, 8))[1] for steps in (1, 4, 6)]  # a segment ends after 4
    states += [small_model(d_model=16, d_hidden=24).step(torch.randn(2, 16))[1]]
    states += [small_model(layers=1).step(torch.randn(2, 8))[1]]
    for state in states:
        assert_refused(small_model(), state)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("mc-rnn", {"block": 3}),
        ("ho-rnn", {"order": 2}),
        ("tcn", {"kernel": 2}),
        ("transformer-xl", {"heads": 4}),
        ("transformer", {"heads": 4}),
        ("r-transformer", {"window": 4}),
        ("r-transformer", {"cell": "lstm"}),
    ],
)
def test_a_state_of_other_sizes_is_refused(name, other):
    assert_refused(small(name), small(name, **other).step(torch.randn(2, 8))[1])


def test_a_bad_step_is_refused(small_model):
    model = small_model()
    for x, message in (
        (torch.randn(2, 9, 8), r"^x: .*\(2, 9, 8\)"),
        (torch.randn(2, 7), r"^x: .*\(2, 7\)"),
        (torch.randn(0, 8), r"^x: .*\(0, 8\)"),
        (torch.ones(2, 8, dtype=torch.long), "^x: .*torch.int64"),
        (torch.randn(2, 8, dtype=torch.float64), "^x: .*torch.float64.*torch.float32"),
    ):
        with pytest.raises(ValueError, match=message):
            model.step(x)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("tcn", {}), ("griffin", {"heads": 2, "window": 4}), ("r-transformer", {"window": 4, "heads": 0})],
)
@torch.no_grad()
def test_a_state_of_bounded_size_does_not_keep_the_piece_in_memory(name, sizes):
    _, state = MODELS[name](8, layers=2, **sizes).read(torch.randn(1, 200, 8))
    kept: list[int] = []
    map_state(lambda part: kept.append(part.untyped_storage().nbytes()), state)
    assert sum(kept) <= 2 * 4 * size(state)


class Calls(TorchDispatchMode):
    """Count the operations of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("r-transformer", {"heads": 2, "window": 4}),
        ("transformer", {"heads": 2}),
        ("transformer-xl", {"heads": 2, "segment": 16, "memory": 16}),
        ("character-transformer", {"heads": 2, "segment": 1000}),
        ("tcn", {}),
        ("griffin", {"heads": 2, "window": 1000}),
    ],
)
@torch.no_grad()
def test_all_positions_of_a_piece_are_read_in_parallel(name, sizes):
    model, counts = MODELS[name](8, layers=3, **sizes).eval(), []
    for T in (64, 128):
        x, counter = torch.randn(1, 40 + T, 8), Calls()
        _, state = model.read(x[:, :40])
        with counter:
            model.read(x[:, 40:], state)
        counts.append(counter.count)
    assert counts[1] < 1.5 * counts[0]
