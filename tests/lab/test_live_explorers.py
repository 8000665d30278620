"""The toy solver and the race train beside the notebook, and what they have recorded can be scrubbed."""

from itertools import count as count_up
from types import SimpleNamespace

import pytest
import torch

from rtx import build
from rtx.lab import explore
from rtx.lab.contest import EQUAL, PROBE, Contest, count, matched
from rtx.lab.explore.toy import ToyRun
from rtx.tasks import task_by_name
from rtx.tasks.costs import multiply_adds
from rtx.tasks.loader import loader

SMALL = {
    "gru": {"model": "gru", "d_model": 16, "layers": 1},
    "attention": {"model": "transformer", "d_model": 8, "layers": 1, "heads": 2},
}
DIGITS = task_by_name("digits")
pytestmark = pytest.mark.usefixtures("nothing_is_left")


def finished(run: Contest | ToyRun) -> None:
    run.start()
    run.wait()
    assert run.state == "finished", run.error


@pytest.mark.slow
def test_addition_is_solved_and_attention_prefers_the_marked_steps() -> None:
    run = ToyRun("add", 50, "attention", 0.01)
    finished(run)
    assert run.solved[-1] > 0.95 and run.solved[0] < 0.2
    assert int(run.marked.sum()) == 2
    for shares in run.shares:
        assert float(shares.mean()) == pytest.approx(1, abs=1e-4)
    assert run.shares[-1][run.marked].min() > run.shares[-1][~run.marked].mean()


def test_the_toys_rows_are_its_updates_and_its_marks_the_marked_steps() -> None:
    toy = explore.toy()
    for solved in ([0.1, 0.4], [0.1, 0.2, 0.7]):
        run = ToyRun("add", 50, "attention", 0.01)
        run.solved, run.shares = solved, [torch.full((5,), value) for value in (1.0, 0.5, 2.0)][: len(solved)]
        run.marked = torch.tensor([False, True, False, False, True])
        toy.runs.append(run)
    toy.show()
    solved, shares = toy.seen()[1]
    assert solved.values == [[(0, 0.1), (20, 0.4)], [(0, 0.1), (20, 0.2), (40, 0.7)]]
    assert shares.values["shape"] == [3, 5] and shares.marks == [1, 4]
    assert "70.0%" in toy.text and "80.0% of the attention; even would be 40.0%" in toy.text
    toy.set(update=20)
    assert "After 20 updates" in toy.text and "20.0% of 500" in toy.text


def test_the_numbers_of_matched_models_are_near() -> None:
    goal = count(DIGITS, {"model": "r-transformer", "d_model": 24, "layers": 1, "heads": 2, "window": 7})
    assert goal == sum(
        p.numel() for p in build("digits", "r-transformer", d_model=24, layers=1, heads=2, window=7).parameters()
    )
    for entrant in SMALL.values():
        made = matched(DIGITS, entrant, goal)
        found = count(DIGITS, made)
        apart = 2 * entrant.get("heads", 1)
        around = [count(DIGITS, {**made, "d_model": made["d_model"] + step}) for step in (-apart, apart)]
        assert abs(found - goal) <= min(abs(other - goal) for other in around)
        assert {**made, "d_model": entrant["d_model"]} == entrant


@pytest.mark.parametrize("equal", EQUAL)
def test_all_models_spend_the_same(equal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count_up(0, 0.02)  # by this clock an update takes 0.02 s
    monkeypatch.setattr("rtx.lab.contest.time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    contest = Contest(DIGITS, SMALL, equal, updates=6, seconds=0.2, seeds=2, turns=3)
    finished(contest)
    for name, curves in contest.curves.items():
        assert len(curves) == 2
        for curve in curves:
            assert len(curve) == 4 and curve[0][0] == 0
            step = contest._cost(SMALL[name], 64) or 0.02
            assert contest.budget - 1e-6 <= curve[-1][0] < contest.budget + 2 * step
        points = contest.points(name)
        assert len(points) == 4 and all(low <= middle <= high for _, middle, low, high in points)
        assert points[-1][1] == pytest.approx(sum(curve[-1][1] for curve in curves) / 2)
    sizes = contest.parameters
    if equal == "parameters":
        assert abs(sizes["attention"] - sizes["gru"]) / sizes["gru"] < 0.25
    if equal == "multiply-adds":
        mine = multiply_adds(DIGITS, "gru", 64, d_model=16, layers=1) * 32 * 6 / 1e9
        assert contest.budget == pytest.approx(mine)


def test_the_same_seed_is_the_same_race_and_scores_are_of_the_validation_split() -> None:
    first, second = (Contest(DIGITS, SMALL, "parameters", updates=2, seeds=1, turns=2) for _ in range(2))
    for seed, contest in enumerate((first, second)):
        torch.manual_seed(seed)
        finished(contest)
    assert [first.points(name) for name in SMALL] == [second.points(name) for name in SMALL]
    probe = next(iter(loader(DIGITS, "validation", PROBE)))
    torch.manual_seed(0)
    model = build(DIGITS, **SMALL["gru"]).eval()
    assert first.curves["gru"][0][0][1] == pytest.approx(DIGITS.score(DIGITS.predict(model, probe), probe))
    first.curves["gru"] = [[(0, 10.0), (2, 55.0), (4, 50.0)]]
    assert [first.spent_to("gru", target, 2) for target in (10, 50, 56)] == [0, 2, None]  # the first that is as good
    assert first.spent_to("gru", 50, 0) is None


def test_the_race_is_scrubbed_by_target_and_turn() -> None:
    race = explore.race("digits", SMALL, "parameters", updates=4, seeds=3, turns=2)
    contest = race.next_run()
    contest.parameters = {"gru": 10, "attention": 20}
    for name, scores in (("gru", ([10, 50, 60], [10, 20, 90], [10, 40, 70])), ("attention", ([5, 6, 7],) * 3)):
        contest.curves[name] = [list(zip([0, 2, 4], one, strict=True)) for one in scores]
    race.runs = [contest]
    race.show()
    gru, attention = race.seen()[1][0].values
    assert gru == [(0, 10, 10, 10), (2, 40, 20, 50), (4, 70, 60, 90)]  # spent, median, lowest, highest
    assert attention == [(0, 5, 5, 5), (2, 6, 6, 6), (4, 7, 7, 7)]
    targets = race.data["controls"]["target"]["values"]
    assert targets == sorted(targets) and 68 < targets[-1] <= 70  # none that no model reaches
    assert race.state["target"] in targets and "until accuracy (%) 19" in race.text  # a tenth of the way, to begin with
    race.state = race.state | {"target": 19.3}
    assert "until accuracy (%) 19.1" in race.text  # the nearest one
    race.set(target=targets[4])
    assert "gru (10 parameters) at 2; attention (20 parameters) not yet" in race.text
    race.set(turn=1, target=targets[-1])
    assert "gru (10 parameters) not yet" in race.text and len(race.seen()[1][0].values[0]) == 2


def test_races_on_other_terms_are_kept() -> None:
    race = explore.race("digits", SMALL, "parameters", updates=4, seeds=1, turns=4).run()
    race.set(equal="multiply-adds")
    race.run()
    assert [run.equal for run in race.runs] == ["parameters", "multiply-adds"]
    assert race.data["state"] == "finished" and race.data["controls"]["turn"]["values"] == [1, 2, 3, 4]
    race.set(run="1: equal parameters")
    assert race.text.startswith("Updates until accuracy (%)")
