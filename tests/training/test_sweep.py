"""A sweep: several processes take the grid's runs from one file, validation chooses, the test split is not read."""

import json
import multiprocessing
import os
import re
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import optuna
import pytest
import torch
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState, create_trial
from run_tiny import InLastValidation, main
from test_survival import Beat, drain

from rtx.cli.sweep import parse_values
from rtx.evidence.ledger import read_results
from rtx.evidence.record import train
from rtx.evidence.tables import rows
from rtx.tasks import TASKS
from rtx.training import sweep as sweeps
from rtx.training.alone import alone_in
from rtx.training.fit import run_folder
from rtx.training.states import CannotGoOn
from rtx.training.survival import Stopped
from rtx.training.sweep import Sweep, finished, is_dead, plot, settled

CPU = {"accelerator": "cpu", "enable_progress_bar": False}
RATES = [1e-4, 1e-2, 1e-3]


@pytest.fixture
def sweep(recipe, tmp_path):
    return Sweep(recipe, "gru", {"learning_rate": RATES, "d_model": [4, 8]}, epochs=2, runs=tmp_path)


def test_the_grid_is_run_and_validation_chooses(sweep, tmp_path):
    done = finished(sweep.run(**CPU))
    assert sorted(map(str, (trial.params for trial in done))) == sorted(map(str, sweep.grid))
    assert [trial.value for trial in done] == sorted(trial.value for trial in done)
    for trial in done:
        again = train(sweep.plan(trial.params), epochs=2, runs=tmp_path / "b", results=tmp_path / "c", **CPU)
        assert json.loads(again.read_text())["validation"] == trial.value
    assert done[0].params["learning_rate"] == 1e-2


def test_the_test_split_is_not_read(sweep, tiny_task, monkeypatch):
    def examples(split):
        assert split != "test"
        return tiny_task.examples(split)

    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, examples=examples))
    assert len(finished(sweep.run(**CPU))) == 6


def test_where_the_highest_score_is_best_the_highest_is_chosen(sweep, tiny_task, monkeypatch):
    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, best="max"))
    scores = [trial.value for trial in finished(sweep.run(**CPU))]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_of_equally_good_runs_the_one_that_took_fewer_epochs_comes_first(direction):
    study = optuna.create_study(direction=direction)
    for value, epoch in ((0.5, 1), (1.0, 7), (1.0, 2), (1.0, 3)):
        study.add_trial(create_trial(value=value, user_attrs={"epoch": epoch}))
    expected = [1, 2, 3, 7] if direction == "minimize" else [2, 3, 7, 1]
    assert [trial.user_attrs["epoch"] for trial in finished(study)] == expected


def test_the_plot_has_each_run_over_its_values_and_fills_the_best(tmp_path):
    study = optuna.create_study(direction="maximize")
    kinds = {"rate": CategoricalDistribution([0.01, 0.1]), "window": CategoricalDistribution([16, 8])}
    for rate, window, value in ((0.1, 8, 0.3), (0.01, 8, 0.9), (0.1, 16, 0.5)):
        point = {"rate": rate, "window": window}
        study.add_trial(create_trial(value=value, params=point, distributions=kinds, user_attrs={"epoch": 1}))
    figure = plot(study, tmp_path / "sweep.png", "accuracy")
    dots = []
    for ax in figure.axes:
        names = [label.get_text() for label in ax.get_xticklabels()]
        dots.append({(names[dot.get_xdata()[0]], dot.get_ydata()[0], dot.get_fillstyle()) for dot in ax.lines})
    assert dots == [
        {("0.1", 0.3, "none"), ("0.01", 0.9, "full"), ("0.1", 0.5, "none")},
        {("8", 0.3, "none"), ("8", 0.9, "full"), ("16", 0.5, "none")},
    ]
    assert [ax.get_xlabel() for ax in figure.axes] == ["rate", "window"]
    assert figure.axes[0].get_ylabel() == "validation, accuracy" and (tmp_path / "sweep.png").exists()


