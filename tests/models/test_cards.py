"""The data sheets of the models: every model has one, and its receptive field is the measured one."""

import inspect

import pytest
import torch

from rtx.models import CARDS, MODELS, TRANSLATORS, WHOLE
from rtx.tasks.build import hyperparameter_names, parameters

LENGTH = 64  # a multiple of the segment


@torch.no_grad()
def changes_by(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return how much a change of each input changes the last output. Gradients would stop at a memory."""
    T = x.shape[1]
    change = torch.linspace(-3, 3, x.shape[2], dtype=x.dtype)  # not constant, because a LayerNorm removes a constant
    changed = x + torch.eye(T, dtype=x.dtype)[:, :, None] * change  # row s differs from x at position s
    return (model(changed) - model(x.repeat(T, 1, 1)))[:, -1].abs().amax(-1)


def assert_receptive_field(name: str, sizes: dict[str, object]) -> None:
    torch.manual_seed(0)
    model = MODELS[name](**sizes)
    expected = CARDS[name].receptive_field(**sizes)
    changes = changes_by(model.double().eval(), torch.randn(1, LENGTH, model.d_model, dtype=torch.float64))
    assert expected is None or expected < LENGTH
    seen = changes > (0 if expected is None else 1e-12)  # a recurrent network nearly forgets its first inputs
    assert LENGTH - int(seen.nonzero()[0]) == (LENGTH if expected is None else expected)
    assert seen[-1]


def test_the_last_output_has_the_receptive_field_of_the_card(small_sizes):
    assert_receptive_field(*small_sizes())


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("segment", "memory"), [(4, 4), (4, 8), (4, 6), (4, 1), (8, 5), (4, 0)])
def test_transformer_xl_has_the_receptive_field_of_its_card(layers, segment, memory):
    sizes = {"d_model": 8, "heads": 2, "layers": layers, "segment": segment, "memory": memory}
    assert_receptive_field("transformer-xl", sizes)
    if memory % segment == 0:  # as in the paper
        assert CARDS["transformer-xl"].receptive_field(**sizes) == segment + layers * memory


@pytest.mark.parametrize(("layers", "kernel"), [(1, 1), (1, 3), (2, 3), (3, 2), (2, 5)])
def test_tcn_has_the_receptive_field_of_its_card(layers, kernel):
    assert_receptive_field("tcn", {"d_model": 32, "layers": layers, "kernel": kernel})  # wide: a ReLU may hide inputs


def test_every_model_has_a_card_and_every_card_a_model():
    assert list(CARDS) == [*MODELS, *WHOLE, *TRANSLATORS]
    assert all(card.name == name and card.make is (MODELS | WHOLE | TRANSLATORS)[name] for name, card in CARDS.items())


@pytest.mark.parametrize("name", [*MODELS, *WHOLE])
def test_a_card_names_the_hyperparameters_of_its_model(name):
    assert set(CARDS[name].sizes) <= set(hyperparameter_names(name))
    kinds = inspect.signature(CARDS[name].receptive_field).parameters.values()
    names = {parameter.name for parameter in kinds if parameter.kind is not parameter.VAR_KEYWORD}
    assert names <= set(hyperparameter_names(name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lstm", 3 * 8 * (700 * 700 + 700)),
        ("tcn", 4 * 2 * (150 * 150 * 5 + 2 * 150)),
        ("transformer-xl", 40_950_784),
        ("awd-lstm", 20_211_600),  # 24 M with 10,000 tied words and the output's bias, as in the paper
    ],
)
def test_parameters_at_the_papers_size_are_those_of_the_formula(name, expected):
    assert parameters(name) == expected


@pytest.mark.parametrize("name", TRANSLATORS)
def test_translators_at_their_papers_size_have_about_the_printed_parameters(name):
    """25 M in Xu et al., Table 2, whose vocabularies are about 25 k each; 65 M in Vaswani et al., who share theirs."""
    shared = 2 * 37_000 * 512  # two of the three tables
    published, more = {"rnnsearch": (25e6, 0), "encoder-decoder": (65e6, shared)}[name]
    assert abs(parameters(name) - more - published) < 0.1 * published
