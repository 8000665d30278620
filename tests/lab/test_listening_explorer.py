"""The listening room's data: notes, costs and kinds of the tunes that it was given."""

import numpy as np
import pytest
import torch

import rtx
from rtx.lab import explore
from rtx.tasks.rolls import held_notes

DRAWN = (np.random.default_rng(0).random((9, 88)) < 0.1).astype(np.float32)


def test_held_notes_are_the_runs_of_ones_each_once():
    again = np.zeros_like(DRAWN)
    for key, start, end in held_notes(DRAWN):
        assert not again[start:end, key].any() and (start == 0 or not DRAWN[start - 1, key])
        again[start:end, key] = 1
    assert (again == DRAWN).all()


def test_costs_are_the_tasks_loss_of_each_frame():
    torch.manual_seed(0)
    task = rtx.tasks.task_by_name("chorales")
    model = rtx.build(task, "gru", d_model=8).eval()
    page = explore.listening({"a": DRAWN}, model=model)
    (tune,) = page.data["tunes"]
    x = torch.from_numpy(DRAWN)[None]
    with torch.no_grad():
        expected = torch.nn.functional.binary_cross_entropy_with_logits(model(x[:, :-1]), x[:, 1:], reduction="none")
    np.testing.assert_allclose(tune["nll"], [0, *expected.sum(2)[0].tolist()], rtol=1e-3)
    assert (tune["kind"], tune["frames"]) == ("real", 9)
    roll, costs = page.still.axes
    np.testing.assert_allclose([bar.get_height() for bar in costs.patches], tune["nll"], rtol=1e-3)
    assert [bar.get_x() + bar.get_width() / 2 for bar in costs.patches] == list(range(1, 10))
    assert (np.asarray(roll.images[0].get_array()).T == DRAWN).all()
    assert costs.get_xlim() == (0.5, 9.5) and (costs.get_xlabel(), costs.get_ylabel()) == ("frame", "nats")


def test_what_cannot_be_heard_is_named():
    with pytest.raises(ValueError, match="tunes: "):
        explore.listening({})
    with pytest.raises(ValueError, match="generated: .* b"):
        explore.listening({"a": DRAWN}, generated=["b"])
    with pytest.raises(ValueError, match="frame_seconds: .*8.5"):
        explore.listening({"a": DRAWN}, frame_seconds=8.5)
    with pytest.raises(ValueError, match="tunes"):
        explore.listening({"a": DRAWN[:, :5]})
    assert "image/png" in explore.listening({"a": DRAWN})._repr_mimebundle_()[0]