def test_a_run_whose_loss_explodes_has_failed_and_the_others_go_on(recipe, tmp_path):
    values = {"learning_rate": [1e30, 1e-2], "optimizer": ["sgd"]}
    sweep = Sweep(recipe, "r-transformer", values, "pre", runs=tmp_path)
    study = sweep.run(**CPU)
    assert [trial.params["learning_rate"] for trial in finished(study)] == [1e-2]
    (failed,) = study.get_trials(states=(TrialState.FAIL,))
    assert re.match(r"(loss|gradient norm): became", failed.user_attrs["error"])
    assert len(sweep.run(**CPU).trials) == 2  # it is not tried again


def test_a_run_whose_validation_is_nan_has_failed_and_is_not_taken_again(recipe, tmp_path, monkeypatch):
    found = iter([float("nan"), 0.5])  # a third run would raise StopIteration
    monkeypatch.setattr(sweeps, "fit", lambda *_, **__: SimpleNamespace(validation=next(found), epoch=1))
    study = Sweep(recipe, "gru", {"learning_rate": [1e-3, 1e-2]}, runs=tmp_path).run(**CPU)
    assert [trial.params["learning_rate"] for trial in finished(study)] == [1e-2]
    (failed,) = study.get_trials(states=(TrialState.FAIL,))
    assert re.match(r"validation: became nan in .*, expected a number", failed.user_attrs["error"])


def test_data_that_are_missing_are_not_held_against_a_run(recipe, tiny_task, tmp_path, monkeypatch):
    def missing(_):
        raise ValueError("tiny: expected train.txt in RTX_DATA")

    sweep = Sweep(recipe, "gru", {"learning_rate": [1e-3, 1e-2]}, epochs=1, runs=tmp_path)
    with monkeypatch.context() as patch, pytest.raises(ValueError, match="expected train.txt in RTX_DATA"):
        patch.setitem(TASKS, "tiny", lambda: replace(tiny_task, examples=missing))
        sweep.run(**CPU)
    assert not settled(sweep.study(), sweep.grid)
    assert len(finished(sweep.run(**CPU))) == 2


def test_scores_on_other_data_are_not_compared(recipe, tiny_task, tmp_path, monkeypatch):
    sweep = Sweep(recipe, "gru", {"learning_rate": [1e-3]}, epochs=1, runs=tmp_path)
    sweep.run(**CPU)
    with monkeypatch.context() as patch:
        patch.setitem(TASKS, "tiny", lambda: replace(tiny_task, sha256=lambda: "other"))
        with pytest.raises(CannotGoOn, match=r"runs: expected the data of the sweep in .*, got others, other$"):
            sweep.run(**CPU)
    assert len(finished(sweep.run(**CPU))) == 1


def test_of_two_that_begin_at_once_on_other_data_one_is_refused(recipe, tiny_task, tmp_path, monkeypatch):
    def data() -> str:
        return threading.current_thread().name

    def beside() -> None:
        try:
            sweep._keep_data(theirs)
        except CannotGoOn as error:
            refused.append(error)

    def slowly(study, *attribute) -> None:  # so that the other comes between
        if study is ours:
            other.start()
            other.join(2)
        keep(study, *attribute)

    sweep = Sweep(recipe, "gru", {"learning_rate": [1e-3]}, epochs=1, runs=tmp_path)
    ours, theirs, keep, refused = sweep.study(), sweep.study(), optuna.Study.set_user_attr, []
    other = threading.Thread(target=beside, name="other", daemon=True)
    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, sha256=data))
    monkeypatch.setattr(optuna.Study, "set_user_attr", slowly)
    sweep._keep_data(ours)
    other.join(60)
    assert len(refused) == 1 and sweep.study().user_attrs[sweeps.DATA] == data()


def test_a_point_left_by_a_process_that_died_before_it_asked_keeps_its_own_score(recipe, tmp_path):
    sweep = Sweep(recipe, "gru", {"learning_rate": [1e-7, 1e-2]}, epochs=1, runs=tmp_path)
    sweep.study().enqueue_trial({"learning_rate": 1e-2})
    best, worst = finished(sweep.run(**CPU))
    assert (best.params["learning_rate"], worst.params["learning_rate"]) == (1e-2, 1e-7)
    assert best.value < worst.value and len(sweep.study().trials) == 2


