"""How time and memory are measured: several things in turn in one process, so that they share the machine's mood."""

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch.profiler import ProfilerActivity, profile

MIB = 2**20
PRODUCTS = "products, GFLOP/s"
Run = Callable[[], float | None]
"""What is timed. One that times itself, as a child process does, returns its milliseconds."""


@dataclass
class Timing:
    """What one of several things took, a number for each round.

    Args:
        processor: milliseconds of processor time, of all threads together.
        wall: milliseconds by the clock on the wall.
        first: seconds of the first run, which warms up and compiles, and counts in neither.
    """

    first: float
    processor: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


def interleaved(runs: Sequence[Run], rounds: int, seconds: float = 2.0, device: str = "cpu") -> list[Timing]:
    """Time each of `runs` once a round: A B C, C B A, A B C, …

    Args:
        runs: what to time.
        rounds: at least so many.
        seconds: further rounds follow until so much time is up, 50 at most: short runs need more of them.
        device: "cuda" waits for the GPU before it looks at a clock.
    """
    found = [Timing(first=_timed(run, device)[1] / 1000) for run in runs]
    pairs = list(zip(runs, found, strict=True))
    begun = time.perf_counter()
    done = 0
    while done < rounds or (done < 50 and time.perf_counter() - begun < seconds):
        for run, timing in pairs:
            processor, wall = _timed(run, device)
            timing.processor.append(processor)
            timing.wall.append(wall)
        pairs.reverse()
        done += 1
    return found


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median over the rounds of what one took over what the other did in the same round."""
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))


def peak_memory(run: Run, device: str = "cpu") -> float:
    """MiB of tensors that a run holds at its peak beyond those that were there before it.

    On a CPU the profiler reports every allocation of torch's allocator, so the number is the same in each run and on
    each machine; what libraries keep for themselves (packed weights, work space) and the process itself are not in
    it. The resident size of a process would hold these, and what the C library has not given back as well.
    """
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / MIB
    gc.collect()
    with _silent(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):  # gradients may be made in another thread
        held += event.nbytes()
        peak = max(peak, held)
    return peak / MIB


def ceiling(device: str, clock: str, quick: bool = False) -> dict[str, float]:
    """What the machine can do at best: products of square float32 matrices, copies of an array beyond the caches.

    Returns:
        By name: GFLOP/s (a multiply-add is two), and GB/s of a copy, read and written bytes together.
    """
    n = 256 if quick else 1024
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(n, n, generator=generator).to(device) for _ in range(2))
    source = torch.zeros((4 if quick else 256) * MIB // 4, device=device)
    target, product = torch.empty_like(source), torch.empty_like(a)

    def multiply() -> None:
        torch.mm(a, b, out=product)

    def copy() -> None:
        target.copy_(source)

    times = [statistics.median(getattr(t, clock)) for t in interleaved([multiply, copy], 5, 1.0, device)]
    return {PRODUCTS: 2 * n**3 / times[0] / 1e6, "copy, GB/s": 2 * source.nbytes / times[1] / 1e6}


def _timed(run: Run, device: str) -> tuple[float, float]:
    """Milliseconds by the processor's clock and by the one on the wall."""
    if device == "cuda":
        torch.cuda.synchronize()
    processor, wall = time.process_time(), time.perf_counter()
    own = run()
    if device == "cuda":
        torch.cuda.synchronize()
    if own is not None:
        return own, own
    return 1000 * (time.process_time() - processor), 1000 * (time.perf_counter() - wall)


@contextmanager
def _silent() -> Iterator[None]:
    """Without what the profiler's library writes to the terminal at its start and end."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
