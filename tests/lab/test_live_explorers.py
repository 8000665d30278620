"""The toy solver and the race train beside the notebook, follow their controls, and can be paused."""

from itertools import count as count_up
from types import SimpleNamespace

import pytest
import torch
from waiting import until

from rtx import build
from rtx.lab import explore
from rtx.lab.background import Background
from rtx.lab.contest import EQUAL, PROBE, Contest, count, matched
from rtx.lab.explore.race import _Picture as RacePicture
from rtx.lab.explore.toy import ToyRun
from rtx.lab.explore.toy import _Picture as ToyPicture
from rtx.tasks import task_by_name
from rtx.tasks.costs import multiply_adds
from rtx.tasks.loader import loader

SMALL = {
    "gru": {"model": "gru", "d_model": 16, "layers": 1},
    "attention": {"model": "transformer", "d_model": 8, "layers": 1, "heads": 2},
}
DIGITS = task_by_name("digits")


pytestmark = pytest.mark.usefixtures("nothing_is_left")


def finished(contest: Contest) -> Contest:
    work = Background(contest.work)
    work.start()
    work.wait()
    assert work.state == "finished", work.error
    return contest


@pytest.mark.slow
def test_addition_is_solved_and_attention_leans_to_the_marked_steps() -> None:
    run = ToyRun("add", 50, "attention", 0.01, lambda: None)
    run.background.start()
    run.background.wait()
    assert run.solved[-1] > 0.95 and run.solved[0] < 0.2
    assert int(run.marked.sum()) == 2
    for shares in run.shares:
        assert float(shares.mean()) == pytest.approx(1, abs=1e-4)
    assert run.shares[-1][run.marked].min() > run.shares[-1][~run.marked].mean()


@pytest.mark.slow
def test_the_train_button_pauses_and_so_does_a_control() -> None:
    explorer = explore.toy(length=400, learning_rate=0.0003)  # slow enough that it has to be paused
    assert explorer.text == "Not trained yet: press “train”." and "not started" in explorer.status.value
    explorer.train.value = True
    work = explorer.current
    until(lambda: "After" in explorer.text)
    explorer.train.value = False
    until(lambda: work.state == "paused" and "paused" in explorer.status.value)
    explorer.train.value = True
    until(lambda: work.state == "running" and "running" in explorer.status.value)
    assert explorer.current is work
    explorer.set(pooling="mean")
    until(lambda: work.state == "paused")
    assert explorer.current is None and not explorer.train.value and "not started" in explorer.status.value
    assert explorer.text == "Not trained yet: press “train”."
    explorer.set(pooling="attention")
    assert explorer.text.startswith("After ") and "paused" in explorer.status.value
    explorer.train.value = True
    until(lambda: work.state == "running")
    assert explorer.current is work
    explorer.set(pooling="mean")
    explorer.train.value = True  # two would share the cores: the first is ended
    until(lambda: explorer.text.startswith("After ") and not work.alive)
    explorer.set(pooling="attention")
    assert explorer.text.startswith("After ") and "stopped" in explorer.status.value


def test_a_pause_that_is_taken_back_at_once_begins_nothing_anew() -> None:
    explorer = explore.toy(length=400)
    explorer.train.value = True
    work = explorer.current
    for value in (False, True, False, True):
        explorer.train.value = value
    assert explorer.current is work
    explore.toy()  # an explorer that is made again ends the one before
    until(lambda: not work.alive)


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
    contest = finished(Contest(DIGITS, SMALL, equal, updates=6, seconds=0.2, seeds=2, turns=3))
    for name, racers in contest.racers.items():
        assert len(racers) == 2
        for racer in racers:
            assert len(racer.spent) == len(racer.scores) == 4 and racer.spent[0] == 0
            step = racer.per_update or 0.02
            assert contest.budget - 1e-6 <= racer.spent[-1] < contest.budget + 2 * step
        spent, low, middle, high = contest.band(name)
        assert len(spent) == 4 and all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))
        assert middle[-1] == pytest.approx(sum(racer.scores[-1] for racer in racers) / 2)
    sizes = contest.parameters
    if equal == "parameters":
        assert abs(sizes["attention"] - sizes["gru"]) / sizes["gru"] < 0.25
    if equal == "multiply-adds":
        mine = multiply_adds(DIGITS, "gru", 64, d_model=16, layers=1) * 32 * 6 / 1e9
        assert contest.budget == pytest.approx(mine)


def test_the_same_seed_is_the_same_race_and_scores_are_of_the_validation_split() -> None:
    torch.manual_seed(5)
    first = finished(Contest(DIGITS, SMALL, "parameters", updates=2, seeds=1, turns=2))
    torch.manual_seed(6)
    second = finished(Contest(DIGITS, SMALL, "parameters", updates=2, seeds=1, turns=2))
    assert [first.band(name) for name in SMALL] == [second.band(name) for name in SMALL]
    probe = next(iter(loader(DIGITS, "validation", PROBE)))
    torch.manual_seed(0)
    model = build(DIGITS, **SMALL["gru"]).eval()
    racer = first.racers["gru"][0]
    assert racer.scores[0] == pytest.approx(DIGITS.score(DIGITS.predict(model, probe), probe))
    racer.spent, racer.scores = [0, 2, 4], [10.0, 55.0, 50.0]
    assert [first.spent_to("gru", target) for target in (10, 50, 56)] == [0, 2, None]  # the first that is as good


