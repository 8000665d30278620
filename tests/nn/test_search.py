"""Beam search against a beam of lists, and when it stops."""

import math

import pytest
import torch

from rtx.nn.search import beam_search

BEGIN, END, WORDS = 0, 1, 4


class Chain:
    """A small random model whose logits depend on the sentence, the last two tokens and the step."""

    def __init__(self, sentences: int, vocabulary: int = WORDS, seed: int = 0, spread: float = 2.0) -> None:
        draws = torch.Generator().manual_seed(seed)
        size = (sentences, 8, vocabulary, vocabulary, vocabulary)
        self.table = torch.randn(size, generator=draws, dtype=torch.float64) * spread
        self.calls = 0

    def start(self, sentences: list[int]) -> tuple:
        return torch.tensor(sentences), torch.full((len(sentences),), BEGIN), 0

    def step(self, tokens, state):
        self.calls += 1
        sentence, before, t = state
        return self.table[sentence, t, before, tokens], (sentence, tokens, t + 1)

    def score(self, sentence: int, sequence: list[int]) -> float:
        total, before, last = 0.0, BEGIN, BEGIN
        for t, token in enumerate(sequence):
            total += self.table[sentence, t, before, last].log_softmax(-1)[token].item()
            before, last = last, token
        return total


def search(model: Chain, sentences: list[int], vocabulary: int = WORDS, **how):
    how = {"begin": BEGIN, "end": END, "length": 5} | how
    return beam_search(model.step, model.start(sentences), len(sentences), vocabulary, **how)


class Padded(Chain):
    """The same model with more, forbidden tokens, so that the beam may be wider than the number of sequences."""

    def step(self, tokens, state):
        logits, state = super().step(tokens.clamp(max=WORDS - 1), state)
        return torch.nn.functional.pad(logits, (0, 400 - WORDS), value=-math.inf), state


def beam_of_lists(model: Chain, sentence: int, width: int, length: int, alpha: float) -> list[tuple[float, list[int]]]:
    """The same search with lists, one hypothesis at a time. It never stops early."""
    live, complete = [[]], []
    for t in range(1, length + 1):
        longer = [[*h, token] for h in live for token in range(WORDS)]
        longer = sorted(longer, key=lambda h: model.score(sentence, h), reverse=True)[:width]
        complete += [h for h in longer if h[-1] == END or t == length]
        live = [h for h in longer if h[-1] != END]
    return sorted(((model.score(sentence, h) / len(h) ** alpha, h) for h in complete), reverse=True)[:width]


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_for_all_sequences_finds_them_in_order(alpha, seed):
    model = Padded(2, seed=seed)
    found = search(model, [0, 1], vocabulary=400, width=400, length=4, alpha=alpha)
    for b in range(2):
        expected = beam_of_lists(model, b, 400, 4, alpha)
        K = (
            1 + 3 + 9 + 27 * 4
        )  # one ends at once; of three, nine and 27 others, each ends or has one of four last words
        assert [t[:n] for t, n in zip(found.tokens[b].tolist(), found.lengths[b].tolist(), strict=True)][:K] == [
            sequence for _, sequence in expected
        ]
        torch.testing.assert_close(found.scores[b, :K], torch.tensor([s for s, _ in expected], dtype=torch.float64))
        assert (found.scores[b, K:] == -math.inf).all() and (found.lengths[b, K:] == 0).all()


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_equals_a_beam_of_lists_that_never_stops_early(width, alpha):
    for seed in range(4):
        model = Chain(3, seed=seed)
        found = search(model, [0, 1, 2], width=width, alpha=alpha)
        for b in range(3):
            expected = beam_of_lists(model, b, width, 5, alpha)
            sequences = zip(found.tokens[b].tolist(), found.lengths[b].tolist(), strict=True)
            assert [t[:n] for t, n in sequences if n] == [h for _, h in expected]
            finite = found.scores[b][: len(expected)]
            torch.testing.assert_close(finite, torch.tensor([s for s, _ in expected], dtype=torch.float64))


