"""The character Transformer in training and test: auxiliary losses and the sliding segment. HM-RNN's slope."""

import pytest
import torch
from tiny_recipe import CPU, tiny_recipe, tiny_text_recipe

import rtx
from rtx.evidence.ledger import read_result
from rtx.tasks.task import IGNORED, Batch
from rtx.training.auxiliary_losses import AuxiliaryLosses
from rtx.training.evaluate import evaluate
from rtx.training.fit import fit

DEEP = {"epochs": 2, "batching": "shuffled", "carry": False, "auxiliary": 2, "slide": True}


pytestmark = pytest.mark.usefixtures("tiny_tasks")


def characters() -> torch.nn.Module:
    torch.manual_seed(0)
    model = rtx.build("tiny-text", "character-transformer", d_model=8, layers=2, heads=2, segment=3)
    return model.double().eval()


def ragged() -> Batch:
    """Return windows of 5 and 3 tokens; the last two tokens of each are scored."""
    inputs = torch.tensor([[0, 1, 2, 3, 0], [2, 1, 0, 0, 0]])
    nothing = [IGNORED] * 3
    return Batch(inputs, torch.tensor([[*nothing, 0, 3], [IGNORED, 0, 3, IGNORED, IGNORED]]), torch.tensor([5, 3]))


def test_every_position_of_every_layer_predicts_the_symbols_that_follow_it_in_the_window():
    model, batch = characters(), ragged()
    losses = AuxiliaryLosses(model, 2).double()
    texts = torch.tensor([[0, 1, 2, 3, 0, 3, -1], [2, 1, 0, 3, -1, -1, -1]])  # the inputs, and the token after them
    expected = losses(model.backbone.hidden(model.embed(batch.inputs)), texts, 0.0)
    torch.testing.assert_close(losses.of_batch(model, batch, 0.0), expected, rtol=0, atol=1e-10)


def test_a_run_with_slide_and_the_evaluation_of_its_checkpoint_use_the_sliding_segment(run, tmp_path):
    plan = tiny_text_recipe().plan("character-transformer", overrides=DEEP | {"learning_rate": 0.05})
    result = read_result(run(plan))
    checkpoint = next(tmp_path.rglob("best.safetensors"))
    assert evaluate(checkpoint)["nats"] == pytest.approx(result.test, rel=1e-6)
    apart = tiny_text_recipe().plan("character-transformer", overrides=DEEP | {"learning_rate": 0.05, "slide": False})
    other = read_result(run(apart, "apart"))
    assert result.validation == other.validation and result.test != other.test


def test_an_extended_run_learns_the_same_as_an_uninterrupted_one(tmp_path):
    """The epochs of the plan decide which layers count, not the epochs of this start."""
    plan = tiny_text_recipe().plan("character-transformer", overrides=DEEP | {"epochs": 4})
    whole = fit(plan, 0, tmp_path / "whole", **CPU)
    fit(plan, 0, tmp_path / "in two", epochs=1, **CPU)
    extended = fit(plan, 0, tmp_path / "in two", resume=True, **CPU)
    assert extended.validation == whole.validation


@pytest.mark.parametrize(
    ("recipe", "model", "setting", "found"),
    [
        (tiny_text_recipe(), "lstm", {"auxiliary": 2}, "RNN"),
        (tiny_text_recipe(), "lstm", {"slide": True}, "RNN"),
        (tiny_text_recipe(), "character-transformer", {"carry": True}, "CharacterTransformer"),
        (tiny_recipe(), "gru", {"carry": True}, "SequenceModel"),
        (tiny_text_recipe(), "transformer-xl", {"ar": 1.0}, "TransformerXL"),
    ],
)
def test_a_setting_that_a_model_does_not_have_is_refused_before_the_run_begins(
    recipe, model, setting, found, run, tmp_path
):
    plan = recipe.plan(model, overrides={"batching": "columns", "carry": False} | setting)
    with pytest.raises(ValueError, match=f"^{next(iter(setting))}\\b.* {found}$"):
        run(plan)
    assert not list(tmp_path.rglob("*.ckpt"))


def test_the_slope_of_the_boundaries_follows_the_epoch(tmp_path):
    plan = tiny_text_recipe().plan("hm-rnn", overrides={"epochs": 4})
    model = fit(plan, 0, tmp_path, **CPU).trainee.model
    assert model.backbone.slope == pytest.approx(1 + 0.04 * 3)
