"""Write the tables of the Markdown pages afresh, from the ledger and from the benchmark's stored result.

A table of the ledger stands between `<!-- table: RECIPE -->` and `<!-- end -->`; RECIPE may be followed by
`--variant NAME`, as in `rtx table`. The table of speeds in docs/speed.md stands after `<!-- speed -->`.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtx.evidence.tables import overview
from rtx.training.recipe import load_recipe

TABLE = re.compile(r"(<!-- table: (\S+)(?: --variant (\S+))? -->\n).*?(\n<!-- end -->)", re.DOTALL)
SPEED = re.compile(r"(<!-- speed -->\n).*?(<!-- end -->)", re.DOTALL)
ROOT = Path(__file__).parents[1]
CASES = {"mnist": "MNIST, pixel by pixel", "nottingham": "Nottingham", "characters": "characters", "words": "words"}
WAYS = {
    "rtx": "R-Transformer",
    "published": "R-Transformer, authors' code",
    "TransformerEncoder": "Transformer (torch)",
}


def with_tables(text: str, ledger: Path) -> str:
    """Return the text with each of its tables as the ledger has it now."""
    return TABLE.sub(lambda m: m[1] + overview(load_recipe(m[2]), ledger, m[3]).to_markdown() + m[4], text)


def with_speeds(text: str, measured: Mapping[str, Any]) -> str:
    """Return the text with its table of training steps, from a result of `make bench`."""
    lines = [f"| task, sequences × steps | {' | '.join(WAYS.values())} | TCN | LSTM |", "| --- " * 6 + "|"]
    for case, name in CASES.items():
        rows = {row["name"]: row for row in measured["cases"][case]["rows"] if row.get("setting", "medium") == "medium"}
        tcn, lstm = (next(row for row in rows.values() if row["name"].startswith(kind)) for kind in ("TCN", "nn.LSTM"))
        shape = re.search(r"B = (\d+), T = (\d+)", measured["cases"][case]["title"])
        assert shape
        times = (f"{row['processor_ms']:,.0f} ms" for row in [*(rows[way] for way in WAYS), tcn, lstm])
        lines.append(f"| {name}, {shape[1]} × {shape[2]} | {' | '.join(times)} |")
    return SPEED.sub(lambda m: m[1] + "\n".join(lines) + "\n" + m[2], text)


if __name__ == "__main__":
    results, speed = ROOT / "results/README.md", ROOT / "docs/speed.md"
    results.write_text(with_tables(results.read_text(encoding="utf-8"), ROOT / "results"), encoding="utf-8")
    measured = json.loads((ROOT / "benchmarks/results/cpu.json").read_text(encoding="utf-8"))
    speed.write_text(with_speeds(speed.read_text(encoding="utf-8"), measured), encoding="utf-8")
