"""The ledger browser: a recipe's table with our numbers beside the paper's; a click says what stands behind one."""

from pathlib import Path
from typing import Any

from rtx.evidence import tables
from rtx.evidence.ledger import LEDGER
from rtx.lab.explore.page import Page
from rtx.tasks import task_by_name
from rtx.training.recipe import Recipe, load_recipe, recipe_names


def ledger(recipe: str = "nottingham", results: str | Path = LEDGER) -> Page:
    """The table of every recipe, with a choice of the table, and a button for each of its cells.

    Args:
        recipe: the one shown at first.
        results: the ledger's folder.

    Raises:
        ValueError: if there is no such recipe, or a file of the ledger is damaged.
    """
    load_recipe(recipe)
    names = [*tables.Row._fields, "command"]  # once, not in each of hundreds of lines
    data = {"names": names, "tables": {name: _table(load_recipe(name), Path(results)) for name in recipe_names()}}
    caption = "find a number of ours far from the paper's: how long was it trained?"
    return Page("ledger.js", data, caption, title="The papers' numbers and ours", table=recipe, cell="")


def _table(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """A recipe's table, with a line for each group of runs and one for each row without runs."""
    found, task, lines = tables.cells(recipe, folder), task_by_name(recipe.task), tables.rows(recipe, folder)
    groups = [runs for model in found for runs in found[model] or [[]]]
    rows = []
    for line, runs in zip(lines, groups, strict=True):
        rows.append([*line, runs[0].command if runs else f"rtx train {recipe.name} {line.model}"])
    return {
        "title": recipe.title,
        "source": recipe.source,
        "metric": next((name for runs in groups for run in runs for name in run.details), task.metric),
        "validated": task.metric,
        "best": "highest" if task.test_best == "max" else "lowest",
        "rows": rows,
    }
