"""The Transformer's four ways to know where it is: what each adds, sees and refuses, at once and step by step."""

import pytest
import torch

import rtx
from rtx.models import Transformer
from rtx.models.transformer import POSITIONS
from rtx.nn import naive


def model(position: str, clip: int = 12, layers: int = 2, norm: str = "post") -> Transformer:
    torch.manual_seed(0)
    return Transformer(8, layers, 2, norm=norm, position=position, max_distance=clip, max_length=12).double().eval()


def stream(run: torch.nn.Module, x: torch.Tensor, state=None) -> tuple[torch.Tensor, object]:
    rows = []
    for x_t in x.unbind(1):
        y, state = run.step(x_t, state)
        rows.append(y)
    return torch.stack(rows, 1), state


def inputs(T: int = 12) -> torch.Tensor:
    return torch.randn(2, T, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def same_weights(one: Transformer, position: str) -> Transformer:
    other = model(position)
    other.load_state_dict(one.state_dict(), strict=False)
    return other


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_stream_equals_the_whole_sequence(position, norm):
    transformer, x = model(position, norm=norm), inputs()
    torch.testing.assert_close(stream(transformer, x)[0], transformer(x), rtol=0, atol=1e-10)


def test_sinusoidal_and_learned_positions_are_added_to_the_input():
    x, plain = inputs(), model("none")
    sinusoidal, learned = same_weights(plain, "sinusoidal"), same_weights(plain, "learned")
    torch.testing.assert_close(sinusoidal(x), plain(x + naive.sinusoidal_positions(12, 8)), rtol=0, atol=1e-10)
    torch.testing.assert_close(learned(x), plain(x + learned.table), rtol=0, atol=1e-10)
    assert [name for name, _ in plain.named_parameters() if "table" in name] == []


def test_an_r_transformer_has_no_positions_unless_asked_for():
    x = inputs()
    plain, told = (
        rtx.RTransformer(8, 2, 2, 3, local_layers=2, **{"position": name} if name else {})
        for name in ("", "sinusoidal")
    )
    told.load_state_dict(plain.double().state_dict())
    expected = plain(x + naive.sinusoidal_positions(12, 8))
    torch.testing.assert_close(told.double()(x), expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(stream(told, x)[0], expected, rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match="position: 'sinusoidal' needs attention"):
        rtx.RTransformer(8, 2, 0, 3, position="sinusoidal")


@pytest.mark.parametrize("position", POSITIONS)
def test_one_layer_tells_the_order_of_the_past_apart_unless_it_has_no_positions(position):
    transformer, x = model(position, layers=1), inputs()
    swapped = x[:, [10, *range(1, 10), 0, 11]]
    assert torch.allclose(transformer(swapped)[:, -1], transformer(x)[:, -1]) == (position == "none")


@pytest.mark.parametrize("position", ["relative", "none"])
def test_without_absolute_positions_a_repeated_input_gives_a_repeated_output(position):
    transformer = model(position)
    y = transformer(inputs(1).expand(-1, 9, -1))
    if position == "none":
        torch.testing.assert_close(y, y[:, :1].expand_as(y), rtol=0, atol=1e-10)
    else:
        assert not torch.allclose(y[:, 0], y[:, -1])  # the distances' values tell how much past there is


@pytest.mark.parametrize("position", POSITIONS)
def test_every_position_sees_the_whole_past(position):
    transformer, x = model(position), inputs()[:1].requires_grad_()
    (gradient,) = torch.autograd.grad(transformer(x)[0, -1].square().sum(), x)
    assert (gradient[0].abs().amax(-1) > 0).all()


def test_relative_positions_see_keys_beyond_their_tables_without_knowing_how_far():
    transformer, x = model("relative", clip=2), inputs()[:1].requires_grad_()
    first = transformer.blocks[0][0].sublayer
    (gradient,) = torch.autograd.grad(first(x)[0, -1].square().sum(), x)
    assert (gradient[0].abs().amax(-1) > 0).all()  # one layer, distances up to 11, tables up to 2
    reordered = x[:, [*reversed(range(10)), 10, 11]]
    torch.testing.assert_close(first(reordered)[:, -1], first(x)[:, -1], rtol=0, atol=1e-10)


def test_relative_positions_have_no_greatest_length():
    transformer, x = model("relative", clip=3), inputs(40)
    torch.testing.assert_close(transformer(x)[:, :12], transformer(x[:, :12]), rtol=0, atol=1e-10)


def test_a_sequence_longer_than_the_learned_table_is_refused():
    transformer = model("learned")
    assert transformer(inputs(12)).shape == (2, 12, 8)
    with pytest.raises(ValueError, match="x: expected at most max_length = 12 learned positions, got 13"):
        transformer(inputs(13))


def test_a_stream_beyond_the_learned_table_is_refused_at_its_first_step_too_many():
    transformer, x = model("learned"), inputs(13)
    _, state = stream(transformer, x[:, :12])
    with pytest.raises(ValueError, match="x: expected at most max_length = 12 learned positions, got 13"):
        transformer.step(x[:, 12], state)


def test_unknown_positions_are_refused_and_the_nearest_is_named():
    with pytest.raises(ValueError, match="position: 'sinusoid' is unknown, .* did you mean 'sinusoidal'"):
        model("sinusoid")
