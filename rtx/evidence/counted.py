"""Claims that counting settles, without a training run."""

from collections.abc import Callable, Iterable

from rtx.evidence.paths import path_length
from rtx.tasks import task_by_name
from rtx.tasks.toy.temporal_order import CLASSES


def order_blind() -> float:
    """Return the best accuracy (%) on the order task's test split for a model that cannot tell XY from YX."""
    classes = [CLASSES[int(one.target)] for one in task_by_name("temporal-order").examples("test")]
    count = {name: classes.count(name) for name in CLASSES}
    return 100 * (count["XX"] + count["YY"] + max(count["XY"], count["YX"])) / len(classes)


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
