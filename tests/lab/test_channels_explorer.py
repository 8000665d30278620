"""The channel explorer's data are the model's, and its still figure shows what the layer says."""

import base64
import re

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


def numbers(packed: dict) -> torch.Tensor:
    """What `unpack` of page.js gives."""
    steps = np.frombuffer(base64.b64decode(packed["steps"]), "<u2").astype(float)
    values = packed["low"] + steps * (packed["high"] - packed["low"]) / 65535
    return torch.tensor(values).view(packed["shape"])


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


def test_the_data_are_the_first_layers() -> None:
    model = language_model()
    layer = model.backbone.layers[0]  # type: ignore[union-attr, index]
    data = explore.channels(model, WORDS, SENTENCE).data
    assert (data["layer"]["n"], data["layer"]["cell"], data["symbols"][1]) == (3, "gru", "few")
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_block"):
        torch.testing.assert_close(numbers(data["layer"][name]).float(), getattr(layer, name).data, rtol=0, atol=1e-4)
    torch.testing.assert_close(numbers(data["layer"]["v"]).float(), layer.attention_v.weight.data, rtol=0, atol=1e-4)
    torch.testing.assert_close(numbers(data["embedding"]).float(), model.embedding.weight.data, rtol=0, atol=1e-4)


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


def test_a_page_without_a_kernel_tells_no_trained_numbers() -> None:
    bundle, _ = explore.channels(language_model(), WORDS, SENTENCE)._repr_mimebundle_()
    assert "image/png" in bundle and not re.search(r"\d", bundle["text/plain"])


@pytest.mark.parametrize(
    ("model", "words", "text", "message"),
    [
        (language_model(), None, SENTENCE, "vocabulary: expected one with the model"),
        (None, WORDS, SENTENCE, "vocabulary: expected one with the model"),
        (MCRNN(4), WORDS, SENTENCE, "model: expected a LanguageModel over an MCRNN, got MCRNN"),
        (language_model(RNN(4)), WORDS, SENTENCE, "model: expected a LanguageModel over an MCRNN"),
        (
            language_model(MCRNN(4, mapping="per-gate")),
            WORDS,
            SENTENCE,
            "model: expected mapping 'shared' .* 'per-gate'",
        ),
        (language_model(size=7), WORDS, SENTENCE, "vocabulary: expected 7 symbols for this model, got 6"),
        (language_model(size=2), vocabulary("words", ["a", "b"]), "a b", "vocabulary: expected one with <unk>"),
        (language_model(), WORDS, "  ", "text: expected at least one word, got '  '"),
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


def test_the_still_figure_says_what_stands_in_a_circle_and_what_is_blue() -> None:
    bare, full = explore.channels().still, explore.channels(language_model(), WORDS, SENTENCE).still
    assert [figure.axes[0].get_title(loc="left") or figure.axes[0].get_title() for figure in (bare, full)] == [
        "in a circle: m of Eq. 1",
        "in a circle: m of Eq. 1; the darker, the larger the channel's weight",
    ]


def test_a_word_with_dollars_is_no_formula() -> None:
    figure = explore.channels(text="it costs $5-$10 or $$").still
    figure.draw_without_rendering()
    assert not any(label.get_parse_math() for label in figure.axes[0].get_xticklabels())
