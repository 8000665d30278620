"""Shortest paths through a channel of MC-RNN: Xu et al. (2019), Eq. 1 and §5.2."""


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
