"""The locality dial: the explorer shows the stored runs and adds to them."""

import math
import sys
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
import torch
from waiting import until

from rtx.lab import dial, explore
from rtx.lab.dial import ENTRANTS, EVERY, STORED, STRENGTHS, UPDATES, Run
from rtx.lab.explore.dial import _Picture, initials
from rtx.tasks.task import collate

EMPTY = next(strength for strength in STRENGTHS if strength not in STORED)
MINE = {"mine": {"model": "gru", "d_model": 8, "layers": 1}}


pytestmark = pytest.mark.usefixtures("nothing_is_left")


def run(model: str, excess: float, cell: dial.Cell = (1.0, 1.0), seed: int = 0) -> Run:
    """Return a run with the same score at all times."""
    return Run(model, *cell, seed, [excess - 0.1] * 7, [excess + 0.1] * 7, 1.0)


def test_a_model_that_knows_nothing_is_above_the_best_by_all_that_can_be_known() -> None:
    for cell in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        task = dial.dial_task(cell, 0)
        batch = collate(task.split("test")[:20], task.per)
        even = torch.zeros(*batch.targets.shape, dial.SYMBOLS)
        known = [strength * math.log(dial.SYMBOLS) for strength in cell]  # all at a strength of 1, nothing at 0
        assert dial.above_best(even, batch, cell) == pytest.approx(known, abs=1e-5)
    told = 50 * torch.nn.functional.one_hot(batch.targets.clamp(min=0), dial.SYMBOLS).float()
    told[batch.inputs[..., -1] == 0] = 0  # it knows the recalled symbols only
    assert dial.above_best(told, batch, (1.0, 1.0)) == pytest.approx([math.log(dial.SYMBOLS), 0], abs=1e-5)


def test_each_seed_has_its_own_task_which_is_drawn_once() -> None:
    first, second = (dial.dial_task((1.0, 1.0), seed).split("train") for seed in (0, 1))
    assert not torch.equal(first[0].inputs, second[0].inputs)
    assert len(first) == dial.SEQUENCES and dial.dial_task((1.0, 1.0), 0).split("train") is first


def test_a_winner_is_best_with_every_seed() -> None:
    runs = [run("a", 0.2), run("a", 0.3, seed=1), run("b", 0.4), run("b", 0.6, seed=1)]
    name, ahead = dial.winner(dial.by_model(runs, (1.0, 1.0)), 3) or ("nobody", 0)
    assert (name, ahead) == ("a", pytest.approx(0.25))
    assert dial.winner(dial.by_model([*runs, run("c", 0.29), run("c", 0.9, seed=1)], (1.0, 1.0)), 3) is None
    assert dial.winner(dial.by_model(runs[:2], (1.0, 1.0)), 3) is None
    assert dial.winner({"a": [run("a", 0.2)], "b": [run("b", 0.209)]}, 3) is None  # too small a lead
    alone = dial.by_model([*runs, run("a", 0.0, seed=2)], (1.0, 1.0))  # "b" does not have this seed
    assert [one.seed for one in alone["a"]] == [0, 1] and dial.winner(alone, 0) == (name, ahead)
    assert dial.by_model([run("a", 0.2), run("b", 0.1, seed=1)], (1.0, 1.0)) == {}


