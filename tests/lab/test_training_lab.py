"""The training lab: its buttons start, pause, resume and stop; runs are kept; what it exports is what it trained."""

import json
import math
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from rtx.lab import explore
from rtx.lab.choice import Choice, offered
from rtx.lab.explore.live import Live
from rtx.lab.explore.training import POINTS
from rtx.lab.look import Look
from rtx.lab.training_run import LOOKS, TrainingRun
from rtx.tasks import task_by_name
from rtx.training.settings import Settings

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def small(model: str = "gru", **changes: object) -> Live:
    return explore.training("digits", model, d_model=8, layers=1, **changes)


def until(reached: Callable[[], object]) -> None:
    """Wait for what another thread does, and fail if it takes a minute."""
    end = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


def with_runs(lab: Live, *choices: Choice) -> Live:
    """A lab of runs that have had three updates, and a look after each."""
    lab.runs = [TrainingRun(choice) for choice in choices]
    for i, run in enumerate(lab.runs):
        run.losses, run.probes, run.validations = [2.0 + i, 1.5, 1.0], [(0, 10.0 + i), (3, 20.0)], [(3, 30.0)]
        run.looks = [(at, Look(torch.full((2, 3), at / 2), "step", "unit", "states")) for at in range(4)]
    lab.show()
    return lab


def panels(lab: Live) -> list[Any]:
    """What the picture's panels show now: losses, scores, and a look into the model."""
    return [panel.values for panel in lab.seen()[1]]


def test_the_buttons_start_pause_resume_and_stop() -> None:
    lab = small(epochs=500)
    assert lab.data["state"] == "new"
    for _ in range(4):  # one run is started by many clicks
        lab.wish = ["train", lab.wish[1] + 1 if lab.wish else 1]
    until(lambda: lab.data["status"].startswith("Running: update"))
    assert len(lab.runs) == 1
    lab.press("pause")
    until(lambda: lab.data["status"].startswith("Paused: update"))
    standing = len(lab.runs[-1].losses)
    lab.press("resume")
    until(lambda: lab.data["state"] == "running" and len(lab.runs[-1].losses) > standing)
    lab.press("clear")  # not while it trains
    lab.press("stop")
    until(lambda: lab.data["status"].startswith("Stopped: update"))
    assert len(lab.runs) == 1
    lab.press("clear")
    assert lab.runs == [] and lab.data["state"] == "new" and lab.data["table"] == []


@pytest.mark.slow
def test_runs_are_kept_side_by_side_with_what_they_changed() -> None:
    lab = small(epochs=1).run()
    lab.set(learning_rate=0.02, seed=3, update=5)
    lab.run()
    first, second = (run.choice for run in lab.runs)
    assert first == Choice("mnist", "gru", "quick", {"d_model": 8, "layers": 1, "epochs": 1}, 0)
    assert second == Choice("mnist", "gru", "quick", {**first.overrides, "learning_rate": 0.02}, 3)
    assert (
        lab.text.startswith("Run 2") and f"After {len(lab.runs[1].losses)} updates" in lab.text
    )  # the new run is seen as it grows
    for row, run in zip(lab.data["table"], lab.runs, strict=True):
        assert run.choice.command() in row["more"] and "finished" in row["more"]
        assert row["best validation"] == f"{run.validations[-1][1]:.3f}"
    assert [y for _, y in panels(lab)[0][1]] == pytest.approx(lab.runs[1].losses)
    assert len(json.dumps(lab.data)) < 80_000


def test_the_recording_is_scrubbed_by_run_and_update() -> None:
    lab = with_runs(small(), *(Choice("mnist", "gru", seed=seed) for seed in (0, 1)))
    assert "After 3 updates, loss 1.000" in lab.text and panels(lab)[2]["high"] == 1.5
    assert panels(lab)[0] == [[(1, 2.0), (2, 1.5), (3, 1.0)], [(1, 3.0), (2, 1.5), (3, 1.0)]]
    assert panels(lab)[1] == [[(0, 10.0), (3, 20.0)], [(0, 11.0), (3, 20.0)], [(3, 30.0)], [(3, 30.0)]]
    lab.set(update=1)
    assert "After 1 updates, loss 3.000" in lab.text and panels(lab)[2]["high"] == 0.5
    lab.set(run="1: gru")
    assert "After 1 updates, loss 2.000" in lab.text and panels(lab)[2]["high"] == 1.5  # only its last look is kept
    assert len(lab.data["moments"]) == 2 * 4


def test_runs_of_another_recipe_are_neither_drawn_nor_listed() -> None:
    lab = with_runs(small(), Choice("mnist", "gru"), Choice("mnist", "lstm"), Choice("ffa-add", "mean-50"))
    assert [row["model"] for row in lab.data["table"]] == ["mean-50"] and len(panels(lab)[0]) == 1
    lab.runs.pop()
    lab.show()
    assert [row["model"] for row in lab.data["table"]] == ["gru", "lstm"]


def test_a_long_run_stays_small_and_a_number_that_is_none_leaves_a_gap() -> None:
    lab = with_runs(small(), Choice("mnist", "gru"))
    run = lab.runs[0]
    run.losses = [math.nan, *(float(i) for i in range(2, 100_001))]
    run.looks = [(at, Look(torch.rand(64, 64), "step", "unit", "states")) for at in range(LOOKS)]
    lab.show()
    (line,) = panels(lab)[0]
    assert len(line) == POINTS and line[0] == (1001, pytest.approx(501.5)) and line[-1][0] == 100_000
    assert len(lab.data["controls"]["update"]["values"]) < 50 and len(json.dumps(lab.data)) < 70_000


@pytest.mark.parametrize(("task", "best"), [("digits", "60.000"), ("characters", "20.000")])
def test_the_best_validation_is_the_highest_or_the_lowest_as_the_task_has_it(task: str, best: str) -> None:
    lab = with_runs(small(), Choice("mnist", "gru"))
    lab.runs[0].task, lab.runs[0].validations = task_by_name(task), [(1, 40.0), (2, 60.0), (3, 20.0)]
    lab.show()
    assert lab.data["table"][0]["best validation"] == best


def test_another_task_has_its_own_models_and_numbers() -> None:
    lab = explore.training("add", learning_rate=0.5)
    assert lab.data["form"]["model"] == ["attention-50", "mean-50"] and "pooling" in lab.data["form"]
    lab.set(task="characters")
    assert lab.data["form"]["model"][0] == "r-transformer" and lab.data["form"]["window"] == 7
    assert lab.next_run().choice == Choice("ptb-char", "r-transformer")
    lab.set(model="tcn", kernel=5)
    assert "window" not in lab.data["form"]
    assert lab.next_run().choice == Choice("ptb-char", "tcn", overrides={"kernel": 5})


@pytest.mark.slow
def test_every_offer_can_be_chosen() -> None:
    lab = explore.training()
    for task in offered():
        lab.set(task=task)
        for model in lab.data["form"]["model"]:
            lab.set(model=model)
            assert lab.next_run().choice.overrides == {}
            assert isinstance(lab.next_run().choice.plan().settings, Settings)


def test_an_error_is_told_and_goes_away_when_the_next_run_begins() -> None:
    lab = small(epochs=0)
    lab.press("train")
    assert "epochs: " in lab.data["status"] and lab.runs == []
    lab.set(epochs=500)
    lab.press("train")
    assert "epochs: " not in lab.data["status"]
    lab = explore.training("add", learning_rate=1e30).run()
    assert "loss: became nan" in lab.data["status"] and "loss: became nan" in lab.data["table"][0]["more"]
