"""Small trained models for the explorers: from the checkpoints of finished runs to the files of the package.

`rtx train look-up transformer --seed 0` and so on train the models; `rtx/lab/pretrained.py` lists them. Then
`python studies/pretrained.py lookup runs/look-up/transformer-adam-s0/best.safetensors` rounds the weights to float16,
tests them in this form, and writes `rtx/lab/weights/lookup.safetensors`.
"""

import sys
from pathlib import Path

import torch

from rtx.lab.pretrained import ROWS, path_of
from rtx.tasks import task_by_name
from rtx.training.checkpoint import load_checkpoint, read_card, save_checkpoint
from rtx.training.evaluate import evaluate


def shrink(name: str, checkpoint: Path, path: Path | None = None) -> Path:
    """Write a checkpoint's weights as float16, with their test score and the task's baseline in the card.

    Raises:
        ValueError: if the checkpoint is of another row than the one that the name stands for.
    """
    path, card = path_of(name) if path is None else path, read_card(checkpoint)
    task = task_by_name(card["task"], **card["task_arguments"])
    if (card["recipe"], card["model"]) != ROWS[name]:
        raise ValueError(f"checkpoint: expected a run of {' '.join(ROWS[name])}, got {card['recipe']} {card['model']}")
    network, baseline = load_checkpoint(checkpoint).half(), task.baseline and task.baseline()
    save_checkpoint(path, network, **card)
    test = evaluate(path)[task.metric]
    save_checkpoint(path, network, **card | {"test": test, "test_of_float32": card["test"], "baseline": baseline})
    return path


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(shrink(sys.argv[1], Path(sys.argv[2])))