def greedy(model: Chain, sentence: int, length: int) -> list[int]:
    """Return the most likely token of each step, up to the end token."""
    found, before, last = [], BEGIN, BEGIN
    while len(found) < length and END not in found:
        before, last = last, int(model.table[sentence, len(found), before, last].topk(1).indices)
        found.append(last)
    return found


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("equal", [False, True])
def test_width_1_is_greedy(alpha, equal):
    model = Chain(20)
    if equal:
        model.table.round_()  # many tokens are equally likely, as in half precision
    found = search(model, list(range(20)), width=1, alpha=alpha)
    assert found.lengths.unique().numel() > 2
    for b in range(20):
        tokens, n = found.tokens[b, 0].tolist(), int(found.lengths[b, 0])
        assert tokens[:n] == greedy(model, b, 5) and set(tokens[n:]) <= {END}
        assert found.scores[b, 0].item() == pytest.approx(model.score(b, tokens[:n]) / n**alpha)


def test_the_search_stops_when_no_better_hypothesis_is_possible():
    """The end token is nearly certain from the second step on, so no other hypothesis can become one of the best."""
    model = Chain(1, spread=0.1)
    model.table[:, 1:, ..., END] = 20.0
    found = search(model, [0], width=3, length=8, alpha=0.0)
    assert model.calls == 2 and (found.lengths <= 2).all()


def test_the_search_goes_on_while_a_longer_hypothesis_can_still_win():
    """After two steps two complete hypotheses have better means than the last one, which wins in the end."""
    steps = [{END: 0.5, 2: 0.5}, {END: 0.6, 3: 0.4}, {2: 1.0}, {END: 1.0}]
    table = torch.full((len(steps), WORDS), -math.inf, dtype=torch.float64)
    for t, choices in enumerate(steps):
        for token, probability in choices.items():
            table[t, token] = math.log(probability)
    step = lambda tokens, state: (table[state[0]].expand(len(tokens), -1), (state[0] + 1,))  # noqa: E731
    found = beam_search(step, (0,), 1, WORDS, begin=BEGIN, end=END, width=2, length=4, alpha=1.0)
    assert math.log(0.5 * 0.4) / 2 < math.log(0.5) and math.log(0.5 * 0.4) / 2 < math.log(0.5 * 0.6) / 2
    assert found.tokens[0, 0].tolist() == [2, 3, 2, END]


def test_half_precision_is_summed_in_float32():
    model = Chain(1)
    state = model.start([0])
    half = lambda tokens, state: (model.step(tokens, state)[0].bfloat16(), model.step(tokens, state)[1])  # noqa: E731
    assert beam_search(half, state, 1, WORDS, begin=BEGIN, end=END, length=3, width=2).scores.dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 5}, "width: .*4.*got 5"),
        ({"width": 0}, "width: .*got 0"),
        ({"length": 0}, "length: .*got 0"),
        *(({"end": value}, f"end: .*got {value!r}") for value in (4, "a", 1.5)),
        *(({"begin": value}, f"begin: .*got {value!r}") for value in (True, -1)),
        *(({"alpha": value}, f"alpha: .*got {value!r}") for value in (-0.5, "a", math.inf)),
        ({"vocabulary": 5}, r"step: .*\(2, 5\), got \(2, 4\)"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        search(Chain(1), [0], **{"width": 2} | change)


@pytest.mark.parametrize(("logit", "named"), [(-math.inf, "row of -inf"), (math.nan, "NaN")])
def test_a_step_that_forbids_every_token_or_gives_nan_is_refused(logit, named):
    step = lambda tokens, state: (torch.full((len(tokens), 6), logit), state)  # noqa: E731
    with pytest.raises(ValueError, match=f"^step: .*{named}"):
        beam_search(step, (torch.zeros(1),), 1, 6, begin=0, end=1, length=3)
