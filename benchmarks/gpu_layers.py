"""On a GPU: updates of feed-forward attention and MC-RNN, and generated characters; and how updates are timed there."""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn

from benchmarks.case import OURS, Case, Contender, Options, Target
from benchmarks.measure import Run
from benchmarks.published import PlainFeedForwardAttention, take_weights
from rtx import MCRNN, FeedForwardAttention, build
from rtx.nn.kernels.graphs import FixedStream, recorded
from rtx.tasks import task_by_name
from rtx.training.recipe import load_recipe

TOGETHER = 10  # updates in one run


def together(update: Callable[[], None], device: str, record: bool = False) -> Run:
    """A run of TOGETHER updates; recorded at the first call."""
    steps: list[Callable[[], None]] = []

    def run() -> None:
        if not steps:
            steps.append(recorded(update, device) if record else update)
        for _ in range(TOGETHER):
            steps[0]()

    return run


def pooling(options: Options) -> Case:
    """An update of feed-forward attention at T = 10,000."""
    B, T, device = options.size(100, 2), options.size(10_000, 50), options.device
    draws = torch.Generator().manual_seed(0)
    x, y = (torch.rand(B, *shape, generator=draws).to(device) for shape in ((T, 2), (1,)))
    ours, plain = FeedForwardAttention(leak="coded"), PlainFeedForwardAttention()
    take_weights(plain, ours)
    runs = {"plain eager": _regression(plain, x, y), OURS: _regression(ours, x, y)}
    if device == "cuda":
        runs[f"{OURS}, CUDA graph"] = _regression(deepcopy(ours), x, y, record=True)
    contenders = [Contender(one, run, times=1 / TOGETHER, memory="graph" not in one) for one, run in runs.items()]
    targets = [
        Target(f"{OURS}, CUDA graph: ms an update", f"{OURS}, CUDA graph", None, 0.1, "<="),
        Target(f"plain eager / {OURS}", "plain eager", OURS, None),
    ]
    return Case(f"gpu-pooling: feed-forward attention, update, B = {B}, T = {T}", contenders, targets)


def mc_rnn(options: Options) -> Case:
    """An update of MC-RNN-3 beside one of cuDNN's LSTM, both of width 256."""
    H, B, T, device = options.size(256, 16), options.size(64, 2), options.size(30, 6), options.device
    torch.manual_seed(0)
    x = torch.randn(B, T, H, device=device)
    ours, lstm = MCRNN(H, block=4), nn.LSTM(H, H, batch_first=True)
    runs = {OURS: _regression(ours, x, x), "nn.LSTM": _regression(lstm, x, x)}
    if device == "cuda":
        runs[f"{OURS}, CUDA graph"] = _regression(deepcopy(ours), x, x, record=True)
        runs["nn.LSTM, CUDA graph"] = _regression(deepcopy(lstm), x, x, record=True)
    contenders = [Contender(one, run, times=1 / TOGETHER) for one, run in runs.items()]
    pairs = [(OURS, "nn.LSTM"), (f"{OURS}, CUDA graph", "nn.LSTM"), (f"{OURS}, CUDA graph", "nn.LSTM, CUDA graph")]
    targets = [Target(f"{over} / {under}", over, under, None, "<=") for over, under in pairs]
    return Case(f"gpu-mc-rnn: MC-RNN-3 and LSTM, update, width {H}, B = {B}, T = {T}", contenders, targets)


def _regression(model: nn.Module, x: Tensor, y: Tensor, record: bool = False) -> Run:
    device = x.device.type
    model = model.to(device)
    adam = torch.optim.Adam(model.parameters(), 1e-4, fused=device == "cuda", capturable=device == "cuda")

    def update() -> None:
        found = model(x)
        (found[0] if isinstance(found, tuple) else found).sub(y).square().mean().backward()
        adam.step()
        adam.zero_grad(set_to_none=not record)

    return together(update, device, record)


def generation(options: Options) -> Case:
    """Characters one by one: a stream as it comes, and with its step as a CUDA graph."""
    tokens, sizes = options.size(1000, 20), load_recipe("ptb-char").plan("r-transformer").hyperparameters
    if options.quick:
        sizes = sizes | {"d_model": 16}
    torch.manual_seed(0)
    model = build(task_by_name("ptb-char"), "r-transformer", **sizes).eval().to(options.device)
    first = torch.zeros(1, dtype=torch.long, device=options.device)

    @torch.no_grad()
    def stream(record: bool) -> None:
        logits, state = model.step(first)  # type: ignore[operator]
        fixed = FixedStream(model.step, first, state, tokens + 1)  # type: ignore[arg-type]
        step = fixed.record() if record else fixed
        for _ in range(tokens):
            logits = step(logits.argmax(-1))

    contenders = [Contender("step by step", lambda: stream(False))]
    if options.device == "cuda":
        contenders.append(Contender("CUDA graph", lambda: stream(True)))
    target = Target(f"ms for {tokens} characters, its recording included", "CUDA graph", None, tokens / 2, "<=")
    return Case(f"gpu-generation: R-Transformer 3/512, B = 1, {tokens} characters", contenders, [target])
