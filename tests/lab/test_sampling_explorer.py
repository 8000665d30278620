"""The sampling explorer shows the probabilities that tokens are really drawn by."""

import pytest
import torch

from rtx import LanguageModel, build
from rtx.lab import explore
from rtx.lab.explore import Explorer
from rtx.lab.explore.sampling import kept
from rtx.nn.sampling import sample_token
from rtx.tasks.vocabulary import Vocabulary, vocabulary

LETTERS = vocabulary("characters", list("abcdefgh \n"))


@pytest.fixture
def model() -> LanguageModel:
    torch.manual_seed(0)
    model = build("characters", "lstm", d_model=8)
    assert isinstance(model, LanguageModel)
    model = LanguageModel(model.backbone, LETTERS.size)
    with torch.no_grad():
        model.embedding.weight.normal_()
    return model


@pytest.fixture
def explorer(model: LanguageModel) -> Explorer:
    return explore.sampling(model, LETTERS, "abc", tokens=12)


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, 10, 1.0), (0.5, 10, 1.0), (1.5, 3, 1.0), (1.0, 10, 0.6), (0.8, 5, 0.5), (0, 10, 1)],
)
def test_draws_come_as_often_as_shown(temperature: float, top_k: int, top_p: float) -> None:
    logits = 2 * torch.randn(10, generator=torch.Generator().manual_seed(3), dtype=torch.double)
    draws = sample_token(logits.expand(20_000, -1), temperature, top_k, top_p, torch.Generator().manual_seed(0))
    often = torch.bincount(draws, minlength=10) / len(draws)
    p = kept(logits, temperature, top_k, top_p)
    torch.testing.assert_close(often.double(), p, rtol=0, atol=0.015)
    assert not bool((often[p == 0] > 0).any()) and bool((often[p > 1e-3] > 0).all())


def test_the_bars_are_the_probabilities_after_the_prompt(explorer: Explorer, model: LanguageModel) -> None:
    model.eval()
    state = None
    for token in LETTERS.encode("abc"):
        logits, state = model.step(torch.tensor([token]), state)
    p, order = logits[0].softmax(-1).sort(descending=True)
    drawn, outlines = explorer.figure.axes[0].containers
    assert (drawn.get_label(), outlines.get_label()) == ("drawn from", "the model's")
    assert [bar.get_height() for bar in outlines] == pytest.approx(p.tolist(), abs=1e-5)
    names = [label.get_text() for label in explorer.figure.axes[0].get_xticklabels()]
    symbols = {" ": "blank", "\n": "newline"}
    assert names == [symbols.get(LETTERS.symbols[i], LETTERS.symbols[i]) for i in order.tolist()]
    explorer.set(top_k=2)
    assert [bar.get_height() for bar in drawn][:2] == pytest.approx((p[:2] / p[:2].sum()).tolist(), abs=1e-5)
    assert [bar.get_height() for bar in drawn][2:] == [0] * 8


def test_the_text_is_the_models_own(explorer: Explorer, model: LanguageModel) -> None:
    explorer.set(temperature=0.7, top_k=5)
    expected = model.eval().generate(torch.tensor([LETTERS.encode("abc")]), 12, 0.7, 5, seed=1)
    assert explorer.text.endswith(f"goes on: {LETTERS.decode(expected[0, 3:].tolist())!r}")
    assert explorer.text.startswith("5 of 10 tokens can be drawn")


def test_wrong_arguments_are_refused(model: LanguageModel) -> None:
    other: Vocabulary = vocabulary("characters", list("abc"))
    with pytest.raises(ValueError, match="vocabulary: .* 10 .* 3"):
        explore.sampling(model, other, "a")
    with pytest.raises(ValueError, match="10 characters"):
        explore.sampling(model, LETTERS, "xyz")
    with torch.no_grad():
        model.decoder.bias.fill_(torch.inf)
    with pytest.raises(ValueError, match="logits of the model"):
        explore.sampling(model, LETTERS, "a")
