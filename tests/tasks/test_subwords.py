"""Sub-words: what they learn, what they must not know, and that texts come back."""

import json
import string
import unicodedata
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.tasks.subwords import BEGIN, END, PAD, SPECIAL, UNKNOWN, Subwords, one_blank

LINES = [
    "the low river, the lower river and the lowest: rivers are low",
    "a newer house is wider than the newest, and the widest house is new",
    string.ascii_letters + string.digits + string.punctuation,
]


@pytest.fixture(scope="module")
def subwords():
    return Subwords(130, lambda: LINES)


@settings(max_examples=100)
@given(text=st.text(alphabet=sorted({*"".join(LINES)} - {"▁"})))
def test_a_text_of_known_characters_comes_back(subwords, text):
    tokens = subwords.encode(text)
    assert subwords.decode(tokens) == one_blank(text)
    assert all(UNKNOWN < token < subwords.size for token in tokens)


def test_an_accent_of_its_own_is_read_as_the_accented_letter():
    composed, apart = (unicodedata.normalize(form, "été français") for form in ("NFC", "NFD"))
    learned = [Subwords(150, partial(list, [*LINES, text])) for text in (composed, apart)]
    for one in learned:
        assert one.encode(apart) == one.encode(composed) == learned[0].encode(composed)
        assert one.decode(one.encode(apart)) == composed


def test_common_words_are_one_piece_and_rare_ones_several(subwords):
    assert len(subwords.encode("the")) == 1
    assert len(subwords.encode("zebra")) == 6  # the blank before it, and its letters
    assert subwords.encode("the, the") == subwords.encode("  the,\tthe ") == subwords.encode("▁the,▁▁the▁")


def test_punctuation_marks_are_separate_if_asked():
    def pieces(punctuation: bool) -> int:
        return len(Subwords(120, lambda: ["low."] * 9 + LINES, punctuation=punctuation).encode("low."))

    assert (pieces(True), pieces(False)) == (2, 1)


def test_a_character_that_the_training_text_lacks_is_unknown(subwords):
    assert subwords.encode("ß")[-1] == UNKNOWN
    assert subwords.decode(subwords.encode("the ß")) == "the <unk>"


def test_a_text_cannot_forge_a_special_token(subwords):
    for special in SPECIAL:
        assert not {*subwords.encode(special)} & {PAD, BEGIN, END, UNKNOWN}
        assert subwords.decode(subwords.encode(f"the {special} low")) == f"the {special} low"
    assert subwords.decode([BEGIN, *subwords.encode("low"), END, PAD]) == "low"


def test_a_copy_from_json_is_the_same_without_the_training_text(subwords):
    table = json.loads(json.dumps(subwords.to_json()))
    copy = Subwords.from_json(table)
    text = "the newest low </s> ß"
    assert copy.encode(text) == subwords.encode(text) and copy.size == subwords.size == 130
    assert copy.decode(copy.encode(text)) == subwords.decode(subwords.encode(text))
    assert copy.to_json() == table


def test_nothing_is_read_before_it_is_needed():
    def read() -> list[str]:
        raise AssertionError("read")

    assert Subwords(100, read).size == 100


def test_sizes_that_the_text_cannot_give_are_refused():
    characters = len({*"".join(LINES)} - {" "}) + 1  # a blank is ▁
    for size, bound in ((50, characters + 4), (9000, r"\d+")):
        with pytest.raises(ValueError, match=f"^vocabulary: .* {bound} .* got {size}$"):
            Subwords(size, lambda: LINES).encode("a")
    with pytest.raises(ValueError, match="vocabulary: expected a whole number of at least 1, got 0"):
        Subwords(0, lambda: LINES)
