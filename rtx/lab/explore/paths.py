"""Gradient-path lab of MC-RNN: exact shortest paths of each channel beside the gradients that take them.

Xu et al. (2019), MC-RNN, §5.2, whose bound on the path's length fails; the paths are found in the page, by paths.js.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from rtx.evidence.counted import path_length
from rtx.lab.explore.page import Page
from rtx.lab.plots import COLOURS, whole_numbers
from rtx.lab.seeded import seeded
from rtx.nn.mode import evaluating
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.nn.validate import check_positive

LARGEST, WIDTH, SEEDS = 7, 16, 8  # of the untrained layers
FARTHEST = 60


def paths(layers: Sequence[MultiChannelRNN] | None = None, farthest: int = 24) -> Page:
    """Paths and gradients back over a distance, with controls `n`, `channel` and `distance`.

    A gradient is the size of ∂h_t^k / ∂x_{t-l}, as a share of that at l = 0, in noise that the layers did not see.

    Args:
        layers: of your own, with different n and Eq. 1's phase; by default untrained ones of plain cells, 16 wide,
            n = 2 … 7, of which the geometric mean over eight draws is shown.
        farthest: the longest distance, from 4 to 60.

    Raises:
        ValueError: if there is no layer, two have the same n, one has the other phase, or `farthest` is out of range.
    """
    if not 4 <= check_positive("farthest", farthest) <= FARTHEST:
        raise ValueError(f"farthest: expected 4 to {FARTHEST}, got {farthest}")
    measured = untrained(farthest) if layers is None else of_layers(layers, farthest)
    sizes = sorted(measured)
    n = 4 if 4 in sizes else sizes[-1]
    data = {"farthest": farthest, "measured": {str(n): shares.log10() for n, shares in measured.items()}}
    caption = "step l up from 1 in one channel after the other: where does the path exceed the paper's bound?"
    still = draw_paths(measured, n, farthest)
    return Page(
        Path(__file__).with_name("paths.js"),
        data,
        still,
        caption,
        title="How long is the way back?",
        n=n,
        channel=1,
        distance=6,
    )


def untrained(farthest: int) -> dict[int, Float[Tensor, "C L"]]:
    """What `of_layers` says of untrained layers, n = 2 … 7, in the geometric mean of several draws."""
    found = {}
    for n in range(2, LARGEST + 1):
        shares = []
        for seed in range(SEEDS):
            with seeded(seed):
                shares.append(gradient_shares(MultiChannelRNN(WIDTH, block=n, cell="rnn"), farthest))
        found[n] = torch.stack(shares).log().mean(0).exp()
    return found


def of_layers(layers: Sequence[MultiChannelRNN], farthest: int) -> dict[int, Float[Tensor, "C L"]]:
    """Gradient shares by n, a row for each channel, a column for each distance from 0.

    Raises:
        ValueError: if there is no layer, two have the same n, or one has not Eq. 1's phase.
    """
    if not layers or any(not isinstance(layer, MultiChannelRNN) or layer.phase != "equation" for layer in layers):
        raise ValueError("layers: expected MultiChannelRNN layers of phase 'equation', at least one")
    found = {layer.predecessors + 1: gradient_shares(layer, farthest) for layer in layers}
    if len(found) < len(layers):
        raise ValueError(f"layers: expected one for each n, got n = {[layer.predecessors + 1 for layer in layers]}")
    return found


def gradient_shares(layer: MultiChannelRNN, farthest: int) -> Float[Tensor, "C L"]:
    """The Frobenius norm of ∂h_t^k / ∂x_{t-l} over that at l = 0, for the channels k and l = 0 … `farthest`.

    t is the step that the page shows: `step_of(n, farthest)`.
    """
    C, H, T = layer.predecessors, layer.d_hidden, step_of(layer.predecessors + 1, farthest)
    draws = torch.Generator().manual_seed(0)
    x = torch.randn(1, T, layer.d_model, generator=draws).to(layer.weight_ih_l0).repeat(C * H, 1, 1).requires_grad_()
    with torch.enable_grad(), evaluating(layer):
        last = layer.channels(x)[:, -1].flatten(1)  # (C H, C H): a copy of the sequence for each number
        (gradient,) = torch.autograd.grad(last.diagonal().sum(), x)
    moved = gradient.view(C, H, T, -1).square().sum((1, 3)).sqrt().flip(1)[:, : farthest + 1]
    tiny = torch.finfo(moved.dtype).tiny
    return (moved / moved[:, :1].clamp(min=tiny)).clamp(min=tiny).cpu()


def step_of(n: int, farthest: int) -> int:
    """The step t that paths start from: far enough from the start, and one that ends a block of channel 1."""
    return 1 + (n - 1) * -(-(farthest + n) // (n - 1))


def draw_paths(measured: Mapping[int, Float[Tensor, "C L"]], n: int, farthest: int) -> Figure:
    """Left, path lengths in each channel; right, the channels' mean gradient, at `n` and the extremes."""
    figure = Figure(figsize=(7, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    distances, t = range(1, farthest + 1), step_of(n, farthest)
    for k in range(1, n):
        lengths = [path_length(t, k, distance, n) for distance in distances]
        left.plot(
            distances, lengths, drawstyle="steps-mid", color=COLOURS[(k - 1) % len(COLOURS)], label=f"channel {k}"
        )
    left.plot(distances, [d // (n - 1) + 1 for d in distances], "k:", drawstyle="steps-mid", label="paper's bound")
    left.set(xlabel="distance l", ylabel="edges on the shortest path", title=f"paths, n = {n}", ylim=(0, None))
    left.legend(frameon=False, fontsize=8 if n < 8 else 6, ncols=-(-n // 7))
    whole_numbers(left.xaxis, left.yaxis)
    for i, size in enumerate(sorted({min(measured), n, max(measured)})):
        means = [geometric_mean(column) for column in measured[size].T.tolist()]
        right.semilogy(range(farthest + 1), means, color=COLOURS[i], label=f"n = {size}")
    right.set(xlabel="distance l", ylabel="gradient, share", title="what comes back")
    right.legend(frameon=False, fontsize=8)
    return figure
