"""Draws from logits: the distribution, the tokens that are left out, and the seed."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.nn.sampling import sample_token, seeded_generator

P = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15])
ROWS = 20_000


def frequencies(logits=None, **how) -> torch.Tensor:
    """Return how often each token is drawn for `ROWS` equal rows."""
    logits = P.log() if logits is None else logits
    drawn = sample_token(logits.expand(ROWS, -1), generator=torch.Generator().manual_seed(0), **how)
    return torch.bincount(drawn, minlength=len(logits)) / ROWS


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, P),
        ({"temperature": 0.5}, P**2 / (P**2).sum()),
        ({"temperature": 2.0}, P**0.5 / (P**0.5).sum()),
        ({"top_k": 2}, torch.tensor([0, 4, 0, 3, 0]) / 7),
        ({"top_p": 0.7 - 1e-6}, torch.tensor([0, 4, 0, 3, 0]) / 7),
        ({"top_p": 0.7 + 1e-6}, torch.tensor([0, 0.4, 0, 0.3, 0.15]) / 0.85),
        # top_k leaves 4/7 and 3/7, so the first token alone is enough for 0.5, unlike its 0.4
        ({"top_k": 2, "top_p": 0.5}, torch.tensor([0, 1.0, 0, 0, 0])),
        # the temperature comes first: 0.53, 0.30, 0.08, …
        ({"temperature": 0.5, "top_p": 0.5}, torch.tensor([0, 1.0, 0, 0, 0])),
    ],
)
def test_tokens_have_the_expected_frequencies(how, expected):
    drawn = frequencies(**how)
    assert (drawn[expected == 0] == 0).all()
    torch.testing.assert_close(drawn, expected.float(), rtol=0, atol=4 * math.sqrt(0.25 / ROWS))


@pytest.mark.parametrize("how", [{"temperature": 0}, {"temperature": 1e-300}, {"top_k": 1}, {"top_p": 1e-300}])
def test_in_every_limit_the_most_likely_token_is_drawn(how):
    logits = torch.randn(500, 9) * 100
    assert torch.equal(sample_token(logits, **how), logits.argmax(-1))


@pytest.mark.parametrize("how", [{"temperature": 0}, {"top_k": 1}])
def test_of_equally_likely_tokens_the_first_counts_as_more_likely(how):
    assert sample_token(torch.tensor([0.0, 3.0, 3.0]).expand(50, -1), **how).unique().tolist() == [1]


def test_a_nucleus_with_exactly_its_probability_takes_no_other_token():
    assert sample_token(torch.zeros(500, 4), top_p=0.5).unique().tolist() == [0, 1]


@settings(max_examples=50)
@given(
    seed=st.integers(0, 1000),
    temperature=st.floats(0, 5),
    top_k=st.one_of(st.none(), st.integers(1, 6)),
    top_p=st.floats(0, 1, exclude_min=True),
)
def test_draws_are_allowed_tokens_and_depend_on_the_seed_only(seed, temperature, top_k, top_p):
    logits = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(seed)) * 30
    logits[0, 0, seed % 6] = -torch.inf
    draw = lambda: sample_token(logits, temperature, top_k, top_p, torch.Generator().manual_seed(seed))  # noqa: E731
    tokens = draw()
    assert tokens.shape == (2, 3)
    assert torch.equal(tokens, draw())
    rank = (logits > logits.gather(-1, tokens[..., None])).sum(-1)
    assert (rank < (top_k or 6)).all() and tokens[0, 0] != seed % 6


def test_each_row_uses_one_random_number():
    logits = torch.randn(4, 7)
    after = []
    for how in ({}, {"top_k": 2}, {"top_p": 0.3}, {"temperature": 0}):
        generator = torch.Generator().manual_seed(3)
        sample_token(logits, generator=generator, **how)
        after.append(torch.rand(1, generator=generator).item())
    assert len(set(after)) == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_every_dtype_gives_the_draws_of_its_values_in_float64(dtype):
    logits = torch.randn(100, 5).to(dtype)
    seeded = lambda x: sample_token(x, generator=torch.Generator().manual_seed(0))  # noqa: E731
    assert torch.equal(seeded(logits), seeded(logits.double()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"temperature": value}, f"temperature: .*got {value!r}") for value in (-1.0, math.nan, "abc")),
        ({"top_k": 0}, "top_k: .*got 0"),
        ({"top_k": 6}, "top_k: .*5.*got 6"),
        *(({"top_p": value}, f"top_p: .*got {value!r}") for value in (0.0, "a", 1.1)),
        ({"logits": torch.tensor([0.0, math.nan])}, "logits: .*NaN"),
        ({"logits": torch.tensor([0.0, math.inf])}, "logits: .*inf"),
        ({"logits": torch.full((2, 3), -math.inf)}, "logits: .*-inf"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        sample_token(**{"logits": P.log()} | change)


def test_a_seed_gives_the_same_numbers_and_another_type_is_refused():
    first, again, other = (torch.rand(3, generator=seeded_generator(seed)) for seed in (5, 5, 6))
    assert torch.equal(first, again) and not torch.equal(first, other)
    for seed in (1.5, True, "a", 2**64):
        with pytest.raises(ValueError, match=f"^seed: .*got {seed!r}"):
            seeded_generator(seed)
