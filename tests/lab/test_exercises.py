"""Every check knows a stub, its solution and each classic bug; so does the frame they share."""

import importlib
import math
import re
from collections import Counter
from collections.abc import Callable
from inspect import signature
from itertools import permutations
from pathlib import Path
from pkgutil import iter_modules
from statistics import mean
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn
from torch.distributions import Bernoulli, Categorical
from torch.nn.functional import conv1d, cross_entropy, logsigmoid, pad, scaled_dot_product_attention

from rtx.classroom.notebooks import exercises_of
from rtx.lab import exercises
from rtx.lab.exercises import Exercise, Verdict
from rtx.lab.exercises.exercise import bug, exercise
from rtx.nn import LocalRNN
from rtx.nn.linear_recurrence import linear_scan
from rtx.nn.position import rotate
from rtx.tasks.subwords import BEGIN, END

EXERCISES = {name: check for name, check in vars(exercises).items() if isinstance(check, Exercise)}
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("[0-9][0-9]_*.py"))
BUGS = [pytest.param(EXERCISES[name], bug, id=f"{name}: {bug}") for name in EXERCISES for bug in EXERCISES[name].bugs]


@exercise(lambda: [(torch.tensor([1.0, 2.0]),), (torch.zeros(2),)])
@bug("squared, not doubled", {"2 * x": "x**2"})
def double(x: Tensor) -> Tensor:
    """The answer is doubled."""
    return 2 * x


def test_every_check_is_exported() -> None:
    modules = [importlib.import_module(f"{exercises.__name__}.{m.name}") for m in iter_modules(exercises.__path__)]
    defined = {name for module in modules for name, value in vars(module).items() if isinstance(value, Exercise)}
    assert EXERCISES and set(EXERCISES) == defined


def dots(*_: Any) -> None: ...


def nothing(*_: Any) -> None:
    """Do nothing."""
    pass


def begun(*_: Any) -> None:
    _last, _state, _written = 0, 0, []  # type: ignore[var-annotated]
    ...


@pytest.mark.parametrize("stub", [dots, nothing, begun, lambda *_: None, lambda *_: ...])
def test_a_stub_is_not_attempted(stub: Callable[..., Any]) -> None:
    assert double(stub).passed is None


def test_every_stub_of_every_notebook_is_not_attempted_and_has_the_words_of_its_check() -> None:
    tried = []
    for notebook in NOTEBOOKS:
        for cell in re.split(r"^# %%.*$", notebook.read_text(), flags=re.MULTILINE):
            for name, function in exercises_of([cell]).items():
                names: dict[str, Any] = {"torch": torch, "exercises": exercises}
                exec(cell, names)
                check, stub = EXERCISES[name], names[function]
                assert check(stub).passed is None, name
                words = list(signature(stub).parameters)
                assert words == list(signature(check.solution).parameters)[: len(words)], name
                assert len(words) == len(check.cases()[0]), name
                tried.append(name)
    assert sorted(tried) == sorted(EXERCISES)


def test_an_answer_without_return_is_told_so() -> None:
    def forgotten(x: torch.Tensor) -> None:
        2 * x

    assert "`return`" in double(forgotten).message


def test_yours_is_the_learners_function_once_it_passes_and_the_solution_until_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    solution = exercises.stacked_reach.solution

    def mine(layers: int, window: int) -> int:
        return layers * (window - 1) + 1

    assert exercises.yours(mine, "stacked_reach") is mine
    assert exercises.yours(dots, "stacked_reach") is solution
    assert exercises.yours(lambda layers, window: layers * window, "stacked_reach") is solution
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 6 and " your " in said[1] and " our " in said[3] and said[3] == said[5]
    assert next(iter(exercises.stacked_reach.bugs)) in said[4]
    with pytest.raises(ValueError, match="name.*stacked_reech"):
        exercises.yours(mine, "stacked_reech")


@pytest.mark.parametrize("check", EXERCISES.values(), ids=EXERCISES)
def test_the_solution_passes_and_the_reader_learns_what_it_shows(check: Exercise) -> None:
    assert check(check.solution) == Verdict(True, check.solution.__doc__)
    assert check.solution.__doc__ and len(check.bugs) >= 2


