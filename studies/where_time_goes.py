"""Where does the time of a training step go, and what does each change of the code save? (Notebook 12.)

The R-Transformer at the paper's sizes for MNIST and for characters takes whole training steps in several ways. All ways
compute the same function. From one way to the next, one thing changes. A stopwatch at each sublayer says how much time
is spent there. The models take turns, and all rounds are stored. `python -m studies.where_time_goes` writes
`where_time_goes.json`. It takes about three minutes of one core.
"""

import json
import math
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import rtx
from benchmarks.counting import attention, feed_forward, local_rnn
from benchmarks.measure import peak_memory
from benchmarks.training import random_batch, training_step
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, implementation
from rtx.nn.ops import OPERATIONS
from rtx.nn.ops.attention.blocks import Masks, draw_seed
from rtx.nn.ops.dispatch import Implementation
from rtx.tasks import build, task_by_name
from rtx.training.files import write_whole
from rtx.training.recipe import load_recipe
from studies.fair import conditions

STORED = Path(__file__).with_suffix(".json")
BLOCK = 64  # queries
STEPS = {"MNIST": ("mnist", 4, 784, 1, 5), "characters": ("ptb-char", 1, 400, 320, 4)}
"""Recipe, sequences, length, scored positions, rounds."""
WAYS = {
    "windows copied, whole table": ("copied", "whole"),
    "hoisted": ("torch", "whole"),
    "+ attention in blocks": ("torch", "kept blocks"),
    "+ blocks recomputed": ("torch", "recomputed blocks"),
    "+ cheap random numbers": ("torch", "cheap masks"),
    "+ fused LocalRNN (C++)": ("native", "cheap masks"),
    "+ fused attention (C++)": ("native", "native"),
}
"""Implementations of LocalRNN and of attention."""
PARTS = {"LocalRNN": LocalRNN, "attention": MultiHeadAttention, "feed-forward": FeedForward}
SHAPES = [(B, T, D) for T, B in ((100, 16), (800, 2)) for D in (32, 512)]
"""Of a single block, with as many positions in all."""


def copied_windows(x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str) -> Tensor:
    """Copy every window, and let torch's GRU read all B · T of them, as the published code does."""
    B, T, D = x.shape
    windows = F.pad(x, (0, 0, window - 1, 0)).unfold(1, window, 1).mT.reshape(B * T, window, D)
    weights = [w_ih, w_hh, b_ih, b_hh]
    states, _ = torch.gru(windows, x.new_zeros(1, B * T, D), weights, True, 1, 0.0, True, False, True)
    return states[:, -1].view(B, T, D)


def one_block(q: Tensor, k: Tensor, v: Tensor, p: float, cheap: bool = False) -> Tensor:
    """Return causal attention with dropout p for the last queries, whose keys and all earlier ones are given."""
    Q, S = q.shape[-2], k.shape[-2]
    future = torch.ones(Q, S, dtype=torch.bool).triu(1 + S - Q)
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -math.inf).softmax(-1)
    if cheap and p:
        return weights * Masks(p, draw_seed()).draw(weights.shape) @ v / (1 - p)
    return F.dropout(weights, p) @ v


def in_blocks(run: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, p: float) -> Tensor:
    """Return causal attention for BLOCK queries at a time, each with the keys that they may see."""
    T = q.shape[-2]
    ends = [min(start + BLOCK, T) for start in range(0, T, BLOCK)]
    return torch.cat([run(q[..., e - (e - 1) % BLOCK - 1 : e, :], k[..., :e, :], v[..., :e, :], p) for e in ends], -2)


def add_ways() -> None:
    """Register the ways that are slower than those of the package."""
    again = partial(checkpoint, one_block, use_reentrant=False)
    ways: dict[str, Callable[..., Tensor]] = {
        "whole": one_block,
        "kept blocks": partial(in_blocks, one_block),
        "recomputed blocks": partial(in_blocks, again),
        "cheap masks": partial(in_blocks, partial(again, cheap=True)),
    }
    for name, run in ways.items():
        OPERATIONS["causal_attention"].implementations[name] = Implementation(run, opt_in=True)
    OPERATIONS["local_rnn"].implementations["copied"] = Implementation(copied_windows, opt_in=True)


def using(way: tuple[str, str], run: Callable[[], object]) -> Callable[[], None]:
    """Return a run with these implementations of LocalRNN and attention."""

    def run_so() -> None:
        with implementation(way[0], "local_rnn"), implementation(way[1], "causal_attention"):
            run()

    return run_so


def flushing(run: Callable[[], object]) -> Callable[[], None]:
    """Return a run in which numbers below the normal range become 0."""

    def run_so() -> None:
        torch.set_flush_denormal(True)
        run()
        torch.set_flush_denormal(False)

    return run_so


