"""Sentences at random: every translator gives the right logits, or a ValueError.

The right logits are those of the reference version, which reads one sentence at a time and without padding.
"""

from typing import Any

import pytest
import references
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtx.models import RNN, EncoderDecoder, Seq2Seq

QUICK, SOAK = 25, 10_000
SOURCES, TARGETS = 6, 5
WRONG = ["", "", "", "", "source", "target", "source_lengths", "types", "batch"]


@st.composite
def sentences(draw: st.DrawFn) -> tuple[list[Any], str]:
    """Source, target and lengths; and the argument that is wrong, if one is."""
    B, S, T = draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    source, target = (torch.randint(most, (B, n), generator=generator) for most, n in ((SOURCES, S), (TARGETS, T)))
    lengths = torch.tensor(draw(st.lists(st.integers(1, S), min_size=B, max_size=B)))
    wrong = draw(st.sampled_from(WRONG))
    if wrong == "source":
        source[0, 0] = draw(st.sampled_from([-1, SOURCES]))
    elif wrong == "target":
        target[0, 0] = draw(st.sampled_from([-1, TARGETS]))
    elif wrong == "source_lengths":
        lengths[0] = draw(st.sampled_from([0, S + 1, -1]))
    elif wrong == "types":
        source, wrong = source.double(), "source"
    elif wrong == "batch":
        target, wrong = torch.cat([target, target]), "target"
    return [source, target, lengths], wrong


def rnnsearch(D: int, way: bool) -> Seq2Seq:
    return Seq2Seq(SOURCES, TARGETS, RNN(D), RNN(D), RNN(D) if way else None)


def encoder_decoder(D: int, way: bool) -> EncoderDecoder:
    return EncoderDecoder(SOURCES, TARGETS, 2 * D, 1, 2, 2 if way else None)


KINDS = {
    "rnnsearch": (rnnsearch, lambda *sentence: references.rnnsearch(*sentence)[0]),
    "encoder-decoder": (encoder_decoder, references.encoder_decoder),
}


def examine(name: str, number: int, again: bool) -> None:
    make, reference = KINDS[name]

    @torch.no_grad()
    def check(case: tuple[list[torch.Tensor], str], D: int, way: bool, seed: int) -> None:
        (source, target, lengths), wrong = case
        torch.manual_seed(seed)
        model = make(D, way).double().eval()
        if wrong:
            with pytest.raises(ValueError, match=f"^{wrong}: "):
                model(source, target, lengths)
            return
        rows = zip(source.tolist(), target.tolist(), lengths.tolist(), strict=True)
        expected = torch.stack([reference(model, one[:n], other) for one, other, n in rows])
        torch.testing.assert_close(model(source, target, lengths), expected, rtol=0, atol=1e-8)

    chosen = settings(max_examples=number, database=None, derandomize=again, suppress_health_check=list(HealthCheck))
    draws = {"D": st.integers(1, 4), "way": st.booleans(), "seed": st.integers(0, 2**31)}
    chosen(given(case=sentences(), **draws)(check))()


@pytest.mark.parametrize("name", KINDS)
def test_a_random_sentence_gives_the_right_logits_or_a_value_error(name: str) -> None:
    examine(name, QUICK, again=True)


@pytest.mark.soak
@pytest.mark.parametrize("name", KINDS)
def test_ten_thousand_random_sentences_give_the_right_logits_or_a_value_error(name: str) -> None:
    examine(name, SOAK, again=False)
