"""The pooling explorer shows a model's own shares and answers, of the example that is chosen."""

import pytest
import torch

from rtx import FeedForwardAttention
from rtx.lab import explore
from rtx.lab.explore.pooling import largest_share
from rtx.lab.explore.recording import Recording
from rtx.tasks import Example, task_by_name

EXAMPLES = task_by_name("add", length=30).split("test")[:5]


@pytest.fixture
def model() -> FeedForwardAttention:
    torch.manual_seed(0)
    return FeedForwardAttention(leak="coded")


@pytest.fixture
def explorer(model: FeedForwardAttention) -> Recording:
    return explore.pooling(model, EXAMPLES)


@pytest.mark.parametrize("example", [1, 5])
def test_sentence_and_panels_are_of_the_chosen_example(
    explorer: Recording, model: FeedForwardAttention, example: int
) -> None:
    inputs, target = EXAMPLES[example - 1]
    text, panels = explorer.see(example=example)
    marked, shares = inputs[:, 1] == 1, model.weights(inputs[None])[0]
    values = " and ".join(f"{value:.2f}" for value in inputs[marked, 0])
    assert text.startswith(f"Marked are {values}: the answer is {model(inputs[None]).item():z.2f}, ")
    assert f"it should be {target.item():.2f}." in text and f"{shares[marked].sum():.0%} of the attention" in text
    read, dots = panels["values"]
    assert [value for _, value in read] == inputs[:, 0].tolist()
    assert [t - 1 for t, _ in dots] == marked.nonzero().flatten().tolist()
    assert [share for _, share in panels["shares"][0]] == pytest.approx(shares.tolist(), abs=1e-6)


def test_no_share_is_larger_than_the_largest(model: FeedForwardAttention) -> None:
    with torch.no_grad():
        model.score.weight.mul_(1e4)  # type: ignore[union-attr]
        model.score.bias.fill_(-0.3)  # type: ignore[union-attr]
    for inputs, _ in EXAMPLES:
        assert model.weights(inputs[None]).max() <= largest_share(len(inputs)) + 1e-6
    assert largest_share(1) == 1 and largest_share(10_000) < 0.00075


def test_a_model_in_another_precision_reads_the_same(explorer: Recording, model: FeedForwardAttention) -> None:
    assert explore.pooling(model.double(), EXAMPLES).text == explorer.text
    assert explore.pooling(model.bfloat16(), EXAMPLES).text.startswith(explorer.text.split(": the answer")[0])


def test_sequences_without_two_marked_steps_are_refused(model: FeedForwardAttention) -> None:
    steps = torch.zeros(5, 2)
    steps[:3, 1] = 1
    other_task, wrong = task_by_name("temporal-order").split("test")[:2], Example(steps, torch.zeros(1))
    for examples in ([], other_task, [EXAMPLES[0], wrong]):
        with pytest.raises(ValueError, match="examples: "):
            explore.pooling(model, examples)
