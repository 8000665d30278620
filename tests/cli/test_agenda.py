"""`rtx ledger fill`: runs of an agenda, real ones in processes of their own."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rtx.cli import agenda, app
from rtx.cli.agenda import read_agenda
from rtx.cli.train import Scale
from rtx.training.ledger import read_results

FULL = Path(__file__).parents[2] / "results" / "full-size.toml"
TINY = 'recipe = "ffa-add"\nmodels = ["attention-50"]\nset.limit = [200]\n'


@pytest.fixture
def fill(tmp_path):
    """Writes an agenda and fills the ledger from it; gives the exit code and the output's lines."""

    def run(text, *words):
        path = tmp_path / "agenda.toml"
        path.write_text(text)
        folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
        done = CliRunner().invoke(app, ["ledger", "fill", str(path), "--scale", "quick", *words, *folders])
        return done.exit_code, done.output.splitlines()

    return run


def written(tmp_path):
    return [(run.variant, run.seed, run.command) for run in read_results("ffa-add", tmp_path / "results")]


@pytest.mark.slow
def test_what_the_ledger_lacks_is_run_and_what_it_has_is_not(fill, tmp_path):
    one, both = f"[[runs]]\n{TINY}", f"[[runs]]\n{TINY}seeds = [0, 1]\n"
    assert fill(one, "--epochs", "1")[0] == 0
    assert fill(both, "--epochs", "1", "--show")[1] == [
        "done  train ffa-add attention-50 --scale quick --seed 0 --epochs 1 --set limit=200",
        "      train ffa-add attention-50 --scale quick --seed 1 --epochs 1 --set limit=200",
    ]
    before = written(tmp_path)
    code, lines = fill(both, "--epochs", "1")
    assert (code, lines[0][:4], lines[-1]) == (0, "done", "2 runs, 0 failed")
    assert [run for run in written(tmp_path) if run not in before] == [
        (
            "sloped+limit=200",
            1,
            "rtx train ffa-add attention-50 --scale quick --seed 1 --epochs 1 --set limit=200",
        )
    ]


@pytest.mark.slow
def test_a_sweep_is_done_when_the_ledger_has_the_run_it_chose(fill, tmp_path):
    sweep = '[[runs]]\nrecipe = "ffa-add"\nmodels = ["attention-50"]\nsweep = true\n'
    assert fill(sweep, "--epochs", "1")[0] == 0
    (run,) = written(tmp_path)
    assert run[0].startswith("sloped+learning_rate=")
    assert fill(sweep, "--epochs", "1", "--show")[1][0].startswith("done  sweep ffa-add attention-50")


@pytest.mark.slow
def test_a_run_whose_time_is_over_stops_the_agenda_and_goes_on_next_time(fill, tmp_path, monkeypatch):
    monkeypatch.setattr(agenda, "MARGIN", 0.0)
    text = '[[runs]]\nrecipe = "ffa-add"\nmodels = ["attention-50"]\nseeds = [0, 1]\nset.limit = [2000]\n'
    code, lines = fill(text, "--max-time", "00:00:01")
    assert code == 124 and len(lines) == 1 and not written(tmp_path)
    saved = {path.parent for path in (tmp_path / "runs").rglob("last.ckpt")}
    assert len(saved) == 1
    code, lines = fill(text, "--epochs", "1")
    assert code == 0 and lines[-1] == "2 runs, 0 failed" and len(written(tmp_path)) == 2


@pytest.mark.slow
def test_a_run_that_fails_is_counted_and_the_next_is_made(fill, tmp_path):
    text = f"[[runs]]\n{TINY}set.learning_rate = [1e30, 1e-3]\n"
    code, lines = fill(text, "--epochs", "1")
    assert (code, lines[-1]) == (1, "2 runs, 1 failed")
    assert [variant for variant, *_ in written(tmp_path)] == ["sloped+learning_rate=0.001+limit=200"]


def test_no_time_left_starts_nothing(fill, tmp_path):
    assert fill(f"[[runs]]\n{TINY}", "--max-time", "00:00:05") == (124, [])
    assert not (tmp_path / "runs").exists()


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
