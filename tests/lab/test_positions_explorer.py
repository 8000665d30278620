"""The position lab takes a layer's own vectors, weights and biases, of its first head."""

import pytest
import torch

import rtx
from rtx.lab import explore
from rtx.nn import RelativeAttention
from rtx.nn.reference import transformer_xl_terms


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(1, 9, 12, generator=torch.Generator().manual_seed(1))


def test_transformer_xl_is_the_layers_own_first_head(x: torch.Tensor) -> None:
    torch.manual_seed(0)
    model = rtx.TransformerXL(12, layers=2, heads=3)
    layer = model.blocks[0][0].sublayer.attention  # type: ignore[index,union-attr]
    page = explore.positions(layer, x)
    q, k = (x[0] @ part.weight[:4].T for part in (layer.query, layer.key))
    parts = layer.distance.weight[:4], layer.content_bias[0, 0], layer.position_bias[0, 0]
    for t, s in ((8, 8), (8, 0), (3, 2)):
        expected = torch.stack(transformer_xl_terms(q[t], k[s], *parts, t - s))
        torch.testing.assert_close(torch.tensor(page.data["terms"][t][s]), expected, rtol=1e-3, atol=1e-4)
    assert page.state["encoding"] == "Transformer-XL" and page.state["position"] == 8


def test_shaws_vectors_are_the_layers_own_past(x: torch.Tensor) -> None:
    torch.manual_seed(0)
    layer = RelativeAttention(12, 2, clip=3)
    page = explore.positions(layer, x)
    expected = x[0] @ layer.query.weight[:6].T @ layer.key_table[:4].flip(0).T / 6**0.5  # of the distances 0 to 3
    torch.testing.assert_close(torch.tensor(page.data["distances"][8]), expected[8], rtol=1e-3, atol=1e-4)
    assert page.state["encoding"] == "Shaw's distances" and page.state["clip"] == 3


def test_without_a_layer_it_is_drawn_alike_each_time() -> None:
    first, second = explore.positions(), explore.positions()
    assert first.data == second.data and first.state["encoding"] == "sinusoids"
    assert len(str(first.data)) < 60_000
