"""Where a music model's loss comes from: frames that go on as an earlier passage of the same tune did, and others.

`python -m rtx.lab.repeats CHECKPOINT …` measures checkpoints of `rtx train nottingham` on the test split and adds them
to `repeats.json`, which ships with the package; without that file it begins one.
"""

import json
import math
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from rtx.nn.mode import evaluating
from rtx.nn.validate import check_positive
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Example
from rtx.training.checkpoint import load_checkpoint, read_card
from rtx.training.files import write_whole
from rtx.training.provenance import commit, hardware, versions

WINDOW = 6  # frames, as R-Transformer's window on Nottingham
CORPORA = ("nottingham", "jsb", "piano")  # whose frames are counted; the checkpoints are of the first
KINDS = ("new", "as before", "otherwise", "beginning")
NEW, AS_BEFORE, OTHERWISE, BEGINNING = range(4)
STORED = Path(__file__).with_name("repeats.json")


@dataclass(frozen=True)
class Measured:
    """A run's loss by kind of frame.

    Args:
        model, variant, seed: as in the ledger.
        nll: nats per frame of each of `KINDS`.
    """

    model: str
    variant: str
    seed: int
    nll: dict[str, float]


def kinds(frames: Float[Tensor, "T K"], following: Float[Tensor, "T K"], window: int = WINDOW) -> Int[Tensor, " T"]:
    """What kind of prediction each frame of a tune asks for, as an index into `KINDS`.

    Args:
        frames: what is read, zeros and ones.
        following: the frame after each.
        window: the passage that is looked for: a frame and those before it, so many together.

    Returns:
        "new" where the passage did not occur before in the tune; "as before" where it did, and is followed by what
        followed it the last time; "otherwise" by something else; "beginning" where it is not full yet.

    Raises:
        ValueError: if `window` is below 1.
    """
    check_positive("window", window)
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
    """How many frames there are of each of `KINDS`."""
    found = torch.cat([kinds(tune.inputs, tune.target, window) for tune in tunes])
    return dict(zip(KINDS, found.bincount(minlength=len(KINDS)).tolist(), strict=True))


def nll_by_kind(model: nn.Module, tunes: Iterable[Example], window: int = WINDOW) -> dict[str, float]:
    """A model's nats per frame of each of `KINDS`, NaN where there is none."""
    count, total = torch.zeros(len(KINDS), dtype=torch.long), torch.zeros(len(KINDS), dtype=torch.float64)
    with torch.no_grad(), evaluating(model):
        for tune in tunes:
            kind = kinds(tune.inputs, tune.target, window)
            logits = model(tune.inputs[None], torch.tensor([len(tune.inputs)]))[0]
            nll = binary_cross_entropy_with_logits(logits, tune.target, reduction="none").sum(1)
            count += kind.bincount(minlength=len(KINDS))
            total.index_add_(0, kind, nll.double())
    return dict(zip(KINDS, (total / count).tolist(), strict=True))


def measure(path: Path) -> Measured:
    """What a checkpoint loses on the test split.

    Raises:
        ValueError: if it is no checkpoint of a run, or does not come to the test score that it names.
    """
    card, task = read_card(path), task_by_name(CORPORA[0])
    if card["task"] != task.name or "test" not in card:
        raise ValueError(f"{path}: expected a run on {task.name} with its test score, got one on {card['task']}")
    tunes = task.split("test")
    count, nll = count_kinds(tunes), nll_by_kind(load_checkpoint(path).float(), tunes)
    whole = sum(count[kind] * nll[kind] for kind in KINDS) / sum(count.values())
    if not math.isclose(whole, card["test"], rel_tol=1e-4):
        raise ValueError(f"{path}: expected the score that it names, {card['test']}, got {whole}")
    return Measured(card["model"], card["variant"], card["seed"], {kind: round(nll[kind], 4) for kind in KINDS})


def stored(path: Path = STORED) -> tuple[dict[str, Any], list[Measured]]:
    """What ships with the package: on what it was measured, by which commands, and each run in the order of these."""
    table = json.loads(path.read_text(encoding="utf-8"))
    return table["conditions"], [Measured(**run) for run in table["runs"]]


def means(measured: Iterable[Measured]) -> dict[tuple[str, str], dict[str, float]]:
    """By model and variant, the mean over seeds of the nats per frame of each of `KINDS`."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for one in measured:
        found.setdefault((one.model, one.variant), []).append(one.nll)
    return {name: {kind: mean(nll[kind] for nll in seeds) for kind in KINDS} for name, seeds in found.items()}


def main(checkpoints: Sequence[str], path: Path = STORED) -> None:
    """Measure checkpoints and put them behind what the file holds; it is written at the end.

    Raises:
        ValueError: if there is none, if the file's others were measured on other data, or as `measure`.
    """
    if not checkpoints:
        raise ValueError("expected the checkpoints of runs on nottingham, got none")
    torch.set_num_threads(1)
    on = _measured_on()
    before, runs = stored(path) if path.exists() else (on | {"by": []}, [])
    if on != {key: before[key] for key in on}:
        raise ValueError(f"{path}: expected what was measured on {on}, got {before}; remove it to begin anew")
    runs += [measure(Path(name)) for name in checkpoints]
    conditions = on | {"by": [*before["by"], _measured_by(checkpoints)]}
    table = {"conditions": conditions, "runs": [asdict(run) for run in runs]}
    write_whole(path, (json.dumps(table, indent=2) + "\n").encode())


def _measured_on() -> dict[str, Any]:
    return {
        "split": "test",
        "window": WINDOW,
        "frames": {name: count_kinds(task_by_name(name).split("test")) for name in CORPORA},
        "data_sha256": task_by_name(CORPORA[0]).sha256(),
    }


def _measured_by(checkpoints: Sequence[str]) -> dict[str, Any]:
    return {
        "command": shlex.join(["python", "-m", "rtx.lab.repeats", *checkpoints]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "hardware": hardware(torch.device("cpu")),
        "versions": versions(),
        "commit": commit(),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
