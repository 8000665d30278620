"""What the explorers of music take, and how the pairs of the game are made."""

import numpy as np
import pytest
import torch

import rtx
from rtx.lab import explore
from rtx.lab.explore.bach import frame_costs
from rtx.lab.explore.bach_or_machine import FRAMES, PAIRS, drawn_pairs
from rtx.tasks import SequenceModel

ROLL = (np.random.default_rng(0).random((9, 88)) < 0.1).astype(np.float32)


@pytest.fixture(scope="module")
def model() -> SequenceModel:
    torch.manual_seed(0)
    model = rtx.build("chorales", "r-transformer", d_model=8, layers=1, heads=2, window=3, dropout=0.5)
    torch.nn.init.constant_(model.head.bias, -3.0)  # few notes in a frame, as in music
    return model


def test_costs_are_the_tasks_loss_and_the_model_stays_in_its_mode(model: SequenceModel) -> None:
    found = frame_costs(model, ROLL.astype(np.uint8))
    assert model.training and found == frame_costs(model, ROLL.astype(np.uint8))
    x = torch.from_numpy(ROLL)[None]
    with torch.no_grad():
        logits = model.eval()(x[:, :-1])
    model.train()
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits, x[:, 1:], reduction="none")
    np.testing.assert_allclose(found, expected.sum(2)[0], rtol=1e-5)


def test_a_room_keeps_the_tune_and_the_weights(model: SequenceModel) -> None:
    page = explore.bach(torch.from_numpy(ROLL), model)
    assert [np.flatnonzero(frame).tolist() for frame in ROLL] == page.data["tune"]
    assert page.state["begin"] == 7 and len(page.weights) > 4 * sum(p.numel() for p in model.parameters()) / 2


def test_presets_switch_off_only_what_the_model_has(model: SequenceModel) -> None:
    for one, layers in ((model, {"LocalRNN", "attention"}), (rtx.build("chorales", "gru", d_model=8), set())):
        presets = explore.bach(ROLL, one).presets
        assert {name for name in presets if name.startswith("Without")} == {f"Without {layer}" for layer in layers}


def test_the_tunes_of_a_pair_have_the_same_length_and_as_many_notes_in_each_frame(model: SequenceModel) -> None:
    pairs, again = drawn_pairs(model, 3), drawn_pairs(model, 3)
    assert len(pairs) == PAIRS >= 10
    for (real, made), (_, same) in zip(pairs, again, strict=True):
        assert real.shape == made.shape == (FRAMES, 88)
        assert (real.sum(1) == made.sum(1)).all() and (made == same).all() and not (made == real).all()
    assert any((one != other).any() for (_, one), (_, other) in zip(pairs, drawn_pairs(model, 4), strict=True))


def test_bach_is_as_often_first_as_second_and_the_seed_decides_where() -> None:
    pairs = [(ROLL, 1 - ROLL)] * 12
    places = [[pair["bach"] for pair in explore.bach_or_machine(pairs, seed=seed).data["pairs"]] for seed in (0, 0, 1)]
    assert places[0] == places[1] != places[2] and sum(places[0]) == 6
