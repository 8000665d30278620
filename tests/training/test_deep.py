"""The character Transformer in training and test: the sliding segment. HM-RNN's slope."""

import pytest
from tiny_recipe import tiny_recipe, tiny_text_recipe

from rtx.evidence.ledger import read_result
from rtx.evidence.record import train
from rtx.training.evaluate import evaluate
from rtx.training.fit import fit

CPU = {"accelerator": "cpu", "enable_progress_bar": False}
DEEP = {"epochs": 2, "batching": "shuffled", "carry": False, "slide": True}


pytestmark = pytest.mark.usefixtures("tiny_tasks")


def test_a_run_with_slide_and_the_evaluation_of_its_checkpoint_use_the_sliding_segment(tmp_path):
    plan = tiny_text_recipe().plan("character-transformer", overrides=DEEP | {"learning_rate": 0.05})
    result = read_result(train(plan, runs=tmp_path, results=tmp_path, **CPU))
    checkpoint = next(tmp_path.rglob("best.safetensors"))
    assert evaluate(checkpoint)["nats"] == pytest.approx(result.test, rel=1e-6)
    apart = tiny_text_recipe().plan("character-transformer", overrides=DEEP | {"learning_rate": 0.05, "slide": False})
    other = read_result(train(apart, runs=tmp_path / "apart", results=tmp_path / "apart", **CPU))
    assert result.validation == other.validation and result.test != other.test


@pytest.mark.parametrize(
    ("recipe", "model", "setting", "found"),
    [
        (tiny_text_recipe(), "lstm", {"slide": True}, "RNN"),
        (tiny_text_recipe(), "character-transformer", {"carry": True}, "CharacterTransformer"),
        (tiny_recipe(), "gru", {"carry": True}, "SequenceModel"),
        (tiny_text_recipe(), "transformer-xl", {"ar": 1.0}, "TransformerXL"),
    ],
)
def test_a_setting_that_a_model_does_not_have_is_refused_before_the_run_begins(recipe, model, setting, found, tmp_path):
    plan = recipe.plan(model, overrides={"batching": "columns", "carry": False} | setting)
    with pytest.raises(ValueError, match=f"^{next(iter(setting))}\\b.* {found}$"):
        train(plan, runs=tmp_path, results=tmp_path, **CPU)
    assert not list(tmp_path.rglob("*.ckpt"))


def test_the_slope_of_the_boundaries_follows_the_epoch(tmp_path):
    plan = tiny_text_recipe().plan("hm-rnn", overrides={"epochs": 4})
    model = fit(plan, 0, tmp_path, **CPU).trainee.model
    assert model.backbone.slope == pytest.approx(1 + 0.04 * 3)
