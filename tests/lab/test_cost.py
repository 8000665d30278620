"""The cost explorer counts what torch counts, and its bars are as long as its counts."""

from itertools import product

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from rtx.lab import explore
from rtx.lab.explore.cost import LENGTHS, PARTS, WAYS, WIDTHS, multiply_adds
from rtx.nn import FeedForward, LocalRNN, implementation

T, D, M = 100, 32, 5


def counted(module: torch.nn.Module) -> int:
    with torch.no_grad(), implementation("torch"), FlopCounterMode(display=False) as counter:
        module(torch.randn(1, T, D))
    return counter.get_total_flops() // 2


def test_the_products_are_those_that_torch_counts() -> None:
    ours = multiply_adds(T, D, M, WAYS[1])
    assert ours["LocalRNN"] == counted(LocalRNN(D, M))
    assert ours["feed-forward"] == counted(FeedForward(D))
    windows = torch.nn.GRU(D, D, batch_first=True)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        windows(torch.randn(T, M, D))
    published = multiply_adds(T, D, M, WAYS[0])
    assert published["LocalRNN"] == counter.get_total_flops() // 2
    x = torch.randn(T, D)
    with FlopCounterMode(display=False) as counter:
        q, k, v = (x @ torch.randn(D, D) for _ in range(3))
        q @ k.T @ v @ torch.randn(D, D)
    assert published["attention"] == counter.get_total_flops() // 2
    pairs = sum(t + 1 for t in range(T))
    assert published["attention"] - ours["attention"] == 2 * D * (T * T - pairs)


def test_bars_are_as_long_as_the_counts() -> None:
    explorer = explore.cost(T, D, M)
    explorer.set(length=400, width=64, window=9)
    bars = explorer.figure.axes[0].patches
    expected = [multiply_adds(400, 64, 9, way)[part] / 1e6 for part in PARTS for way in WAYS]
    assert [bar.get_width() for bar in bars] == pytest.approx(expected)
    assert bars[2].get_x() == pytest.approx(bars[0].get_width())  # one part behind the other


def test_no_number_is_cut_off_however_large() -> None:
    explorer = explore.cost()
    whole, ax = explorer.figure.bbox, explorer.figure.axes[0]
    for length, width in product(LENGTHS[:: len(LENGTHS) - 1], WIDTHS[:: len(WIDTHS) - 1]):
        explorer.set(length=length, width=width, window=16)
        used = ax.get_tightbbox()
        assert used is not None
        assert whole.x0 <= used.x0 and used.x1 <= whole.x1, (length, width)


def test_the_sentence_names_shares_and_memory() -> None:
    text = explore.cost(784, 32, 7).text
    assert text.endswith("The weights of one head, written out, take 2.5 MB.")
    assert explore.cost(50, 32, 7).text.endswith("take 10 kB.")  # not 0.0 MB
    counts = [multiply_adds(784, 32, 7, way) for way in WAYS]
    assert text.startswith(f"{sum(counts[1].values()) / sum(counts[0].values()):.0%} of the published products")
