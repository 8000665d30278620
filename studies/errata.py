"""Where the papers disagree with each other, with their code or with arithmetic: each as a question with evidence.

`python -m studies.errata` computes the evidence of every erratum with the models of this package, in a few seconds, and
writes `rtx/lab/errata.json`, which the explorer reads.
"""

import json
from typing import Any

import torch

from rtx.lab.explore.errata import CASES
from rtx.training.files import write_whole
from studies.errata_counted import COUNTED
from studies.errata_measured import MEASURED
from studies.evidence import Erratum


def case(erratum: Erratum) -> dict[str, Any]:
    """Return an erratum with its evidence, as the explorer shows it.

    Raises:
        ValueError: if the evidence does not support the verdict.
    """
    found = erratum.find()
    if not found.supported:
        raise ValueError(f"{erratum.title}: the numbers {found.bars} do not support: {found.verdict}")
    texts = {name: getattr(erratum, name) for name in ("title", "source", "claim", "question")}
    bars = [[name, float(f"{value:.4g}")] for name, value in found.bars.items()]
    return {**texts, "bars": bars, "unit": found.unit, "verdict": found.verdict}


def main() -> None:
    """Compute all and write them."""
    torch.set_num_threads(1)
    cases = [case(erratum) for erratum in (*MEASURED, *COUNTED)]
    write_whole(CASES, f"{json.dumps(cases, indent=2, ensure_ascii=False)}\n".encode())


if __name__ == "__main__":
    main()
