"""Do two blocks of attention without positions learn order with the norm last, if they train longer? (Notebook 04.)

The task and the models are those of `parts_of_a_block`, where each model has 400 updates. Here they have 2,000, and a
smaller learning rate is tried, too. `python -m studies.more_updates` writes `more_updates.json`. It takes about 15
minutes of one core.
"""

from functools import partial
from pathlib import Path

from studies.fair import Problem, compare
from studies.parts_of_a_block import LENGTH, PARTS, answering, draw, loss, right

STORED = Path(__file__).with_suffix(".json")
NAMES = [f"no LocalRNN, 2 blocks, {norm}-norm" for norm in ("post", "pre")]
PROBLEMS = {
    "longer": Problem(
        {name: partial(answering, PARTS[name]) for name in NAMES},
        draw,
        loss,
        partial(right, (LENGTH, 120)),
        after=(400, 1000, 2000),
        rates=(0.0003, 0.001, 0.003),
    )
}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
