"""Claims that counting settles, without a training run: classes, and shortest paths through a channel of MC-RNN.

Paths: Xu et al. (2019), Eq. 1 and §5.2.
"""

from collections.abc import Callable, Iterable

from rtx.tasks import task_by_name
from rtx.tasks.toy.temporal_order import CLASSES


def order_blind() -> float:
    """Return the best accuracy (%) on the order task's test split for a model that cannot tell XY from YX."""
    classes = [CLASSES[int(one.target)] for one in task_by_name("temporal-order").examples("test")]
    count = {name: classes.count(name) for name in CLASSES}
    return 100 * (count["XX"] + count["YY"] + max(count["XY"], count["YX"])) / len(classes)


def in_degree(t: int, k: int, n: int) -> int:
    """m_t^k, Eq. 1."""
    return (t - k - 1) % (n - 1) + 1


def path_length(t: int, k: int, distance: int, n: int) -> int:
    """Edges on the shortest path from step t back to t - distance in channel k: the longest edge is always best."""
    goal, edges = t - distance, 0
    while t > goal:
        t -= min(in_degree(t, k, n), t - goal)
        edges += 1
    return edges


def beyond_path_bound(which: Callable[[Iterable[int]], int], channels: int = 4) -> dict[str, float]:
    """Return by how many steps a path of MC-RNN is longer than its printed bound, for each distance of 1 to 7 steps.

    Args:
        which: `max` for the channel with the longest path, `min` for the one with the shortest.
        channels: the paper's n.
    """
    between = channels - 1
    paths = {
        distance: which(path_length(100, channel, distance, channels) for channel in range(1, channels))
        for distance in range(1, 8)
    }
    return {f"l = {distance}": float(path - (distance // between + 1)) for distance, path in paths.items()}
