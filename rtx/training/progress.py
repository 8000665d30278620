"""What one sees of a run while it goes on: a bar in a terminal or a notebook, and logs to plot later."""

import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar, RichProgressBar, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger


class TimeLeft(ProgressBar):
    """Adds to a bar of the epoch, behind loss and metric, how long the whole run will go on if no epoch is left out."""

    began: tuple[float, float] | None = None  # when this process did, and how many epochs were done then

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
        """The names and values at the end of the bar."""
        shown = super().get_metrics(trainer, pl_module)
        shown.pop("v_num", None)  # of the log's folder
        done = trainer.current_epoch + (trainer.fit_loop.batch_idx + 1) / trainer.num_training_batches
        if self.began is None:
            self.began = time.monotonic(), done
        now, (start, before) = time.monotonic(), self.began
        if done > before:
            rest = ((trainer.max_epochs or 0) - done) * (now - start) / (done - before)
            shown["left"] = str(timedelta(seconds=max(0, round(rest))))
        return shown


class TerminalBar(TimeLeft, RichProgressBar):
    """In a terminal."""


class NotebookBar(TimeLeft, TQDMProgressBar):
    """In a notebook."""


def progress_bar() -> ProgressBar:
    """The bar for where this runs."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return NotebookBar() if shell is not None and hasattr(shell, "kernel") else TerminalBar()


def loggers(folder: Path) -> list[Logger]:
    """A table of numbers for each part of a run, and curves of all its parts for `tensorboard --logdir`."""
    folder = folder.absolute()  # else they would take a "~" for the home, where nothing else of the run is
    return [
        CSVLogger(folder, name="log"),
        TensorBoardLogger(folder, name="", version="tensorboard", default_hp_metric=False),
    ]
