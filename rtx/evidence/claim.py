"""The papers' claims. Each file in `claims/` has those of one paper."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rtx.evidence.ledger import LEDGER
from rtx.evidence.questions import QUESTIONS
from rtx.evidence.verdict import Finding, judge

FOLDER = Path(__file__).with_name("claims")
PAPERS = ("r_transformer", "mc_rnn", "ff_attention")


@dataclass(frozen=True)
class Claim:
    """A claim, in our words."""

    name: str
    paper: str  # one of `PAPERS`
    text: str
    source: str  # where the paper says it, or "ours" for a question that the paper leaves open
    question: str  # one of `rtx.evidence.questions.QUESTIONS`
    what: dict[str, Any]  # arguments of the question: recipe, model, others and so on


@cache
def claims() -> tuple[Claim, ...]:
    """Return all claims, paper by paper."""
    found = []
    for paper in PAPERS:
        table = tomllib.loads((FOLDER / f"{paper}.toml").read_text(encoding="utf-8"))
        for entry in table["claims"]:
            named = {key: entry.pop(key) for key in ("name", "text", "source", "question")}
            found.append(Claim(paper=paper, what=entry, **named))
    return tuple(found)


def judged(results: str | Path = LEDGER) -> list[tuple[Claim, Finding]]:
    """Return every claim with its verdict by the ledger in a folder."""
    found: list[tuple[Claim, Finding]] = []
    for paper in PAPERS:
        of_paper = [claim for claim in claims() if claim.paper == paper]
        looks = [QUESTIONS[claim.question](Path(results).absolute(), **claim.what) for claim in of_paper]
        found += zip(of_paper, judge(looks), strict=True)
    return found