@pytest.mark.parametrize(("check", "bug"), BUGS)
def test_a_classic_bug_is_named(check: Exercise, bug: str) -> None:
    assert check(check.wrong(bug)) == Verdict(False, bug)


def test_an_error_in_the_answer_is_reported_after_what_is_wrong_before_it() -> None:
    assert "case 2 (x: a tensor of shape (2,)) your code raised ZeroDivisionError: division by zero" in repr(
        double(lambda x: 2 * x if x.any() else 1 / 0)
    )
    assert "case 1 (x: a tensor of shape (2,)) expected 2, got 1 at [0]" in repr(
        double(lambda x: x if x.any() else 1 / 0)
    )

    def wraps(x: Tensor, w: Tensor, d: int) -> Tensor:  # on the last case, an index lies beyond the start
        rows = [[x[:, t - d * i] @ w[i] for i in range(len(w))] for t in range(x.shape[1])]
        return torch.stack([torch.stack(row).sum(0) for row in rows], 1)

    assert "negative indices" in exercises.dilated_convolution(wraps).message


def test_a_right_answer_may_be_a_list_or_a_flipped_array() -> None:
    assert double(lambda x: (2 * x).tolist()).passed
    assert double(lambda x: np.flip(2 * x.numpy()[::-1])).passed  # torch takes no negative strides


def test_truths_for_numbers_and_tensors_that_are_not_stacked_are_told_so() -> None:
    truths = exercises.induction(lambda x: exercises.induction.solution(x).bool())
    assert not truths.passed and "torch.bool" in truths.message
    apart = exercises.back_through_gate(lambda *given: tuple(exercises.back_through_gate.solution(*given)))
    assert not apart.passed and "3 tensors" in apart.message and len(apart.message) < 300


def doubled_in_place(x: Tensor) -> Tensor:
    x *= 2
    return x


def test_an_answer_that_changes_its_arguments_is_told_so() -> None:
    for answer in (doubled_in_place, lambda x: doubled_in_place(x) + 1):  # whatever else is wrong
        assert "changes its argument `x`" in double(answer).message
    assert double(lambda x: doubled_in_place(x.clone())).passed


def test_a_module_among_the_arguments_is_only_changed_if_its_weights_are() -> None:
    layer = Exercise(lambda m: torch.zeros(1), lambda: [(nn.Linear(1, 1).requires_grad_(False),)], {})
    assert layer(lambda m: m(torch.zeros(1)) * 0).passed
    assert "changes its argument `m`" in layer(lambda m: m.weight.add_(1) * 0).message


def test_what_an_answer_does_to_a_case_does_not_reach_the_next() -> None:
    x = torch.tensor([1.0, 2.0])
    twice = Exercise(lambda x: 2 * x, lambda: [(x,), (x,)], {})
    assert "changes its argument `x`" in twice(doubled_in_place).message
    assert x.tolist() == [1, 2]


def test_a_case_of_plain_numbers_is_shown() -> None:
    add = Exercise(lambda a, b: a + b, lambda: [(1, 2.5), (2, 2.5)], {})
    assert add(lambda a, b: a + b if a == 1 else 0).message == "on case 2 (a: 2, b: 2.5) expected 4.5, got 0"


def test_many_numbers_in_place_of_one_are_reported_by_their_shape() -> None:
    one = Exercise(lambda a: True, lambda: [(1,)], {})
    for kind, name in ((torch.tensor, "a tensor"), (np.array, "an array")):
        assert f"got {name} of shape (8, 9)" in one(lambda a, kind=kind: kind([[True] * 9] * 8)).message


