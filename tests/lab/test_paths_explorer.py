"""The gradient-path lab: paths against a search of the graph, gradients against derivatives, and its layers."""

import itertools
import math
from statistics import geometric_mean

import pytest
import torch

from rtx.evidence.counted import path_length
from rtx.lab import explore, receptive_field
from rtx.lab.explore import Page
from rtx.lab.explore.paths import SEEDS, WIDTH, gradient_shares, step_of, untrained
from rtx.nn import reference
from rtx.nn.multi_channel import MultiChannelRNN

FARTHEST = 12


def searched(t: int, k: int, distance: int, n: int) -> int:
    """The shortest path, breadth first, over edges found by walking from block to block."""
    front, edges = {t}, 0
    while t - distance not in front:
        front = {s for node in front for s in range(reference.block_start(node, k, n, "equation"), node)}
        edges += 1
    return edges


@pytest.fixture(scope="module")
def page() -> Page:
    return explore.paths(farthest=FARTHEST)


def layer_of(**options: object) -> MultiChannelRNN:
    torch.manual_seed(0)
    return MultiChannelRNN(3, 4, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_the_longest_edge_is_always_best(n: int) -> None:
    for t, k, distance in itertools.product(range(20, 28), range(1, n), range(1, 15)):
        assert path_length(t, k, distance, n) == searched(t, k, distance, n)


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_gradients_are_those_of_each_channels_last_state(cell: str) -> None:
    layer = layer_of(block=3, cell=cell)
    T = step_of(3, FARTHEST)
    x = torch.randn(1, T, 3, generator=torch.Generator().manual_seed(0))
    shares = gradient_shares(layer, FARTHEST)
    assert shares.shape == (2, FARTHEST + 1)

    class Channel(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return layer.channels(x)[:, :, 1]

    moved = receptive_field(Channel(), x)[-1].flip(0)[: FARTHEST + 1]
    torch.testing.assert_close(shares[1], moved / moved[0])


def test_a_gradient_lives_longer_in_larger_blocks(page: Page) -> None:
    measured = page.data["measured"]
    last = [max(channel[-1] for channel in measured[str(n)]) for n in range(2, 8)]
    assert last == sorted(last) and last[-1] - last[0] > 1  # more than a power of ten


def test_of_several_draws_the_geometric_mean_is_shown() -> None:
    draws = []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        draws.append(gradient_shares(MultiChannelRNN(WIDTH, block=3, cell="rnn"), 4).flatten().tolist())
    means = torch.tensor([geometric_mean(column) for column in zip(*draws, strict=True)])
    torch.testing.assert_close(untrained(4)[3].flatten(), means)


def test_a_path_of_a_layer_of_ones_own_is_measured_as_it_is() -> None:
    layer = layer_of(block=5, cell="gru", weight_dropout=0.5).train()
    page = explore.paths([layer], farthest=9)
    assert page.state["n"] == 5 and set(page.data["measured"]) == {"5"}
    expected = gradient_shares(layer, 9).log10()
    torch.testing.assert_close(torch.tensor(page.data["measured"]["5"]), expected, rtol=1e-3, atol=1e-3)
    assert layer.training and all(weight.grad is None for weight in layer.parameters())


def test_weights_of_zero_leave_no_gradient_and_no_nan() -> None:
    layer = layer_of(cell="rnn")
    torch.nn.init.zeros_(layer.weight_hh_l0)
    shares = gradient_shares(layer, 4)
    assert bool((shares[:, 0] == 1).all()) and 0 < shares[:, 1:].max() < 1e-30


def test_the_still_figure_draws_every_channel_and_the_papers_bound(page: Page) -> None:
    left, right = page.still.axes
    lines = {line.get_label(): list(line.get_ydata()) for line in left.lines}
    assert lines["paper's bound"] == [1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5]
    assert lines["channel 1"] == [math.ceil(d / 3) for d in range(1, 13)]
    assert [line.get_label() for line in right.lines] == ["n = 2", "n = 4", "n = 7"]
    for line in right.lines:
        channels = page.data["measured"][line.get_label().removeprefix("n = ")]
        means = [10 ** (sum(column) / len(column)) for column in zip(*channels, strict=True)]
        assert list(line.get_ydata()) == pytest.approx(means, rel=0.01)
        assert list(line.get_xdata()) == list(range(FARTHEST + 1))


def test_a_layer_of_more_channels_than_there_are_colours_is_drawn() -> None:
    left, _ = explore.paths([layer_of(block=13)], farthest=FARTHEST).still.axes
    assert [line.get_label() for line in left.lines] == [*(f"channel {k}" for k in range(1, 13)), "paper's bound"]
    assert all(place == round(place) for place in left.get_yticks())
    names = left.get_legend().get_window_extent()
    assert names.y0 >= left.get_window_extent().y0 and names.y1 <= left.get_window_extent().y1


@pytest.mark.parametrize(
    ("layers", "farthest", "message"),
    [
        ([torch.nn.GRU(2, 2)], 9, "layers: "),
        ([layer_of(phase="text")], 9, "layers: .*'equation'"),
        ([layer_of(), layer_of()], 9, r"layers: .*\[4, 4\]"),
        (None, 61, "farthest: .* 61"),
    ],
)
def test_bad_input_is_named(layers: list[MultiChannelRNN] | None, farthest: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.paths(layers, farthest)
