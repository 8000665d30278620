"""The training lab: its buttons start, pause, resume and stop; runs are kept; what it exports is what it trained."""

import base64
import re
from html import unescape
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch
from waiting import until

from rtx.lab import explore
from rtx.lab.choice import Choice, offered
from rtx.lab.explore.training import TrainingLab
from rtx.lab.explore.training_picture import TrainingPicture
from rtx.lab.explore.training_table import table
from rtx.lab.learning import History
from rtx.lab.look import Look
from rtx.lab.training_run import TrainingRun
from rtx.training.settings import Settings

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def small(model: str = "gru", **changes: object) -> TrainingLab:
    return explore.training("digits", model, d_model=8, layers=1, **changes)


def state(lab: TrainingLab) -> str:
    return lab.status.value.partition(">")[2].partition(":")[0].partition("<")[0]


def test_the_buttons_start_pause_resume_and_stop() -> None:
    lab = small(epochs=500)
    assert state(lab) == "Nothing has been trained yet."
    assert lab.pause.disabled and lab.stop.disabled and lab.clear.disabled
    empty = lab.image.value
    lab.start.click()
    until(lambda: state(lab) == "Running" and "update" in lab.status.value)
    until(lambda: lab.image.value != empty)
    assert not lab.pause.disabled
    lab.pause.click()
    until(lambda: state(lab) == "Paused")
    assert lab.pause.description == "Resume"
    standing = len(lab.run.history.losses)
    lab.pause.click()
    until(lambda: state(lab) == "Running" and len(lab.run.history.losses) > standing)
    assert lab.pause.description == "Pause"
    lab.stop.click()
    until(lambda: state(lab) == "Stopped")
    assert lab.pause.disabled and lab.stop.disabled and not lab.clear.disabled
    until(lambda: not lab.run.background.alive)


def test_only_one_run_is_started_by_many_clicks_and_an_idle_one_is_forgotten() -> None:
    lab = small(epochs=500)
    for _ in range(4):
        lab.start.click()
    assert lab.start.disabled and len(lab.runs) == 1
    lab.stop.click()
    until(lambda: not lab.start.disabled)
    assert len(lab.runs) == (1 if lab.run and lab.run.history.losses else 0)
    lab.start.click()
    until(lambda: lab.run.history.losses)
    small()  # a new lab ends what the one before trains
    until(lambda: lab.run.background.state == "stopped" and not lab.run.background.alive)


@pytest.mark.slow
def test_runs_stand_side_by_side_with_what_they_changed() -> None:
    lab = small(epochs=1).train()
    lab.fields["learning_rate"].value = 0.02
    lab.seed.value = 3
    lab.train()
    first, second = (choice for choice, _ in lab.runs)
    assert first == Choice("mnist", "gru", "quick", {"epochs": 1, "d_model": 8, "layers": 1})
    assert second == Choice("mnist", "gru", "quick", {"learning_rate": 0.02, **first.overrides}, 3)
    assert len(lab.picture.losses.lines) == 2
    for choice, run in lab.runs:
        assert choice.command() in unescape(lab.table.value) and choice.code() in unescape(lab.table.value)
        assert f"{run.history.validations[-1][1]:.3f}" in lab.table.value
    losses = lab.runs[1][1].history.losses
    assert lab.picture.losses.lines[1].get_ydata() == pytest.approx(losses)
    lab.clear.click()
    assert lab.runs == [] and lab.table.value == "" and len(lab.picture.losses.lines) == 0


@pytest.mark.parametrize(("recipe", "best"), [("mnist", "60.000"), ("ptb-char", "20.000")])
def test_the_best_validation_is_the_highest_or_the_lowest_as_the_task_has_it(recipe: str, best: str) -> None:
    choice = Choice(recipe, "gru", "quick", {"epochs": 1, "limit": 16, "d_model": 8, "layers": 1})
    run = TrainingRun(choice.plan())
    run.background.start()
    run.background.wait()
    run.history.validations = [(1, 40.0), (2, 60.0), (3, 20.0), (4, 50.0)]
    assert f"<td>{best}</td>" in table([(choice, run)])


def test_a_run_has_one_colour_in_the_picture_and_in_the_table() -> None:
    choices = [Choice("mnist", "gru", "quick", seed=seed) for seed in (0, 1)]
    runs = [(choice, TrainingRun(choice.plan(), choice.seed)) for choice in choices]
    for i, (_, run) in enumerate(runs):
        run.history = History([2.0 + i, 1.0 + i], [0.1, 0.2], [(0, 10.0 + i), (2, 20.0 + i)], [(2, 30.0 + i)])
    picture = TrainingPicture()
    picture.show([run.history for _, run in runs], "accuracy (%)", None)
    marks = re.findall(r"color: rgb\((\d+), (\d+), (\d+)\)", table(runs))
    lines = [picture.losses.lines, picture.scores.lines[::2], picture.scores.lines[1::2]]
    for drawn in lines:
        assert [tuple(str(round(255 * part)) for part in line.get_color()) for line in drawn] == marks
    assert marks[0] != marks[1]
    data = [[line.get_xydata().tolist() for line in drawn] for drawn in lines]
    assert data == [
        [[[1, 2], [2, 1]], [[1, 3], [2, 2]]],
        [[[0, 10], [2, 20]], [[0, 11], [2, 21]]],  # of a batch
        [[[2, 30]], [[2, 31]]],  # of the whole split
    ]
    assert picture.scores.get_ylabel() == "accuracy (%)"
    assert picture.losses.get_ylim()[0] < 1 and picture.losses.get_ylim()[1] > 3
    assert picture.scores.get_ylim()[0] < 10 and picture.scores.get_ylim()[1] > 31


