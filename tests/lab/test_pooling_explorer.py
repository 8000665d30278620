"""The pooling explorer shows a model's own shares and answers, of the example that is chosen."""

import pytest
import torch

from rtx import FeedForwardAttention
from rtx.lab import explore
from rtx.lab.explore import Explorer
from rtx.lab.explore.pooling import largest_share
from rtx.tasks import Example, task_by_name

EXAMPLES = task_by_name("add", length=30).split("test")[:5]


@pytest.fixture
def model() -> FeedForwardAttention:
    torch.manual_seed(0)
    return FeedForwardAttention(leak="coded")


@pytest.fixture
def explorer(model: FeedForwardAttention) -> Explorer:
    return explore.pooling(model, EXAMPLES)


@pytest.mark.parametrize("example", [0, 4])
def test_the_sentence_is_of_the_chosen_example(explorer: Explorer, model: FeedForwardAttention, example: int) -> None:
    inputs, target = EXAMPLES[example]
    text = explorer.set(example=example)
    marked = inputs[:, 1] == 1
    values = " and ".join(f"{value:.2f}" for value in inputs[marked, 0])
    assert text.startswith(f"Marked are {values}: the answer is {model(inputs[None]).item():z.2f}, ")
    assert f"it should be {target.item():.2f}." in text
    assert f"{model.weights(inputs[None])[0, marked].sum():.0%} of the attention" in text
    assert text.endswith(f"would be {2 / len(inputs):.0%}.")


def test_bars_are_the_models_shares_and_dots_the_marked_values(explorer: Explorer, model: FeedForwardAttention) -> None:
    inputs, _ = EXAMPLES[3]
    explorer.set(example=3)
    top, bottom = explorer.figure.axes
    heights = [segment[1][1] for segment in bottom.collections[0].get_segments()]
    assert heights == pytest.approx(model.weights(inputs[None])[0].tolist(), abs=1e-6)
    steps, values = top.lines[0].get_data()
    assert [inputs[t - 1, 1].item() for t in steps] == [1, 1]
    assert list(values) == pytest.approx([inputs[t - 1, 0].item() for t in steps])
    read = {int(segment[0][0]): segment[1][1] for segment in top.collections[0].get_segments()}
    assert read == pytest.approx(dict(enumerate(inputs[:, 0].tolist(), 1)))
    (even,) = bottom.lines
    assert (even.get_xdata(), even.get_ydata()) == ([1, len(inputs)], [1 / len(inputs)] * 2)


def test_no_share_is_larger_than_the_largest(model: FeedForwardAttention) -> None:
    with torch.no_grad():
        model.score.weight.mul_(1e4)  # type: ignore[union-attr]
        model.score.bias.fill_(-0.3)  # type: ignore[union-attr]
    for inputs, _ in EXAMPLES:
        assert model.weights(inputs[None]).max() <= largest_share(len(inputs)) + 1e-6
    assert largest_share(1) == 1 and largest_share(10_000) < 0.00075


def test_a_model_in_another_precision_reads_the_same(explorer: Explorer, model: FeedForwardAttention) -> None:
    assert explore.pooling(model.double(), EXAMPLES).text == explorer.text
    assert explore.pooling(model.bfloat16(), EXAMPLES).text.startswith(explorer.text.split(": the answer")[0])


def test_sequences_without_two_marked_steps_are_refused(model: FeedForwardAttention) -> None:
    steps = torch.zeros(5, 2)
    steps[:3, 1] = 1
    other_task, wrong = task_by_name("temporal-order").split("test")[:2], Example(steps, torch.zeros(1))
    for examples in ([], other_task, [EXAMPLES[0], wrong]):
        with pytest.raises(ValueError, match="examples: "):
            explore.pooling(model, examples)
