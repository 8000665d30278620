"""Models in the page: network.js computes what torch does, a position at a time, with layers on and off."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rtx
from rtx.lab.explore.network import described, weight_bytes
from rtx.nn.mode import evaluating

pytestmark = pytest.mark.browser

SCRIPT = """\
import { load, plant, read } from "./network.js";

export function show(page) {
  const model = load(page.data.network, page.weights), tree = plant(page.data.read);
  return ({ off }) => {
    const nodes = [...tree.inputs.keys()], both = [nodes.slice(0, 3), nodes.slice(3)]; // the latter go on
    return JSON.stringify(both.flatMap((some) => read(model, tree, some, { off }).flatMap((row) => [...row])));
  };
}
"""
MODELS: dict[str, dict[str, Any]] = {
    "gru": {"d_model": 6, "layers": 2},
    "rnn": {"d_model": 5},
    "transformer": {"d_model": 6, "layers": 2, "heads": 2},
    "relative": {
        "model": "transformer",
        **{"d_model": 6, "layers": 1, "heads": 2, "position": "relative", "max_distance": 4},
    },
    "learned": {"model": "transformer", "d_model": 6, "layers": 1, "heads": 3, "position": "learned", "norm": "pre"},
    "r-transformer": {"d_model": 6, "layers": 2, "heads": 2, "window": 4, "norm": "pre"},
    "convolution": {
        "model": "r-transformer",
        **{"d_model": 6, "layers": 2, "heads": 2, "window": 4, "cell": "convolution"},
    },
    "waves": {"model": "r-transformer", "d_model": 5, "layers": 1, "heads": 1, "window": 3, "position": "sinusoidal"},
}


@pytest.fixture
def logits(computed: Callable[..., Any]) -> Callable[..., Tensor]:
    """A function that returns what the page computes, with some layers off."""

    def found(model: Any, read: Any, off: Sequence[str] = ()) -> Tensor:
        data = {"network": described(model), "read": read}
        numbers = computed(SCRIPT, data, weight_bytes(model), off=list(off))
        return torch.tensor(numbers, dtype=torch.float64).view(len(read), -1)

    return found


@pytest.mark.parametrize(
    ("name", "task"), [*((name, "chorales") for name in MODELS), ("gru", "characters"), ("r-transformer", "characters")]
)
def test_the_page_computes_what_torch_does(logits: Callable[..., Tensor], name: str, task: str) -> None:
    torch.manual_seed(0)
    model = rtx.build(task, **{"model": name, **MODELS[name]}).double()
    read = torch.randint(model.vocabulary, (12,)) if task == "characters" else (torch.rand(12, 88) < 0.1).double()
    with torch.no_grad(), evaluating(model):
        expected = model(read[None])[0]
    torch.testing.assert_close(logits(model, read), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("sublayer", [0, 1, 2])
def test_a_layer_that_is_off_passes_on_what_it_gets(logits: Callable[..., Tensor], sublayer: int, norm: str) -> None:
    torch.manual_seed(0)
    model = rtx.build("chorales", "r-transformer", d_model=6, layers=2, heads=2, window=4, norm=norm).eval()
    read = (torch.rand(7, 88) < 0.1).float()
    found = logits(model, read, [f"backbone.blocks.1.{sublayer}"])
    model.backbone.blocks[1][sublayer] = nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(found.float(), model(read[None])[0], atol=1e-5, rtol=0)


def test_what_the_page_cannot_compute_is_named() -> None:
    for name, sizes in (("tcn", {"kernel": 2}), ("lstm", {})):
        with pytest.raises(ValueError, match="model: "):
            described(rtx.build("chorales", name, d_model=4, layers=1, **sizes))
