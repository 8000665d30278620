"""What a run prints: a header, lines of progress and a summary, as text or as JSON."""

import json
import shlex
import sys
from pathlib import Path
from statistics import median
from typing import Any

from rtx.evidence.ledger import read_result, read_results
from rtx.evidence.tables import DIRECTION, duration, printable
from rtx.training.recipe import Plan


class Report:
    """Prints the events of a run: each as lines of text, or as one JSON object in one line.

    Args:
        as_json: print JSON.
        brief: print one line at the start of a run and none at its end, because a sweep has many runs.
    """

    def __init__(self, as_json: bool = False, brief: bool = False) -> None:
        self.as_json, self.brief = as_json, brief
        self.bar = sys.stdout.isatty() and not as_json  # Lightning's bar shows the progress on a terminal
        self.start: dict[str, Any] = {}

    def __call__(self, kind: str, facts: dict[str, Any]) -> None:
        """Print one event; see `rtx.training.progress.Tell`."""
        if kind == "start":
            self.start = facts
        if self.as_json:
            print(json.dumps({"event": kind} | facts), flush=True)
        elif kind == "start":
            self._header(facts)
        elif kind == "progress" and not self.bar:
            print(_line(facts, self.start.get("metric", "")), flush=True)
        elif kind == "trained" and not self.brief:
            print(f"training ended after {facts['epochs']} epochs; testing the weights of the best epoch", flush=True)

    def _header(self, facts: dict[str, Any]) -> None:
        if self.brief:
            print(printable(f"run {facts['variant']}"), flush=True)
            return
        scale = "" if facts["scale"] == "full" else f", scale {facts['scale']}"
        other = "" if facts["same_data"] else "; these are not the data of the paper's table"
        _say("task", f"{facts['task']} (recipe {facts['recipe']}{scale}){other}")
        _say("model", f"{facts['model']}, {facts['parameters']:,} parameters, variant {facts['variant']}")
        for name, said in facts["about"].items():
            _say(name, said)
        _say("metric", f"{facts['metric']}, {DIRECTION[facts['best']]}")
        self._compared_with()

    def _compared_with(self) -> None:
        if self.start.get("baseline") is not None:
            _say("baseline", f"{self.start['baseline']:.4g} on the test split, without a model")
        if self.start.get("paper") is not None:
            size = "" if self.start["scale"] == "full" else ", at its full size"
            _say("paper", f"{self.start['paper']:g} ({self.start['source']}{size})")

    def end(self, plan: Plan, path: Path, results: Path, checkpoint: Path) -> None:
        """Print the test score, what to compare it with, where the files are, and what to do next."""
        run = read_result(path)
        same = [one for one in read_results(run.recipe, results) if (one.model, one.data) == (run.model, run.data)]
        others = sorted(one.test for one in same if one.scale == run.scale and one != run)
        facts: dict[str, Any] = {
            "test": run.test,
            "metric": next(iter(run.details), run.metric),
            "epoch": run.epoch,
            "validation": run.validation,
            "seconds": run.seconds,
            "baseline": self.start.get("baseline"),
            "paper": self.start.get("paper"),
            "others": others,
            "checkpoint": str(checkpoint),
            "result": str(path),
            "next": _next(plan, checkpoint),
        }
        if self.as_json:
            print(json.dumps({"event": "end"} | facts), flush=True)
            return
        direction = DIRECTION[self.start["test_best"]]
        _say("test", f"{run.test:.4g}  {facts['metric']}, {direction}; best epoch {run.epoch}")
        self._compared_with()
        if others:
            found = f"{others[0]:.4g}"
            if others[1:]:
                found += f" to {others[-1]:.4g}, median {median(others):.4g}"
            _say("ledger", f"{found}; other runs of this row on these data, with any settings: {len(others)}")
        _say("checkpoint", str(checkpoint))
        _say("result", str(path))
        for word, command in zip(("next", "or"), facts["next"], strict=True):
            _say(word, command)


def _say(name: str, text: str) -> None:
    print(printable(f"{name:<12}{text}"), flush=True)


def _line(facts: dict[str, Any], metric: str) -> str:
    units = {"loss": "", "validation": f" {metric}"}  # often not the same
    scores = "".join(f"  {key} {facts[key]:.4g}{unit}" for key, unit in units.items() if facts[key] is not None)
    left = f"{'at most' if facts['may_end_early'] else 'about'} {duration(facts['seconds_left'])} left"
    place = f"epoch {facts['epoch']}/{facts['epochs']}  step {facts['step']}/{facts['steps']}"
    minutes, seconds = divmod(facts["seconds"], 60)
    return f"{minutes:>5}:{seconds:02}  {place}{scores}  {left}"


def _next(plan: Plan, checkpoint: Path) -> list[str]:
    """Return the two commands that use a trained model best."""
    from rtx.tasks import task_by_name

    task, file = task_by_name(plan.task, **plan.task_arguments), shlex.quote(str(checkpoint))
    first = f"rtx table {plan.recipe.name}"
    if task.per == "pair":
        first = f"rtx translate {file} < sentences.txt"
    elif task.per == "token" or task.frame_seconds is not None:
        first = f"rtx generate {file}"
    return [first, f"rtx evaluate {file} --split validation"]
