"""A cache of keys and values: continued in several ways, each as if it were alone, at a cost that stays small."""

import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.overrides import TorchFunctionMode

from rtx.nn.state import Cache, detach, select


def row(t: float) -> torch.Tensor:
    return torch.full((2, 1, 1, 3), t, dtype=torch.float64)


def read(cache: Cache) -> list[float]:
    assert torch.equal(cache.values, -cache.keys)
    return cache.keys[0, 0, :, 0].tolist()


def grown(steps: int) -> Cache:
    cache = Cache(torch.empty(2, 2, 1, 0, 3, dtype=torch.float64))
    for t in range(steps):
        cache = cache.append(row(t), -row(t))
    return cache


def test_beams_that_part_at_every_step_do_not_disturb_each_other():
    """All of the 2 ** 6 continuations, each step's in an order of its own, against lists."""
    with torch.no_grad():
        beams, expected = [grown(3)], [[0.0, 1.0, 2.0]]
        for step in range(6):
            beams = [beam.append(row(10 * step + side), -row(10 * step + side)) for beam in beams for side in (0, 1)]
            expected = [[*one, 10.0 * step + side] for one in expected for side in (0, 1)]
            beams, expected = beams[::-1], expected[::-1]
        assert [read(beam) for beam in beams] == expected


def test_copies_and_the_original_go_on_by_themselves():
    with torch.no_grad():
        cache = grown(17)
        copies = [detach(cache), select(cache, torch.tensor([1, 0])), cache]
        after = [one.append(row(100 + i), -row(100 + i)) for i, one in enumerate(copies)]
        for i, one in enumerate(after):
            assert read(one) == [*range(17), 100 + i]
        assert read(cache) == list(range(17))


def test_a_cache_moves_between_modes_of_gradients():
    with torch.inference_mode():
        cache = grown(3)
    with torch.no_grad():
        cache = cache.append(row(3), -row(3))
    with torch.inference_mode():
        cache = cache.append(row(4), -row(4))
    cache = cache.append(row(5).requires_grad_(), -row(5))
    with torch.no_grad():
        cache = cache.append(row(6), -row(6))
    assert read(cache) == list(range(7))


class SlowAfterWriting(TorchFunctionMode):
    """What other threads can do behind a write they are given the time to do."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function is torch.Tensor.__setitem__:
            time.sleep(0.01)
        return result


def test_threads_that_go_on_from_one_cache_do_not_disturb_each_other():
    """A server's: all have read one prompt, and each answers by itself."""
    with torch.no_grad():
        prompt = grown(17)

    def answer(i: int) -> list[float]:
        with torch.no_grad(), SlowAfterWriting():  # both are a thread's own
            return read(prompt.append(row(100 + i), -row(100 + i)))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(answer, range(8))) == [[*range(17), 100.0 + i] for i in range(8)]
