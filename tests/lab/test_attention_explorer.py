"""The attention explorer shows the weights of any model that `trace` understands, under the right labels."""

import pytest
import torch
from safetensors.torch import load
from test_plots import OnAGpu
from torch import Tensor

import rtx
from rtx.lab import explore, trace
from rtx.lab.explore import Page
from rtx.lab.explore.attention import attention_maps


def weights_of(page: Page) -> list[Tensor]:
    """The weights that the page reads, a layer after the other."""
    return [weights for _, weights in sorted(load(page.weights).items())]


BACKBONES = {
    "R-Transformer": rtx.RTransformer(12, 2, 3, window=4),
    "relative": rtx.Transformer(12, 2, 3, position="relative", max_distance=2),
    "Transformer-XL": rtx.TransformerXL(12, 2, 3, segment=4, memory=3),
    "Griffin": rtx.Griffin(12, layers=3, heads=3, window=4),
}


@pytest.mark.parametrize("name", BACKBONES)
def test_it_holds_every_layers_weights(name: str) -> None:
    torch.manual_seed(0)
    model, x = BACKBONES[name], torch.randn(1, 7, 12)
    page = explore.attention(model, x)
    found = {key: array for key, array in trace(model, x).items() if key.endswith("weights")}
    assert len(page.data["layers"]) == len(found) > 0
    for name, shown, (key, expected) in zip(page.data["layers"], weights_of(page), found.items(), strict=True):
        assert key.startswith(name)
        torch.testing.assert_close(shown, expected[0], rtol=2e-3, atol=1e-6)
    assert page.data["labels"] == page.data["queries"] == [*"1234567"]
    assert page.state == {"layer": len(found) - 1, "head": 0, "position": 6}


def test_tokens_of_a_language_model_have_their_labels() -> None:
    model = rtx.LanguageModel(rtx.RTransformer(8, 1, 2, window=3), 30)
    page = explore.attention(model, torch.tensor([[3, 1, 4, 1]]), list("abca"))
    assert (page.data["labels"], page.data["same"]) == ([*"abca"], True)
    assert "[explorer of layer, head, position: " in page._repr_mimebundle_()[0]["text/plain"]


def test_weights_come_from_the_models_device() -> None:
    found = {"a.weights": torch.rand(1, 2, 3, 3), "b.weights": torch.rand(1, 3)}
    maps = attention_maps({name: array.as_subclass(OnAGpu) for name, array in found.items()})
    assert [(name, type(weights)) for name, weights in maps] == [("a", Tensor), ("b", Tensor)]


def test_attention_of_one_step_is_one_row_and_steps_make_a_map() -> None:
    page = explore.attention(rtx.FeedForwardAttention(), torch.randn(1, 9, 2))
    assert weights_of(page)[0].shape == (1, 1, 9)
    assert page.data["queries"] == ["1"]

    torch.manual_seed(0)
    model = rtx.rnnsearch(20, 20, "gru", d_model=8, layers=1)
    source, target = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[6, 7, 8]])
    page = explore.attention(model, (source, target), [*"abcde"], queries=[*"xyz"])
    (shown,) = weights_of(page)
    assert shown.shape == (1, 3, 5)
    torch.testing.assert_close(shown.sum(2), torch.ones(1, 3), rtol=2e-3, atol=0)
    assert (page.data["labels"], page.data["queries"], page.data["same"]) == ([*"abcde"], [*"xyz"], False)