def test_runs_of_another_recipe_are_neither_drawn_nor_listed_and_the_newest_is_told() -> None:
    lab = small()
    choices = [Choice("mnist", "gru"), Choice("mnist", "lstm"), Choice("ffa-add", "mean-50")]
    lab.runs = [(choice, TrainingRun(choice.plan())) for choice in choices]
    for _, run in lab.runs:
        run.history, run.steps = History([2.0, 1.5], [0.1, 1.26]), 1200
    lab.show()
    assert "2 of 1,200, loss 1.500, 1.3 s" in lab.status.value
    assert len(lab.picture.losses.lines) == 1 and "<td>mean-50</td>" in lab.table.value
    assert "<td>gru</td>" not in lab.table.value
    lab.runs.pop()
    lab.show()
    assert len(lab.picture.losses.lines) == 2 and "<td>mean-50</td>" not in lab.table.value
    assert lab.table.value.index("<td>gru</td>") < lab.table.value.index("<td>lstm</td>")


def test_a_long_run_is_drawn_by_the_means_of_neighbours() -> None:
    picture = TrainingPicture()
    picture.show([History([float(i) for i in range(1, 452)])], "metric", None)
    (line,) = picture.losses.lines
    points = line.get_xydata().tolist()
    assert len(points) == 150 and points[:2] == [[3, 2], [6, 5]] and points[-1] == [450, 449]
    assert picture.losses.get_xlim()[1] > 450


def test_the_look_inside_has_its_numbers_names_and_places() -> None:
    picture = TrainingPicture()
    values = torch.tensor([[0.5, -2.0, 1.0, 0.0], [3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.25]])
    picture.show([History([1.0])], "metric", Look(values, "step", "unit", "states of the last layer"))
    assert picture.image.get_array().tolist() == values.tolist() and picture.image.get_clim() == (-2, 3)
    assert list(picture.image.get_extent()) == [0.5, 4.5, 3.5, 0.5]
    assert (picture.inside.get_xlabel(), picture.inside.get_ylabel()) == ("step", "unit")
    assert picture.inside.get_yticks().tolist() == [1, 2, 3]
    picture.show([History([1.0])], "metric", Look(values[:1].abs(), "step", "", "share"))
    assert picture.image.get_clim() == (0, 2) and picture.inside.get_yticks().tolist() == []


def test_another_task_has_its_own_models_and_numbers() -> None:
    lab = explore.training("add")
    assert lab.model.options == ("attention-50", "mean-50") and "pooling" in lab.fields
    lab.task.value = "characters"
    assert lab.model.value == "r-transformer" and lab.fields["window"].value == 7
    assert lab.choice == Choice("ptb-char", "r-transformer")
    lab.model.value = "tcn"
    assert "kernel" in lab.fields and "window" not in lab.fields
    assert lab.form.children == tuple(lab.fields.values())


@pytest.mark.slow
def test_every_offer_can_be_chosen() -> None:
    lab = explore.training()
    for task in offered():
        lab.task.value = task
        for model in lab.model.options:
            lab.model.value = model
            assert lab.choice.overrides == {}
            assert isinstance(lab.choice.plan().settings, Settings)


def test_a_bad_number_and_a_run_that_fails_are_told_in_a_sentence() -> None:
    lab = small()
    lab.fields["epochs"].value = 0
    lab.start.click()
    assert "epochs: " in lab.status.value and lab.runs == []
    lab = explore.training("add", learning_rate=1e30).train()
    assert "loss: became nan" in lab.status.value
    assert lab.pause.disabled


def test_it_has_a_picture_for_pages_without_a_kernel(tmp_path: Path) -> None:
    lab = small(epochs=1).train()
    bundle, _ = lab._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]) == lab.image.value
    assert bundle["text/plain"].startswith("[training lab: ") and not any(c.isdigit() for c in bundle["text/plain"])
    assert "application/vnd.jupyter.widget-view+json" in bundle
    shown, saved = plt.imread(BytesIO(lab.image.value)), plt.imread(lab.save(tmp_path / "lab.png"))
    assert shown.shape[:2] == saved.shape[:2]
    assert abs(shown[..., :3] - saved[..., :3]).mean() < 0.01  # what is shown has fewer colours, to be quick
    page = lab.save(tmp_path / "lab.html").read_text()
    assert lab.table.value in page and base64.b64encode(lab.image.value).decode() in page


def test_unknown_names_are_refused() -> None:
    for name, arguments in {"task": ("digit",), "model": ("digits", "mc-rnn")}.items():
        with pytest.raises(ValueError, match=f"{name}: .*{arguments[-1]}"):
            explore.training(*arguments)
    with pytest.raises(ValueError, match="setting"):
        explore.training("digits", "gru", window=3)
