"""The window explorer takes any sequence that fits, with a model or without."""

import pytest
import torch
from torch import Tensor

from rtx.lab import explore
from rtx.nn import LocalRNN

X = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))


def test_it_holds_every_cell_or_the_one_of_a_model() -> None:
    assert explore.window(X).data["cells"] == ["rnn", "gru", "lstm"]
    page = explore.window(X, LocalRNN(5, 12, "lstm"))
    assert page.data["cells"] == ["lstm"]
    assert (page.state["cell"], page.state["window"], page.data["windows"]) == ("lstm", 12, 12)


@pytest.mark.parametrize("x", [torch.zeros(3, 2), torch.ones(1, 1), X.double(), X.bfloat16()])
def test_any_finite_sequence_can_be_shown(x: Tensor) -> None:
    assert len(explore.window(x).data["x"]) == len(x)


@pytest.mark.parametrize(
    ("x", "model", "message"),
    [
        (X[None], None, r"x: .*\(1, 9, 5\)"),
        (X / 0, None, "x: "),
        (X, LocalRNN(4, 3), r"x: .* 4.* 5"),
        (X.double(), LocalRNN(5, 3), "x: .*float64.*float32"),
        (torch.zeros(41, 5), None, r"x: .*\(41, 5\)"),
    ],
)
def test_bad_input_is_named(x: Tensor, model: LocalRNN | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.window(x, model)
