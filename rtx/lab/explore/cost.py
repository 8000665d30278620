"""Explorer of what a block of R-Transformer costs, and which of its costs were never needed.

Wang et al. (2019), R-Transformer, §3; the counts are those of matrix products.
"""

import ipywidgets as widgets
from matplotlib.figure import Figure

from rtx.lab.explore.explorer import Explorer
from rtx.lab.plots import COLOURS, freeze

PARTS = ("LocalRNN", "attention", "feed-forward")
WAYS = ("as published", "hoisted, causal")
GATES = 3  # a GRU
LENGTHS, WIDTHS = (50, 100, 200, 400, 784, 1600, 3200), (32, 64, 128, 160, 256, 512)


def cost(length: int = 784, width: int = 32, window: int = 7) -> Explorer:
    """Multiply-adds of a block's three sublayers, with controls `length` (T), `width` (D) and `window` (M).

    Args:
        length, width, window: where the controls stand at first; length and width among those offered.

    Raises:
        ValueError: if one of them is not offered.
    """
    for name, value, offered in (
        ("length", length, LENGTHS),
        ("width", width, WIDTHS),
        ("window", window, range(1, 17)),
    ):
        if value not in offered:
            raise ValueError(f"{name}: expected one of {', '.join(map(str, offered))}, got {value!r}")
    figure = Figure(figsize=(7.2, 2.4), layout="constrained")
    ax = figure.subplots()
    bars = [ax.barh(WAYS, [1, 1], color=COLOURS[i], label=part) for i, part in enumerate(PARTS)]
    ax.invert_yaxis()
    ax.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    ax.set(xlabel="million multiply-adds, a forward pass of one block over one sequence")
    freeze(figure)

    def update(length: int, width: int, window: int) -> str:
        counts = [multiply_adds(length, width, window, way) for way in WAYS]
        for way, count in enumerate(counts):
            left = 0.0
            for group, part in zip(bars, PARTS, strict=True):
                group[way].set_x(left)
                group[way].set_width(count[part] / 1e6)
                left += count[part] / 1e6
        end = 1.02 * sum(counts[0].values()) / 1e6
        last = max(tick for tick in ax.xaxis.get_major_locator().tick_values(0, end) if tick <= end)
        ax.set_xlim(0, max(end, 1.05 * last))  # a long number at the very end would be cut off
        return _sentence(counts, length)

    return Explorer(
        figure,
        update,
        "find a T from which attention costs more than LocalRNN; then double D, and find it again",
        length=widgets.SelectionSlider(options=LENGTHS, value=length, description="length T"),
        width=widgets.SelectionSlider(options=WIDTHS, value=width, description="width D"),
        window=widgets.IntSlider(window, 1, 16, description="window M"),
    )


def multiply_adds(length: int, width: int, window: int, way: str) -> dict[str, int]:
    """Of each sublayer: "as published", windows gathered and all T² pairs computed; or each projection once, half of
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
    all_of_it, needed = (sum(count.values()) for count in counts)
    share = 100 * counts[1]["LocalRNN"] / needed
    size = length * length * 4
    written = f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
    return (
        f"{needed / all_of_it:.0%} of the published products are needed; LocalRNN has {share:.0f} % of those. "
        f"The weights of one head, written out, take {written}."
    )
