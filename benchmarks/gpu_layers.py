"""On a GPU: LocalRNN in Triton, updates of feed-forward attention and MC-RNN, generated characters."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.case import OURS, Case, Contender, Options, Target, using
from benchmarks.measure import Run
from benchmarks.published import PlainFeedForwardAttention, take_weights
from rtx import MCRNN, FeedForwardAttention, LanguageModel, build
from rtx.nn import LocalRNN
from rtx.nn.ops import OPERATIONS
from rtx.tasks import task_by_name
from rtx.training.recipe import load_recipe

TOGETHER = 10  # updates in one run


def together(update: Callable[[], object]) -> Run:
    """A run of TOGETHER updates."""

    def run() -> None:
        for _ in range(TOGETHER):
            update()

    return run


def local_rnn(options: Options) -> Case:
    """A LocalRNN's forward and backward pass in torch and in Triton, for MNIST and for words."""
    contenders, targets = [], []
    for recipe, batch, length in (("mnist", 32, 784), ("ptb-word", 16, 80)):
        sizes = load_recipe(recipe).plan("r-transformer").hyperparameters
        D, B, T = options.size(sizes["d_model"], 16), options.size(batch, 2), options.size(length, 12)
        torch.manual_seed(0)
        layer = LocalRNN(D, sizes["window"], sizes["cell"]).to(options.device)
        x = torch.randn(B, T, D, device=options.device, requires_grad=True)
        for half in (False, True):
            run, size = together(_layer_step(layer, x, half)), f"{recipe}, {'bfloat16' if half else 'float32'}"
            for impl in ("torch", "triton") if takes_triton(layer, x, half) else ("torch",):
                contenders.append(Contender(f"{impl}, {size}", using(impl, run, "local_rnn"), times=1 / TOGETHER))
            targets.append(Target(f"torch / triton, {size}", f"torch, {size}", f"triton, {size}", None))
    return Case("gpu-local-rnn: LocalRNN, forward and backward", contenders, targets)


def takes_triton(layer: LocalRNN, x: Tensor, half: bool) -> bool:
    """Whether Triton can compute the layer here: not on a CPU, nor if the weights do not fit the shared memory."""
    obstacle = OPERATIONS["local_rnn"].implementations["triton"].obstacle
    with torch.autocast(x.device.type, torch.bfloat16, enabled=half):
        return obstacle(x, *layer.parameters(), layer.window, layer.cell) is None


def _layer_step(layer: LocalRNN, x: Tensor, half: bool) -> Callable[[], None]:
    def step() -> None:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=half):
            y = layer(x)
        y.float().square().mean().backward()
        layer.zero_grad()
        x.grad = None

    return step


def pooling(options: Options) -> Case:
    """An update of feed-forward attention at T = 10,000."""
    B, T, device = options.size(100, 2), options.size(10_000, 50), options.device
    draws = torch.Generator().manual_seed(0)
    x, y = (torch.rand(B, *shape, generator=draws).to(device) for shape in ((T, 2), (1,)))
    ours, plain = FeedForwardAttention(leak="coded"), PlainFeedForwardAttention()
    take_weights(plain, ours)
    runs = {"plain eager": _regression(plain, x, y), OURS: _regression(ours, x, y)}
    contenders = [Contender(one, run, times=1 / TOGETHER, memory=True) for one, run in runs.items()]
    targets = [
        Target(f"{OURS}: ms an update", OURS, None, None, "<="),
        Target(f"plain eager / {OURS}", "plain eager", OURS, None),
    ]
    return Case(f"gpu-pooling: feed-forward attention, update, B = {B}, T = {T}", contenders, targets)


def mc_rnn(options: Options) -> Case:
    """An update of MC-RNN-3 beside one of cuDNN's LSTM, both of width 256."""
    H, B, T, device = options.size(256, 16), options.size(64, 2), options.size(30, 6), options.device
    torch.manual_seed(0)
    x = torch.randn(B, T, H, device=device)
    runs = {
        OURS: _regression(MCRNN(H, block=4), x, x),
        "nn.LSTM": _regression(nn.LSTM(H, H, batch_first=True), x, x),
    }
    contenders = [Contender(one, run, times=1 / TOGETHER) for one, run in runs.items()]
    target = Target(f"{OURS} / nn.LSTM", OURS, "nn.LSTM", None, "<=")
    return Case(f"gpu-mc-rnn: MC-RNN-3 and LSTM, update, width {H}, B = {B}, T = {T}", contenders, [target])


def _regression(model: nn.Module, x: Tensor, y: Tensor) -> Run:
    device = x.device.type
    model = model.to(device)
    adam = torch.optim.Adam(model.parameters(), 1e-4, fused=device == "cuda")

    def update() -> None:
        found = model(x)
        (found[0] if isinstance(found, tuple) else found).sub(y).square().mean().backward()
        adam.step()
        adam.zero_grad()

    return together(update)


def generation(options: Options) -> Case:
    """Characters one by one, each the most likely one."""
    tokens, sizes = options.size(1000, 20), load_recipe("ptb-char").plan("r-transformer").hyperparameters
    if options.quick:
        sizes = sizes | {"d_model": 16}
    torch.manual_seed(0)
    model = build(task_by_name("ptb-char"), "r-transformer", **sizes).eval().to(options.device)
    assert isinstance(model, LanguageModel)
    first = torch.zeros(1, dtype=torch.long, device=options.device)

    @torch.no_grad()
    def stream() -> None:
        logits, state = model.step(first)
        for _ in range(tokens):
            logits, state = model.step(logits.argmax(-1), state)

    target = Target(f"ms for {tokens} characters", "stream", None, None, "<=")
    title = f"gpu-generation: R-Transformer 3/512, B = 1, {tokens} characters"
    return Case(title, [Contender("stream", stream)], [target])