def test_neither_a_share_nor_a_number_is_a_truth_value() -> None:
    larger = Exercise(lambda p: p > 0.3, lambda: [(torch.tensor([0.0, 0.4, 0.6]),)], {})
    assert larger(lambda p: p).passed is False
    assert larger(lambda p: (p > 0.3).int()).message.endswith("expected numbers of type torch.bool, got torch.int32")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda x: (2 * x)[None],
            "on case 1 (x: a tensor of shape (2,)) expected a tensor of shape (2,), got a tensor of shape (1, 2)",
        ),
        (lambda x: "doubled", "on case 1 (x: a tensor of shape (2,)) expected a tensor of shape (2,), got 'doubled'"),
        (lambda x: 2 * x + (x == 0), "on case 2 (x: a tensor of shape (2,)) expected 0, got 1 at [0]"),
        (lambda x: torch.stack([2 * x[0], 3 * x[1]]), "on case 1 (x: a tensor of shape (2,)) expected 4, got 6 at [1]"),
        (lambda x: 2.0004 * x, "on case 1 (x: a tensor of shape (2,)) expected 2, got 2.0004 at [0]"),
    ],
)
def test_a_wrong_answer_is_told_how_it_differs(answer: Callable[..., Any], message: str) -> None:
    verdict = double(answer)
    assert verdict.passed is False
    assert verdict.message.startswith(message)


# Right answers in other words


def windows_by_index(x: Tensor, window: int) -> Tensor:
    places = torch.arange(x.shape[1])[:, None] + torch.arange(window) - window + 1
    return torch.where((places >= 0)[None, :, :, None], x.double()[:, places.clamp(min=0)], 0.0)


def local_rnn(gru: nn.GRU, x: Tensor, window: int) -> Tensor:
    layer = LocalRNN(gru.hidden_size, window)
    layer.load_state_dict(gru.state_dict())
    return layer(x)


def start_of_the_plain_rnn(gru: nn.GRU, x: Tensor, window: int) -> Tensor:
    return torch.cat([gru(x)[0][:, : window - 1], local_rnn(gru, x, window)[:, window - 1 :]], 1)


def induction_by_scores(x: Tensor) -> Tensor:
    T = x.shape[1]
    match = pad(x[:, :-1], (1, 0), value=-1)[:, None] == x[..., None]
    scores = 100.0 * (T * match + torch.arange(T))
    return scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf).softmax(-1)


def shaw_scores_by_loops(q: Tensor, k: Tensor, table: Tensor, clip: int) -> list[list[float]]:
    rows = [[max(-clip, min(clip, s - t)) + clip for s in range(len(k))] for t in range(len(q))]
    scale = q.shape[1] ** 0.5
    return [[float(q[t] @ (k[s] + table[row]) / scale) for s, row in enumerate(rows[t])] for t in range(len(q))]


def contributions_as_differences(
    x: Tensor, sublayers: list[Callable[[Tensor], Tensor]], norms: list[Callable[[Tensor], Tensor]]
) -> Tensor:
    sums = [x]
    for sublayer, norm in zip(sublayers, norms, strict=True):
        sums.append(sums[-1] + sublayer(norm(sums[-1])))
    return torch.stack(sums).diff(dim=0)


def block_input_in_a_loop(states: Tensor, m: int, W: Tensor) -> Tensor:
    existing = [j for j in range(1, m + 1) if j <= len(states)]
    return sum((W[j - 1] @ states[-j] for j in existing), torch.zeros(states.shape[1])) / m


def mean_ablated_in_place(h: Tensor, chosen: Tensor) -> Tensor:
    changed = h.clone()
    changed[chosen] = (h * chosen[..., None]).sum((0, 1)) / chosen.sum()
    return changed


def residual_in_numpy(x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor]) -> Tensor:
    return norm(torch.from_numpy(x.numpy() + sublayer(x).numpy()))


def newest(memory: Tensor, segment: Tensor, P: int) -> np.ndarray:
    both = np.concatenate([memory.detach().numpy(), segment.detach().numpy()], 1)
    return both[:, ::-1][:, :P][:, ::-1]


def memory_carried_on(x: Tensor, layer: Callable[[Tensor], Tensor], S: int, P: int) -> Tensor:
    memory, found = x[:, :0], []
    for segment in x.split(S, 1):
        found.append(layer(torch.cat([memory, segment], 1))[:, -segment.shape[1] :])
        memory = torch.cat([memory, segment], 1).data.flip(1)[:, :P].flip(1)
    return torch.cat(found, 1)


