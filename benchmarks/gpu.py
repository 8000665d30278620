"""The cases for a GPU: whole updates in float32 and bfloat16, and the most that the GPU can do.

An update is forward, backward and Adam. Ten of them are timed together, with one wait for the GPU at the end. In
training the CPU runs ahead in the same way, so no loss here asks the GPU for a number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks import counting, gpu_layers
from benchmarks.case import OURS, PUBLISHED, Case, CaseMaker, Contender, Options, Target, using
from benchmarks.gpu_layers import TOGETHER, together
from benchmarks.measure import Run, interleaved
from benchmarks.published import PublishedModel
from benchmarks.training import ENCODER, encoder_twin, published_twin, random_batch
from rtx import build
from rtx.nn import LocalRNN
from rtx.tasks import task_by_name
from rtx.tasks.task import IGNORED, Batch, Task
from rtx.training.recipe import load_recipe

HALF, TRITON_HALF = f"{OURS}, bfloat16", f"{OURS}, Triton, bfloat16"
PUBLISHED_HALF, ENCODER_HALF = f"{PUBLISHED}, bfloat16", f"{ENCODER}, bfloat16"


@dataclass(frozen=True)
class Update:
    """A row of the paper's tables as an update."""

    recipe: str
    batch: int
    length: int


UPDATES = {
    "gpu-mnist": Update("mnist", 32, 784),
    "gpu-nottingham": Update("nottingham", 1, 256),
    "gpu-characters": Update("ptb-char", 16, 400),
    "gpu-words": Update("ptb-word", 16, 80),
}


def training(name: str, options: Options) -> Case:
    """An update of the R-Transformer beside the published code's and that of torch's encoder."""
    update, device = UPDATES[name], options.device
    recipe = load_recipe(update.recipe)
    task, sizes = task_by_name(recipe.task), recipe.plan("r-transformer").hyperparameters | {"norm": "pre"}
    if options.quick:
        sizes = sizes | {"d_model": 16, "layers": 1, "heads": 2}
    B, T = options.size(update.batch, 1), options.size(update.length, 12)
    batch = random_batch(task, B, T, T if task.per != "sequence" else 1, device)
    torch.manual_seed(0)
    ours = build(task, "r-transformer", **sizes)
    published, encoder = published_twin(task, sizes, ours), encoder_twin(task, sizes)
    models = {one: model.to(device) for one, model in ((OURS, ours), (PUBLISHED, published), (ENCODER, encoder))}
    runs: dict[str, Run] = {}
    for one, model in models.items():
        runs[one] = updates(task, model, batch)
        runs[f"{one}, bfloat16"] = updates(task, model, batch, half=True)
    local = next(module for module in ours.modules() if isinstance(module, LocalRNN))
    if gpu_layers.takes_triton(local, torch.zeros(1, 1, local.d_model, device=device), half=True):
        runs[TRITON_HALF] = using("triton", runs[HALF], "local_rnn")
    around = counting.around(sizes["d_model"], task.inputs, task.outputs, task.per, T, T)
    count, less = B * (counting.r_transformer(sizes, T) + around), B * (counting.transformer(sizes, T) + around)
    counts = {PUBLISHED: None, PUBLISHED_HALF: None, ENCODER: less, ENCODER_HALF: less}
    contenders = [
        Contender(one, run, times=1 / TOGETHER, multiply_adds=counts.get(one, count), memory=True)
        for one, run in runs.items()
    ]
    targets = [
        Target(f"{HALF}: ms an update", HALF, None, None, "<="),
        Target(f"{PUBLISHED_HALF} / {HALF}", PUBLISHED_HALF, HALF, None),
        Target(f"{PUBLISHED} / {OURS}", PUBLISHED, OURS, None),
        Target(f"{HALF} / {TRITON_HALF}", HALF, TRITON_HALF, None),
        Target(f"{HALF} / {ENCODER_HALF}", HALF, ENCODER_HALF, None, "<="),
    ]
    title = f"{name}: update, R-Transformer {sizes['layers']}/{sizes['d_model']}, B = {B}, T = {T}"
    return Case(title, contenders, targets)


def updates(task: Task, model: nn.Module, batch: Batch, half: bool = False) -> Run:
    """Updates by Adam: TOGETHER of them."""
    device = batch.inputs.device.type
    adam = torch.optim.Adam(model.train().parameters(), 1e-4, fused=device == "cuda")

    def update() -> None:
        with torch.autocast(device, torch.bfloat16, enabled=half):
            loss = (
                model.loss(batch) if isinstance(model, PublishedModel) else plain_loss(task, model(batch.inputs), batch)
            )
        loss.backward()
        adam.step()
        adam.zero_grad()

    return together(update)


def plain_loss(task: Task, predictions: Tensor, batch: Batch) -> Tensor:
    """The task's loss, for sequences of one length, without a question to the GPU."""
    if task.per == "step":
        return F.binary_cross_entropy_with_logits(predictions, batch.targets)
    return F.cross_entropy(predictions.flatten(0, -2), batch.targets.flatten(), ignore_index=IGNORED)


def ceiling(device: str, quick: bool) -> dict[str, float]:
    """What large products in bfloat16 and copies far beyond the caches reach, by name."""
    n, size = (256, 2**20) if quick else (8192, 2**30)
    a, b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
    product, source = torch.empty_like(a), torch.zeros(size // 2, device=device, dtype=torch.bfloat16)
    target = torch.empty_like(source)
    runs: list[Callable[[], object]] = [lambda: torch.mm(a, b, out=product), lambda: target.copy_(source)]
    times = [min(t.wall) / TOGETHER for t in interleaved([*map(together, runs)], 5, 1.0, device)]
    return {"bfloat16 products, GFLOP/s": 2 * n**3 / times[0] / 1e6, "large copy, GB/s": 2 * size / times[1] / 1e6}


def add_shares(case: dict[str, Any], best: dict[str, float]) -> None:
    """Add, for each row whose multiply-adds are counted, what share of the ceiling for products its update reaches.

    Forward and backward are three times the multiply-adds of the forward pass, two operations each. An update that is
    bound by memory or by launches cannot come near 1: the share says how far the tensor cores are from being busy.
    """
    for row in case["rows"]:
        if row["multiply_adds_g"] is not None:
            floor = 6 * row["multiply_adds_g"] / best["bfloat16 products, GFLOP/s"] * 1e3
            target = {"text": f"share of the ceiling of products: {row['name']}", "value": floor / row["wall_ms"]}
            case["targets"].append(target | {"bound": None, "sense": ">=", "quantity": "time"})


def _case(name: str) -> CaseMaker:
    return lambda options: training(name, options)


CASES: dict[str, CaseMaker] = {
    **{name: _case(name) for name in UPDATES},
    "gpu-local-rnn": gpu_layers.local_rnn,
    "gpu-pooling": gpu_layers.pooling,
    "gpu-mc-rnn": gpu_layers.mc_rnn,
    "gpu-generation": gpu_layers.generation,
}
