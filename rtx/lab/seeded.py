"""Random numbers of a seed for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """What torch draws on the CPU is of that seed; afterwards its draws go on as if there had been none."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # of the CPU alone: `torch.manual_seed` would change a GPU's, too
        yield
