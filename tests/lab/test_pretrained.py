"""The trained models of the package: small files, and the scores that their cards and the ledger say."""

from pathlib import Path

import pytest
import torch

from rtx.evidence.ledger import read_results
from rtx.lab.pretrained import ROWS, card_of, path_of, pretrained, weights
from rtx.tasks import task_by_name
from rtx.training.checkpoint import save_checkpoint
from rtx.training.evaluate import evaluate
from studies.pretrained import shrink

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("name", ROWS)
def test_a_file_is_small_and_the_ledger_has_its_run(name):
    card, network = card_of(name), pretrained(name)
    assert len(weights(name)) <= 300_000 and not network.training
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}
    better = card["test"] > card["baseline"] if name == "lookup" else card["test"] < card["baseline"]
    recipe, row = ROWS[name]
    (run,) = (
        run
        for run in read_results(recipe, RESULTS)
        if (run.model, run.variant, run.seed, run.commit) == (row, card["variant"], card["seed"], card["commit"])
    )
    assert better and run.test == pytest.approx(card["test"], rel=2e-3) and run.data_sha256 == card["data_sha256"]


def test_the_character_models_have_equally_many_parameters():
    names = [name for name in ROWS if name.startswith("characters")]
    counts = [sum(p.numel() for p in pretrained(name).parameters()) for name in names]
    assert len(counts) == 3 and max(counts) < 1.01 * min(counts)


def test_the_look_up_model_has_the_score_of_its_card():
    assert card_of("lookup")["test"] >= 99
    assert evaluate(path_of("lookup"), limit=200)["answers right (%)"] >= 99


def test_a_checkpoint_is_rounded_and_tested_again(tmp_path):
    task = task_by_name("look-up")
    facts = {"recipe": "look-up", "task_arguments": {}, "texts": [text.to_json() for text in task.texts], "test": 1.0}
    save_checkpoint(
        tmp_path / "a", pretrained("lookup"), "look-up", "transformer", card_of("lookup")["hyperparameters"], **facts
    )
    path = shrink("lookup", tmp_path / "a", tmp_path / "b")
    card = card_of("lookup")
    assert path.stat().st_size < 0.6 * (tmp_path / "a").stat().st_size and card["test"] > 99 > card["baseline"]
    with pytest.raises(ValueError, match="bach"):
        shrink("bach", tmp_path / "a", tmp_path / "b")
