"""Each erratum's evidence is computed, and says what the verdict claims; the detective hides it until asked."""

import random

import pytest

from rtx.lab import explore
from rtx.models import RTransformer
from rtx.training.recipe import load_recipe
from studies.errata import case
from studies.errata_counted import COUNTED, dead_parameters, three_forms, trigram_bits
from studies.errata_measured import MEASURED

CASES = {one.title: one for one in (*MEASURED, *COUNTED)}
STORED = {one["title"]: one for one in explore.errata().data["cases"]}


@pytest.mark.parametrize("title", CASES)
def test_the_stored_evidence_is_what_is_found_and_bears_the_verdict_out(title):
    found, stored = case(CASES[title]), STORED[title]
    assert len(found["bars"]) >= 2
    for (name, value), (stored_name, stored_value) in zip(found.pop("bars"), stored["bars"], strict=True):
        assert name == stored_name and value == pytest.approx(stored_value, rel=0.02, abs=1e-6)
    assert found == {name: value for name, value in stored.items() if name != "bars"}
    assert list(STORED) == list(CASES)


def test_of_the_modules_that_nobody_calls_each_size_has_the_share_of_its_own_cell():
    model = load_recipe("ptb-word").plan("r-transformer").hyperparameters
    core = RTransformer(*(model[name] for name in ("d_model", "layers", "heads", "window", "cell")))
    width, live = model["d_model"], sum(p.numel() for p in core.parameters())
    dead = model["layers"] * (width * width + width) + 2 * width + 8 * width * width + 5 * width
    assert model["cell"] == "lstm" and dead_parameters().bars["words"] == pytest.approx(100 * dead / (dead + live))


def test_a_sure_text_costs_nearly_nothing_and_a_random_one_its_letters():
    assert trigram_bits(list("abcd" * 500)) < 0.01
    drawn = random.Random(0).choices("abcd", k=20_000)
    assert trigram_bits(drawn) == pytest.approx(2, abs=0.05)
    assert len(set(three_forms().bars.values())) == 3