def test_the_map_and_the_curves_follow_the_controls() -> None:
    explorer = explore.dial()
    _, runs = dial.stored()
    picture, curves = explorer.figure.axes
    for local, long, updates in ((1.0, 0.0, UPDATES), (0.0, 1.0, UPDATES), (0.0, 1.0, EVERY)):
        before = explorer.picture.value
        text = explorer.set(local=local, long=long, updates=updates)
        assert explorer.picture.value != before
        found = dial.by_model(runs, (local, long))
        won = dial.winner(found, updates // EVERY)
        assert ("nobody wins clearly" in text) if won is None else (f"{won[0]} wins by {won[1]:.3f}" in text)
        for line, name in zip(curves.lines, ENTRANTS, strict=False):
            means = np.mean([one.excess() for one in found[name]], 0)
            assert line.get_ydata().tolist() == pytest.approx(means.tolist())
            assert f"{name} {means[updates // EVERY]:.3f}" in text
    names, leads = picture.collections
    words = {tuple(place): told for place, *told in zip(names.get_offsets(), names.words, leads.words, strict=True)}
    for (row, local), (column, long) in product(enumerate(STRENGTHS), repeat=2):
        won = dial.winner(dial.by_model(runs, (local, long)), 1)
        stored = local in STORED and long in STORED
        expected = [initials(won[0]), f"{won[1]:.3f}"] if stored and won else ["draw" if stored else "·", ""]
        assert words[column, row] == expected
    assert "not trained yet, press “train”" in explorer.set(local=EMPTY)


@pytest.fixture
def brief(monkeypatch) -> Iterator[None]:
    """Train with fewer updates on fewer sequences."""
    for module in (dial, sys.modules[_Picture.__module__]):
        monkeypatch.setattr(module, "UPDATES", 2 * EVERY)
    monkeypatch.setattr(dial, "SEQUENCES", 400)
    monkeypatch.setattr(dial, "TEST", 50)
    dial.dial_task.cache_clear()
    yield
    dial.dial_task.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("brief")
def test_a_cell_is_trained_and_filled_in_and_a_control_pauses_it() -> None:
    explorer = explore.dial(MINE, local=EMPTY)
    explorer.train.value = True
    until(lambda: "mine is at update" in explorer.text)
    first = explorer.current
    explorer.set(updates=EVERY)  # only looks
    assert explorer.current is first
    explorer.set(long=0.0)
    until(lambda: first.state == "paused")
    assert explorer.text.startswith("Local rules") and "not started" in explorer.status.value
    explorer.set(long=1.0)
    assert explorer.text.startswith("mine is at update") and "paused" in explorer.status.value
    first.stop()  # as another explorer does
    assert explorer.text.startswith("Local rules") and "stopped" in explorer.status.value
    explorer.set(long=0.0)
    explorer.run()
    assert (
        "one seed each: mine 0." in explorer.text and "update" not in explorer.text.split(". ")[0].split(", after")[0]
    )
    assert explorer.run().text.count("2 seeds each") == 1  # the next seed


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="local: .* 0.3"):
        explore.dial(local=0.3)
    with pytest.raises(ValueError, match="entrants: .*GRU"):
        explore.dial({"GRU": {"model": "gru", "d_model": 8}})


def test_a_cell_has_its_winners_colour_the_stronger_the_larger_its_lead() -> None:
    explorer = explore.dial()
    explorer.set(local=1.0, long=0.0, updates=2 * EVERY)
    picture, curves = explorer.figure.axes
    names = {line.get_color(): name for line, name in zip(curves.lines, ENTRANTS, strict=False)}
    assert [text.get_text().split(": ")[-1] for text in curves.get_legend().texts] == list(ENTRANTS)
    assert len({line.get_linestyle() for line in curves.lines[: len(ENTRANTS)]}) == len(ENTRANTS)
    shown, strengths, leads = np.asarray(picture.images[0].get_array()), [], []
    for (row, local), (column, long) in product(enumerate(STRENGTHS), repeat=2):
        won = dial.winner(dial.by_model(dial.stored()[1], (local, long)), 2)
        if won is None:
            continue
        (colour,) = (colour for colour, name in names.items() if name == won[0])
        strength = (1 - shown[row, column]) / (1 - np.array(colour))
        assert strength == pytest.approx([strength.mean()] * 3)  # that colour, and white
        strengths.append(strength.mean()), leads.append(won[1])
    ordered = np.array(strengths)[np.argsort(leads)]
    assert (np.diff(ordered) > -1e-9).all() and ordered[-1] > 2 * ordered[0]  # the largest leads have all the colour
    (frame,) = picture.patches
    assert frame.get_xy() == (STRENGTHS.index(0.0) - 0.5, STRENGTHS.index(1.0) - 0.5)
    assert curves.lines[-1].get_xdata() == [2 * EVERY] * 2
