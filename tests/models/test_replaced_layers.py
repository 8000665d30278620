"""A layer that was replaced, by a LoRA layer for example, is called, and so are the hooks of every layer."""

import copy
from collections.abc import Callable

import pytest
import torch
from oracles import stream
from torch import Tensor, nn

from rtx.models import MODELS, EncoderDecoder, FeedForwardAttention, LanguageModel, rnnsearch
from rtx.nn.ops.conditions import replaced

Call = Callable[[nn.Module], Tensor]
TOKENS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])
OTHERS: dict[str, tuple[Callable[[], nn.Module], Call]] = {
    "feed-forward attention": (lambda: FeedForwardAttention(3, 2, 5), lambda model: model(torch.ones(2, 4, 3))),
    "its mean": (lambda: FeedForwardAttention(3, 2, 5, "mean", "coded"), lambda model: model(torch.ones(2, 4, 3))),
    "language model": (lambda: LanguageModel(MODELS["gru"](8), 5, False, 0.1), lambda model: model(TOKENS)),
    "rnnsearch": (lambda: rnnsearch(5, 5, "lstm", d_model=8), lambda model: model(TOKENS, TOKENS)),
    "encoder-decoder": (lambda: EncoderDecoder(5, 5, 8, 1, 2, window=2), lambda model: model(TOKENS, TOKENS)),
}


class LoRA(nn.Module):
    """Hu et al. (2021): a linear layer plus a product of two small matrices. It has no `weight`."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base, self.down, self.up = (
            base,
            nn.Linear(base.in_features, 2, False),
            nn.Linear(2, base.out_features, False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


def linear_layers(model: nn.Module) -> list[str]:
    return [name for name, part in model.named_modules() if type(part) is nn.Linear]


def with_lora(model: nn.Module) -> tuple[nn.Module, nn.Module]:
    """Return the model with LoRA layers in place of its linear layers, and the model with the sums as weights."""
    model, merged = model.eval(), copy.deepcopy(model).eval()
    for name in linear_layers(model):
        layer = LoRA(model.get_submodule(name))
        model.set_submodule(name, layer)
        with torch.no_grad():
            merged.get_submodule(name).weight += layer.up.weight @ layer.down.weight
    return model, merged


@pytest.mark.parametrize("name", OTHERS)
def test_the_layers_of_every_other_model_may_be_lora_layers(name):
    torch.manual_seed(0)
    make, call = OTHERS[name]
    model, merged = with_lora(make())
    torch.testing.assert_close(call(model), call(merged), rtol=0, atol=1e-5)


def test_a_language_model_keeps_a_replaced_output_layer_when_it_is_moved_and_loaded():
    model = LanguageModel(MODELS["gru"](8), 5)
    model.decoder = LoRA(model.decoder)
    expected, names = model.eval()(TOKENS), set(model.state_dict())
    model.to(torch.float64).to(torch.float32).load_state_dict(model.state_dict())
    torch.testing.assert_close(model(TOKENS), expected)
    assert set(model.state_dict()) == names and model.decoder.base.weight is model.embedding.weight


def silent(model: nn.Module, call: Callable[[], object]) -> list[str]:
    """Return the modules whose forward hooks do not fire in a call. A list of layers has no call."""
    containers = (nn.ModuleList, nn.Sequential)
    left = {name for name, part in model.named_modules() if not isinstance(part, containers)}
    for name in list(left):
        model.get_submodule(name).register_forward_hook(lambda *_, name=name: left.discard(name))
    call()
    return sorted(left)


def test_the_hooks_of_all_bricks_of_a_backbone_fire(small_model):
    model, x = small_model(weight_dropout=0.1), torch.randn(2, 9, 8)
    assert silent(model, lambda: model(x)) == []


@pytest.mark.parametrize("name", OTHERS)
def test_the_hooks_of_all_bricks_of_another_model_fire(name):
    make, call = OTHERS[name]
    model = make()
    step_only = ["decoder"] if name == "rnnsearch" else []  # one position at a time: see `rtx.nn.streaming`
    assert silent(model, lambda: call(model)) == step_only


def test_outputs_with_hooks_are_those_without(small_model):
    model, x = small_model().eval(), torch.randn(2, 9, 8)
    expected, streamed = model(x), stream(model, x)[0]
    for part in model.modules():
        part.register_forward_hook(lambda *_: None)
    torch.testing.assert_close(model(x), expected)
    torch.testing.assert_close(stream(model, x)[0], streamed)


def test_a_layer_counts_as_replaced_if_calling_it_can_do_more_than_its_weight():
    def changed(change: Callable[[nn.Linear], object]) -> nn.Module:
        layer = nn.Linear(2, 2)
        change(layer)
        return layer

    assert not replaced(nn.Linear(2, 2), None) and replaced(nn.Linear(2, 2), LoRA(nn.Linear(2, 2)))
    hooks = ("forward_hook", "forward_pre_hook", "full_backward_hook")
    assert all(replaced(changed(lambda one, kind=kind: getattr(one, f"register_{kind}")(print))) for kind in hooks)
    assert replaced(changed(lambda layer: setattr(layer, "forward", lambda x: x)))
    assert replaced(changed(nn.utils.parametrizations.spectral_norm))
