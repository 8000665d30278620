"""What every explorer does: it leaves the reader's random numbers alone, and takes a label as it is written."""

from typing import Any

import pytest
import torch
from explorer_cells import SETUP

import rtx
from rtx.lab import explore


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(SETUP, found)
    return found


def test_a_dollar_sign_in_a_label_is_no_formula(names: dict[str, Any]) -> None:
    words = ["it", "costs", "$5-$10", "or", "$$"]
    figures = [
        explore.attention(rtx.Transformer(8, 1, 1), torch.randn(1, 5, 8), words).still,
        explore.channels(text=" ".join(words)).still,
        explore.beam(names["translator"], names["dates"].texts, "8. März $5-$10").still,
    ]
    for figure in figures:
        figure.draw_without_rendering()
        labels = [one for ax in figure.axes for one in (*ax.get_xticklabels(), *ax.get_yticklabels(), *ax.texts)]
        assert labels and not any(one.get_parse_math() for one in labels if "$" in one.get_text())


def test_a_new_explorer_leaves_the_readers_random_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    x, model = torch.randn(5, 4), rtx.RNN(4)
    before = torch.get_rng_state()
    explore.depends(), explore.window(x), explore.positions(), explore.xray(model)
    assert torch.equal(torch.get_rng_state(), before) and not seeded
