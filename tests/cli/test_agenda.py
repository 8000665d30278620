"""`rtx ledger fill`: the runs that a TOML file lists and the ledger lacks."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rtx.cli.commands import app
from rtx.evidence.agenda import read_agenda
from rtx.evidence.ledger import read_results, write_result
from rtx.training.recipe import load_recipe
from rtx.training.states import load_state

FULL = Path(__file__).parents[2] / "results" / "full-size.toml"
TCN = '[[runs]]\nrecipe = "mnist"\nmodels = ["tcn"]\n'
TINY = 'recipe = "ffa-add"\nmodels = ["attention-50"]\nset.limit = [40]\n'
# at this rate it is never solved, and so ends nowhere before its fifth epoch
LONG = f"{TINY}seeds = [0, 1]\nset.learning_rate = [1e-9]\n"


def small(name):
    recipe = load_recipe(name)
    recipe.scales["quick"] |= {"task_arguments": {"length": 50, "size": 40}, "limit_evaluation": 20}
    return recipe


@pytest.fixture
def fill(tmp_path, monkeypatch):
    """Writes a list of short runs and fills the ledger from it; gives the exit code and the output's lines."""
    for module in ("rtx.evidence.agenda", "rtx.cli.train", "rtx.cli.sweep"):
        monkeypatch.setattr(f"{module}.load_recipe", small)

    def run(text, *words):
        path = tmp_path / "agenda.toml"
        path.write_text(f"[[runs]]\n{text}")
        folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
        done = CliRunner().invoke(app, ["ledger", "fill", str(path), "--scale", "quick", *folders, *words])
        return done.exit_code, done.output.splitlines()

    return run


def written(tmp_path):
    return [(run.variant, run.seed, run.command) for run in read_results("ffa-add", tmp_path / "results")]


@pytest.mark.slow
def test_what_the_ledger_lacks_is_run_once_and_a_failed_run_does_not_stop_the_others(fill, tmp_path):
    one, two = f"{TINY}set.learning_rate = [1e-3]\n", f"{TINY}set.learning_rate = [1e30, 1e-3, 1e-4]\n"
    assert fill(one, "--epochs", "1")[0] == 0
    (before,) = written(tmp_path)
    line = "train ffa-add attention-50 --scale quick --seed 0 --epochs 1 --set limit=40 --set learning_rate="
    assert fill(two, "--epochs", "1", "--show")[1] == [
        f"      {line}1e+30",
        f"done  {line}0.001",
        f"      {line}0.0001",
    ]
    code, lines = fill(two, "--epochs", "1")
    assert (code, lines[0], lines[-1]) == (1, "the ledger has 1 of 3 runs", f"failed  {line}1e+30")
    new = ("sloped+learning_rate=0.0001+limit=40", 0, f"rtx {line}0.0001")
    assert written(tmp_path) == sorted([before, new])
    assert fill(one, "--epochs", "1") == (0, ["the ledger has 1 of 1 runs"])


def test_a_run_whose_data_are_missing_does_not_stop_the_others(fill, monkeypatch):
    asked = []

    def train(plan, seed, *_, **__):
        asked.append(seed)
        raise FileNotFoundError("no such data")

    monkeypatch.setattr("rtx.evidence.record.train", train)
    code, lines = fill(LONG)
    assert code == 1 and asked == [0, 1] and sum(line.startswith("failed") for line in lines) == 2


@pytest.mark.slow
def test_a_sweep_is_done_when_the_ledger_has_the_run_it_chose(fill, tmp_path):
    sweep = 'recipe = "ffa-add"\nmodels = ["attention-50"]\nsweep = true\n'
    assert fill(sweep, "--epochs", "1")[0] == 0
    (run,) = written(tmp_path)
    assert run[0].startswith("sloped")
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
        ("--seed 0 --set learning_rate=1e-4 --set limit=40", True),
        ("--variant sloped --seed 0 --set limit=40 --set learning_rate=0.0001", True),
        ("--seed 0 --epochs 3 --set limit=40 --set learning_rate=0.0001", False),
        ("--seed 0 --set limit=40 --set learning_rate=0.0001 --precision bf16-mixed", False),
    ],
)
def test_a_run_is_known_however_it_was_typed(fill, tmp_path, typed, done):
    like = next(read_results("ffa-add", FULL.parent))
    made = {"model": "attention-50", "variant": "sloped+learning_rate=0.0001+limit=40", "seed": 0, "scale": "quick"}
    typed = f"rtx train ffa-add attention-50 --scale quick {typed}"
    write_result(replace(like, command=typed, **made), tmp_path / "results")
    (line,) = fill(f"{TINY}set.learning_rate = [1e-4]\n", "--show")[1]
    assert line.startswith("done") == done


@pytest.mark.slow
def test_a_run_that_is_stopped_stops_all_and_goes_on_next_time(fill, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["rtx", "ledger", "fill"])
    with monkeypatch.context() as patch:
        patch.setattr("rtx.cli.train.Report.__call__", lambda *_: signal.raise_signal(signal.SIGTERM))
        code, lines = fill(LONG)
    assert code == 128 + signal.SIGTERM and "go on with: rtx ledger fill" in lines[-1]
    code, lines = fill(LONG, "--max-time", "00:00:00")
    assert code == 124 and "go on with: rtx ledger fill" in lines[-1] and not written(tmp_path)
    (last,) = (tmp_path / "runs").rglob("last.ckpt")
    begun = load_state(last)["epoch"] + 1
    assert fill(LONG, "--epochs", str(begun))[0] == 0
    assert len(written(tmp_path)) == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[[runs", ""),
        ("", "[[runs]]"),
        ("runs = [1]", ""),
        ('[[runs]]\nrecipe = "mnist"', "models"),
        (f"{TCN}seed = 1", "seed"),
        ('[[runs]]\nrecipe = "mnist"\nmodels = "tcn"', "model: 't' is unknown"),
        (f"{TCN}seeds = [-1]", "seeds: expected a whole number from 0 to 4294967295, got -1"),
        (f'{TCN}variant = ""', "variant: "),
        ('[[runs]]\nrecipe = "mnist"\nmodels = ["tnc"]', "'tcn'"),
        (f"{TCN}set.epoch = [1]", "'epochs'"),
        (f"{TCN}sweep = true", "mnist"),
        ('[[runs]]\nrecipe = "ptb-word"\nmodels = ["tcn"]\nsweep = true\nset.epochs = [1]', "ptb-word"),
    ],
)
def test_a_list_that_cannot_be_is_one_error_that_names_the_file(text, named, tmp_path):
    path = tmp_path / "agenda.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"agenda\.toml: ") as error:
        read_agenda(path)
    assert named in str(error.value)


def test_the_full_size_list_names_runs_that_exist_each_once():
    commands = [entry.command for entry in read_agenda(FULL)]
    assert len(set(commands)) == len(commands) > 100
    assert commands[0].startswith("rtx train mnist r-transformer")
