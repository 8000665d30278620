"""LoRA of peft on every brick: linear layers as modules, raw weights of networks and convolutions as parameters.

`test_peft.py` runs this file with peft, which is installed in a folder of its own.
"""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn

from rtx.models import MODELS, Transformer
from rtx.tasks.build import hyperparameter_names

NO_BRICKS = ("positions", "content_bias", "position_bias")
"""Parameters of the model itself, which peft refuses, and biases."""


@pytest.mark.parametrize("name", [*MODELS, "relative"])
def test_lora_changes_a_model_trains_and_merges_into_its_weights(name: str) -> None:
    torch.manual_seed(0)
    if name == "relative":
        model: nn.Module = Transformer(8, 1, 2, position="relative", max_distance=2)
    else:
        sizes = {"d_model": 8, "heads": 2, "window": 3, "segment": 4, "memory": 4}
        sizes["layers"] = 3 if name == "griffin" else 2
        model = MODELS[name](**{key: size for key, size in sizes.items() if key in hyperparameter_names(name)})
    linear = [place for place, part in model.named_modules() if type(part) is nn.Linear]
    raw = [place for place, parameter in model.named_parameters() if parameter.ndim in (2, 3)]
    raw = [place for place in raw if place.removesuffix(".weight") not in linear and not place.endswith(NO_BRICKS)]
    assert linear or raw
    x = torch.randn(2, 9, 8)
    before = model.eval()(x)
    config = LoraConfig(r=2, init_lora_weights=False, target_modules=linear, target_parameters=raw)
    tuned = get_peft_model(model, config).eval()
    y = tuned(x)
    assert (y - before).abs().max() > 1e-4
    y.square().sum().backward()
    trained = {place: parameter for place, parameter in tuned.named_parameters() if parameter.requires_grad}
    assert len(trained) == 2 * len(linear + raw)
    assert [place for place, one in trained.items() if one.grad is None or not one.grad.abs().max() > 0] == []
    merged, state = tuned.merge_and_unload(), None
    torch.testing.assert_close(merged(x), y, rtol=0, atol=1e-5)
    for t, x_t in enumerate(x.unbind(1)):
        found, state = merged.step(x_t, state)
        torch.testing.assert_close(found, y[:, t], rtol=0, atol=1e-5)
