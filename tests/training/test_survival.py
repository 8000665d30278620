"""A killed run is resumed and ends with the same bits as an uninterrupted run. A stopped run does, too."""

import json
import os
import random
import re
import resource
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from run_tiny import main
from safetensors.torch import load_file
from tiny_recipe import CPU, tiny_recipe, tiny_text_recipe
from tiny_recipe import TASKS as TINY
from torch.utils._pytree import tree_flatten

from rtx.evidence.record import train
from rtx.tasks import TASKS
from rtx.training import survival
from rtx.training.states import load_state
from rtx.training.timing import format_time, parse_time

PLANS = {
    # dropout, a plateau, early stopping
    "sums": lambda: tiny_recipe().plan(
        "r-transformer",
        overrides={"epochs": 8, "batch_size": 2, "anneal": 0.5, "patience": 1, "stop_after": 5},
    ),
    "lstm": lambda: tiny_text_recipe().plan("lstm", overrides={"epochs": 5}),
}


class Beat(Callback):
    """Sends a byte to the parent at every batch, of every split. At number `hold` it waits for an answer, once.

    Otherwise a parent that waits for a processor could come too late, after the end of the run.
    """

    def __init__(self, pipe, hold: int | None = None) -> None:
        self.pipe, self.hold, self.sent = pipe, hold, 0

    def on_train_batch_start(self, *_) -> None:
        self.pipe.send_bytes(b"b")
        self.sent += 1
        if self.sent == self.hold:
            while not self.pipe.poll(0.1):  # a signal just before a read would be handled after it
                pass
            self.pipe.recv_bytes()

    on_validation_batch_start = on_test_batch_start = on_train_batch_start


def live(name: str, folder: Path, pipe, hold: int | None) -> None:
    """Train until the end or a kill; continue where the last process was killed."""
    torch.set_num_threads(1)
    TASKS.update(TINY)
    train(
        PLANS[name](),
        resume=True,
        runs=folder,
        results=folder / "results",
        every_seconds=0,
        callbacks=[Beat(pipe, hold)],
        **CPU,
    )


def start(processes, name: str, folder: Path, hold: int | None = None):
    ours, theirs = processes.Pipe()
    child = processes.Process(target=live, args=(name, folder, theirs, hold))
    child.start()
    theirs.close()
    return child, ours


def finish(processes, name: str, folder: Path) -> None:
    child, pipe = start(processes, name, folder)
    drain(pipe)
    child.join(60)
    assert child.exitcode == 0


def drain(pipe) -> None:
    """Read what a process sends until it ends; fail if it sends nothing for minutes."""
    with suppress(EOFError):
        while pipe.poll(200):
            pipe.recv_bytes()
        pytest.fail("a process hangs")


def numbers(folder: Path) -> dict:
    """Return what a finished run left, without times."""
    (path,) = (folder / "results").rglob("*.json")
    result = json.loads(path.read_text())
    (last,) = folder.rglob("last.ckpt")
    state = load_state(last)
    del state["rtx"]["commits"]  # a commit may be made meanwhile
    keys = ("epoch", "global_step", "optimizer_states", "lr_schedulers", "random", "rtx", "state_dict")
    return {
        "ledger": {key: result[key] for key in ("test", "validation", "epoch", "parameters", "budget")},
        "best": load_file(last.with_name("best.safetensors")),
        "last": {key: state[key] for key in keys},
    }


def assert_same(a, b) -> None:
    """Compare two nested structures bit by bit."""
    (ones, form), (others, other_form) = tree_flatten(a), tree_flatten(b)
    assert form == other_form
    for one, other in zip(ones, others, strict=True):
        assert type(one) is type(other)
        if isinstance(one, torch.Tensor):
            assert one.dtype == other.dtype and torch.equal(one, other)
        else:
            assert one == other


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kills"), [("sums", 4), ("lstm", 3)])
def test_a_run_killed_again_and_again_ends_with_the_bits_of_an_uninterrupted_run(processes, tmp_path, name, kills):
    finish(processes, name, tmp_path / "whole")
    draws = random.Random(0)
    for _ in range(kills):
        beats = draws.randint(1, 18)
        child, pipe = start(processes, name, tmp_path / "killed", hold=beats + 1)
        for _ in range(beats):
            pipe.recv_bytes()
        time.sleep(draws.uniform(0, 0.02))
        os.kill(child.pid, 9)
        child.join()
        assert child.exitcode == -9  # it was still running
    finish(processes, name, tmp_path / "killed")
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "killed"))


