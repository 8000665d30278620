"""The `rtx` command on the tiny recipes, as a script: `python run_tiny.py LOSSES train …` adds its losses to a file."""

import json
import os
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from tiny_recipe import TASKS as TINY
from tiny_recipe import tiny_recipe, tiny_text_recipe

import rtx.cli
from rtx.tasks import TASKS
from rtx.training.fit import fit

RECIPES = {
    "tiny": tiny_recipe,
    "tiny-text": tiny_text_recipe,
    "ragged": lambda: replace(tiny_recipe(), name="ragged", task="ragged"),
}


class Losses(Callback):
    """Records the loss of each step and the validation of each epoch, and writes them at the test."""

    def __init__(self, path: Path) -> None:
        self.path, self.seen = path, []

    def on_train_batch_end(self, trainer, *_) -> None:
        self.seen.append(float(trainer.callback_metrics["train_loss"]))

    def on_validation_end(self, trainer, *_) -> None:
        self.seen.append(float(trainer.callback_metrics["validation"]))

    def on_test_end(self, trainer, *_) -> None:
        self.path.with_suffix(f".{os.environ.get('RANK', 0)}").write_text(json.dumps(self.seen))


class InLastValidation(Callback):
    """Sends SIGTERM once, in the last validation."""

    def __init__(self) -> None:
        self.sent = False

    def on_validation_batch_start(self, trainer, *_, **__) -> None:
        if trainer.current_epoch == trainer.max_epochs - 1 and not self.sent:
            self.sent = True
            signal.raise_signal(signal.SIGTERM)


def main(words: list[str], *callbacks: Callback) -> None:
    """Run the command with the tiny recipes and callbacks."""
    with pytest.MonkeyPatch.context() as patch:
        for name, task in TINY.items():
            patch.setitem(TASKS, name, task)
        for command in ("rtx.cli.train", "rtx.cli.sweep"):
            patch.setattr(f"{command}.load_recipe", lambda name: RECIPES[name]())
        for module in ("rtx.evidence.record", "rtx.training.sweep"):
            patch.setattr(f"{module}.fit", partial(fit, callbacks=callbacks))
        patch.setattr("sys.argv", ["rtx", *words])
        try:
            rtx.cli.main()
        except SystemExit as end:
            if end.code:
                raise


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[2:], Losses(Path(sys.argv[1])))
