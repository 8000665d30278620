"""Claims that counting settles, without a training run: classes, and shortest paths through a channel of MC-RNN.

Paths: Xu et al. (2019), Eq. 1 and §5.2.
"""

from collections.abc import Callable, Iterable

from rtx.tasks import task_by_name
from rtx.tasks.toy.temporal_order import CLASSES

CHANNELS = 4  # the paper's n


def order_blind() -> float:
    """Return the best accuracy (%) on the order task's test split for a model that cannot tell XY from YX."""
    classes = [CLASSES[int(one.target)] for one in task_by_name("temporal-order").examples("test")]
    return 100 - 100 * min(classes.count("XY"), classes.count("YX")) / len(classes)


def path_length(t: int, k: int, distance: int, n: int) -> int:
    """Edges on the shortest path from step t back to t - distance in channel k: the longest edge is always best."""
    goal, edges = t - distance, 0
    while t > goal:
        longest = (t - k - 1) % (n - 1) + 1  # Eq. 1, m_t^k
        t -= min(longest, t - goal)
        edges += 1
    return edges


def beyond_path_bound(which: Callable[[Iterable[int]], int]) -> dict[str, float]:
    """Return by how many steps a path of MC-RNN is longer than its printed bound, for each distance l of 1 to 7 steps.

    The path is that of the channel where it is longest, if `which` is `max`, or shortest, if `which` is `min`.
    """
    found = {}
    for distance in range(1, 8):
        path = which(path_length(100, channel, distance, CHANNELS) for channel in range(1, CHANNELS))
        found[f"l = {distance}"] = float(path - (distance // (CHANNELS - 1) + 1))
    return found
