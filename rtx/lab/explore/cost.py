"""Explorer of what a block of R-Transformer costs, and which of its costs were never needed.

Wang et al. (2019), R-Transformer, §3; the counts are those of matrix products.
"""

from rtx.lab.explore.recording import Panel, Recording, Slide, Values

PARTS = ("LocalRNN", "attention", "feed-forward")
WAYS = ("as published", "hoisted, causal")
GATES = 3  # a GRU
LENGTHS, WIDTHS, WINDOWS = (50, 100, 200, 400, 784, 1600, 3200), (32, 64, 128, 160, 256, 512), (1, 3, 6, 7, 9, 12, 16)


def cost(length: int = 784, width: int = 32, window: int = 7) -> Recording:
    """Multiply-adds of a block's three sublayers, with controls `length` (T), `width` (D) and `window` (M).

    Args:
        length, width, window: where the controls stand at first.

    Raises:
        ValueError: if one of them is not offered.
    """

    def see(length: int, width: int, window: int) -> Values:
        counts = [multiply_adds(length, width, window, way) for way in WAYS]
        bars = [[count[part] / 1e6 for part in PARTS] for count in counts]
        return _sentence(counts, length), {"bars": bars}

    return Recording(
        "What does a block cost?",
        "find a T from which attention costs more than LocalRNN; then double D, and find it again",
        {
            "length": Slide("length T", LENGTHS),
            "width": Slide("width D", WIDTHS),
            "window": Slide("window M", WINDOWS),
        },
        {"bars": Panel("bars", "multiply-adds", up="million", names=WAYS, places=PARTS, fit=True)},
        see,
        name="cost",
        length=length,
        width=width,
        window=window,
    )


def multiply_adds(length: int, width: int, window: int, way: str) -> dict[str, int]:
    """Multiply-adds of each sublayer, in a forward pass over one sequence.

    "as published": windows are gathered and all T² pairs computed. "hoisted, causal": each projection once, half of
    the pairs.
    """
    T, D, M = length, width, window
    published = way == WAYS[0]
    return {
        "LocalRNN": T * GATES * D * D * (2 * M if published else M),
        "attention": 4 * T * D * D + 2 * D * (T * T if published else T * (T + 1) // 2),
        "feed-forward": 8 * T * D * D,
    }


def _sentence(counts: list[dict[str, int]], length: int) -> str:
    published, needed = (sum(count.values()) for count in counts)
    share = 100 * counts[1]["LocalRNN"] / needed
    size = length * length * 4
    written = f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
    return (
        f"{published / 1e6:,.1f} million multiply-adds as published, {needed / 1e6:,.1f} million needed "
        f"({needed / published:.0%}). LocalRNN has {share:.0f} % of those. The weights of one head take {written}."
    )
