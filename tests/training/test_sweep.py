"""A sweep: a grid of runs, from which validation chooses; the test split is not read."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from optuna.trial import TrialState, create_trial
from run_tiny import InLastValidation, main
from tiny_recipe import CPU

from rtx.cli.sweep import parse_values
from rtx.evidence.ledger import read_results
from rtx.evidence.record import train
from rtx.evidence.tables import rows
from rtx.tasks import TASKS
from rtx.training import sweep as sweeps
from rtx.training.recipe import load_recipe
from rtx.training.states import CannotGoOn, load_state
from rtx.training.survival import Stopped
from rtx.training.sweep import Sweep, finished


@pytest.fixture
def sweep(recipe, tmp_path) -> Sweep:
    return Sweep(recipe, "gru", {"learning_rate": [1e-4, 1e-2], "d_model": [4]}, epochs=1, runs=tmp_path)


def error_of(sweep: Sweep, state: TrialState) -> dict[str, str]:
    """The trials that ended so, with the reason."""
    trials = sweep.open().study.get_trials(states=(state,))
    return {json.dumps(trial.params): trial.user_attrs["error"] for trial in trials}


def test_the_grid_is_run_and_validation_chooses_without_the_test_split(sweep, tmp_path, tiny_task, monkeypatch):
    def examples(split):
        assert split != "test"
        return tiny_task.examples(split)

    with monkeypatch.context() as patch:
        patch.setitem(TASKS, "tiny", lambda: replace(tiny_task, examples=examples))
        done = finished(sweep.run(**CPU))
    assert sorted(map(str, (trial.params for trial in done))) == sorted(map(str, sweep.grid))
    assert [trial.value for trial in done] == sorted(trial.value for trial in done)
    again = train(sweep.plan(done[0].params), epochs=1, runs=tmp_path / "b", results=tmp_path / "c", **CPU)
    assert json.loads(again.read_text())["validation"] == done[0].value


@pytest.mark.parametrize("best", ["min", "max"])
def test_the_best_score_is_first_and_of_equal_scores_the_one_after_fewer_epochs(sweep, tiny_task, monkeypatch, best):
    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, best=best))
    study = sweep.open().study
    for value, epoch in ((0.5, 1), (1.0, 7), (1.0, 2), (1.0, 3)):
        study.add_trial(create_trial(value=value, user_attrs={"epoch": epoch}))
    expected = [1, 2, 3, 7] if best == "min" else [2, 3, 7, 1]
    assert [trial.user_attrs["epoch"] for trial in finished(study)] == expected


def test_runs_that_explode_and_impossible_combinations_have_their_reasons_and_the_others_go_on(
    recipe, tmp_path, caplog
):
    values = {"heads": [3, 2], "learning_rate": [1e30, 1e-2, -1], "optimizer": ["sgd"]}
    sweep = Sweep(recipe, "r-transformer", values, "pre", epochs=1, runs=tmp_path)
    assert len(sweep.left(sweep.open().study)) == 6
    study = sweep.run(**CPU)
    good, explodes = ({"heads": 2, "learning_rate": rate, "optimizer": "sgd"} for rate in (1e-2, 1e30))
    assert [trial.params for trial in finished(study)] == [good]
    ((failed, reason),) = error_of(sweep, TrialState.FAIL).items()
    assert json.loads(failed) == explodes and re.match(r"(loss|gradient norm): became", reason)
    impossible = {
        tuple(json.loads(point).values())[:2]: why for point, why in error_of(sweep, TrialState.PRUNED).items()
    }
    assert impossible.keys() == {(3, 1e30), (3, 1e-2), (3, -1), (2, -1)}
    assert "heads" in impossible[3, 1e-2] and "3" in impossible[3, 1e-2]
    assert "learning_rate" in impossible[2, -1] and "-1" in impossible[2, -1]
    assert not sweep.left(study) and len(sweep.run(**CPU).trials) == 6  # none is tried again
    assert "heads" not in caplog.text  # the command prints the reasons at its end


def test_data_that_are_missing_are_no_fault_of_the_run(sweep, tiny_task, monkeypatch):
    def missing(_):
        raise ValueError("tiny: expected train.txt in RTX_DATA")

    with monkeypatch.context() as patch, pytest.raises(ValueError, match=r"train\.txt"):
        patch.setitem(TASKS, "tiny", lambda: replace(tiny_task, examples=missing))
        sweep.run(**CPU)
    assert len(sweep.left(sweep.open().study)) == 2
    assert len(finished(sweep.run(**CPU))) == 2


def test_scores_on_other_data_are_not_compared(sweep, tiny_task, monkeypatch):
    sweep.run(**CPU)
    with monkeypatch.context() as patch:
        patch.setitem(TASKS, "tiny", lambda: replace(tiny_task, sha256=lambda: "other"))
        assert not finished(sweep.open().study)
        with pytest.raises(CannotGoOn, match="^resume: .*tiny"):  # the runs' folders hold other checkpoints
            sweep.run(**CPU)
    assert len(finished(sweep.open().study)) == 2


def test_scores_of_another_plan_are_not_compared(sweep):
    before = sweep.open().study.study_name
    sweep.recipe.variants[sweep.recipe.default_variant] |= {"clip": 9.0}
    assert sweep.open().study.study_name != before


def test_a_process_that_died_while_it_took_a_run_leaves_that_run_to_others(sweep):
    study = sweep.open().study
    study.enqueue_trial(sweep.grid[1])
    study.ask()  # died before it had the run's settings
    study.enqueue_trial(sweep.grid[0])  # died before it asked
    study = sweep.run(**CPU)
    assert sorted(map(str, (trial.params for trial in finished(study)))) == sorted(map(str, sweep.grid))
    assert [trial.params for trial in study.trials if trial.number == 1] == [sweep.grid[0]]


def test_a_run_that_cannot_go_on_so_is_not_held_against_the_sweep(sweep):
    with pytest.raises(Stopped):
        sweep.run(0.0, **CPU)
    with pytest.raises(CannotGoOn, match="precision: 32-true .*bf16-mixed"):
        replace(sweep, precision="bf16-mixed").run(**CPU)
    assert len(finished(sweep.run(**CPU))) == 2


def test_a_signal_in_the_last_validation_of_a_run_stops_the_sweep(sweep):
    with pytest.raises(Stopped):
        sweep.run(callbacks=[InLastValidation()], **CPU)
    assert [trial.state for trial in sweep.open().study.trials] == [TrialState.FAIL]
    assert len(finished(sweep.run(**CPU))) == 2


def test_the_time_of_a_sweep_is_that_of_all_its_runs(sweep, monkeypatch):
    given = []

    def run(*_, max_seconds, **__):
        given.append(max_seconds)
        return SimpleNamespace(validation=0.5, epoch=1)

    monkeypatch.setattr(sweeps, "fit", run)  # and a clock that each run moves on by two seconds
    monkeypatch.setattr("rtx.training.timing.time", SimpleNamespace(monotonic=lambda: 2.0 * len(given)))
    sweep.run(1.0, **CPU)
    assert given == [1.0, 0.0]


@pytest.mark.parametrize("values", [{}, {"learning_rate": []}])
def test_a_grid_without_values_is_refused_before_it_starts(recipe, tmp_path, values):
    with pytest.raises(ValueError, match="sweep: .*tiny"):
        Sweep(recipe, "gru", values, runs=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("window=3,5,7", ("window", [3, 5, 7])),
        ("learning_rate=1e-3", ("learning_rate", [1e-3])),
        ("cell=gru,lstm", ("cell", ["gru", "lstm"])),
        ("path=a.txt,b.txt", ("path", ["a.txt", "b.txt"])),
        ("path=1,01", ("path", ["1", "01"])),
    ],
)
def test_values_are_read_as_settings_are(text, expected):
    assert parse_values(text) == expected


def test_scores_on_a_text_that_has_changed_since_are_not_compared(tmp_path):
    names = []
    for animal in ("cat", "cat", "dog"):
        (tmp_path / "a.txt").write_text(f"the {animal} sat on the mat. " * 20)
        sweep = Sweep(load_recipe("ptb-char"), "gru", {"path": [f"{tmp_path}/a.txt"]}, scale="quick", runs=tmp_path)
        names.append(sweep.open().study.study_name)
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize("rates", [[1e-2], [1e30, 1e-2]], ids=["ends", "explodes"])
def test_a_run_that_others_took_for_dead_is_recorded_from_its_end(recipe, tmp_path, monkeypatch, caplog, rates):
    sweep = Sweep(recipe, "r-transformer", {"learning_rate": rates, "optimizer": ["sgd"]}, "pre", runs=tmp_path)
    fit, others, fits = sweeps.fit, sweep.open().study, []

    def after_a_long_sleep(*arguments, **training):  # of the machine: another process has given the run up
        fits.append(arguments)
        if len(fits) == 1:
            others.tell(0, state=TrialState.FAIL)
        return fit(*arguments, **training)

    monkeypatch.setattr(sweeps, "fit", after_a_long_sleep)
    study = sweep.run(**CPU)
    assert not sweep.left(study) and len(finished(study)) == 1
    assert len(study.trials) == len(rates) + 1
    assert "run 0" in caplog.text


def test_the_ledger_has_the_best_run_its_command_and_all_that_was_tried(recipe, tmp_path, capsys):
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    values = ["--set", "learning_rate=1e30,1e-3,1e-2", "--set", "slide=False"]
    main(["sweep", "tiny", "gru", *values, "--epochs", "1", *places])
    told = capsys.readouterr().out.splitlines()
    assert "run learning_rate=0.01 slide=false" in told  # also what is the recipe's own
    assert "learning_rate=0.01 " in told[-2] and f"rtx sweep tiny gru --set {values[1]} " in told[-1]
    assert told[-1].endswith(" --test")
    main(["sweep", "tiny", "gru", *values, "--epochs", "1", "--test", *places])
    (run,) = read_results("tiny", tmp_path / "results")
    assert run.command == "rtx train tiny gru --seed 0 --epochs 1 --set learning_rate=0.01 --set slide=false"
    tried = {text.removesuffix(" slide=false"): value for text, value in run.chosen_from.items()}
    assert tried["learning_rate=1e+30"] is None
    assert run.validation == tried["learning_rate=0.01"] < tried["learning_rate=0.001"]
    (line,) = (line for line in rows(recipe, tmp_path / "results") if line.seeds)
    assert line.validation == f"{run.validation:.3f}, best of 3"


def test_a_run_chosen_after_few_epochs_ends_as_if_it_had_been_trained_alone(recipe, tmp_path):
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    rates = ["--set", "learning_rate=1e-4,1e-2"]
    main(["sweep", "tiny", "gru", *rates, "--epochs", "3", "--try-epochs", "1", "--test", *places])
    (run,) = read_results("tiny", tmp_path / "results")
    plan = recipe.plan("gru", None, {"learning_rate": 1e-2})
    train(plan, 0, 3, runs=tmp_path / "alone", results=tmp_path / "beside", **CPU)
    (alone,) = read_results("tiny", tmp_path / "beside")
    assert (run.epoch, run.validation, run.test) == (alone.epoch, alone.validation, alone.test)
    assert run.command == "rtx train tiny gru --seed 0 --epochs 3 --set learning_rate=0.01"
    loser = load_state(tmp_path / "runs" / "tiny" / "gru-plain+learning_rate=0.0001-s0" / "best.ckpt")
    assert run.validation < min(run.chosen_from.values()) and loser["epoch"] == 0  # from 0
