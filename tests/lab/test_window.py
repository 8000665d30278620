"""The window explorer shows what LocalRNN computes, and says what it reads."""

import pytest
import torch
from torch import Tensor

from rtx.lab import explore
from rtx.lab.explore.window import window_states
from rtx.nn import LocalRNN

X = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_last_state_of_every_window_is_the_output_of_local_rnn(cell: str, dtype: torch.dtype) -> None:
    model, x = LocalRNN(5, 4, cell).to(dtype), X.to(dtype)
    last = torch.stack([window_states(model, x, t, 4)[-1] for t in range(1, 10)])
    torch.testing.assert_close(last, model(x[None])[0])


def test_the_states_are_those_of_growing_windows_without_pads() -> None:
    model = LocalRNN(5, 1)
    states = window_states(model, X, position=7, window=4)
    for step in range(4):
        end = 4 + step  # the window of 7 starts at 4
        torch.testing.assert_close(states[step], window_states(model, X, end, step + 1)[-1])


def test_it_holds_every_cell_or_the_one_of_a_model() -> None:
    assert list(explore.window(X).data["cells"]) == ["rnn", "gru", "lstm"]
    page = explore.window(X, LocalRNN(5, 12, "lstm"))
    assert list(page.data["cells"]) == ["lstm"]
    assert (page.state["cell"], page.state["window"], page.data["windows"]) == ("lstm", 12, 12)


@pytest.mark.parametrize("x", [torch.zeros(3, 2), torch.ones(1, 1), X.double(), X.bfloat16()])
def test_any_finite_sequence_can_be_shown(x: Tensor) -> None:
    assert len(explore.window(x).data["x"]) == len(x)


@pytest.mark.parametrize(
    ("x", "model", "message"),
    [
        (X[None], None, r"x: .*\(1, 9, 5\)"),
        (X / 0, None, "x: "),
        (X, LocalRNN(4, 3), r"x: .*\(9, 5\)"),
        (X.double(), LocalRNN(5, 3), "x: .*float64.*float32"),
        (torch.zeros(41, 5), None, r"x: .*\(41, 5\)"),
    ],
)
def test_bad_input_is_named(x: Tensor, model: LocalRNN | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.window(x, model)
