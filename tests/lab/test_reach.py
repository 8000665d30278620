"""The reach explorer shows what `reach` measures, for its models and for the reader's own."""

from collections.abc import Callable

import matplotlib
import pytest
import torch
from torch import Tensor, nn

from rtx import RNN, RTransformer
from rtx.lab import explore, reach
from rtx.lab.explore import Explorer
from rtx.lab.explore.reach import BACKBONES, reach_at_once, sentence, shares
from rtx.lab.plots import style

X = torch.randn(1, 7, 8, generator=torch.Generator().manual_seed(0))


class LooksAhead(nn.Module):
    """Not causal: adds the mean of the sequence."""

    d_model = 4

    def forward(self, x: Tensor) -> Tensor:
        return x + x.mean(1, keepdim=True)


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


def test_shares_of_a_row_sum_to_one_and_zero_stays_zero() -> None:
    parts = shares(reach(RNN(8), X))
    torch.testing.assert_close(parts.sum(1), torch.ones(7))
    assert bool((parts.triu(1) == 0).all())


@pytest.mark.parametrize(("layers", "window"), [(1, 1), (1, 4), (3, 4), (2, 8)])
def test_stacked_local_rnns_reach_as_far_as_the_formula_says(explorer: Explorer, layers: int, window: int) -> None:
    text = explorer.set(model="LocalRNNs", layers=layers, window=window)
    assert text.startswith(f"Output 16 is moved by {layers * (window - 1) + 1} of 16 inputs:")


@pytest.mark.parametrize("name", ["RNN", "GRU", "Transformer", "R-Transformer"])
def test_the_others_reach_everything_but_the_future(explorer: Explorer, name: str) -> None:
    text = explorer.set(model=name, layers=1)
    assert text.startswith("Output 16 is moved by 16 of 16 inputs:")
    assert text.endswith("No output sees the future.")


@pytest.mark.parametrize("move", [{"model": "GRU"}, {"layers": 3}, {"window": 6}], ids=str)
def test_each_control_changes_picture_and_sentence(explorer: Explorer, move: dict[str, object]) -> None:
    explorer.set(model="R-Transformer", layers=2, window=4)
    picture, text = explorer.picture.value, explorer.text
    assert explorer.set(**move) != text
    assert explorer.picture.value != picture


def test_a_control_that_is_not_there_is_named(explorer: Explorer) -> None:
    with pytest.raises(ValueError, match="control: 'layer' is unknown, allowed are .*; did you mean 'layers'"):
        explorer.set(model="GRU", layer=2)


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
    assert "moved by 1 of 7 inputs: its own makes up 100.0 %" in explore.reach(half, X.bfloat16()).text
    for weight in half.parameters():
        nn.init.zeros_(weight)
    told = "Output 7 is moved by 0 of 7 inputs: its own makes up 0.0 % of it"
    assert explore.reach(half, X.bfloat16()).text.startswith(told)


class Applies(nn.Module):
    def __init__(self, function: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> object:
        return self.function(x)


@pytest.mark.parametrize(
    "mine",
    [nn.GRU(8, 8, batch_first=True), nn.ReLU(inplace=True), Applies(torch.zeros_like), Applies(torch.detach)],
    ids=["a tuple", "in place", "no input", "no gradient"],
)
def test_what_an_xray_looks_through_can_be_shown(mine: nn.Module) -> None:
    x, shown = X.clone(), explore.reach(mine, X).text
    assert shown == sentence(reach(mine, X)) and torch.equal(X, x)


def test_a_sequence_is_read_in_the_models_precision() -> None:
    assert explore.reach(RNN(5).double(), torch.randn(1, 9, 5)).text.startswith("Output 9 is moved by 9 of 9 inputs: ")


def test_a_model_that_sees_the_future_is_told_so() -> None:
    assert explore.reach(LooksAhead()).text.endswith("Some outputs see the future.")


def test_the_sentence_counts_what_lies_more_than_half_a_sequence_back() -> None:
    moved = torch.tensor([[3.0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 0, 2]])
    told = "Output 4 is moved by 3 of 4 inputs: its own makes up 50.0 % of it, those more than 2 steps back 25.0 %."
    assert sentence(moved).startswith(told)


def test_a_gpus_random_numbers_stay_as_they_are(monkeypatch) -> None:
    seeded: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    x = torch.randn(5, 4)
    explore.reach(), explore.block(), explore.window(x), explore.debugger(x), explore.positions()
    assert not seeded


def test_random_numbers_of_the_caller_stay_as_they_are(explorer: Explorer) -> None:
    before = torch.get_rng_state()
    explorer.set(model="Transformer", layers=4)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("mine", "x", "message"),
    [
        (None, X, "x: it is what your own model reads"),
        (nn.Linear(8, 8), None, "x: your model has no d_model"),
        (nn.Linear(8, 8), X[0], r"x: expected one sequence \(1, time, width\), got \(7, 8\)"),
        (nn.Linear(8, 8), X.repeat(2, 1, 1), r"x: expected one sequence \(1, time, width\), got \(2, 7, 8\)"),
        (nn.Linear(8, 8), X.long(), "x: expected floating-point numbers"),
        (nn.Linear(8, 8), X / 0, "x: expected finite numbers"),
        (nn.Linear(8, 8), torch.zeros(1, 300, 8), "x: expected at most 2048 numbers, time × width, got 2400"),
        (nn.Linear(8, 8), X.tolist(), "x: expected a torch.Tensor, got list"),
        (torch.cumsum, X, "mine: expected a torch.nn.Module, got builtin_function_or_method"),
        (Applies(lambda x: {"y": x}), X, r"model: expected a backbone that keeps the shape .*, got dict"),
        (Applies(lambda x: (x - x).cumsum(1).sqrt()), X, "derivatives of the model, .* expected finite numbers"),
        (nn.Linear(8, 3), X, r"model: expected a backbone that keeps the shape \(1, 7, 8\), got \(1, 7, 3\)"),
    ],
)
def test_bad_input_is_named(mine: nn.Module | None, x: Tensor | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.reach(mine, x)


def test_one_step_and_one_input_are_told_as_one() -> None:
    assert "those more than 1 step back" in explore.reach(nn.Identity(), torch.randn(1, 2, 4)).text
    assert "moved by 1 of 1 input:" in explore.reach(nn.Identity(), torch.randn(1, 1, 4)).text
