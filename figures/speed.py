"""The benchmark's times as bars, from the JSON that `make bench` wrote."""

import json
from pathlib import Path
from textwrap import fill
from typing import Any

from drawing import new_figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rtx.lab.plots import COLOURS

RESULT = Path(__file__).parents[1] / "benchmarks" / "results" / "cpu.json"
PANELS = ("mnist", "nottingham", "characters", "words", "pooling", "mc-rnn")


def speed_cpu(path: Path = RESULT) -> Figure:
    """Milliseconds of a training step: ours blue, the published code and the plain version orange, other peers grey."""
    result = json.loads(path.read_text(encoding="utf-8"))
    cases = [result["cases"][name] for name in PANELS if name in result["cases"]]
    columns = min(3, len(cases))
    figure, axes = new_figure(12, 3.1 * -(-len(cases) // columns) + 0.6, columns, -(-len(cases) // columns))
    for ax, case in zip(axes, cases, strict=False):
        _bars(ax, case, "processor_ms" if result["clock"] == "processor" else "wall_ms")
    for ax in axes[len(cases) :]:
        ax.set_visible(False)
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    quick = "QUICK RUN, short sequences: no comparison; " if result["quick"] else ""
    command = result["command"].replace(" ", "\u00a0")  # not to be broken
    source = f"{quick}{result['hardware']}; {versions}; {result['date']}; {command}"
    figure.supxlabel(fill(source, 58 * columns), fontsize=8)
    return figure


def _bars(ax: Axes, case: dict[str, Any], quantity: str) -> None:
    names, times = [row["name"] for row in case["rows"]], [row[quantity] for row in case["rows"]]
    ax.barh(range(len(names)), times, 0.6, color=[*map(_colour, names)])
    for place, milliseconds in enumerate(times):
        end = (milliseconds, place)
        ax.annotate(_rounded(milliseconds), end, (3, 0), textcoords="offset points", va="center", fontsize=7)
    title, _, rest = case["title"].partition(": ")
    sizes = rest.replace(" = ", "\u00a0=\u00a0")  # not to be broken
    ax.set_title(f"{title}\n{fill(sizes, 48)}", fontsize=8)
    ax.set_yticks(range(len(names)), [name.replace(", T = ", "\nT = ") for name in names], fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.set(xlabel="ms", ylim=(len(names) - 0.4, -0.6), xlim=(0, 1.2 * max(times)))


def _colour(name: str) -> tuple[float, float, float]:
    if name.startswith("rtx"):
        return COLOURS[0]
    return COLOURS[3] if name in ("published", "plain eager") else COLOURS[7]


def _rounded(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"
