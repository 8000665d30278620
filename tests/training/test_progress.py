"""The time left is estimated from the batches that this process has done; logs are in the folder of the run."""

from pathlib import Path
from types import SimpleNamespace

from rtx.training.progress import TimeLeft, loggers


def test_the_time_left_uses_the_batches_that_this_process_has_done(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("rtx.training.progress.time", SimpleNamespace(monotonic=lambda: clock.now))
    loop = SimpleNamespace(batch_idx=0)
    facts = {"loggers": [], "progress_bar_metrics": {"loss": 2.0}, "max_epochs": 3, "num_training_batches": 4}
    trainer, bar = SimpleNamespace(current_epoch=1, fit_loop=loop, **facts), TimeLeft()
    assert bar.get_metrics(trainer, None) == {"loss": 2.0}  # resumed in the second epoch: no speed is known yet
    clock.now, loop.batch_idx = 106.0, 2  # two batches in six seconds; five of them are left
    assert bar.get_metrics(trainer, None) == {"loss": 2.0, "left": "0:00:15"}
    clock.now, trainer.current_epoch, loop.batch_idx = 121.0, 2, 3
    assert bar.get_metrics(trainer, None)["left"] == "0:00:00"


def test_logs_are_in_the_folder_of_the_run_whatever_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [Path(one.log_dir).parts[: len(tmp_path.parts) + 2] for one in loggers(Path("~/run"))] == [
        (*tmp_path.parts, "~", "run")
    ] * 2
