"""Near by recurrence and far by attention, or the reverse? (Notebook 16.)

Models of about 39,000 parameters learn the locality dial with rule and book. The rule needs the order of the last two
symbols. The book is in steps 1 to 5. From step 13 on it is outside the window of Griffin's attention.
`python -m studies.near_and_far` writes `near_and_far.json`. It takes about 13 minutes of one core.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import rtx
from rtx.tasks.build import SequenceModel
from studies import which_past
from studies.fair import compare

STORED = Path(__file__).with_suffix(".json")
SYMBOLS, WIDTH, HEADS, WINDOW = which_past.SYMBOLS, 32, 4, 8


BACKBONES = {
    "R-Transformer": partial(rtx.RTransformer, WIDTH, 2, HEADS, window=4, norm="pre"),
    "Griffin": partial(rtx.Griffin, WIDTH, 3, HEADS, WINDOW),
    "Transformer": partial(rtx.Transformer, 40, 2, HEADS, norm="pre", position="relative", max_distance=WINDOW),
    "GRU": partial(rtx.RNN, 78, cell="gru"),
}


def reader(name: str) -> SequenceModel:
    """Return a model of the dial's symbols."""
    return SequenceModel(BACKBONES[name](), 2 * SYMBOLS + 1, SYMBOLS, "step")  # type: ignore[operator]


READERS = {name: partial(reader, name) for name in BACKBONES}
PROBLEMS = {"rule and book": replace(which_past.dialled((1.0, 1.0)), models=READERS)}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
