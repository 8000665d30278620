"""Each erratum's evidence is computed, and says what the verdict claims; the detective hides it until asked."""

import math
import random

import pytest

from rtx.lab import explore
from rtx.lab.errata import errata
from rtx.lab.errata_counted import dead_parameters, path_bound, three_forms, trigram_bits
from rtx.lab.errata_measured import CLIP, clip_meter, epsilon, padding
from rtx.lab.evidence import Erratum, Evidence
from rtx.models import RTransformer
from rtx.training.recipe import load_recipe

CASES = {one.title: one for one in errata()}


@pytest.mark.parametrize("title", CASES)
def test_the_evidence_bears_the_verdict_out(title):
    found = CASES[title].find()
    assert found.verdict.endswith(": True.")
    assert len(found.bars) >= 2 and all(math.isfinite(value) for value in found.bars.values())


def test_the_gradient_is_at_the_limit_only_if_it_is_clipped_after_backward():
    bars = clip_meter().bars
    assert bars["backward, then clip"] == pytest.approx(CLIP, rel=1e-4)
    assert bars["clip, then backward"] > 10 * CLIP


def test_pads_move_the_first_states_of_a_window_of_five_and_no_others():
    bars = list(padding().bars.values())
    assert min(bars[:4]) > 0.1 and bars[4:] == [0.0] * 4  # what rounding leaves is shown as nothing


def test_the_coded_norm_divides_by_the_unbiased_deviation():
    assert epsilon().bars["std + 1e-6, as coded"] == pytest.approx((127 / 128) ** 0.5, abs=1e-3)


def test_of_the_modules_that_nobody_calls_each_size_has_the_share_of_its_own_cell():
    model = load_recipe("ptb-word").plan("r-transformer").hyperparameters
    core = RTransformer(*(model[name] for name in ("d_model", "layers", "heads", "window", "cell")))
    width, live = model["d_model"], sum(p.numel() for p in core.parameters())
    dead = model["layers"] * (width * width + width) + 2 * width + 8 * width * width + 5 * width
    assert model["cell"] == "lstm" and dead_parameters().bars["words"] == pytest.approx(100 * dead / (dead + live))


def test_the_bound_fails_at_a_distance_of_two():
    assert [path_bound().bars[length] for length in ("l = 1", "l = 2")] == [0, 1]


def test_a_sure_text_costs_nearly_nothing_and_a_random_one_its_letters():
    assert trigram_bits(list("abcd" * 500)) < 0.01
    drawn = random.Random(0).choices("abcd", k=20_000)
    assert trigram_bits(drawn) == pytest.approx(2, abs=0.05)
    assert len(set(three_forms().bars.values())) == 3


def test_the_page_has_each_case_with_its_evidence():
    def find() -> Evidence:
        return Evidence({"a": 1.0, "b": 2.0}, "units", "b is more: True.")

    page = explore.errata([Erratum("one", "a paper", "a is more", "is it?", find)])
    (case,) = page.data["cases"]
    assert case["bars"] == [["a", 1], ["b", 2]] and case["verdict"] == "b is more: True." and page.state["seen"] == []
