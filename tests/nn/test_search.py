"""Search against every sequence there is, against itself one sentence at a time, and its early end."""

import itertools
import math

import pytest
import torch

from rtx.nn.search import beam_search

BEGIN, END, WORDS = 0, 1, 4


class Chain:
    """A tiny random model: the logits hang on the sentence, the last two tokens and the step. Counts its steps."""

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

    def all_sequences(self, sentence: int, length: int, alpha: float) -> list[tuple[float, list[int]]]:
        """Each complete sequence with its score, the best first: those that end, and those cut off at `length`."""
        found = []
        words = [w for w in range(WORDS) if w != END]
        for n in range(1, length + 1):
            for body in itertools.product(words, repeat=n - 1):
                for last in [END] if n < length else range(WORDS):
                    sequence = [*body, last]
                    found.append((self.score(sentence, sequence) / n**alpha, sequence))
        return sorted(found, reverse=True)

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
    """The same model with more tokens, all forbidden, so that a beam may be as wide as all its sequences are many."""

    def step(self, tokens, state):
        logits, state = super().step(tokens.clamp(max=WORDS - 1), state)
        return torch.nn.functional.pad(logits, (0, 400 - WORDS), value=-math.inf), state


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_as_wide_as_all_sequences_finds_the_best_in_order(alpha, seed):
    model = Padded(2, seed=seed)
    found = search(model, [0, 1], vocabulary=400, width=400, length=4, alpha=alpha)
    for b in range(2):
        expected = model.all_sequences(b, 4, alpha)
        K = len(expected)  # 148
        assert [t[:n] for t, n in zip(found.tokens[b].tolist(), found.lengths[b].tolist(), strict=True)][:K] == [
            sequence for _, sequence in expected
        ]
        torch.testing.assert_close(found.scores[b, :K], torch.tensor([s for s, _ in expected], dtype=torch.float64))
        assert (found.scores[b, K:] == -math.inf).all() and (found.lengths[b, K:] == 0).all()


def naive_beam(model: Chain, sentence: int, width: int, length: int, alpha: float) -> list[tuple[float, list[int]]]:
    """The same beam with lists, one hypothesis at a time, and never stopping early."""
    live, complete = [[]], []
    for t in range(1, length + 1):
        longer = [[*h, token] for h in live for token in range(WORDS)]
        longer = sorted(longer, key=lambda h: model.score(sentence, h), reverse=True)[:width]
        complete += [h for h in longer if h[-1] == END or t == length]
        live = [h for h in longer if h[-1] != END]
    return sorted(((model.score(sentence, h) / len(h) ** alpha, h) for h in complete), reverse=True)[:width]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_equals_a_beam_of_lists_that_never_stops_early(width, alpha):
    for seed in range(4):
        model = Chain(3, seed=seed)
        found = search(model, [0, 1, 2], width=width, alpha=alpha)
        for b in range(3):
            expected = naive_beam(model, b, width, 5, alpha)
            sequences = zip(found.tokens[b].tolist(), found.lengths[b].tolist(), strict=True)
            assert [t[:n] for t, n in sequences if n] == [h for _, h in expected]
            finite = found.scores[b][: len(expected)]
            torch.testing.assert_close(finite, torch.tensor([s for s, _ in expected], dtype=torch.float64))


def greedy(model: Chain, sentence: int, length: int) -> list[int]:
    """The likeliest token at every step, as far as the end token."""
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


def test_sentences_together_are_searched_as_alone():
    model = Chain(6, seed=3)
    together = search(model, list(range(6)), width=3)
    for b in range(6):
        alone = search(model, [b], width=3)
        L = alone.tokens.shape[-1]
        assert torch.equal(together.tokens[b, :, :L], alone.tokens[0]) and (together.tokens[b, :, L:] == END).all()
        torch.testing.assert_close(together.scores[b], alone.scores[0])
        assert torch.equal(together.lengths[b], alone.lengths[0])


def test_it_stops_as_soon_as_nothing_better_can_come():
    """The end token is all but sure from the second step on: no hypothesis left on the beam can catch up."""
    model = Chain(1, spread=0.1)
    model.table[:, 1:, ..., END] = 20.0
    found = search(model, [0], width=3, length=8, alpha=0.0)
    assert model.calls == 2 and (found.lengths <= 2).all()


