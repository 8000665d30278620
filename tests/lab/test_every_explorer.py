"""What every explorer does: each control changes the picture, and the reader's random numbers stay as they are."""

from typing import Any

import pytest
import torch
from explorer_cells import EXPLORERS, SETUP

import rtx
from rtx.lab import explore
from rtx.tasks.vocabulary import UNKNOWN, vocabulary


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(SETUP, found)
    return found


def another_value(control: Any) -> Any:
    """Return a value that a control does not have now."""
    if hasattr(control, "options"):
        values = [one[1] if isinstance(one, tuple) else one for one in control.options]
        return next(value for value in values if value != control.value)
    return control.min if control.value == control.max else control.max


@pytest.mark.parametrize("cell", EXPLORERS)
def test_each_control_changes_the_picture_and_no_random_number(names: dict[str, Any], cell: str) -> None:
    explorer = eval(cell, names)
    before = torch.get_rng_state()
    picture, sentences = explorer.picture.value, {explorer.text}
    for control, widget in explorer.controls.items():
        value = widget.value
        sentences.add(explorer.set(**{control: another_value(widget)}))
        assert explorer.picture.value != picture, control
        explorer.set(**{control: value})
    assert len(sentences) > 1 and torch.equal(torch.get_rng_state(), before)


def test_a_dollar_sign_in_a_label_is_no_formula(names: dict[str, Any]) -> None:
    words = ["it", "costs", "$5-$10", "or", "$$"]
    symbols = vocabulary("words", [UNKNOWN, *words])
    figures = [
        explore.attention(rtx.Transformer(8, 1, 1), torch.randn(1, 5, 8), words).still,
        explore.channels(text=" ".join(words)).still,
        explore.beam(names["translator"], names["dates"].texts, "8. März $5-$10").figure,
        explore.sampling(rtx.LanguageModel(rtx.RNN(8), symbols.size), symbols, "it", tokens=2).figure,
    ]
    for figure in figures:
        figure.draw_without_rendering()
        labels = [one for ax in figure.axes for one in (*ax.get_xticklabels(), *ax.get_yticklabels())]
        assert labels and not any(one.get_parse_math() for one in labels if "$" in one.get_text())


def test_a_new_explorer_leaves_the_readers_random_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    x = torch.randn(5, 4)
    before = torch.get_rng_state()
    explore.reach(), explore.block(), explore.window(x), explore.debugger(x), explore.positions()
    assert torch.equal(torch.get_rng_state(), before) and not seeded