def by_conv1d(x: Tensor, w: Tensor, d: int) -> Tensor:
    return conv1d(pad(x.mT, (d * (len(w) - 1), 0)), w.flip(0).permute(2, 1, 0), dilation=d).mT


def delays_by_digits(n: int, L: int, D: int) -> Tensor:
    digits = torch.tensor([n // 2**layer % 2 for layer in range(L)])
    return torch.nn.functional.one_hot(digits, 2)[..., None, None] * torch.eye(D)


def hoisted_with_projected_pads(
    project: Callable[[Tensor], Tensor], step: Callable[[Tensor, Tensor], Tensor], x: Tensor, M: int
) -> Tensor:
    pads = project(torch.zeros(1, 1, x.shape[2])).expand(len(x), M - 1, -1)
    a, h = torch.cat([pads, project(x)], 1), torch.zeros_like(x)
    for i in range(M):
        h = step(a[:, i : a.shape[1] - M + 1 + i], h)
    return h


def first_piece_before_the_loop(piece: Callable[[int], tuple[Tensor, Tensor]], n: int) -> Tensor:
    scores, values = piece(0)
    top = scores.amax(1, True)
    total, out = (scores - top).exp().sum(1, True), (scores - top).exp() @ values
    for i in range(1, n):
        others, more = piece(i)
        new = torch.maximum(top, others.amax(1, True))
        out = out * (top - new).exp() + (others - new).exp() @ more
        total, top = total * (top - new).exp() + (others - new).exp().sum(1, True), new
    return out / total


def gate_by_autograd(d_h: Tensor, z: Tensor, n: Tensor, before: Tensor) -> Tensor:
    a, c, old = z.logit().requires_grad_(), n.atanh().requires_grad_(), before.clone().requires_grad_()
    h = a.sigmoid() * old + (1 - a.sigmoid()) * c.tanh()
    return torch.stack(torch.autograd.grad(h, (a, c, old), d_h))


def nll_by_logsigmoid(logits: Tensor, targets: Tensor) -> Tensor:
    return -(targets * logsigmoid(logits) + (1 - targets) * logsigmoid(-logits)).sum(1).mean()


def markov_in_loops(before: Tensor, after: Tensor) -> list[list[float]]:
    def share(key: int, was: float) -> float:
        next_ = [then[key] for now, then in zip(before.tolist(), after.tolist(), strict=True) if now[key] == was]
        return (sum(next_) + 0.5) / (len(next_) + 1)

    return [[share(key, was) for key in range(before.shape[1])] for was in (0, 1)]


def wilson_of_counts(right: int, total: int, z: float) -> tuple[float, float]:
    interval = stats.binomtest(right, total).proportion_ci(2 * stats.norm.cdf(z) - 1, method="wilson")
    return interval.low, interval.high


def sign_test_by_scipy(a: Tensor, b: Tensor) -> float:
    apart = (a != b).sum().item()
    return stats.binomtest((a & ~b).sum().item(), apart).pvalue if apart else 1.0


def gap_by_distributions(frames: Tensor) -> Tensor:
    counts = torch.tensor(list(Counter(map(tuple, frames.tolist())).values()))
    return Bernoulli(frames.mean(0)).entropy().sum() - Categorical(counts / counts.sum()).entropy()


def nucleus_in_a_loop(p: Tensor, share: float) -> list[bool]:
    kept, total = [False] * len(p), 0.0
    for token in sorted(range(len(p)), key=lambda token: -p[token].item()):
        if total < share - 1e-6:
            kept[token], total = True, total + p[token].item()
    return kept


def bits_by_log_softmax(logits: Tensor, targets: Tensor) -> float:
    scored = targets >= 0
    return -logits.log_softmax(1)[scored, targets[scored]].mean().item() / math.log(2)


def bits_of_a_dictionary(train: Tensor, test: Tensor, V: int) -> float:
    pairs, firsts = Counter(zip(train[:-1].tolist(), train[1:].tolist(), strict=True)), Counter(train[:-1].tolist())
    asked = zip(test[:-1].tolist(), test[1:].tolist(), strict=True)
    return -mean(math.log2((pairs[a, b] + 1) / (firsts[a] + V)) for a, b in asked)


def backed_off_in_a_loop(follow: Callable[[str], Counter[str]], context: str, symbol: str, V: int) -> float:
    """From the shortest context to the longest."""
    p = 1 / V
    for start in range(len(context), -1, -1):
        if seen := follow(context[start:]):
            share = len(seen) / (sum(seen.values()) + len(seen))
            p = (1 - share) * seen[symbol] / sum(seen.values()) + share * p
    return p


def permutation_by_orderings(a: list[float], b: list[float]) -> float:
    deals = [order[: len(a)] for order in permutations([*a, *b])]
    return mean(mean(deal) >= mean(a) for deal in deals)


def holm_by_maxima(ps: list[float]) -> list[float]:
    """Each p-value is the largest of the products at or before its place in the order."""
    return [min(1.0, max(q * sum(r >= q for r in ps) for q in ps if q <= p)) for p in ps]


def greedily_by_recursion(step: Callable[..., Any], state: Any, longest: int, last: int = BEGIN) -> list[int]:
    if not longest or last == END:
        return []
    logits, state = step(last, state)
    return [best := int(logits.argmax()), *greedily_by_recursion(step, state, longest - 1, best)]


def beam_by_topk(step: Callable[..., Any], state: Any, width: int, longest: int) -> list[int]:
    live, found = [(0.0, [BEGIN], state)], []
    for length in range(1, longest + 1):
        grown = []
        for total, tokens, before in live:
            logits, after = step(tokens[-1], before)
            best = logits.log_softmax(-1).topk(width)
            grown += [(total + p, [*tokens, t], after) for p, t in zip(*map(Tensor.tolist, best), strict=True)]
        grown = sorted(grown, key=lambda one: one[0], reverse=True)[:width]
        found += [(total / length, tokens[1:]) for total, tokens, _ in grown if tokens[-1] == END or length == longest]
        live = [one for one in grown if one[1][-1] != END]
    return max(found)[1]


def masked_with(hidden: float) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda e, n: e.masked_fill((torch.arange(e.shape[-1]) >= n[:, None])[:, None], hidden).softmax(-1)


def composed_as_matrices(a1: Tensor, b1: Tensor, a2: Tensor, b2: Tensor) -> Tensor:
    def matrix(a: Tensor, b: Tensor) -> Tensor:
        return torch.stack([torch.stack([a, b], -1), torch.tensor([0.0, 1.0]).expand(len(a), 2)], -2)

    return (matrix(a2, b2) @ matrix(a1, b1))[:, 0].T


def gradient_by_autograd(a: Tensor, g: Tensor) -> Tensor:
    b = torch.zeros_like(a, requires_grad=True)
    (found,) = torch.autograd.grad(linear_scan(a[None], b[None])[0], b, g)
    return found


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("windows", windows_by_index),
        ("local_rnn", local_rnn),
        ("without_pads", start_of_the_plain_rnn),
        ("causal_attention", lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True)),
        ("induction", induction_by_scores),
        ("shaw_scores", shaw_scores_by_loops),
        ("rotated", rotate),
        ("contributions", contributions_as_differences),
        ("residual", residual_in_numpy),
        ("next_memory", newest),
        ("with_memory", memory_carried_on),
        ("dilated_convolution", by_conv1d),
        ("delay_kernels", delays_by_digits),
        ("source_weights", masked_with(-1e9)),
        ("greedy_translation", greedily_by_recursion),
        ("beam_translation", beam_by_topk),
        ("hoisted_local_rnn", hoisted_with_projected_pads),
        ("softmax_in_pieces", first_piece_before_the_loop),
        ("back_through_gate", gate_by_autograd),
        ("nucleus", nucleus_in_a_loop),
        ("bits_per_character", bits_by_log_softmax),
        ("bigram_bits", bits_of_a_dictionary),
        ("backed_off", backed_off_in_a_loop),
        ("block_input", block_input_in_a_loop),
        ("mean_ablated", mean_ablated_in_place),
        ("nll_per_frame", nll_by_logsigmoid),
        ("markov_per_key", markov_in_loops),
        ("wilson", wilson_of_counts),
        ("paired_p", sign_test_by_scipy),
        ("independence_gap", gap_by_distributions),
        ("attention_pool", lambda h, e: (e.softmax(1)[:, None] @ h)[:, 0]),
        ("reported", lambda validation, test: min(zip(validation, test, strict=True))[1]),
        ("permutation_p", permutation_by_orderings),
        ("holm", holm_by_maxima),
        ("longest_path", lambda length, n: 1 + math.ceil((length - 1) / (n - 1))),
        ("half_life", lambda a: torch.log(torch.tensor(0.5)) / torch.log(torch.tensor(a))),
        ("compose_steps", composed_as_matrices),
        ("gradient_back", gradient_by_autograd),
        ("cache_bytes", lambda T, L, D: sum(torch.zeros(2, T, D).nbytes for _ in range(L))),
    ],
)
def test_a_right_answer_in_other_words_passes(name: str, answer: Callable[..., Any]) -> None:
    assert EXERCISES[name](answer) == Verdict(True, EXERCISES[name].solution.__doc__)


