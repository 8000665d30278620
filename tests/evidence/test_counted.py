"""Numbers that are counted rather than trained, against a search that shares no code."""

import itertools

import pytest

from rtx.evidence.counted import path_length
from rtx.nn import reference


def searched(t: int, k: int, distance: int, n: int) -> int:
    """The shortest path, breadth first, over edges found by walking from block to block."""
    front, edges = {t}, 0
    while t - distance not in front:
        front = {s for node in front for s in range(reference.block_start(node, k, n, "equation"), node)}
        edges += 1
    return edges


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_the_longest_edge_is_always_best(n: int) -> None:
    for t, k, distance in itertools.product(range(20, 28), range(1, n), range(1, 15)):
        assert path_length(t, k, distance, n) == searched(t, k, distance, n)
