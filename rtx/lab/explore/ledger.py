"""The ledger browser: a paper's table with our numbers beside the paper's; a click says what stands behind one."""

from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.figure import Figure

from rtx.evidence import tables
from rtx.evidence.ledger import LEDGER, variant_of
from rtx.evidence.selection import EQUAL_SIZES, is_full, unchanged
from rtx.lab.explore.page import Page
from rtx.lab.plots import COLOURS, new_figure
from rtx.tasks import task_by_name
from rtx.training.recipe import Recipe, load_recipe, recipe_names

SHOWN = ("ours", "variant", "seeds", "epoch", "validation", "budget", "parameters", "hardware")


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
    still = _still(load_recipe(recipe), Path(results), data[recipe])
    caption = "find a number of ours far from the paper's: how long was it trained?"
    return Page(
        Path(__file__).with_name("ledger.js"),
        data,
        still,
        caption,
        title="The papers' numbers and ours",
        table=recipe,
        cell="",
    )


def _table(recipe: Recipe, folder: Path) -> dict[str, Any]:
    found = tables.cells(recipe, folder)
    task, runs = task_by_name(recipe.task), [run for groups in found.values() for group in groups for run in group]
    return {
        "title": recipe.title,
        "source": recipe.source,
        "metric": next((name for run in runs for name in run.details), task.metric),
        "best": "highest" if task.test_best == "max" else "lowest",
        "rows": [_row(recipe, model, groups) for model, groups in found.items()],
    }


def _row(recipe: Recipe, model: str, groups: list[list[Any]]) -> dict[str, Any]:
    paper = tables.printed(recipe, model)
    cells = []
    for group in groups:
        line = tables.row(paper, group)
        cells.append({name: getattr(line, name) for name in SHOWN} | {"command": group[0].command})
    return {"model": model, "paper": paper, "cells": cells, "command": f"rtx train {recipe.name} {model}"}


def _still(recipe: Recipe, folder: Path, table: dict[str, Any]) -> Figure:
    """Paper and ours as dots, a row for each model; not what was changed in a model, its size or its data."""
    rows = tables.cells(recipe, folder)
    figure, [ax] = new_figure(7.2, 0.9 + 0.34 * len(rows))
    for y, (model, groups) in enumerate(rows.items()):
        if (paper := recipe.paper(model)) is not None:
            ax.plot(paper, y, "D", color="0.5", fillstyle="none", label="paper")
        for runs in filter(lambda runs: unchanged(runs[0]) and variant_of(runs[0]) not in EQUAL_SIZES, groups):
            fill, label = ("full", "ours") if is_full(runs[0]) else ("none", "ours, cut short")
            ax.plot(mean(run.test for run in runs), y, "o", color=COLOURS[0], fillstyle=fill, label=label)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlabel=f"{table['metric']}: the {table['best']} is best", title=f"{table['title']} ({table['source']})")
    ax.set_ylim(len(rows) - 0.5, -0.5)
    handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if handles:
        ax.legend(handles.values(), handles.keys(), frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
