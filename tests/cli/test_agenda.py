"""`rtx ledger fill`: runs of an agenda, real ones in processes of their own."""

import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock
from typer.testing import CliRunner

from rtx.cli import agenda, app
from rtx.cli.entries import read_agenda
from rtx.cli.train import Scale
from rtx.evidence.ledger import read_results, write_result
from rtx.training.states import load_state

FULL = Path(__file__).parents[2] / "results" / "full-size.toml"
TCN = '[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\n'
TINY = 'recipe = "ffa-add"\nmodels = ["attention-50"]\nset.limit = [200]\n'
# at this rate it is never solved, and so ends nowhere before its fifth epoch
LONG = 'recipe = "ffa-add"\nmodels = ["attention-50"]\nseeds = [0, 1]\nset.learning_rate = [1e-9]\n'


@pytest.fixture
def fill(tmp_path):
    """Writes an agenda and fills the ledger from it; gives the exit code and the output's lines."""

    def run(text, *words):
        done = CliRunner().invoke(app, [*command(tmp_path, text), *words])
        return done.exit_code, done.output.splitlines()

    return run


def command(tmp_path, text):
    path = tmp_path / "agenda.toml"
    path.write_text(f"[[runs]]\n{text}")
    folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    return ["ledger", "fill", str(path), "--scale", "quick", *folders]


def written(tmp_path):
    return [(run.variant, run.seed, run.command) for run in read_results("ffa-add", tmp_path / "results")]


@pytest.mark.slow
def test_what_the_ledger_lacks_is_run_and_what_it_has_is_not(fill, tmp_path):
    both = f"{TINY}seeds = [0, 1]\n"
    assert fill(TINY, "--epochs", "1")[0] == 0
    assert fill(both, "--epochs", "1", "--show")[1] == [
        "done  train ffa-add attention-50 --scale quick --seed 0 --epochs 1 --set limit=200",
        "      train ffa-add attention-50 --scale quick --seed 1 --epochs 1 --set limit=200",
    ]
    (before,) = written(tmp_path)
    code, lines = fill(both, "--epochs", "1")
    other = "train ffa-add attention-50 --scale quick --seed 1 --epochs 1 --set limit=200"
    assert (code, lines) == (0, ["the ledger has 1 of 2 runs", f"rtx {other}"])
    assert written(tmp_path) == [before, ("sloped+limit=200", 1, f"rtx {other}")]
    assert fill(both, "--epochs", "1") == (0, ["the ledger has 2 of 2 runs"])


@pytest.mark.slow
def test_a_sweep_is_done_when_the_ledger_has_the_run_it_chose(fill, tmp_path):
    sweep = 'recipe = "ffa-add"\nmodels = ["attention-50"]\nsweep = true\n'
    assert fill(sweep, "--epochs", "1")[0] == 0
    (run,) = written(tmp_path)
    assert run[0] == "sloped"  # at this scale the rate that it chose is the row's own
    assert fill(sweep, "--epochs", "1", "--show")[1][0].startswith("done  sweep ffa-add attention-50")


@pytest.mark.parametrize(("tried", "done"), [((3e-4, 1e-3, 3e-3, 1e-2), True), ((1e-3, 1e-2), False), ((), False)])
def test_a_run_that_was_not_chosen_from_the_grid_stands_for_no_sweep(fill, tmp_path, tried, done):
    like = next(read_results("ffa-add", FULL.parent))
    made = {"model": "attention-50", "variant": "sloped", "seed": 0, "scale": "quick"}
    made |= {"chosen_from": {f"learning_rate={rate}": 0.5 for rate in tried}}
    command = "rtx train ffa-add attention-50 --scale quick --seed 0 --set learning_rate=0.01"
    write_result(replace(like, command=command, **made), tmp_path / "results")
    (line,) = fill('recipe = "ffa-add"\nmodels = ["attention-50"]\nsweep = true\n', "--show")[1]
    assert line.startswith("done") == done


@pytest.mark.parametrize(
    ("typed", "done"),
    [
        ("--seed 0 --set learning_rate=1e-4 --set limit=200", True),
        ("--variant sloped --seed 0 --set limit=200 --set learning_rate=0.0001", True),
        ("--seed 0 --epochs 3 --set limit=200 --set learning_rate=0.0001", False),
        ("--seed 0 --set limit=200 --set learning_rate=0.0001 --precision bf16-mixed", False),
        ("--seed 0 --set limit=200 --set learning_rate=0.0001 --devices 1", True),
        ("--seed 0 --set limit=200 --set learning_rate=0.0001 --devices 12", False),
    ],
)
def test_a_run_is_known_however_it_was_typed(fill, tmp_path, typed, done):
    like = next(read_results("ffa-add", FULL.parent))
    made = {"model": "attention-50", "variant": "sloped+learning_rate=0.0001+limit=200", "seed": 0, "scale": "quick"}
    typed = f"rtx train ffa-add attention-50 --scale quick {typed}"
    write_result(replace(like, command=typed, **made), tmp_path / "results")
    (line,) = fill(f"{TINY}set.learning_rate = [1e-4]\n", "--show")[1]
    assert line.startswith("done") == done


@pytest.mark.parametrize(("devices", "told"), [(0, False), (1, False), (2, True)])
def test_where_there_are_several_devices_a_run_takes_one(tmp_path, monkeypatch, devices, told):
    monkeypatch.setattr("torch.cuda.device_count", lambda: devices)
    asked = []
    monkeypatch.setattr(agenda.Keeper, "wait_for", lambda _, words: asked.append(shlex.join(words)) or 0)
    done = CliRunner().invoke(app, command(tmp_path, TINY))
    assert done.exit_code == 0 and [line.endswith(" --resume --devices 1") for line in asked] == [told]


