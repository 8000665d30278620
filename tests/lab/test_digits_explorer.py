"""The digit explorer asks a model after every pixel, of the pixels read so far and of no others."""

import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from torch import Tensor, nn

from rtx import build
from rtx.lab import explore
from rtx.lab.explore.digits import beliefs, moments
from rtx.tasks import task_by_name
from rtx.tasks.task import Example

TASK = task_by_name("digits")
EXAMPLES = TASK.split("test")[:4]


class FirstPixels(nn.Module):
    """Believes in the class whose number is how many pixels are not zero, up to nine."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        count = (x[..., 0] != 0).sum(1).clamp(max=9)
        return 5 * torch.eye(10)[count]


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return build(TASK, "tcn", d_model=6, layers=2, dropout=0.5)


def test_beliefs_are_those_of_a_stream(model: nn.Module) -> None:
    x, state = EXAMPLES[0].inputs, None
    model.eval()
    found = []
    for pixel in x:
        logits, state = model.step(pixel[None], state)  # type: ignore[operator]
        found.append(logits[0].softmax(-1))
    torch.testing.assert_close(beliefs(model.train(), x, moments(64)), torch.stack(found).detach())
    assert model.training


def test_what_is_not_read_yet_is_not_shown_to_the_model() -> None:
    x = torch.ones(16, 1)
    p = beliefs(FirstPixels(), x, [1, 4, 16])
    assert p.argmax(1).tolist() == [1, 4, 9]


def test_a_long_sequence_is_asked_at_64_moments_at_most() -> None:
    assert moments(64) == list(range(1, 65))
    found = moments(784)
    assert len(found) <= 64 and found[-1] == 784 and len({b - a for a, b in pairwise(found)}) == 1


def test_the_picture_shows_pixels_beliefs_and_the_right_class(model: nn.Module) -> None:
    explorer = explore.digits({"a": model, "b": FirstPixels()}, EXAMPLES)
    explorer.set(model="a", example=2, read=20)
    image, bars, line = explorer.figure.axes
    shown = image.images[0].get_array()
    assert shown.mask.ravel().tolist() == [False] * 20 + [True] * 44
    pixels = EXAMPLES[2].inputs[:20, 0].numpy()
    assert shown.compressed() == pytest.approx(pixels / EXAMPLES[2].inputs.max().item(), abs=1e-6)
    p = beliefs(model, EXAMPLES[2].inputs, moments(64))
    assert [bar.get_height() for bar in bars.patches] == pytest.approx(p[19].tolist(), abs=1e-6)
    label = int(EXAMPLES[2].target)
    assert line.lines[0].get_ydata() == pytest.approx(p[:, label].numpy(), abs=1e-6)
    assert line.lines[1].get_ydata() == pytest.approx(np.delete(p.numpy(), label, 1).max(1), abs=1e-6)
    colours = [to_rgb(bar.get_facecolor()) for bar in bars.patches]
    assert colours[label] == to_rgb(line.lines[0].get_color())
    assert {*colours[:label], *colours[label + 1 :]} == {to_rgb(line.lines[1].get_color())}
    assert [text.get_text() for text in line.get_legend().texts] == ["right class", "best other class"]
    assert line.lines[2].get_xdata() == [20, 20]


def test_the_sentence_tells_when_the_right_class_leads_for_good() -> None:
    x = torch.zeros(16, 1)
    x[[1, 4, 9]] = 1  # so many pixels are not zero: 0, 1 from the second on, 2 from the fifth on, 3 from the tenth on
    three, two = (Example(x, torch.tensor(label)) for label in (3, 2))
    explorer = explore.digits(FirstPixels(), [three, two])
    text = explorer.set(example=0, read=6)
    assert re.findall(r"\d+", text) == ["6", "16", "2", "94", "3", "1", "10"]
    assert explorer.set(example=1).endswith("It ends wrong.")


def test_permuted_pixels_stand_where_they_belong() -> None:
    order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
    inputs, target = EXAMPLES[0]
    explorer = explore.digits(FirstPixels(), [Example(inputs[order], target)], order=order.tolist())
    explorer.set(read=64)
    shown = explorer.figure.axes[0].images[0].get_array().compressed()
    assert shown == pytest.approx(inputs[:, 0].numpy() / inputs.max().item(), abs=1e-6)


@pytest.mark.parametrize(
    ("models", "examples", "order", "message"),
    [
        ({}, EXAMPLES, None, "models: "),
        (FirstPixels(), [], None, "examples: "),
        (FirstPixels(), [Example(torch.zeros(15, 1), torch.tensor(1))], None, r"\(15, 1\)"),
        (FirstPixels(), [*EXAMPLES[:2], Example(torch.zeros(16, 1), torch.tensor(1))], None, r"\(16, 1\) at place 2"),
        (FirstPixels(), EXAMPLES, [0] * 64, "order: "),
    ],
)
def test_bad_input_is_named(models: nn.Module, examples: list[Example], order: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.digits(models, examples, order)