def fixed(steps: list[dict[int, float]], width: int, alpha: float) -> dict[tuple[int, ...], float]:
    """What a beam finds where step t offers these tokens with these probabilities, whatever came before."""
    table = torch.full((len(steps), WORDS), -math.inf, dtype=torch.float64)
    for t, choices in enumerate(steps):
        for token, probability in choices.items():
            table[t, token] = math.log(probability)

    def step(tokens, state):
        return table[state[1]].expand(len(tokens), -1), (state[0], state[1] + 1)

    how = {"begin": BEGIN, "end": END, "width": width, "length": len(steps), "alpha": alpha}
    found = beam_search(step, (torch.zeros(1), 0), 1, WORDS, **how)
    columns = (found.tokens[0].tolist(), found.lengths[0].tolist(), found.scores[0].tolist())
    return {tuple(tokens[:n]): score for tokens, n, score in zip(*columns, strict=True)}


def test_an_early_end_does_not_win_where_length_counts():
    """Log-probabilities -1.2 for one token against -1.6 for four: the mean per token prefers the longer."""
    steps = [{END: 0.3, 2: 0.7}, {3: 1.0}, {2: 1.0}, {END: 0.29, 3: 0.71}]
    raw, mean = fixed(steps, 4, alpha=0.0), fixed(steps, 4, alpha=1.0)
    short, long = (END,), (2, 3, 2, END)
    assert raw[short] > raw[long] and mean[short] < mean[long]
    assert mean[long] == pytest.approx(math.log(0.7 * 0.29) / 4)


def test_the_search_goes_on_while_length_may_still_turn_the_order():
    """After two steps two hypotheses are complete with better means than the one left, which wins after all."""
    found = fixed([{END: 0.5, 2: 0.5}, {END: 0.6, 3: 0.4}, {2: 1.0}, {END: 1.0}], width=2, alpha=1.0)
    assert math.log(0.5 * 0.4) / 2 < math.log(0.5) and math.log(0.5 * 0.4) / 2 < math.log(0.5 * 0.6) / 2
    assert max(found, key=lambda tokens: found[tokens]) == (2, 3, 2, END)


def test_hypotheses_differ_from_each_other():
    found = search(Chain(4, seed=1), [0, 1, 2, 3], width=4)
    for tokens, lengths in zip(found.tokens.tolist(), found.lengths.tolist(), strict=True):
        sequences = {tuple(t[:n]) for t, n in zip(tokens, lengths, strict=True) if n}
        assert len(sequences) == sum(n > 0 for n in lengths)


def test_half_precision_is_summed_in_single():
    model = Chain(1)
    state = model.start([0])
    half = lambda tokens, state: (model.step(tokens, state)[0].bfloat16(), model.step(tokens, state)[1])  # noqa: E731
    assert beam_search(half, state, 1, WORDS, begin=BEGIN, end=END, length=3, width=2).scores.dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 5}, "width: expected at most the vocabulary's 4 tokens, got 5"),
        ({"width": 0}, "width: expected a whole number of at least 1, got 0"),
        ({"length": 0}, "length: expected a whole number of at least 1, got 0"),
        ({"end": 4}, "end: expected a token from 0 to 3, got 4"),
        ({"end": "a"}, "end: expected a token from 0 to 3, got 'a'"),
        ({"end": 1.5}, "end: expected a token from 0 to 3, got 1.5"),
        ({"begin": True}, "begin: expected a token from 0 to 3, got True"),
        ({"begin": -1}, "begin: expected a token from 0 to 3, got -1"),
        ({"alpha": -0.5}, "alpha: expected a finite number of at least 0, got -0.5"),
        ({"alpha": "a"}, "alpha: expected a finite number of at least 0, got 'a'"),
        ({"alpha": math.inf}, "alpha: expected a finite number of at least 0, got inf"),
        ({"vocabulary": 5}, r"step: expected logits of shape \(2, 5\), got \(2, 4\)"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        search(Chain(1), [0], **{"width": 2} | change)


def test_logits_that_are_no_numbers_are_refused():
    step = lambda tokens, state: (torch.full((len(tokens), 6), math.nan), state)  # noqa: E731
    with pytest.raises(ValueError, match="step: expected logits that are numbers"):
        beam_search(step, (torch.zeros(1),), 1, 6, begin=0, end=1, length=3)
