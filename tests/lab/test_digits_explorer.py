"""The digit explorer asks a model after every pixel, of the pixels read so far and of no others."""

import re

import numpy as np
import pytest
import torch
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
    stream = torch.stack([found[stop - 1] for stop in moments(64)]).detach()
    torch.testing.assert_close(beliefs(model.train(), x, moments(64)), stream, atol=6e-4, rtol=0)
    assert model.training


def test_what_is_not_read_yet_is_not_shown_to_the_model() -> None:
    x = torch.ones(16, 1)
    p = beliefs(FirstPixels(), x, [1, 4, 16])
    assert p.argmax(1).tolist() == [1, 4, 9]


def test_the_panels_show_pixels_beliefs_and_the_right_class(model: nn.Module) -> None:
    explorer = explore.digits({"a": model, "b": FirstPixels()}, EXAMPLES)
    _, (read, belief, time) = explorer.see(model="a", example=3, read=20)
    pixels = EXAMPLES[2].inputs[:20, 0].numpy() / EXAMPLES[2].inputs.max().item()
    shown = [pixel for row in read.values for pixel in row]
    assert shown[:20] == pytest.approx(pixels, abs=0.051) and shown[20:] == [None] * 44
    p, label = beliefs(model, EXAMPLES[2].inputs, moments(64)), int(EXAMPLES[2].target)
    assert belief.values.tolist() == pytest.approx(p[9].tolist())
    others, right = ([value for _, value in line] for line in time.values)
    assert right == pytest.approx(p[:, label].tolist())
    assert others == pytest.approx(np.delete(p.numpy(), label, 1).max(1).tolist())


def test_the_sentence_tells_when_the_right_class_leads_for_good() -> None:
    x = torch.zeros(16, 1)
    x[[1, 4, 9]] = 1  # so many pixels are not zero: 0, 1 from the second on, 2 from the fifth on, 3 from the tenth on
    three, two = (Example(x, torch.tensor(label)) for label in (3, 2))
    explorer = explore.digits(FirstPixels(), [three, two])
    text = explorer.set(example=1, read=6)
    assert re.findall(r"\d+", text) == ["6", "16", "2", "94", "3", "1", "10"]
    assert explorer.set(example=2).endswith("It ends wrong.")
