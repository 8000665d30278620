"""The character Transformer: its segments, and its evaluation with `slide`."""

import pytest
import torch
from oracles import count, stream, torch_layer

from rtx.models import CharacterTransformer


def model(segment: int = 4, layers: int = 2, norm: str = "post") -> CharacterTransformer:
    torch.manual_seed(0)
    return CharacterTransformer(8, layers, 2, segment, norm=norm).double().eval()


def inputs(T: int, B: int = 2) -> torch.Tensor:
    return torch.randn(B, T, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_its_layers_are_torchs_own_on_each_segment_with_positions_added(norm):
    transformer, x = model(norm=norm), inputs(10)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    found = transformer(x)
    for start, length in [(0, 4), (4, 4), (8, 2)]:
        h = x[:, start : start + length]
        for layer, block in enumerate(transformer.blocks):
            placed = h + transformer.positions[layer, :length]
            h = torch_layer(block, norm)(placed, src_mask=mask[:length, :length])
        torch.testing.assert_close(found[:, start : start + length], h, rtol=0, atol=1e-10)


@pytest.mark.parametrize("segment", [1, 3, 4, 30])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_step_by_step_equals_the_whole_sequence_and_a_state_holds_one_segment_at_most(segment, norm):
    transformer, x = model(segment, norm=norm), inputs(13)
    torch.testing.assert_close(stream(transformer, x)[0], transformer(x), rtol=0, atol=1e-10)
    for t in range(1, 13):
        count, *layers = transformer.read(x[:, :t])[1]
        assert count == t % segment and all(keys.shape[2] == count for (keys, _), _ in layers)


@pytest.mark.parametrize("T", [1, 3, 4, 5, 11])
@pytest.mark.parametrize("windows", [1, 2, 64])
def test_slide_gives_the_last_output_of_the_segment_that_ends_at_each_position(T, windows):
    transformer, x = model(), inputs(T)
    expected = [transformer(x[:, max(0, t - 3) : t + 1])[:, -1] for t in range(T)]
    torch.testing.assert_close(transformer.slide(x, windows), torch.stack(expected, 1), rtol=0, atol=1e-12)


def test_a_segment_does_not_depend_on_the_one_before_but_slide_does():
    transformer, x = model(), inputs(8)
    other = x.clone()
    other[:, 3] += 1  # the last position of the first segment
    assert torch.equal(transformer(other)[:, 4:], transformer(x)[:, 4:])
    changed = (transformer.slide(other) - transformer.slide(x)).abs().amax((0, 2)) > 1e-9
    assert changed.tolist() == [False] * 3 + [True] * 4 + [False]


def test_positions_start_with_length_1():
    torch.manual_seed(0)
    lengths = CharacterTransformer(64, 2, 2, 32).positions.norm(dim=-1)
    assert lengths.mean().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(("layers", "published"), [(12, 44), (64, 235)])
def test_parameters_with_two_classifiers_for_each_layer_are_the_published_ones(layers, published):
    with torch.device("meta"):
        transformer = CharacterTransformer(512, layers, 8)
    assert count(transformer) == layers * 3_412_480
    classifiers = layers * 2 * (512 * 256 + 256)
    assert round((256 * 512 + count(transformer) + classifiers) / 1e6) == published


def test_bad_windows_and_states_of_another_segment_are_refused():
    x = inputs(6)
    with pytest.raises(ValueError, match="^windows: .*0"):
        model().slide(x, 0)
    with pytest.raises(ValueError, match="^state: "):
        model().step(x[:, 0], model(9).read(x)[1])  # 6 positions in a segment of 4