def command(words: list[str], errors: Path, limit: int | None, pipe, hold: int | None) -> None:
    """Run the `rtx` command on the tiny recipe; from the tenth batch on, no file may be larger than `limit`.

    On the run's clock, a batch takes a tenth of a second.
    """
    clock = SimpleNamespace(now=0.0)
    survival.time = SimpleNamespace(monotonic=lambda: clock.now)

    class Limit(Beat):
        def on_train_batch_start(self, trainer, *_) -> None:
            super().on_train_batch_start()
            clock.now += 0.1
            if limit and trainer.global_step == 10:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    torch.set_num_threads(1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), sys.stderr.fileno())
    main(words, Limit(pipe, hold))


@pytest.mark.parametrize(("text", "seconds"), [("00:00:05", 5), ("00:59:59", 3599), ("36:30:01", 131_401)])
def test_times_are_read_and_written(text, seconds):
    assert parse_time(text) == seconds and format_time(seconds + 0.9) == text
    for wrong in ("5", "1:2:3", "00:60:00", "1 hour", "-" + text):
        with pytest.raises(ValueError, match=f"^--max-time: .*{wrong}"):
            parse_time(wrong)


def type_command(processes, folder: Path, *words: str, limit: int | None = None, hold: int | None = None):
    ours, theirs = processes.Pipe()
    places = ["--runs", str(folder), "--results", str(folder / "results")]
    words = ["train", "tiny", "gru", *places, *words]
    child = processes.Process(target=command, args=(words, folder / "errors", limit, theirs, hold))
    child.start()
    theirs.close()
    return child, ours


@pytest.mark.slow
def test_a_signal_or_the_time_limit_saves_and_says_how_to_continue(processes, tmp_path):
    steps = [0]
    for number in (signal.SIGINT, signal.SIGTERM, None):
        time_left = [] if number else ["--max-time", "00:00:01"]
        resume = ["--resume"] if steps[1:] else []
        child, pipe = type_command(processes, tmp_path, "--set", "epochs=100000", *time_left, *resume)
        for _ in range(50 if number else 1):
            pipe.recv_bytes()
        if number:
            os.kill(child.pid, number)
        child.join(60)
        assert child.exitcode == (128 + number if number else 124)
        (last,) = tmp_path.rglob("last.ckpt")
        steps.append(load_state(last)["global_step"])
    assert steps[0] < steps[1] < steps[2] < steps[3]
    said = (tmp_path / "errors").read_text().splitlines()
    stops = [line for line in said if line.startswith("rtx: stopped before batch")]
    assert len(stops) == 3
    for line in stops:
        assert re.search(r"epoch \d+.*last\.ckpt.*: rtx train tiny gru .*--resume", line)
    assert [*(tmp_path / "results").rglob("*")] == []


@pytest.mark.slow
def test_asked_twice_a_run_stops_at_once_and_keeps_its_last_checkpoint(processes, tmp_path):
    child, pipe = type_command(processes, tmp_path, "--set", "epochs=100000", hold=50)
    for _ in range(50):
        pipe.recv_bytes()
    for number in (signal.SIGINT, signal.SIGTERM):  # two of one kind may arrive as one
        os.kill(child.pid, number)
    child.join(60)  # in the middle of a batch: no answer is sent
    assert child.exitcode == 128 + signal.SIGTERM
    assert "rtx: stopped at once" in (tmp_path / "errors").read_text()
    (last,) = tmp_path.rglob("last.ckpt")
    assert load_state(last)["global_step"] > 0


@pytest.mark.slow
def test_on_a_full_disk_a_run_stops_with_one_line_and_can_be_resumed(processes, tmp_path):
    child, pipe = type_command(processes, tmp_path, limit=2000)
    drain(pipe)
    child.join(60)
    assert child.exitcode == 1
    (said,) = (tmp_path / "errors").read_text().splitlines()
    assert re.search(r"^rtx: \S*best\.ckpt .*File too large.*--resume.*last\.ckpt", said)
    assert [path for path in tmp_path.rglob("*") if "partial" in path.name] == []
    (last,) = tmp_path.rglob("last.ckpt")
    assert load_state(last)["global_step"] == 8  # two epochs
    child, pipe = type_command(processes, tmp_path, "--resume")
    drain(pipe)
    child.join(60)
    assert child.exitcode == 0
