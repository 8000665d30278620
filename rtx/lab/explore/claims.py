"""The claims of the papers and their verdicts, with a filter by paper, by verdict and by word."""

from pathlib import Path
from typing import Any

from rtx.evidence.claim import PAPERS, Claim, judged
from rtx.evidence.ledger import LEDGER
from rtx.evidence.tables import overview
from rtx.lab.explore.page import Page
from rtx.training.recipe import load_recipe

NAMES = dict(zip(PAPERS, ("R-Transformer", "MC-RNN", "Feed-forward attention"), strict=True))
VERDICTS = ("holds", "fails", "open")
ALL: dict[str, Any] = {"paper": "all", "verdict": "all", "word": ""}
PRESETS = {"what held": ALL | {"verdict": "holds"}, "what failed": ALL | {"verdict": "fails"}}
PRESETS["on music"] = ALL | {"word": "music"}
SCORED = ("ahead", "needs", "not_needed", "bound")  # questions about test scores; the others are about epochs or time


def claims(results: str | Path = LEDGER) -> Page:
    """Every claim with its verdict and the numbers behind it.

    Args:
        results: the ledger's folder.

    Raises:
        ValueError: if a file of the ledger is damaged.
    """
    found, tasks = [], {"": 0}  # a claim has its task's place in a list, because many claims share a task
    for claim, finding in judged(results):
        about = {"paper": NAMES[claim.paper], "text": claim.text, "source": claim.source}
        about |= {name: getattr(finding, name) for name in ("verdict", "sentence", "suggests")}
        found.append(about | {"task": tasks.setdefault(_task(claim, Path(results)), len(tasks))})
    return Page(
        "claims.js",
        {"claims": found, "tasks": list(tasks), "papers": list(NAMES.values()), "verdicts": VERDICTS},
        "choose a paper and a verdict, or type a word, for example: attention.",
        title="Claims and verdicts",
        presets=PRESETS,
        **ALL,
    )


def _task(claim: Claim, results: Path) -> str:
    """The task that a claim is about; if the claim is about test scores, what they are and which are better."""
    if "recipe" not in claim.what:
        return ""
    recipe = load_recipe(claim.what["recipe"])
    if claim.question not in SCORED:
        return recipe.title
    metric, better = overview(recipe, results).score.rsplit(", ", 1)
    return f"{recipe.title}; {claim.what.get('detail', metric)}, {better}"
