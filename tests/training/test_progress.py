"""What a run tells while it trains."""

from rtx.training.fit import fit
from rtx.training.progress import Progress


def test_a_run_tells_what_it_trains_then_each_step_until_no_time_is_left(recipe, tmp_path):
    plan, told = recipe.plan("gru"), []
    progress = Progress(plan, lambda *event: told.append(event), every_seconds=0)
    fit(plan, 0, tmp_path, 2, callbacks=[progress], accelerator="cpu", enable_progress_bar=False)
    (first, start), *between, (last, end) = told
    assert (first, last, end) == ("start", "trained", {"epochs": 2})
    assert start["paper"] == recipe.paper("gru") and start["parameters"] > 0
    assert {kind for kind, _ in between} == {"progress"}
    places = [(facts["epoch"], facts["step"]) for _, facts in between]
    assert places == sorted(places) and places[-1] == (2, between[0][1]["steps"])
    assert between[0][1]["validation"] is None and between[-1][1]["validation"] > 0
    assert between[-1][1]["seconds_left"] == 0
