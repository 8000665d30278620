"""Learning curves of the full-size runs on Penn Treebank words (R-Transformer, Table 4).

`python studies/word_curves.py RUN …` reads the folders of finished runs, such as runs/ptb-word/transformer-adam-s0,
which `rtx train` leaves, and writes `word_curves.json`. Stored curves of other runs stay in the file.
"""

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rtx.training.files import write_whole

STORED = Path(__file__).with_suffix(".json")


def curve(run: Path) -> list[float]:
    """Return the validation perplexity after each epoch. A resumed run has a log for each of its pieces."""
    found: dict[int, float] = {}
    for log in sorted(run.glob("log/version_*/metrics.csv"), key=lambda path: int(path.parent.name.partition("_")[2])):
        with log.open(encoding="utf-8") as lines:
            found |= {int(row["epoch"]): float(row["validation"]) for row in csv.DictReader(lines) if row["validation"]}
    if [*found] != [*range(len(found))]:
        raise ValueError(f"{run}: expected the logs of all epochs, got those of {[epoch + 1 for epoch in found]}")
    return [*found.values()]


def main(runs: Sequence[str]) -> None:
    """Write the curves of these runs to `word_curves.json`."""
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    stored |= {Path(run).name: curve(Path(run)) for run in runs}
    write_whole(STORED, (json.dumps(dict(sorted(stored.items())), indent=1) + "\n").encode())


if __name__ == "__main__":
    main(sys.argv[1:])
