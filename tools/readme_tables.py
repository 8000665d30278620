"""Write the tables of the READMEs afresh from the ledger: between `<!-- table: RECIPE -->` and `<!-- end -->`.

RECIPE may be followed by `--variant NAME`, as in `rtx table`.
"""

import re
from pathlib import Path

from rtx.evidence.tables import overview
from rtx.training.recipe import load_recipe

TABLE = re.compile(r"(<!-- table: (\S+)(?: --variant (\S+))? -->\n).*?(\n<!-- end -->)", re.DOTALL)
ROOT = Path(__file__).parents[1]


def with_tables(text: str, ledger: Path) -> str:
    """The text with each of its tables as the ledger has it now."""
    return TABLE.sub(lambda m: m[1] + overview(load_recipe(m[2]), ledger, m[3]).to_markdown() + m[4], text)


if __name__ == "__main__":
    for readme in (ROOT / "results/README.md",):
        readme.write_text(with_tables(readme.read_text(encoding="utf-8"), ROOT / "results"), encoding="utf-8")