class Stopwatch:
    """Adds up the processor time of each kind of sublayer, forward and backward, in milliseconds."""

    def __init__(self, model: nn.Module) -> None:
        self.spent, self.started = dict.fromkeys(PARTS, 0.0), 0.0
        for module in model.modules():
            for name, kind in PARTS.items():
                if isinstance(module, kind):
                    module.register_forward_pre_hook(self.start)
                    module.register_full_backward_pre_hook(self.start)
                    module.register_forward_hook(partial(self.stop, name))
                    module.register_full_backward_hook(partial(self.stop, name))

    def start(self, *_: Any) -> None:
        """A sublayer begins."""
        self.started = time.process_time()

    def stop(self, name: str, *_: Any) -> None:
        """A sublayer ends."""
        self.spent[name] += 1000 * (time.process_time() - self.started)


def in_turns(runs: dict[str, Callable[[], object]], watch: Stopwatch, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Time each run once a round, after one round that does not count: the whole, and the parts."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in runs}
    for turn in range(1 + rounds):
        for name, run in runs.items():
            watch.spent = dict.fromkeys(PARTS, 0.0)
            start = time.process_time()
            run()
            spent = {"whole": 1000 * (time.process_time() - start)} | {k: v for k, v in watch.spent.items() if v}
            for part, milliseconds in spent.items() if turn else ():
                found[name].setdefault(part, []).append(round(milliseconds, 1))
    return found


def steps(name: str) -> tuple[dict[str, Any], dict[str, Callable[[], object]]]:
    """Return the times of a training step at one of the paper's sizes, and the steps."""
    recipe_name, B, T, scored, rounds = STEPS[name]
    recipe = load_recipe(recipe_name)
    task, sizes = task_by_name(recipe.task), recipe.plan("r-transformer").hyperparameters
    batch = random_batch(task, B, T, scored)
    torch.manual_seed(0)
    model, without = (build(task, "r-transformer", **sizes, norm="pre") for _ in range(2))
    for module in without.modules():
        if isinstance(module, MultiHeadAttention):
            module.dropout = 0.0
    watch = Stopwatch(model)
    runs: dict[str, Callable[[], object]] = {}
    runs |= {way: using(names, training_step(task, model, batch)) for way, names in WAYS.items()}
    runs["hoisted, no dropout of weights"] = using(WAYS["hoisted"], training_step(task, without, batch))
    for row, label in (("transformer", "Transformer"), ("tcn", "TCN"), ("lstm", "LSTM")):
        peer = build(task, row, **recipe.plan(row).hyperparameters)
        runs[label] = training_step(task, peer, batch)
    runs["LSTM, denormals are 0"] = flushing(runs["LSTM"])
    D, M, L = sizes["d_model"], sizes["window"], sizes["layers"]
    products = {
        "LocalRNN": sizes.get("local_layers", 1) * local_rnn(D, T, M, "gru"),
        "attention": attention(D, T),
        "feed-forward": feed_forward(D, T),
    }
    counted = {part: B * L * number for part, number in products.items()}
    found: dict[str, Any] = {"sizes": sizes | {"B": B, "T": T}, "multiply-adds": counted}
    return found | {"ways": in_turns(runs, watch, rounds)}, runs


def block(B: int, T: int, D: int) -> dict[str, Any]:
    """Return times of a single block, four heads and dropout .05, in each way."""
    torch.manual_seed(0)
    model = rtx.RTransformer(D, 1, 4, 7, dropout=0.05, norm="pre")
    x = torch.randn(B, T, D, requires_grad=True)
    runs: dict[str, Callable[[], object]] = {}
    runs |= {way: using(names, lambda: model(x).square().sum().backward()) for way, names in WAYS.items()}
    return {"B": B, "T": T, "D": D, "ways": in_turns(runs, Stopwatch(model), 3)}


def main() -> None:
    """Measure, and write the file."""
    torch.set_num_threads(1)
    add_ways()
    table: dict[str, Any] = {"conditions": conditions(STORED, {}) | {"clock": "processor, milliseconds"}}
    for key in ("updates", "batch", "best", "rates", "seeds"):
        del table["conditions"][key]
    timed = {name: steps(name) for name in STEPS}
    table["steps"] = {name: found for name, (found, _) in timed.items()}
    table["blocks"] = [block(*shape) for shape in SHAPES]
    write(table)
    for found, runs in timed.values():  # the profiler is slow: all times come first
        for way, run in runs.items():
            found["ways"][way]["peak MiB"] = round(peak_memory(run), 1)  # type: ignore[arg-type]
    write(table)


def write(table: dict[str, Any]) -> None:
    """Write the file, a list of numbers in a line."""
    text = json.dumps(table, indent=1)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    write_whole(STORED, f"{text}\n".encode())


if __name__ == "__main__":
    main()
