"""Several processes train one model: the same losses, one ledger entry, stopped and resumed together."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from ports import free_port
from run_tiny import Losses, main
from test_survival import Beat, assert_same, drain, numbers

from rtx.training.states import load_state

SCRIPT = Path(__file__).with_name("run_tiny.py")
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def places(folder: Path) -> list[str]:
    return ["--runs", str(folder / "runs"), "--results", str(folder / "results")]


@pytest.mark.slow
def test_two_processes_get_the_losses_of_one_with_the_same_global_batch(tmp_path):
    """The sequences differ in length, so the two processes do not have the same number of frames."""
    one, two = tmp_path / "one", tmp_path / "two"
    words = ["train", "ragged", "gru", "--epochs", "2", "--set"]
    main([*words, "batch_size=8", *places(one)], Losses(tmp_path / "losses"))
    two.mkdir()
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port())]
    line = [sys.executable, *torchrun, SCRIPT, two / "losses", *words, "batch_size=4", "--devices", "2", *places(two)]
    subprocess.run(line, check=True, env=ENVIRONMENT, capture_output=True, timeout=300)
    ours = json.loads((tmp_path / "losses.0").read_text())
    assert len(ours) == 2 * (2 + 1)
    for rank in (0, 1):
        assert json.loads((two / f"losses.{rank}").read_text()) == pytest.approx(ours, rel=1e-5)
    results = [json.loads(path.read_text()) for path in tmp_path.rglob("results/ragged/*.json")]
    assert len(results) == 2  # one of each run: only the first process writes
    assert results[0]["test"] == pytest.approx(results[1]["test"], rel=1e-5)
    assert sum(found["hardware"].startswith("2 × ") for found in results) == 1


def member(rank: int, port: int, words: list[str], folder: Path, pipe, hold: int | None) -> None:
    """Run one of two machines with one process each, as torchrun starts them."""
    os.environ |= {"RANK": str(rank), "GROUP_RANK": str(rank), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    os.environ |= {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"TORCHELASTIC_RUN_ID": "tiny"}
    os.dup2(os.open(folder / f"errors.{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND), sys.stderr.fileno())
    main([*words, "--devices", "1", "--nodes", "2", *places(folder)], Losses(folder / "losses"), Beat(pipe, hold))


def start_two(processes, folder: Path, *words: str, hold: int | None = None):
    folder.mkdir(exist_ok=True)
    port, started = free_port(), []
    for rank in (0, 1):
        ours, theirs = processes.Pipe()
        child = processes.Process(target=member, args=(rank, port, words, folder, theirs, hold if rank else None))
        child.start()
        theirs.close()
        started.append((child, ours))
    return started


def join(started) -> list[int]:
    try:
        for child, pipe in started:
            drain(pipe)
            child.join(60)
    finally:
        for child, _ in started:
            child.kill()  # a process that hangs would keep this one from ending
    return [child.exitcode for child, _ in started]


@pytest.mark.slow
def test_a_sum_over_two_machines_is_the_sum_over_all(processes, tmp_path):
    settings = ("reduction=sum", "optimizer=sgd", "learning_rate=0.001")
    words = ["train", "ragged", "gru", *(word for setting in settings for word in ("--set", setting))]
    assert join(start_two(processes, tmp_path / "two", *words, "--set", "batch_size=4")) == [0, 0]
    main([*words, "--set", "batch_size=8", *places(tmp_path)], Losses(tmp_path / "losses"))
    ours, theirs = (json.loads((folder / "losses.0").read_text()) for folder in (tmp_path, tmp_path / "two"))
    assert theirs == pytest.approx(ours, rel=1e-5)
    assert ours[-1] < 0.9 * ours[2]


@pytest.mark.slow
def test_two_machines_are_resumed_and_end_with_the_bits_of_an_uninterrupted_run(processes, tmp_path):
    """Each draws its own dropout. If one machine is asked to stop, both stop at the same batch."""
    words = ("train", "tiny", "r-transformer", "--set", "epochs=10", "--set", "batch_size=2")
    assert join(start_two(processes, tmp_path / "whole", *words)) == [0, 0]
    started = start_two(processes, tmp_path / "parts", *words, hold=18)
    for _ in range(18):
        started[1][1].recv_bytes()
    os.kill(started[1][0].pid, signal.SIGTERM)
    started[1][1].send_bytes(b"go on")
    codes = join(started)
    assert codes[1] == 128 + signal.SIGTERM and codes[0] != 0
    (last,) = (tmp_path / "parts").rglob("last.ckpt")
    state = load_state(last)
    assert 0 < state["epoch"] < 10 and len(state["random"]) == 2
    assert not torch.equal(*(each["torch"] for each in state["random"]))
    said = [(tmp_path / "parts" / f"errors.{rank}").read_text() for rank in (0, 1)]
    assert "rtx: stopped before batch" in said[0] and "rtx: stopped" not in said[1]  # only one says it
    assert join(start_two(processes, tmp_path / "parts", *words, "--resume")) == [0, 0]
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "parts"))


@pytest.mark.slow
def test_a_run_is_resumed_by_as_many_processes_as_began_it(processes, tmp_path, capsys):
    words = ("train", "tiny", "gru")
    assert join(start_two(processes, tmp_path, *words, "--epochs", "1")) == [0, 0]
    with pytest.raises(SystemExit) as end:
        main([*words, "--resume", *places(tmp_path)], Losses(tmp_path / "losses"))
    assert end.value.code == 2
    assert re.search("resume: .*2 .*1", capsys.readouterr().err)