@pytest.mark.slow
def test_a_run_whose_time_is_over_stops_the_agenda_and_goes_on_next_time(fill, tmp_path, monkeypatch):
    monkeypatch.setattr(agenda, "MARGIN", 0.0)
    code, lines = fill(LONG, "--max-time", "00:00:02")
    assert code == 124 and lines[-1].startswith("rtx: stopped; go on with: rtx") and not written(tmp_path)
    (last,) = (tmp_path / "runs").rglob("last.ckpt")
    begun = load_state(last)["epoch"] + 1  # one, where a second is not enough for more
    assert fill(LONG, "--epochs", str(begun))[0] == 0
    assert len(written(tmp_path)) == 2


def to_one(process, number):
    os.kill(process, number)


def to_both(process, number):
    """As `timeout` does: to the process, and to its group."""
    os.kill(process, number)
    os.killpg(process, number)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ask", "number"),
    [(os.killpg, signal.SIGINT), (to_one, signal.SIGINT), (to_one, signal.SIGTERM), (to_both, signal.SIGTERM)],
)
def test_asked_to_stop_it_waits_until_the_run_has_saved(tmp_path, ask, number):
    words = [sys.executable, "-c", "from rtx.cli import main; main()", *command(tmp_path, LONG)]
    both = subprocess.Popen(words, start_new_session=True, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not [*(tmp_path / "runs").rglob("last.ckpt")] and time.monotonic() < deadline:
        time.sleep(0.1)
    ask(both.pid, number)
    _, told = both.communicate(timeout=60)
    assert both.returncode == 128 + number
    assert "stopped before batch" in told and "rtx: stopped; go on with: rtx ledger fill" in told
    (lock,) = (tmp_path / "runs").rglob(".lock")
    with FileLock(lock, blocking=False):  # nobody is left who holds it
        pass


@pytest.mark.slow
def test_a_run_that_fails_is_named_at_the_end_and_the_next_is_made(fill, tmp_path):
    code, lines = fill(f"{TINY}set.learning_rate = [1e30, 1e-3]\n", "--epochs", "1")
    assert (code, lines[-1][:42]) == (1, "failed  train ffa-add attention-50 --scale")
    assert "learning_rate=1e+30" in lines[-1]
    assert [variant for variant, *_ in written(tmp_path)] == ["sloped+learning_rate=0.001+limit=200"]


def test_no_time_left_starts_nothing(fill, tmp_path):
    code, lines = fill(TINY, "--max-time", "00:00:05")
    assert code == 124 and lines[0] == "the ledger has 0 of 1 runs" and len(lines) == 2
    assert not (tmp_path / "runs").exists()


def test_of_the_time_that_is_left_a_run_leaves_some_to_begin_and_to_save(tmp_path, monkeypatch):
    asked, now = [], 0.0

    def wait(_, words):
        nonlocal now
        now += 3000.0  # each run takes so long
        asked.append(words[words.index("--max-time") + 1])
        return 0

    monkeypatch.setattr("rtx.training.clock.time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(agenda.Keeper, "wait_for", wait)
    done = CliRunner().invoke(app, [*command(tmp_path, f"{TINY}seeds = [0, 1, 2]\n"), "--max-time", "01:40:20"])
    assert asked == ["01:40:00", "00:50:00"] and done.exit_code == 124  # of the third, 20 s are left: none to run in


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[runs", "Expected"),
        ("", "expected [[runs]] and nothing else, got nothing"),
        ('title = "mine"', "expected [[runs]] and nothing else, got title"),
        ('[[runs]]\nrecipe = "mnist"', "[[runs]]: expected recipe, models"),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nseed = 1', "[[runs]]: expected recipe, models"),
        ('[[runs]]\nrecipe = "mnist"\nmodels = "tcn"', "models: expected a list with something in it, got 'tcn'"),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nseeds = []', "seeds: expected a list"),
        (
            '[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nseeds = [-1]',
            "seeds: expected a whole number from 0 to 4294967295, got -1",
        ),
        (
            '[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nseeds = [99999999999]',
            "seeds: expected a whole number from 0",
        ),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nseeds = [true]', "seeds: expected a whole number from 0"),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nsweep = "no"', "sweep: expected true or false, got 'no'"),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nvariant = ""', "variant: "),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nseeds = 3\nset.seeds = [1]', "seeds: expected a list"),
        (
            f'{TCN}{TCN}variant = "paper"',
            "expected each run once, got twice",
        ),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tcn", "tcn"]', "expected each run once, got twice: train mnist tcn"),
        ("runs = [1]", "[[runs]]: expected recipe, models, and any of"),
        ("runs = 3", "expected [[runs]] and nothing else"),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nset = 1', "set: expected a table of lists, got 1"),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tnc"]', "did you mean 'tcn'?"),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nset.epoch = [1]', "did you mean 'epochs'?"),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\nsweep = true', "mnist names no values to choose from"),
        ('[[runs]]\nrecipe = "ptb-word"\nmodels = ["tcn"]\nsweep = true\nset.epochs = [1]', "expected none beside it"),
    ],
)
def test_a_bad_agenda_is_one_error_that_names_the_file(text, message, tmp_path):
    path = tmp_path / "agenda.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"agenda\.toml: ") as error:
        read_agenda(path)
    assert message in str(error.value)


@pytest.mark.parametrize("scale", [Scale.full, Scale.quick])
def test_the_full_size_agenda_names_runs_that_exist_each_once(scale):
    commands = [" ".join(entry.words) for entry in read_agenda(FULL, scale)]
    assert len(set(commands)) == len(commands) > 100
    assert commands[0].startswith("train mnist r-transformer")
