"""How long each explorer takes to answer: `python tools/latency.py`, on one core of a quiet machine.

Every control is moved through some of its values three times. The last round counts: what is computed has been kept by
then, and what is left is the picture. Milliseconds of processor time, the median and the longest.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
from explorer_cells import EXPLORERS, LIVE, SETUP  # type: ignore[import-not-found]

ALSO = ["explore.errata()"]
MOST = 9  # values of a control


def values(control: Any) -> list[Any]:
    """Some values that a control can have."""
    if hasattr(control, "options"):
        found = [option[1] if isinstance(option, tuple) else option for option in control.options]
    elif isinstance(control.value, bool):
        found = [False, True]
    else:
        step = control.step or (control.max - control.min) / MOST
        count = round((control.max - control.min) / step) + 1
        found = [type(control.value)(control.min + i * step) for i in range(count)]
    return found[:: max(1, len(found) // MOST)]


def answers(explorer: Any) -> Iterator[float]:
    """Milliseconds of each change, in the last round."""
    for turn in range(3):
        for name, control in explorer.controls.items():
            for value in values(control):
                if value == control.value:
                    continue
                began = time.process_time()
                explorer.set(**{name: value})
                if turn == 2:
                    yield 1000 * (time.process_time() - began)


def main() -> None:
    """Print a line for each explorer."""
    names: dict[str, Any] = {}
    exec(SETUP, names)
    for source in (*EXPLORERS, *LIVE, *ALSO):
        found = list(answers(eval(source, names)))
        print(f"{source.split('(')[0]:22} median {statistics.median(found):4.0f} ms, longest {max(found):4.0f} ms")


if __name__ == "__main__":
    main()
