"""The channel explorer's data are the model's, and its still figure shows what the layer says."""

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


def figure_weights(page: Page) -> list[float]:
    """The blue's strength of each node, channel by channel."""
    (ax,) = page.still.axes
    return [float(dots.get_facecolor()[0][3]) for dots in ax.collections[1::2]]


def test_without_a_model_it_shows_the_blocks_of_figure_3s_sentence() -> None:
    page = explore.channels()
    (ax,) = page.still.axes
    assert page.state == {"n": 4, "step": 8, "text": FIGURE_3}
    assert [label.get_text() for label in ax.get_xticklabels()] == FIGURE_3.split()
    m = [int(text.get_text()) for text in ax.texts if text.get_text()]
    assert m[:4] == [3, 1, 2, 3] and m[13:17] == [2, 3, 1, 2]  # Eq. 1 at n = 4
    assert set(figure_weights(page)) == {0.0}
    links = [(link.get_x() + 0.25, link.get_y()) for link in ax.patches]
    assert [begin for begin, y in links if y < 1] == [-2, 1, 4, 7, 10]  # channel 1: t ≡ 1 (mod 3)
    assert [begin for begin, y in links if 1 < y < 2] == [-1, 2, 5, 8, 11]


def test_the_still_figure_shows_the_weights_of_the_tokens() -> None:
    model = language_model().train()
    page = explore.channels(model, WORDS, SENTENCE)
    found = trace(model, torch.tensor([WORDS.encode(SENTENCE)]))["backbone.layers.0.channel_weights"][0]
    assert figure_weights(page) == pytest.approx(found.T.flatten().tolist(), abs=1e-6)
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
        (language_model(size=7), WORDS, SENTENCE, "vocabulary: .* 7 .* got 6"),
        (language_model(size=2), vocabulary("words", ["a", "b"]), "a b", "vocabulary: .*<unk>"),
        (language_model(), WORDS, "  ", "text: .*'  '"),
    ],
)
def test_bad_input_is_named(model: LanguageModel, words: Vocabulary | None, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.channels(model, words, text)


def test_the_still_figure_of_a_clipped_layer_has_the_blocks_of_eq_1() -> None:
    clipped = language_model(MCRNN(5, layers=1, block=4, cell="gru", start="clipped"))
    figures = [explore.channels(clipped, WORDS, SENTENCE).still, explore.channels(text=SENTENCE).still]
    links = [[(link.get_x(), link.get_y()) for link in figure.axes[0].patches] for figure in figures]
    assert links[0] == links[1]
