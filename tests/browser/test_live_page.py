"""An explorer that trains, as a page without a kernel: it plays what was recorded, and nothing on it is dead."""

from pathlib import Path

import pytest
import torch
from drawn import ORANGE, colours
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from rtx.lab import explore
from rtx.lab.choice import Choice
from rtx.lab.look import Look
from rtx.lab.training_run import TrainingRun

pytestmark = pytest.mark.browser


def test_a_recorded_training_is_scrubbed_by_pointer_and_keyboard(tab: Tab, tmp_path: Path) -> None:
    lab = explore.training("digits", "gru")
    for seed in (0, 1):
        run = TrainingRun(Choice("mnist", "gru", seed=seed))
        run.losses, run.probes, run.validations = [2.0, 1.5, 1.0], [(0, 10.0), (3, 20.0)], [(3, 30.0)]
        run.looks = [(at, Look(torch.full((2, 2), at / 3), "step", "unit", "states")) for at in range(4)]
        lab.runs.append(run)
    lab.show()
    tab.goto(lab.save(tmp_path / "lab.html").as_uri())
    sentence, canvas = tab.locator(".sentence"), tab.locator("canvas")
    expect(sentence).to_contain_text("Run 2: gru. After 3 updates, loss 1.000")
    expect(tab.get_by_role("button", name="Train")).to_be_hidden()
    expect(tab.get_by_label("learning_rate")).to_be_hidden()

    inside = [(820, 120)]  # the colour of a number of the look into the model
    assert colours(canvas, inside) == [[253, 231, 37]]
    canvas.click(position={"x": 150, "y": 100})  # in the middle of the losses
    expect(sentence).to_contain_text("After 2 updates, loss 1.500")
    assert colours(canvas, inside) != [[253, 231, 37]]
    canvas.press("Home")
    expect(sentence).to_contain_text("After 0 updates")
    assert colours(canvas, inside) == [[68, 1, 84]]
    tab.get_by_role("slider", name="run").press("Home")
    expect(sentence).to_contain_text("Run 1: gru. After 0 updates")

    tab.locator("summary").first.click()
    expect(tab.locator("pre").first).to_contain_text("rtx train mnist gru --scale quick --seed 0")
    expect(tab.locator("pre").first).to_contain_text("update 3: validation 30.0000")
    # the second run in the legend
    assert ORANGE in colours(canvas, [(x, y) for x in range(220, 300) for y in range(30, 200, 4)])
