"""What the page of a window computes is what LocalRNN computes."""

import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from rtx.lab import explore
from rtx.nn import LocalRNN

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_the_last_state_is_the_output_of_local_rnn(tab: Tab, tmp_path: Path, cell: str) -> None:
    torch.manual_seed(0)
    x, model = torch.randn(9, 5), LocalRNN(5, 4, cell)
    tab.goto(explore.window(x, model).save(tmp_path / "a.html").as_uri())
    norms = model(x[None])[0].norm(dim=1).tolist()
    for position in (2, 3, 4):
        told = str(tab.locator(".sentence").text_content())
        assert float(re.findall(rf"h_{position} has the norm ([.0-9]+[0-9])", told)[0]) == pytest.approx(
            norms[position - 1], abs=2e-3
        )
        tab.get_by_role("slider", name="position").press("ArrowRight")


def test_an_lstms_memory_is_shown_and_numbers_fit_into_their_cells(tab: Tab, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, model = torch.randn(4, 8), LocalRNN(8, 4, "lstm")
    page = explore.window(x, model)
    page.set(position=4, step=4)
    tab.goto(page.save(tmp_path / "a.html").as_uri())
    cells = tab.get_by_role("row", name="c after").get_by_role("cell")
    lstm = torch.nn.LSTM(8, 8)
    lstm.load_state_dict({name: getattr(model, name) for name in lstm.state_dict()})
    _, (_, memory) = lstm(x)
    expect(cells).to_have_text([f"{value:.2f}" for value in memory[0].tolist()])
    expect(tab.get_by_role("columnheader")).to_have_text(["", *"12345678"])
    tab.set_viewport_size({"width": 390, "height": 800})
    expect(cells).to_have_text([f"{value:.1f}".replace("-0.0", "0.0") for value in memory[0].tolist()])