def test_a_run_that_cannot_go_on_so_is_not_held_against_the_sweep(sweep):
    with pytest.raises(Stopped):
        sweep.run(0.0, **CPU)
    with pytest.raises(CannotGoOn, match="precision: expected the run's, 32-true, got bf16-mixed"):
        replace(sweep, precision="bf16-mixed").run(**CPU)
    study = sweep.run(**CPU)
    assert len(finished(study)) == 6 and settled(study, sweep.grid)
    assert not finished(replace(sweep, precision="bf16-mixed").study())


def test_a_signal_in_the_last_validation_of_a_run_stops_the_sweep(sweep):
    with pytest.raises(Stopped):
        sweep.run(callbacks=[InLastValidation()], **CPU)
    assert len(sweep.study().trials) == 1
    study = sweep.run(**CPU)
    assert len(finished(study)) == 6 and settled(study, sweep.grid)


def test_the_time_of_a_sweep_is_that_of_all_its_runs(recipe, tmp_path, monkeypatch):
    given = []

    def run(*_, max_seconds, **__):
        given.append(max_seconds)
        return SimpleNamespace(validation=0.5, epoch=1)

    monkeypatch.setattr(sweeps, "fit", run)  # and a clock that each run moves on by three seconds
    monkeypatch.setattr("rtx.training.clock.time", SimpleNamespace(monotonic=lambda: 3.0 * len(given)))
    Sweep(recipe, "gru", {"learning_rate": [1e-3, 1e-2, 1e-1]}, runs=tmp_path).run(5.0, **CPU)
    assert given == [5.0, 2.0, 0.0]


def test_a_sweep_is_settled_when_each_run_has_ended_or_failed_by_itself(recipe, tmp_path):
    values = {"learning_rate": [1e30, 1e-2], "optimizer": ["sgd"]}
    sweep = Sweep(recipe, "r-transformer", values, "pre", runs=tmp_path)
    assert not settled(sweep.study(), sweep.grid)
    study = sweep.run(**CPU)
    assert len(finished(study)) == 1 and settled(study, sweep.grid)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "sweep: recipe tiny names no values to choose from"),
        ({"learning_rate": []}, "names no values"),
        ({"learning_rat": [1]}, "did you mean 'learning_rate'"),
        ({"learning_rate": [1e-3, -1]}, "learning_rate: expected a finite number above 0, got -1"),
    ],
)
def test_a_grid_that_cannot_be_run_is_refused_before_it_starts(recipe, tmp_path, values, message):
    with pytest.raises(ValueError, match=message):
        Sweep(recipe, "gru", values, runs=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("window=3,5,7", ("window", [3, 5, 7])),
        ("learning_rate=1e-3", ("learning_rate", [1e-3])),
        ("cell=gru,lstm", ("cell", ["gru", "lstm"])),
        ("cell=[1, 2]", ("cell", [1, 2])),
    ],
)
def test_values_are_read_as_settings_are(text, expected):
    assert parse_values(text) == expected


def test_a_run_that_ends_while_another_process_looks_after_it_is_not_dead(recipe, tmp_path, monkeypatch):
    sweep = Sweep(recipe, "gru", {"learning_rate": [1e-3, 1e-2]}, epochs=1, runs=tmp_path)
    theirs = sweep.study()
    trial, _ = sweep._claim(theirs)

    def ends_first(sign: Path) -> bool:  # after the list of runs was read, before the sign of life is
        sweeps.record(theirs, trial, 0.5, epoch=1)
        sign.unlink()
        return is_dead(sign)

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "is_dead", ends_first)
        _, point = sweep._claim(sweep.study())
    assert point == {"learning_rate": 1e-2}
    assert [trial.value for trial in finished(sweep.study())] == [0.5]


def test_a_run_that_is_only_silent_stays_with_the_process_that_has_it(recipe, tmp_path):
    sweep = Sweep(recipe, "gru", {"learning_rate": [1e-3, 1e-2]}, epochs=1, runs=tmp_path)
    trial, point = sweep._claim(sweep.study())
    os.utime(sweep._sign(trial.number), (0, 0))  # halted by Ctrl-Z, or asleep
    with alone_in(run_folder(sweep.plan(point), 0, tmp_path)):
        assert [one.params for one in finished(sweep.run(**CPU))] == [{"learning_rate": 1e-2}]
    assert settled(sweep.run(**CPU), sweep.grid)  # it has ended without a word


