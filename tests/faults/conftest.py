"""What the tests of faults share: processes that start quickly and are really killed."""

import os
import random
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerContext
from typing import Any

import pytest


@pytest.fixture
def killed(processes: ForkServerContext) -> Callable[..., Iterator[Any]]:
    """Starts `work(pipe, *arguments)` again and again, each time killed a moment after it has said that it began.

    The moments are seeded draws. What it sent before it died is yielded, a list for each life.
    """

    def lives(work: Callable[..., None], *arguments: Any, times: int = 8, longest: float = 0.05) -> Iterator[list[Any]]:
        draws = random.Random(0)
        for _ in range(times):
            ours, theirs = processes.Pipe(duplex=False)
            child = processes.Process(target=work, args=(theirs, *arguments))
            child.start()
            theirs.close()
            said = [ours.recv()]
            time.sleep(draws.uniform(0, longest))
            assert child.pid is not None
            os.kill(child.pid, 9)
            child.join()
            assert child.exitcode == -9  # it was still at work
            try:
                while True:
                    said.append(ours.recv())
            except EOFError:
                yield said

    return lives
