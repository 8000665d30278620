"""Numbers of the original code that `rtx` computes by itself; `docs/original-code.md` cites them.

`python -m studies.original_code` writes `original_code.json`. It takes some seconds and needs no data. The original
code is read, not run: R-Transformer's repository has no licence, and that of feed-forward attention needs Theano.
"""

import json
import math
from pathlib import Path
from typing import Any

import torch

from rtx.tasks import build, task_by_name
from rtx.training.files import write_whole
from rtx.training.recipe import load_recipe
from studies.errata_counted import WithDeadModules
from studies.errata_measured import epsilon, equal_copies

STORED = Path(__file__).with_suffix(".json")


def parameters() -> dict[str, int]:
    """Return the parameters of both MNIST models: ours, those of the original that get gradients, and all of it."""
    recipe, found = load_recipe("mnist"), {}
    for row in ("r-transformer", "tcn"):
        plan = recipe.plan(row)
        model = build(task_by_name(plan.task), plan.model, **plan.hyperparameters)
        found[f"{row}, ours"] = sum(p.numel() for p in model.parameters())
    sizes = recipe.plan("r-transformer").hyperparameters
    D, L = sizes["d_model"], sizes["layers"]
    names = ("d_model", "layers", "heads", "window", "cell", "local_layers")
    whole = WithDeadModules(*(sizes[name] for name in names))
    dead = sum(p.numel() for name, p in whole.named_parameters() if not name.startswith("model."))
    live = found["r-transformer, ours"] + L * 4 * D  # the biases of W_q, W_k, W_v and W_o
    found |= {"r-transformer, theirs, with gradients": live, "r-transformer, theirs, all": live + dead}
    tcn = recipe.plan("tcn").hyperparameters
    # their first convolution reads one number per step, ours the embedding
    more = (tcn["d_model"] - 1) * tcn["d_model"] * tcn["kernel"]
    return found | {"tcn, theirs": found["tcn, ours"] - more}


def lengths() -> dict[str, dict[str, int]]:
    """Return the padded and the longest length of the sums, by T0: ceil(1.1 T0) steps, and a draw below that."""
    longest = {T0: math.ceil(1.1 * T0) for T0 in (50, 100, 500, 1000, 5000, 10_000)}
    return {str(T0): {"padded": steps, "longest": steps - 1} for T0, steps in longest.items()}


def never_scored(tokens: int, columns: int, context: int, scored: int) -> int:
    """Return how many tokens of a text are no target, if columns are read in windows whose first part is not scored."""
    size, found = tokens // columns, 0
    for start in range(0, size - 1, scored):
        found += max(0, min(context + scored, size - 1 - start) - context)
    return tokens - columns * found


def numbers() -> dict[str, Any]:
    """Return all numbers."""
    return {
        "parameters on MNIST": parameters(),
        "steps of sums": lengths(),
        "test tokens that are never scored": {
            "characters (eos)": never_scored(464_989, columns=1, context=80, scored=320),
            "words": never_scored(82_430, columns=10, context=40, scored=40),
        },
        "attention to oneself": {name: round(bar, 2) for name, bar in equal_copies().bars.items()},
        "size after the norm": {name: round(bar, 3) for name, bar in epsilon().bars.items()},
    }


def main(path: Path = STORED) -> None:
    """Write the numbers."""
    torch.set_num_threads(1)
    write_whole(path, (json.dumps(numbers(), indent=2) + "\n").encode())


if __name__ == "__main__":
    main()
