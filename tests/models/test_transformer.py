"""Transformer and R-Transformer: torch's encoder, the kinds of positions, the ablations, the published sizes."""

import pytest
import torch
from oracles import stream, torch_layer

from rtx.models import RTransformer, Transformer
from rtx.models.transformer import POSITIONS
from rtx.nn import sinusoidal_positions


def transformer(position: str, layers: int = 2) -> Transformer:
    torch.manual_seed(0)
    return Transformer(8, layers, 2, position=position, max_distance=12, max_length=12).double().eval()


def inputs(T: int = 12) -> torch.Tensor:
    return torch.randn(2, T, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize(
    ("norm", "position"), [("post", "sinusoidal"), ("pre", "sinusoidal"), ("post", "scaled-sinusoidal")]
)
def test_transformer_equals_torchs_encoder_under_a_causal_mask(norm, position):
    torch.manual_seed(0)
    ours = Transformer(8, 2, 2, norm=norm, position=position).double().eval()
    x = torch.randn(2, 9, 8, dtype=torch.float64)
    expected = (8**0.5 if position == "scaled-sinusoidal" else 1) * x + sinusoidal_positions(9, 8, x)
    for block in ours.blocks:
        expected = torch_layer(block, norm)(expected, torch.ones(9, 9).triu(1).bool())
    torch.testing.assert_close(ours(x), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("position", POSITIONS)
def test_one_layer_depends_on_the_order_of_the_past_unless_it_has_no_positions(position):
    model, x = transformer(position, layers=1), inputs()
    swapped = x[:, [10, *range(1, 10), 0, 11]]
    assert torch.allclose(model(swapped)[:, -1], model(x)[:, -1]) == (position == "none")


def test_a_sequence_or_stream_longer_than_the_learned_table_is_refused():
    model, x = transformer("learned"), inputs(13)
    _, state = stream(model, x[:, :12])
    for call in (lambda: model(x), lambda: model.step(x[:, 12], state)):
        with pytest.raises(ValueError, match="^x: .*12.*13"):
            call()


def test_copies_are_equal_in_a_block_and_different_between_blocks():
    model = RTransformer(8, 2, 2, 3, local_layers=2, init="copies")
    first, second = ([part.sublayer for part in block] for block in model.blocks)
    for name, weight in first[0].state_dict().items():
        assert torch.equal(weight, first[1].state_dict()[name])
        assert not torch.equal(weight, second[0].state_dict()[name])
    query, key, value, output = first[2].parameters()
    assert torch.equal(query, key) and torch.equal(query, value) and torch.equal(query, output)
    assert not torch.equal(query, second[2].query.weight)
    assert len({id(p) for p in model.parameters()}) == len([*RTransformer(8, 2, 2, 3, local_layers=2).parameters()])
    RTransformer(8, 1, heads=0, window=3, local_layers=0, init="copies")  # there is nothing to copy
