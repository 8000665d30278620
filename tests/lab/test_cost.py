"""The cost explorer counts what torch counts, and its bars are as long as its counts."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from rtx.lab import explore
from rtx.lab.explore.cost import PARTS, WAYS, multiply_adds
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


def test_bars_are_the_counts_in_millions() -> None:
    text, panels = explore.cost().see(length=400, width=64, window=9)
    assert panels["bars"] == [[multiply_adds(400, 64, 9, way)[part] / 1e6 for part in PARTS] for way in WAYS]
    assert "0.6 MB" in text and "10 kB" in explore.cost(50).text  # not 0.0 MB
