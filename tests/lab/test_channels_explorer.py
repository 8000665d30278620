"""The channel explorer refuses what its page cannot compute."""

import pytest
import torch

from rtx import MCRNN, RNN, LanguageModel
from rtx.lab import explore
from rtx.tasks.vocabulary import UNKNOWN, Vocabulary, vocabulary

WORDS = vocabulary("words and marks", [UNKNOWN, "few", "and", "far", "between", "."])
SENTENCE = "few and far between unheard of and few ."


def language_model(backbone: torch.nn.Module | None = None, size: int = 6) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(backbone or MCRNN(5, layers=2, block=3, cell="gru"), size)


@pytest.mark.parametrize(
    ("model", "words", "text", "message"),
    [
        (language_model(), None, SENTENCE, "vocabulary: "),
        (MCRNN(4), WORDS, SENTENCE, "model: .* MCRNN"),
        (language_model(RNN(4)), WORDS, SENTENCE, "model: "),
        (language_model(MCRNN(4, phase="text")), WORDS, SENTENCE, "model: .* 'text'"),
        (language_model(size=7), WORDS, SENTENCE, "vocabulary: .* 7 .* got 6"),
        (language_model(size=2), vocabulary("words", ["a", "b"]), "a b", "vocabulary: .*<unk>"),
    ],
)
def test_bad_input_is_named(model: LanguageModel, words: Vocabulary | None, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.channels(model, words, text)