@pytest.mark.parametrize("rates", [[1e-2], [1e30, 1e-2]], ids=["ends", "explodes"])
def test_a_run_that_others_took_for_dead_is_recorded_from_its_end(recipe, tmp_path, monkeypatch, caplog, rates):
    sweep = Sweep(recipe, "r-transformer", {"learning_rate": rates, "optimizer": ["sgd"]}, "pre", runs=tmp_path)
    fit, others, fits = sweeps.fit, sweep.study(), []

    def after_a_long_sleep(*arguments, **training):  # of the machine: another process has given the run up
        fits.append(arguments)
        if len(fits) == 1:
            others.tell(0, state=TrialState.FAIL)
        return fit(*arguments, **training)

    monkeypatch.setattr(sweeps, "fit", after_a_long_sleep)
    study = sweep.run(**CPU)
    assert settled(study, sweep.grid) and len(finished(study)) == 1
    assert len(study.trials) == len(rates) + 1
    assert "was taken for dead by another process" in caplog.text


def worker(folder: Path, words: list[str], pipe) -> None:
    torch.set_num_threads(1)
    places = ["--runs", str(folder / "runs"), "--results", str(folder / "results")]
    main(["sweep", "tiny", "gru", "--set", "learning_rate=1e-4,1e-3,1e-2,1e-1", *words, *places], Beat(pipe, hold=30))


@pytest.mark.slow
def test_two_processes_share_a_sweep_that_survives_one_of_them(tmp_path, capsys):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rtx.training.sweep"])
    workers, words = [], ["--set", "epochs=30"]
    for _ in range(2):
        ours, theirs = context.Pipe()
        child = context.Process(target=worker, args=(tmp_path, words, theirs))
        child.start()
        theirs.close()
        workers.append((child, ours))
    for _, pipe in workers:  # both are in the midst of a run
        for _ in range(30):
            pipe.recv_bytes()
    os.kill(workers[0][0].pid, 9)
    workers[1][1].send_bytes(b"go on")
    drain(workers[1][1])
    workers[1][0].join(60)
    assert workers[1][0].exitcode == 0
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    command = ["sweep", "tiny", "gru", "--set", "learning_rate=1e-4,1e-3,1e-2,1e-1", *words, *places]
    main([*command, "--show"])
    shown = capsys.readouterr().out
    scores = [float(line.split()[-1]) for line in shown.splitlines() if re.match(r" *(0\.\d+|1e)", line)]
    assert len(scores) == 4 and scores == sorted(scores)
    assert not (tmp_path / "results").exists()
    main([*command, "--test"])
    (path,) = (tmp_path / "results").rglob("*.json")
    result = json.loads(path.read_text())
    assert result["validation"] == pytest.approx(scores[0], abs=1e-4)
    rate = re.search(r"learning_rate=(\S+)", result["command"])[1]
    assert re.search(rf"^ *{rate} ", shown, re.MULTILINE) and result["budget"] is None
    (picture,) = tmp_path.rglob("sweep.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_command_of_a_tested_sweep_writes_true_and_false_as_train_reads_them(tmp_path):
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    main(["sweep", "tiny", "gru", "--set", "learning_rate=1e-3", "--set", "slide=False", "--test", *places])
    (path,) = (tmp_path / "results").rglob("*.json")
    result = json.loads(path.read_text())
    assert result["variant"] == "plain+learning_rate=0.001" and "--set slide=false" in result["command"]


def test_the_ledger_has_all_that_a_sweep_chose_from(recipe, tmp_path):
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    main(["sweep", "tiny", "gru", "--set", "learning_rate=1e30,1e-3,1e-2", "--epochs", "2", "--test", *places])
    (run,) = read_results("tiny", tmp_path / "results")
    tried = run.chosen_from
    assert list(tried) == ["learning_rate=1e+30", "learning_rate=0.001", "learning_rate=0.01"]
    assert tried["learning_rate=1e+30"] is None
    assert run.validation == tried["learning_rate=0.01"] < tried["learning_rate=0.001"]
    (line,) = (line for line in rows(recipe, tmp_path / "results") if line.seeds)
    assert line.validation == f"{run.validation:.3f}, best of 3"
