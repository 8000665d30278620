"""The ledger browser: a paper's table with our numbers beside the paper's; a click says what stands behind one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from rtx.evidence import tables
from rtx.evidence.ledger import LEDGER, Result, variant_of
from rtx.evidence.selection import EQUAL_SIZES, is_full, unchanged
from rtx.lab.explore.page import Page
from rtx.lab.plots import COLOURS, new_figure
from rtx.tasks import task_by_name
from rtx.training.recipe import Recipe, load_recipe, recipe_names


def ledger(recipe: str = "nottingham", results: str | Path = LEDGER) -> Page:
    """Every paper's table, with a choice of the table, and a button for each of its cells.

    Args:
        recipe: the one shown at first.
        results: the ledger's folder.

    Raises:
        ValueError: if there is no such recipe, or a file of the ledger is damaged.
    """
    load_recipe(recipe)
    data = {name: _table(load_recipe(name), Path(results)) for name in recipe_names()}
    script, still = Path(__file__).with_name("ledger.js"), _still(data[recipe])
    caption = "find a number of ours far from the paper's: how long was it trained?"
    return Page(script, data, still, caption, title="The papers' numbers and ours", table=recipe, cell="")


def _table(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """A paper's table, with a line for each group of runs and one for each row without runs."""
    found, task, lines = tables.cells(recipe, folder), task_by_name(recipe.task), tables.rows(recipe, folder)
    groups = [(f"{model} {place}", runs) for model in found for place, runs in enumerate(found[model] or [[]])]
    rows = [
        line._asdict() | {"cell": cell} | _behind(runs, f"rtx train {recipe.name} {line.model}")
        for line, (cell, runs) in zip(lines, groups, strict=True)
    ]
    details = [name for _, runs in groups for run in runs for name in run.details]
    return {
        "title": recipe.title,
        "source": recipe.source,
        "metric": next(iter(details), task.metric),
        "best": "highest" if task.test_best == "max" else "lowest",
        "rows": rows,
    }


def _behind(runs: Sequence[Result], command: str) -> dict[str, Any]:
    """The command of a line; whether it has its row's own model, size and data; whether it was fully trained."""
    if not runs:
        return {"command": command, "own": False, "full": False}
    own = unchanged(runs[0]) and variant_of(runs[0]) not in EQUAL_SIZES
    return {"command": runs[0].command, "own": own, "full": is_full(runs[0])}


def _still(table: dict[str, Any]) -> Figure:
    """Paper and ours as dots, a row for each model; not what was changed in a model, its size or its data."""
    figure, [ax] = new_figure(7.2, 0.9 + 0.34 * len({line["model"] for line in table["rows"]}))
    for line in table["rows"]:
        if line["paper"] != "-":
            ax.plot(float(line["paper"]), line["model"], "D", color="0.5", fillstyle="none", label="paper")
        if line["own"]:
            fill, label = ("full", "ours") if line["full"] else ("none", "ours, cut short")
            mean = float(line["ours"].split()[0])
            ax.plot(mean, line["model"], "o", color=COLOURS[0], fillstyle=fill, label=label)
    ax.set(xlabel=f"{table['metric']}: the {table['best']} is best", title=f"{table['title']} ({table['source']})")
    ax.invert_yaxis()
    handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if handles:
        ax.legend(handles.values(), handles.keys(), frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
