"""The locality dial: the explorer shows the stored runs."""

from statistics import mean

import pytest

from rtx.lab import dial, explore
from rtx.lab.dial import EVERY, UPDATES, Run


def run(model: str, excess: float, cell: dial.Cell = (1.0, 1.0), seed: int = 0) -> Run:
    """Return a run with the same score at all times."""
    return Run(model, *cell, seed, [excess - 0.1] * 7, [excess + 0.1] * 7, 1.0)


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


def test_curves_and_sentence_follow_the_controls() -> None:
    explorer, runs = explore.dial(), dial.stored()[1]
    for local, long, updates in ((1.0, 0.0, UPDATES), (0.0, 1.0, EVERY)):
        text, panels = explorer.see(local=local, long=long, updates=updates)
        found = dial.by_model(runs, (local, long))
        won = dial.winner(found, updates // EVERY)
        assert won is None or f"{won[0]} wins by {won[1]:.3f}" in text
        for points, (name, seeds) in zip(panels["curves"], found.items(), strict=True):
            means = [mean(values) for values in zip(*(one.excess() for one in seeds), strict=True)]
            assert [value for _, value in points] == pytest.approx(means)
            assert f"{name} {means[updates // EVERY]:.3f}" in text
    with pytest.raises(ValueError, match=r"local: 0\.3"):
        explore.dial(local=0.3)
