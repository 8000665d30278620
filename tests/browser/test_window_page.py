"""What the page of a window computes is what LocalRNN computes."""

import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page as Tab

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
