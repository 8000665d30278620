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
from rtx.lab.explore.race import _sentence as race_sentence
from rtx.lab.explore.toy import ToyRun
from rtx.lab.explore.toy import _Picture as ToyPicture
from rtx.lab.explore.toy import _sentence as toy_sentence
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


def test_an_explorer_made_again_ends_the_one_before() -> None:
    explorer = explore.toy(length=400)
    explorer.train.value = True
    until(lambda: "After" in explorer.text)
    explore.toy()
    assert not explorer.current.alive


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


def test_a_model_without_attention_is_matched_too() -> None:
    without = {"model": "r-transformer", "d_model": 4, "layers": 1, "heads": 0, "window": 3}
    assert matched(DIGITS, without, count(DIGITS, {**without, "d_model": 16})) == {**without, "d_model": 16}


@pytest.mark.parametrize("equal", EQUAL)
def test_all_spend_the_same(equal: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_same_seed_is_the_same_race() -> None:
    torch.manual_seed(5)
    first = finished(Contest(DIGITS, SMALL, "parameters", updates=4, seeds=1, turns=2))
    torch.manual_seed(6)
    second = finished(Contest(DIGITS, SMALL, "parameters", updates=4, seeds=1, turns=2))
    assert [first.band(name) for name in SMALL] == [second.band(name) for name in SMALL]


def test_a_racer_is_scored_on_the_first_of_the_validation_split() -> None:
    contest = finished(Contest(DIGITS, SMALL, "parameters", updates=1, seeds=1, turns=1))
    probe = next(iter(loader(DIGITS, "validation", PROBE)))
    torch.manual_seed(0)
    model = build(DIGITS, **SMALL["gru"]).eval()
    assert contest.racers["gru"][0].scores[0] == pytest.approx(DIGITS.score(DIGITS.predict(model, probe), probe))


def test_the_target_is_reached_where_the_median_is_as_good() -> None:
    contest = Contest(DIGITS, SMALL, "parameters", updates=4, seeds=1, turns=2)
    finished(contest)
    racer = contest.racers["gru"][0]
    racer.spent, racer.scores = [0, 2, 4], [10.0, 55.0, 50.0]
    assert contest.spent_to("gru", 50) == 2 and contest.spent_to("gru", 10) == 0 and contest.spent_to("gru", 56) is None


def test_the_race_follows_its_controls() -> None:
    explorer = explore.race("digits", SMALL, "parameters", updates=8, seeds=2, turns=4)
    before = explorer.picture.value
    explorer.run()
    assert explorer.picture.value != before
    assert "gru (" in explorer.text and "parameters)" in explorer.text
    lines = explorer.figure.axes[0].lines
    assert [list(line.get_xdata()) for line in lines[:2]] == [[0, 2, 4, 6, 8]] * 2
    explorer.set(target=explorer.controls["target"].options[0])
    assert "at " in explorer.text or "not yet" in explorer.text
    assert "finished" in explorer.status.value
    explorer.set(equal="seconds")
    assert explorer.text.startswith("Not trained yet") and "not started" in explorer.status.value
    explorer.set(equal="parameters")
    assert "gru (" in explorer.text and "finished" in explorer.status.value


def test_the_races_axis_reaches_as_far_as_its_lines() -> None:
    explorer = explore.race("digits", SMALL, "seconds", seconds=0.05, seeds=1, turns=2).run()
    ax = explorer.figure.axes[0]
    furthest = max(line.get_xdata()[-1] for line in ax.lines[:2])
    assert furthest > 0.05 and ax.get_xlim()[1] == furthest  # the last update goes beyond the budget


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


def test_a_run_that_is_scored_while_it_is_drawn_is_drawn() -> None:
    class Growing(list[float]):
        def __len__(self) -> int:  # another thread adds a score whenever it is asked how many there are
            found = super().__len__()
            self.append(0.9)
            return found

    before = SimpleNamespace(solved=Growing([0.1, 0.4]), shares=[], marked=torch.zeros(5))
    picture = ToyPicture()
    picture.show(None, [before], 50)  # type: ignore[list-item]
    (grey,) = picture.solved.lines
    assert list(grey.get_ydata())[:2] == [0.1, 0.4]


def test_many_updates_are_written_out() -> None:
    contest = finished(Contest(DIGITS, SMALL, "parameters", updates=4, seeds=1, turns=2))
    racer = contest.racers["gru"][0]
    racer.spent, racer.scores = [0, 2000, 4000], [10.0, 55.0, 60.0]
    assert "parameters) at 2,000" in race_sentence(contest, "parameters", 50.0, DIGITS)  # not 2e+03


def test_one_unsolved_sequence_is_not_rounded_away() -> None:
    run = SimpleNamespace(solved=[0.998], shares=[torch.ones(50)], marked=torch.arange(50) < 2)
    assert "99.8% of 500 test sequences are solved" in toy_sentence(run)  # type: ignore[arg-type]


def test_the_marked_steps_are_held_against_an_even_share() -> None:
    shares = torch.cat([torch.full((2,), 10.0), torch.full((48,), 0.625)])
    run = SimpleNamespace(solved=[0.5], shares=[shares], marked=torch.arange(50) < 2)
    assert toy_sentence(run).endswith("have 40.0% of the attention; even would be 4.0%.")  # type: ignore[arg-type]


def test_lower_is_better_where_the_task_says_so() -> None:
    task = task_by_name("characters", context=8, scored=24)
    explorer = explore.race(task, SMALL, updates=4, seeds=1, turns=2)
    options = explorer.controls["target"].options
    assert options == tuple(sorted(options, reverse=True)) and options[-1] < 0.5


@pytest.mark.parametrize(("task", "perfect"), [("digits", 100), ("add", 1)])
def test_targets_lead_from_what_needs_no_model_to_what_is_perfect(task: str, perfect: float) -> None:
    targets = explore.race(task, {"gru": SMALL["gru"]}).controls["target"].options
    assert len(targets) == 19 and sorted(targets) == list(targets)
    assert 0.9 * perfect < targets[-1] < perfect


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="length: expected one of 50, 100, 200, 400, got 51"):
        explore.toy(length=51)
    with pytest.raises(ValueError, match="task: 'copy' is unknown"):
        explore.toy(task="copy")
    with pytest.raises(ValueError, match="entrants: expected one to 10, got 0"):
        explore.race("digits", {})
    with pytest.raises(ValueError, match="updates: expected a whole number"):
        explore.race("digits", SMALL, updates=0)
    with pytest.raises(ValueError, match="seconds: expected a finite number above 0, got -1"):
        explore.race("digits", SMALL, seconds=-1)
    with pytest.raises(ValueError, match="seconds: expected a finite number above 0, got nan"):
        Contest(DIGITS, SMALL, seconds=float("nan"))
    with pytest.raises(ValueError, match="learning_rate: expected a finite number above 0, got 0"):
        explore.race("digits", SMALL, learning_rate=0)
    with pytest.raises(ValueError, match="batch_size: expected a whole number of at least 1, got 0"):
        explore.race("digits", SMALL, batch_size=0)
    with pytest.raises(ValueError, match="for a task of no pairs"):
        Contest(task_by_name("dates", size=100), SMALL)
    with pytest.raises(ValueError, match="entrants: expected a d_model to change"):
        matched(DIGITS, {"model": "gru"}, 100)
    with pytest.raises(ValueError, match="gru has fewer than"):
        matched(DIGITS, SMALL["gru"], 10**12)