# Wrong answers that are right for some sizes, values or signs only


def attention_masked_with(hidden: float) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda q, k, v: (
        (q @ k.mT / q.shape[-1] ** 0.5)
        .masked_fill(torch.ones(q.shape[1], q.shape[1]).triu(1).bool(), hidden)
        .softmax(-1)
        @ v
    )


def first_two_swapped(x: Tensor) -> Tensor:
    return x[:, [1, 0, *range(2, x.shape[1])]]


def notices(
    read: Callable[[Tensor], Tensor], change: Callable[[Tensor], Tensor] = first_two_swapped
) -> Callable[..., bool]:
    return lambda model, x: not torch.allclose(read(model(x)), read(model(change(x))), atol=1e-5)


def windows_by_slices(x: Tensor, window: int) -> Tensor:
    padded = pad(x, (0, 0, window - 1, 0))
    return torch.stack([padded[:, j : j - window + 1 or None] for j in range(window)], 2) if window > 1 else x


def projected_windows(
    project: Callable[[Tensor], Tensor], step: Callable[[Tensor, Tensor], Tensor], x: Tensor, M: int
) -> Tensor:
    a, h = project(windows_by_index(x, M).float()), torch.zeros_like(x)
    for i in range(M):
        h = step(a[:, :, i], h)
    return h


