"""Sentences at random: every translator gives the right logits.

The right logits are those of the reference version, which reads one sentence at a time and without padding.
"""

import pytest
import references
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtx.models import RNN, EncoderDecoder, Seq2Seq

QUICK, SOAK = 25, 10_000
SOURCES, TARGETS = 6, 5


@st.composite
def sentences(draw: st.DrawFn) -> tuple[torch.Tensor, ...]:
    """Source, target and lengths."""
    B, S, T = draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    source, target = (torch.randint(most, (B, n), generator=generator) for most, n in ((SOURCES, S), (TARGETS, T)))
    lengths = torch.tensor(draw(st.lists(st.integers(1, S), min_size=B, max_size=B)))
    return source, target, lengths


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
    def check(case: tuple[torch.Tensor, ...], D: int, way: bool, seed: int) -> None:
        source, target, lengths = case
        torch.manual_seed(seed)
        model = make(D, way).double().eval()
        rows = zip(source.tolist(), target.tolist(), lengths.tolist(), strict=True)
        expected = torch.stack([reference(model, one[:n], other) for one, other, n in rows])
        torch.testing.assert_close(model(source, target, lengths), expected, rtol=0, atol=1e-8)

    chosen = settings(max_examples=number, database=None, derandomize=again, suppress_health_check=list(HealthCheck))
    draws = {"D": st.integers(1, 4), "way": st.booleans(), "seed": st.integers(0, 2**31)}
    chosen(given(case=sentences(), **draws)(check))()


@pytest.mark.parametrize("name", KINDS)
def test_a_random_sentence_gives_the_right_logits(name: str) -> None:
    examine(name, QUICK, again=True)


@pytest.mark.soak
@pytest.mark.parametrize("name", KINDS)
def test_ten_thousand_random_sentences_give_the_right_logits(name: str) -> None:
    examine(name, SOAK, again=False)
