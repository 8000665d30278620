"""The channel explorer's data are the model's, and its still figure shows what the layer says."""

import numpy as np
import pytest
import torch

from rtx import MCRNN, RNN, LanguageModel
from rtx.lab import explore, trace
from rtx.lab.explore.page import Page
from rtx.tasks.vocabulary import UNKNOWN, Vocabulary, vocabulary

WORDS = vocabulary("words and marks", [UNKNOWN, "few", "and", "far", "between", "."])
FIGURE_3 = "Home-grown champions have been few and far between at the Italian Open ."
SENTENCE = "few and far between unheard of and few ."


def language_model(backbone: torch.nn.Module | None = None, size: int = 6) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(backbone or MCRNN(5, layers=2, block=3, cell="gru"), size)


def shown(page: Page) -> list[list[float]]:
    """The weights in the still figure, a row for each token."""
    return np.asarray(page.still.axes[0].images[0].get_array()).T.tolist()


def test_without_a_model_it_shows_the_in_degrees_of_figure_3s_sentence() -> None:
    page = explore.channels()
    ax = page.still.axes[0]
    assert page.state == {"n": 4, "step": 8, "text": FIGURE_3}
    assert [label.get_text() for label in ax.get_xticklabels()] == FIGURE_3.split()
    m = [int(text.get_text()) for text in ax.texts]
    assert m[:6] == [3, 2, 1, 1, 3, 2]  # Eq. 1 at n = 4, of the first and second step
    assert not np.any(shown(page))


def test_the_still_figure_shows_the_weights_of_the_tokens() -> None:
    model = language_model().train()
    page = explore.channels(model, WORDS, SENTENCE)
    found = trace(model, torch.tensor([WORDS.encode(SENTENCE)]))["backbone.layers.0.channel_weights"][0]
    assert shown(page) == pytest.approx(found.numpy(), abs=1e-6)
    assert model.training and page.state["n"] == 3


def test_a_text_is_cut_as_the_vocabulary_cuts_and_a_long_one_is_cut_short() -> None:
    letters = vocabulary("characters", [UNKNOWN, *"abcdefghij "])
    page = explore.channels(language_model(size=12), letters, "abc " * 20)
    assert len(page.still.axes[0].get_xticklabels()) == 24


@pytest.mark.parametrize(
    ("model", "words", "text", "message"),
    [
        (language_model(), None, SENTENCE, "vocabulary: "),
        (MCRNN(4), WORDS, SENTENCE, "model: .* MCRNN"),
        (language_model(RNN(4)), WORDS, SENTENCE, "model: "),
        (language_model(MCRNN(4, mapping="per-gate")), WORDS, SENTENCE, "model: .* 'per-gate'"),
        (language_model(MCRNN(4, phase="text")), WORDS, SENTENCE, "model: .* 'text'"),
        (language_model(size=7), WORDS, SENTENCE, "vocabulary: .* 7 .* got 6"),
        (language_model(size=2), vocabulary("words", ["a", "b"]), "a b", "vocabulary: .*<unk>"),
        (language_model(), WORDS, "  ", "text: .*'  '"),
    ],
)
def test_bad_input_is_named(model: LanguageModel, words: Vocabulary | None, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.channels(model, words, text)