def test_the_race_follows_its_controls() -> None:
    explorer = explore.race("digits", SMALL, "parameters", updates=4, seeds=1, turns=4)
    before = explorer.picture.value
    explorer.run()
    assert explorer.picture.value != before
    assert "gru (" in explorer.text and "parameters)" in explorer.text
    lines = explorer.figure.axes[0].lines
    assert [list(line.get_xdata()) for line in lines[:2]] == [[0, 1, 2, 3, 4]] * 2
    explorer.set(target=explorer.controls["target"].options[0])
    assert "at " in explorer.text or "not yet" in explorer.text
    assert "finished" in explorer.status.value
    explorer.set(equal="seconds")
    assert explorer.text.startswith("Not trained yet") and "not started" in explorer.status.value
    explorer.set(equal="parameters")
    assert "gru (" in explorer.text and "finished" in explorer.status.value


def test_the_race_draws_the_median_seed_and_a_band_from_the_worst_to_the_best() -> None:
    contest = Contest(DIGITS, SMALL, "parameters", updates=4, seeds=3, turns=2)
    for name, scores in (("gru", ([10, 50, 60], [10, 20, 90], [10, 40, 70])), ("attention", ([5, 6, 7],) * 3)):
        contest.racers[name] = [SimpleNamespace(spent=[0, 2, 4], scores=one) for one in scores]  # type: ignore[misc]
    assert contest.band("gru") == ([0, 2, 4], [10, 20, 60], [10, 40, 70], [10, 50, 90])
    picture = RacePicture(DIGITS, list(SMALL))
    picture.show(contest, "updates", 33.0)
    (ax,) = picture.figure.axes
    assert [list(line.get_ydata()) for line in ax.lines] == [[10, 40, 70], [5, 6, 7], [33, 33]]
    (band, flat) = ax.collections
    edges = {tuple(point) for point in band.get_paths()[0].vertices.tolist()}
    assert edges == {(0, 10), (2, 20), (2, 50), (4, 60), (4, 90)}
    for line, one in zip(ax.lines, (band, flat), strict=False):
        assert tuple(one.get_facecolor()[0][:3]) == line.get_color()
    assert ax.lines[0].get_color() != ax.lines[1].get_color()
    assert [text.get_text() for text in ax.get_legend().texts] == [*SMALL, "target"]
    assert (ax.get_xlabel(), ax.get_xlim()) == ("updates", (0, 4))
    assert ax.get_ylim()[0] < 5 and ax.get_ylim()[1] > 90


def test_the_toys_rows_stand_at_their_updates_and_its_marks_at_the_marked_steps() -> None:
    shares = [torch.full((5,), value) for value in (1.0, 0.5, 2.0)]
    marked = torch.tensor([False, True, False, False, True])
    run = SimpleNamespace(solved=[0.1, 0.2, 0.7], shares=shares, marked=marked)
    before = SimpleNamespace(solved=[0.1, 0.4], shares=shares[:2], marked=marked)
    picture = ToyPicture()
    picture.show(run, [before], 50)  # type: ignore[arg-type, list-item]
    grey, blue = picture.solved.lines
    assert (list(grey.get_xdata()), list(grey.get_ydata())) == ([0, 20], [0.1, 0.4])
    assert (list(blue.get_xdata()), list(blue.get_ydata())) == ([0, 20, 40], [0.1, 0.2, 0.7])
    assert grey.get_color() == "0.8"
    assert picture.image.get_array().tolist() == [[1.0] * 5, [0.5] * 5, [2.0] * 5]
    assert list(picture.image.get_extent()) == [0.5, 5.5, 50, -10]  # the middles of the rows are 40, 20 and 0
    assert list(picture.marks.get_xdata()) == [2, 5]


@pytest.mark.parametrize(("task", "perfect"), [("digits", 100), ("add", 1)])
def test_targets_lead_from_what_needs_no_model_to_what_is_perfect(task: str, perfect: float) -> None:
    targets = explore.race(task, {"gru": SMALL["gru"]}).controls["target"].options
    assert len(targets) == 19 and sorted(targets) == list(targets)
    assert 0.9 * perfect < targets[-1] < perfect


def test_a_race_without_a_budget_a_model_or_a_size_is_refused() -> None:
    with pytest.raises(ValueError, match="length: .* 51"):
        explore.toy(length=51)
    with pytest.raises(ValueError, match="entrants: .* 0"):
        explore.race("digits", {})
    for name, value in {"updates": 0, "seconds": -1, "learning_rate": 0, "batch_size": 0}.items():
        with pytest.raises(ValueError, match=f"{name}: .* {value}"):
            explore.race("digits", SMALL, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="entrants: .*d_model"):
        matched(DIGITS, {"model": "gru"}, 100)