def pieces_in_a_list(piece: Callable[[int], tuple[Tensor, Tensor]], n: int) -> Tensor:
    pieces = [piece(i) for i in range(n)]
    top = torch.stack([scores.amax(1) for scores, _ in pieces]).amax(0)[:, None]
    total = sum(((scores - top).exp().sum(1, True) for scores, _ in pieces), torch.zeros(1))
    return sum(((scores - top).exp() @ values for scores, values in pieces), torch.zeros(1)) / total


def largest_of_each_piece(piece: Callable[[int], tuple[Tensor, Tensor]], n: int) -> Tensor:
    """Forget to scale the pieces to one another: right if all maxima are equal."""
    total, out = torch.zeros(1), torch.zeros(1)
    for i in range(n):
        scores, values = piece(i)
        weights = (scores - scores.amax(1, True)).exp()
        total, out = total + weights.sum(1, True), out + weights @ values
    return out / total


def bigram_over(sums: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor, int], Tensor]:
    def bits(train: Tensor, test: Tensor, V: int) -> Tensor:
        counts = torch.bincount(train[:-1] * V + train[1:], minlength=V * V).view(V, V) + 1.0
        return -(counts / sums(counts, train))[test[:-1], test[1:]].log2().mean()

    return bits


def symbols(counts: Tensor, train: Tensor) -> Tensor:
    return (torch.bincount(train, minlength=len(counts)) + len(counts))[:, None]


