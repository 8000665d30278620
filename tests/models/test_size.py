"""The size of a model is known before memory is allocated, and a model that is too large is refused."""

import re

import pytest

from rtx.models import CARDS, MODELS, LanguageModel, parameter_bytes

HUGE = [10**9, 10**30]


def test_the_size_is_that_of_the_parameters(small_sizes, small_model):
    name, sizes = small_sizes()
    expected = sum(parameter.nbytes for parameter in small_model().parameters())
    assert parameter_bytes(MODELS[name], **sizes) == parameter_bytes(MODELS[name], limit=expected, **sizes) == expected
    with pytest.raises(ValueError, match="d_model = 8"):
        parameter_bytes(MODELS[name], limit=expected - 1, **sizes)


def test_a_tied_parameter_counts_once():
    def make(vocabulary: int) -> LanguageModel:
        return LanguageModel(MODELS["gru"](8), vocabulary)

    assert parameter_bytes(make, vocabulary=1000) == 4 * (6 * 8 * 8 + 6 * 8 + 1000 * 8 + 1000)


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("name", CARDS)
def test_a_model_that_is_too_large_is_refused_by_its_hyperparameters(name, value):
    card = CARDS[name]
    for argument in {"d_model", "d_hidden", "source_vocabulary"} & set(card.sizes):
        with pytest.raises(ValueError, match=rf"GiB.*\b{argument} = {value}\b"):
            parameter_bytes(card.make, **card.sizes | {argument: value})


@pytest.mark.parametrize("name", ["transformer", "tcn", "awd-lstm", "mc-rnn"])
def test_too_many_small_layers_are_refused_too(name, monkeypatch):
    monkeypatch.setattr("rtx.models.size.MOST", 100)
    sizes = {"d_model": 2, "layers": 10**9} | ({"heads": 1} if name == "transformer" else {})
    with pytest.raises(ValueError, match=re.escape(f"layers = {10**9}")):
        parameter_bytes(MODELS[name], **sizes)


def test_other_errors_stay_as_they_are():
    with pytest.raises(ValueError, match="^heads: "):
        parameter_bytes(MODELS["transformer"], d_model=8, layers=1, heads=3)
    with pytest.raises(TypeError, match="hedas"):
        parameter_bytes(MODELS["transformer"], d_model=8, layers=1, hedas=2)
