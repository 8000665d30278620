"""The sampling explorer shows the probabilities that tokens are really drawn by."""

import pytest
import torch

from rtx import LanguageModel, build
from rtx.lab import explore
from rtx.lab.explore.recording import Recording
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
def explorer(model: LanguageModel) -> Recording:
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


def test_the_bars_are_the_probabilities_after_the_prompt(explorer: Recording, model: LanguageModel) -> None:
    model.eval()
    state = None
    for token in LETTERS.encode("abc"):
        logits, state = model.step(torch.tensor([token]), state)
    p, order = logits[0].softmax(-1).sort(descending=True)
    _, panels = explorer.see(temperature=1.0, top_k=10, top_p=0.5)
    models, drawn = panels["next"]
    assert models.tolist() == pytest.approx(p.tolist(), abs=1e-5)
    kept = (p.cumsum(-1) - p) < 0.5
    assert drawn.tolist() == pytest.approx((p * kept / p[kept].sum()).tolist(), abs=1e-5)
    symbols = {" ": "blank", "\n": "newline"}
    names = [symbols.get(LETTERS.symbols[i], LETTERS.symbols[i]) for i in order.tolist()]
    assert explorer.data["panels"][0]["places"] == names


def test_the_text_is_the_models_own(explorer: Recording, model: LanguageModel) -> None:
    text = explorer.set(temperature=0.7, top_p=0.8)
    expected = model.eval().generate(torch.tensor([LETTERS.encode("abc")]), 12, 0.7, 10, 0.8, seed=1)
    assert text.endswith(f"goes on: {LETTERS.decode(expected[0, 3:].tolist())!r}")
    greedy = model.generate(torch.tensor([LETTERS.encode("abc")]), 12, 0, seed=1)
    assert explorer.set(top_k=1).endswith(f"goes on: {LETTERS.decode(greedy[0, 3:].tolist())!r}")


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
