"""Feed-forward attention's update, MC-RNN beside torch's LSTM, and what memory does when sequences double."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks import counting
from benchmarks.case import OURS, PLAIN, UNCOMPILED, Case, Contender, Options, Target, ways
from benchmarks.measure import MIB, Run
from benchmarks.published import PlainFeedForwardAttention, take_weights
from rtx import MCRNN, FeedForwardAttention
from rtx.nn import LocalRNN, MultiHeadAttention

EAGER = "plain eager"
POOLING = ("pooling",)  # operations
PAPERS_UPDATE = 120  # milliseconds, of Raffel & Ellis (2015) at T = 5000


def pooling(options: Options) -> Case:
    """An Adam update of feed-forward attention at T = 5000, and its memory at 10,000."""
    B, T = options.size(100, 4), options.size(5000, 100)
    contenders = _updates(B, T, options)
    for longer in _updates(B, 2 * T, options):
        if longer.name != EAGER:
            contenders.append(replace(longer, name=f"{longer.name}, T = {2 * T}"))
    targets = _faster()
    added = B * T * 2 * 4 / MIB  # of the longer input, float32
    for name in (OURS, UNCOMPILED):
        targets += [
            Target(f"{name}, milliseconds", name, None, PAPERS_UPDATE, "<="),
            Target(
                f"{name}, MiB more at T = {2 * T}", f"{name}, T = {2 * T}", name, added, "<=", "peak", difference=True
            ),
        ]
    notes = [
        "120 ms an update: an epoch of 1,000 updates in the two minutes that the paper's GPU took.",
        f"The input of T = {2 * T} is {added:.3g} MiB larger: memory constant in T beyond it grows by no more.",
    ]
    title = f"pooling: feed-forward attention, forward, backward and Adam, B = {B}, T = {T}"
    return Case(title, contenders, targets, notes)


def pooling_lengths(options: Options) -> Case:
    """The same for a batch whose lengths are drawn from 50 … 10,000."""
    B, T = options.size(100, 4), options.size(10_000, 200)
    lengths = torch.randint(50, T + 1, (B,), generator=torch.Generator().manual_seed(0))
    title = f"pooling-lengths: the same, B = {B}, lengths from {int(lengths.min())} to {int(lengths.max())}"
    return Case(title, _updates(B, int(lengths.max()), options, lengths), _faster())


def mc_rnn(options: Options) -> Case:
    """A step of MC-RNN-3 beside one of torch's LSTM, both of width 256."""
    H, B, T = options.size(256, 32), options.size(64, 2), options.size(30, 8)
    torch.manual_seed(0)
    x = torch.randn(B, T, H, device=options.device)
    ours, lstm = MCRNN(H, block=4).to(options.device), nn.LSTM(H, H, batch_first=True).to(options.device)
    steps = {
        OURS: (_backward(lambda: ours(x), ours), counting.mc_rnn(H, T, 4)),
        "nn.LSTM": (_backward(lambda: lstm(x)[0], lstm), counting.lstm(H, T)),
    }
    contenders = [Contender(name, run, multiply_adds=B * n, memory=True) for name, (run, n) in steps.items()]
    targets = [
        Target(f"{OURS} / nn.LSTM", OURS, "nn.LSTM", 4.6, "<="),
        Target(f"{OURS} / nn.LSTM", OURS, "nn.LSTM", None, "<=", "multiply_adds"),
    ]
    return Case(f"mc-rnn: MC-RNN-3 and LSTM, training step, width {H}, B = {B}, T = {T}", contenders, targets)


def memory(options: Options) -> Case:
    """LocalRNN and attention, one layer each, when T doubles: memory should no more than double."""
    T = options.size(1024, 256)
    contenders, targets = [], []
    for name, layer in (("LocalRNN", LocalRNN(32, 7)), ("attention", MultiHeadAttention(32, 2, dropout=0.05))):
        for length in (T, 2 * T):
            x = torch.randn(4, length, 32, device=options.device)
            run = _backward(partial(layer.to(options.device), x), layer)
            contenders.append(Contender(f"{name}, T = {length}", run, memory=True))
        over, under = contenders[-1].name, contenders[-2].name
        targets.append(Target(f"{over} / {T}", over, under, 2.1, "<=", "peak"))
    return Case("memory: a layer's training step, D = 32, B = 4", contenders, targets)


def _faster() -> list[Target]:
    bounds = {OURS: 12.0, UNCOMPILED: 4.0}
    return [Target(f"{EAGER} / {name}", EAGER, name, bound) for name, bound in bounds.items()]


def _updates(batch: int, length: int, options: Options, lengths: Tensor | None = None) -> list[Contender]:
    draws = torch.Generator().manual_seed(0)
    x, y = (torch.rand(batch, *shape, generator=draws).to(options.device) for shape in ((length, 2), (1,)))
    torch.manual_seed(0)
    ours, plain = FeedForwardAttention(leak="coded"), PlainFeedForwardAttention()
    take_weights(plain, ours)
    runs = ways(_update(ours.to(options.device), x, y, lengths), options, *POOLING)
    runs.pop(PLAIN, None)  # what plain eager is, too
    runs[EAGER] = _update(plain.to(options.device), x, y, lengths)
    return [Contender(name, run, memory=True) for name, run in runs.items()]


def _update(model: nn.Module, x: Tensor, y: Tensor, lengths: Tensor | None) -> Run:
    adam = torch.optim.Adam(model.parameters(), 1e-3)

    def run() -> None:
        (model(x, lengths) - y).square().mean().backward()
        adam.step()
        adam.zero_grad(set_to_none=True)

    return run


def _backward(forward: Callable[[], Tensor], model: nn.Module) -> Run:
    def run() -> None:
        forward().sum().backward()
        model.zero_grad(set_to_none=True)

    return run