def nucleus_below(p: Tensor, share: float) -> Tensor:
    ranked, tokens = p.sort(descending=True)
    return torch.zeros_like(p, dtype=torch.bool).scatter(0, tokens, ranked.cumsum(0) <= share)


def bigram_over_symbols(train: Tensor, test: Tensor, V: int) -> Tensor:
    return bigram_over(lambda counts, _: counts.sum(1, keepdim=True))(train, test, V) * (len(test) - 1) / len(test)


def sorted_twice(p: Tensor, share: float) -> Tensor:
    order = p.argsort(descending=True)
    return (p[order].cumsum(0) - p[order] < share - 1e-6)[order]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("permutation_p", lambda a, b: float(mean(a) <= mean(b))),
        ("holm", lambda ps: [min(1.0, len(ps) * p) for p in ps]),
        ("reported", lambda validation, test: min(test)),
        ("source_weights", masked_with(-20)),
        ("source_weights", masked_with(-100)),
        ("causal_attention", attention_masked_with(-100)),
        ("induction", lambda x: induction_by_scores(x) + induction_by_scores(x).mT),
        ("windows", windows_by_slices),
        ("local_rnn", lambda gru, x, M: gru(windows_by_slices(x, M)[0])[0][None, :, -1]),
        ("softmax_in_pieces", largest_of_each_piece),
        ("source_weights", lambda e, n: masked_with(-math.inf)(e[..., :5], n)),
        ("notices_order", notices(lambda y: y[0, -1])),
        ("notices_order", notices(lambda y: y[-1, -1])),
        ("notices_order", notices(lambda y: y[:, -1].sum())),
        ("notices_order", notices(lambda y: y[:, -1].norm())),
        ("notices_order", notices(lambda y: y[:, -1], lambda x: x[..., [1, 0, *range(2, 8)]])),
        ("notices_order", notices(lambda y: y[:, -1], lambda x: x[:, [1, 0, 2, 3]])),
        ("bigram_bits", bigram_over(symbols)),
        ("bigram_bits", bigram_over_symbols),
        ("shaw_scores", lambda q, k, table, clip: q @ k.T / q.shape[1] ** 0.5 + (q @ table.mean(0))[:, None]),
        ("rotated", lambda x, start: x * (start + torch.arange(len(x)))[:, None].cos()),
        ("attention_pool", lambda h, e: (e.softmax(1)[..., None] * h).view(2, 5, 3).sum(1)),
    ],
)
def test_an_answer_that_is_right_by_chance_does_not_pass(name: str, answer: Callable[..., Any]) -> None:
    assert EXERCISES[name](answer).passed is False


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("notices_order", notices(lambda y: y[-1]), "this is the last sequence"),
        ("cache_bytes", lambda T, L, D: 2 * L * T * D * 2, "this is half of it"),
        ("compose_steps", lambda a1, b1, a2, b2: torch.stack([a1 * a2, a1 * (a2 * 0 + b1) + b2]), "a2 multiplies b1"),
        ("half_life", lambda a: math.log(a, 0.5), "upside down"),
        ("gradient_back", lambda a, g: g + pad(a[1:] * g[1:], (0, 0, 0, 1)), "only the next output"),
        ("bits_per_character", lambda z, y: cross_entropy(z.softmax(-1), y) / math.log(2), "softmax twice"),
        ("bigram_bits", bigram_over(lambda counts, _: counts.sum(1)), "each sum divides a column"),
        ("nucleus", nucleus_below, "the token that crosses the line"),
        ("nucleus", sorted_twice, "put back"),
        ("source_weights", masked_with(-20), "real scores can be lower"),
        ("hoisted_local_rnn", projected_windows, "you project each position M times"),
        ("softmax_in_pieces", pieces_in_a_list, "you hold all pieces at once"),
    ],
)
def test_a_bug_is_not_taken_for_another(name: str, answer: Callable[..., Any], message: str) -> None:
    assert EXERCISES[name](answer).message.startswith(message)
