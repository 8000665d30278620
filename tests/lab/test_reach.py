"""The reach explorer shows what `reach` measures, for its models and for the reader's own."""

import re
from collections.abc import Callable

import matplotlib
import pytest
import torch
from torch import Tensor, nn

from rtx import RNN, RTransformer
from rtx.lab import explore, reach
from rtx.lab.explore import Explorer
from rtx.lab.explore.reach import BACKBONES, reach_at_once, sentence
from rtx.lab.plots import style

X = torch.randn(1, 7, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return explore.reach()


@pytest.mark.parametrize("name", BACKBONES)
def test_one_pass_measures_what_one_pass_per_number_does(name: str) -> None:
    model = BACKBONES[name](2, 3)
    torch.testing.assert_close(reach_at_once(model, X), reach(model, X))


def test_no_label_is_cut_off() -> None:
    with matplotlib.rc_context():
        style()
        figure = explore.reach().figure
    whole = figure.bbox
    for ax in figure.axes:
        used = ax.get_tightbbox()
        assert used is not None
        assert whole.x0 <= used.x0 and used.x1 <= whole.x1 and whole.y0 <= used.y0 and used.y1 <= whole.y1


@pytest.mark.parametrize(("layers", "window"), [(1, 1), (1, 4), (3, 4), (2, 8)])
def test_stacked_local_rnns_reach_as_far_as_the_formula_says(explorer: Explorer, layers: int, window: int) -> None:
    text = explorer.set(model="LocalRNNs", layers=layers, window=window)
    assert text.startswith(f"Output 16 is moved by {layers * (window - 1) + 1} of 16 inputs:")


@pytest.mark.parametrize("name", ["RNN", "GRU", "Transformer", "R-Transformer"])
def test_the_others_reach_everything_but_the_future(explorer: Explorer, name: str) -> None:
    text = explorer.set(model=name, layers=1)
    assert text.startswith("Output 16 is moved by 16 of 16 inputs:")
    assert text.endswith("No output sees the future.")


def test_a_control_that_plays_no_part_is_disabled(explorer: Explorer) -> None:
    explorer.set(model="GRU")
    assert explorer.controls["window"].disabled and not explorer.controls["layers"].disabled
    explorer.set(model="R-Transformer")
    assert not explorer.controls["window"].disabled


def test_the_map_shows_shares_and_leaves_zeros_blank(explorer: Explorer) -> None:
    explorer.set(model="LocalRNNs", layers=1, window=4)
    shown = explorer.figure.axes[0].images[0].get_array()
    assert bool((shown.mask.sum(1)[3:] == 12).all())  # four inputs in sight
    assert shown.sum(1).tolist() == pytest.approx([1] * 16)


def test_a_model_of_ones_own_joins_and_is_left_as_it_is() -> None:
    mine = RTransformer(6, 1, 2, 3, dropout=0.5)
    before = {name: weight.clone() for name, weight in mine.state_dict().items()}
    explorer = explore.reach(mine)
    assert explorer.controls["model"].value == "mine" and explorer.controls["layers"].disabled
    assert explore.reach(mine).text == explorer.text  # no dropout: the same twice
    assert mine.training and all(weight.grad is None for weight in mine.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in mine.state_dict().items())


def test_a_sequence_of_ones_own_sets_the_length() -> None:
    text = explore.reach(RNN(5).double(), torch.randn(1, 9, 5, dtype=torch.float64)).text
    assert text.startswith("Output 9 is moved by 9 of 9 inputs: ") and "more than 4 steps back" in text


def test_half_precision_and_an_output_that_nothing_moves_can_be_shown() -> None:
    half = nn.Linear(8, 8).bfloat16()
    assert "moved by 1 of 7 inputs" in explore.reach(half, X.bfloat16()).text
    for weight in half.parameters():
        nn.init.zeros_(weight)
    assert "moved by 0 of 7 inputs" in explore.reach(half, X.bfloat16()).text


class Applies(nn.Module):
    def __init__(self, function: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> object:
        return self.function(x)


@pytest.mark.parametrize(
    "mine",
    [
        nn.GRU(8, 8, batch_first=True),
        nn.GRU(8, 8),
        nn.ReLU(inplace=True),
        Applies(torch.zeros_like),
        Applies(torch.detach),
    ],
    ids=["a tuple", "time first", "in place", "no input", "no gradient"],
)
def test_what_an_xray_looks_through_can_be_shown(mine: nn.Module) -> None:
    x, shown = X.clone(), explore.reach(mine, X).text
    assert shown == sentence(reach(mine, X)) and torch.equal(X, x)


@pytest.mark.parametrize("hide", [torch.clone, torch.detach])
def test_a_model_that_sees_the_future_is_reported(hide: Callable[[Tensor], Tensor]) -> None:
    text = explore.reach(Applies(lambda x: x + hide(x.mean(1, keepdim=True))), X).text
    assert text.endswith("Some outputs see the future.")


def test_the_sentence_counts_what_lies_more_than_half_a_sequence_back() -> None:
    moved = torch.tensor([[3.0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 0, 2]])
    assert re.findall(r"[\d.]*\d", sentence(moved)) == ["4", "3", "4", "50.0", "2", "25.0"]


@pytest.mark.parametrize(
    ("mine", "x", "message"),
    [
        (None, X, "x: "),
        (nn.Linear(8, 8), None, "x: .*d_model"),
        (nn.Linear(8, 8), X[0], r"x: .*\(7, 8\)"),
        (nn.Linear(8, 8), X.long(), "x: "),
        (nn.Linear(8, 8), torch.zeros(1, 300, 8), "x: .* 2048 .* 2400"),
        (torch.cumsum, X, "mine: "),
        (Applies(lambda x: (x - x).cumsum(1).sqrt()), X, "derivatives of the model"),
        (nn.Linear(8, 3), X, r"model: .*\(1, 7, 3\)"),
    ],
)
def test_bad_input_is_named(mine: nn.Module | None, x: Tensor | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.reach(mine, x)
