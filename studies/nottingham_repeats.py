"""Repeated passages in music: how much does a model lose where a tune continues as an earlier passage of it did?

`python studies/nottingham_repeats.py CHECKPOINT …` measures checkpoints of `rtx train nottingham` on the test split and
writes `nottingham_repeats.json`. Stored runs of other models, variants and seeds stay in the file.
"""

import json
import math
import shlex
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from rtx.nn.mode import evaluating
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Example
from rtx.training.checkpoint import load_checkpoint, read_card
from rtx.training.files import write_whole
from rtx.training.provenance import commit, hardware, versions

WINDOW = 6  # frames, as in the R-Transformer's window on Nottingham
CORPORA = ("nottingham", "jsb", "piano")  # whose frames are counted; the checkpoints are of the first
KINDS = ("new", "as before", "otherwise", "beginning")
NEW, AS_BEFORE, OTHERWISE, BEGINNING = range(4)
STORED = Path(__file__).with_suffix(".json")


def kinds(frames: Float[Tensor, "T K"], following: Float[Tensor, "T K"], window: int = WINDOW) -> Int[Tensor, " T"]:
    """Return the kind of prediction that each frame of a tune needs, as an index into `KINDS`.

    Args:
        frames: what the model reads, zeros and ones.
        following: the frame after each.
        window: length of a passage: a frame and the frames before it.

    Returns:
        "new" if the passage has not occurred before in the tune. "as before" if it has, and what follows is the same
        as the last time; "otherwise" if something else follows. "beginning" before the first whole passage.
    """
    read, after = ([row.numpy().tobytes() for row in rows.to(torch.uint8)] for rows in (frames, following))
    last: dict[bytes, bytes] = {}  # passage → what followed it the last time
    found = []
    for t, frame in enumerate(after):
        passage = b"".join(read[max(0, t + 1 - window) : t + 1])
        if t + 1 < window:
            found.append(BEGINNING)
            continue
        found.append(NEW if passage not in last else AS_BEFORE if last[passage] == frame else OTHERWISE)
        last[passage] = frame
    return torch.tensor(found)


def count_kinds(tunes: Iterable[Example], window: int = WINDOW) -> dict[str, int]:
    """Return the number of frames of each of `KINDS`."""
    found = torch.cat([kinds(tune.inputs, tune.target, window) for tune in tunes])
    return dict(zip(KINDS, found.bincount(minlength=len(KINDS)).tolist(), strict=True))


def nll_by_kind(model: nn.Module, tunes: Iterable[Example], window: int = WINDOW) -> dict[str, float]:
    """Return a model's nats per frame of each of `KINDS`; NaN for a kind without frames."""
    count, total = torch.zeros(len(KINDS), dtype=torch.long), torch.zeros(len(KINDS), dtype=torch.float64)
    with torch.no_grad(), evaluating(model):
        for tune in tunes:
            kind = kinds(tune.inputs, tune.target, window)
            logits = model(tune.inputs[None], torch.tensor([len(tune.inputs)]))[0]
            nll = binary_cross_entropy_with_logits(logits, tune.target, reduction="none").sum(1)
            count += kind.bincount(minlength=len(KINDS))
            total.index_add_(0, kind, nll.double())
    return dict(zip(KINDS, (total / count).tolist(), strict=True))


def measure(path: Path) -> dict[str, Any]:
    """Return model, variant and seed of a checkpoint, and its nats per frame on the test split by kind of frame.

    Raises:
        ValueError: if the checkpoint is of another task, or if the sum of all kinds is not its test score.
    """
    card, task = read_card(path), task_by_name(CORPORA[0])
    if card["task"] != task.name or "test" not in card:
        raise ValueError(f"{path}: expected a run on {task.name} with its test score, got one on {card['task']}")
    tunes = task.split("test")
    count, nll = count_kinds(tunes), nll_by_kind(load_checkpoint(path).float(), tunes)
    whole = sum(count[kind] * nll[kind] for kind in KINDS) / sum(count.values())
    if not math.isclose(whole, card["test"], rel_tol=1e-4):
        raise ValueError(f"{path}: expected its test score {card['test']}, got {whole}")
    facts = {key: card[key] for key in ("model", "variant", "seed")}
    return facts | {"nll": {kind: round(nll[kind], 4) for kind in KINDS}}


def means(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean over seeds for each model and variant."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for run in runs:
        found.setdefault((run["model"], run["variant"]), []).append(run["nll"])
    return [
        {
            "model": model,
            "variant": variant,
            "nll": {kind: round(mean(nll[kind] for nll in seeds), 4) for kind in KINDS},
        }
        for (model, variant), seeds in found.items()
    ]


def main(checkpoints: Sequence[str], path: Path = STORED) -> None:
    """Measure checkpoints and write the result with its conditions. Stored runs that are not measured anew stay."""
    if not checkpoints:
        raise SystemExit(__doc__)
    torch.set_num_threads(1)
    stored: dict[str, Any] = (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": [], "conditions": {"by": []}}
    )
    measured = [measure(Path(name)) for name in checkpoints]
    of = {(run["model"], run["variant"], run["seed"]): run for run in stored["runs"] + measured}
    runs = list(of.values())
    conditions = {
        "split": "test",
        "window": WINDOW,
        "frames": {name: count_kinds(task_by_name(name).split("test")) for name in CORPORA},
        "data_sha256": task_by_name(CORPORA[0]).sha256(),
        "by": [
            *stored["conditions"]["by"],
            {
                "command": shlex.join(["python", "studies/nottingham_repeats.py", *checkpoints]),
                "date": datetime.now(UTC).strftime("%Y-%m-%d"),
                "hardware": hardware(torch.device("cpu")),
                "versions": versions(),
                "commit": commit(),
            },
        ],
    }
    table = {"conditions": conditions, "means": means(runs), "runs": runs}
    write_whole(path, (json.dumps(table, indent=2) + "\n").encode())


if __name__ == "__main__":
    main(sys.argv[1:])
