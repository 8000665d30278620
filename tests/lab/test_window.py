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
