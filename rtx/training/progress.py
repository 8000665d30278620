"""What a user sees of a run in progress: a bar in a terminal or a notebook, and logs to plot later."""

import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar, RichProgressBar, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger


class TimeLeft(ProgressBar):
    """Adds to the bar of an epoch the time until the end of the whole run, if it does not stop early."""

    began: tuple[float, float] | None = None  # when this process started, and the epochs that were done then

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
        """Return the names and values at the end of the bar."""
        shown = super().get_metrics(trainer, pl_module)
        shown.pop("v_num", None)  # the number of the log's folder
        done = trainer.current_epoch + (trainer.fit_loop.batch_idx + 1) / trainer.num_training_batches
        if self.began is None:
            self.began = time.monotonic(), done
        now, (start, before) = time.monotonic(), self.began
        if done > before:
            rest = ((trainer.max_epochs or 0) - done) * (now - start) / (done - before)
            shown["left"] = str(timedelta(seconds=max(0, round(rest))))
        return shown


class TerminalBar(TimeLeft, RichProgressBar):
    """The bar in a terminal."""


class NotebookBar(TimeLeft, TQDMProgressBar):
    """The bar in a notebook."""


def progress_bar() -> ProgressBar:
    """Return the bar for the place where this runs."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return NotebookBar() if shell is not None and hasattr(shell, "kernel") else TerminalBar()


def loggers(folder: Path) -> list[Logger]:
    """Return two logs: a table of numbers for each start of a run, and curves for `tensorboard --logdir`."""
    folder = folder.absolute()  # otherwise the loggers would take a "~" in it for the home folder
    return [
        CSVLogger(folder, name="log"),
        TensorBoardLogger(folder, name="", version="tensorboard", default_hp_metric=False),
    ]
