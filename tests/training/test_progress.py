"""What a run tells while it trains."""

from datetime import timedelta

from lightning.pytorch.callbacks import Timer

from rtx.training.fit import fit
from rtx.training.progress import Progress


def test_a_run_tells_what_it_trains_then_each_step_until_no_time_is_left(recipe, tmp_path):
    plan, told = recipe.plan("gru"), []
    progress = Progress(plan, lambda *event: told.append(event), Timer(), every_seconds=0)
    fit(plan, 0, tmp_path, 2, callbacks=[progress], accelerator="cpu", enable_progress_bar=False)
    (first, start), *between, (last, end) = told
    assert (first, last, end) == ("start", "trained", {"epochs": 2})
    assert start["paper"] == recipe.paper("gru") and start["parameters"] > 0
    assert {kind for kind, _ in between} == {"progress"}
    places = [(facts["epoch"], facts["step"]) for _, facts in between]
    assert places == sorted(places) and places[-1] == (2, between[0][1]["steps"])
    assert between[0][1]["validation"] is None and between[-1][1]["validation"] > 0
    assert between[-1][1]["seconds_left"] == 0


def test_the_time_left_of_a_resumed_run_does_not_have_the_seconds_of_its_earlier_part(recipe, tmp_path):
    plan, told = recipe.plan("gru", overrides={"epochs": 10**6, "seconds": 100.0, "stop_at": 1e9}), []
    timer = Timer(timedelta(seconds=100))
    timer.load_state_dict({"time_elapsed": {"train": 99.9}})
    progress = Progress(plan, lambda *event: told.append(event), timer, every_seconds=0)
    fit(plan, 0, tmp_path, callbacks=[progress], accelerator="cpu", enable_progress_bar=False)
    assert {facts["seconds_left"] for kind, facts in told if kind == "progress"} == {0}
