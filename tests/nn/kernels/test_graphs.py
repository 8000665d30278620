"""A stream whose state stays in place says what the ordinary one says."""

import pytest
import torch

import rtx
from rtx.nn.attention import MultiHeadAttention
from rtx.nn.kernels.graphs import FixedStream, recorded, tensors
from rtx.nn.relative import RelativeAttention
from rtx.nn.state import Cache, FixedCache, detach


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
