"""The table below the training lab's picture: a line for each run, with its export."""

from collections.abc import Sequence
from html import escape

from rtx.lab.choice import Choice
from rtx.lab.plots import COLOURS
from rtx.lab.training_run import TrainingRun

COLUMNS = ("", "model", "settings", "parameters", "updates", "best validation", "export")


def table(runs: Sequence[tuple[Choice, TrainingRun]]) -> str:
    """Runs as HTML, each marked with the colour of its curves."""
    head = "".join(f'<th style="text-align: left; padding-right: 1em">{name}</th>' for name in COLUMNS)
    return f"<table><tr>{head}</tr>{''.join(_row(i, *one) for i, one in enumerate(runs))}</table>"


def _row(place: int, choice: Choice, run: TrainingRun) -> str:
    red, green, blue = (round(255 * part) for part in COLOURS[place % len(COLOURS)])
    mark = f'<span style="color: rgb({red}, {green}, {blue})">■</span>'
    changed = ", ".join(f"{key} {value}" for key, value in choice.overrides.items()) or "as the recipe has it"
    scores = [score for _, score in run.history.validations]
    best = f"{(max if run.task and run.task.best == 'max' else min)(scores):.3f}" if scores else "-"
    cells = (choice.row, f"{changed}, seed {choice.seed}", f"{run.parameters:,}", f"{len(run.history.losses):,}", best)
    both = f"<pre>{escape(choice.command())}\n\n{escape(choice.code())}</pre>"
    export = f"<details><summary>command and code</summary>{both}</details>"
    return f"<tr><td>{mark}</td>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}<td>{export}</td></tr>"
