"""Attention from a target to its source, additive and multi-head, against loops and torch; what padding is."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.nn.additive_attention import AdditiveAttention
from rtx.nn.cross_attention import CrossAttention
from rtx.nn.padding import read_source, real_positions, reverse

LENGTHS = torch.tensor([5, 2, 1])
REAL = real_positions(LENGTHS, 5)


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def additive_loop(layer, query, annotations, lengths):
    """Bahdanau et al.'s a(s, h) = v^T tanh(W s + U h), one number of one position at a time."""
    W, U, b, v = layer.query.weight, layer.key.weight, layer.key.bias, layer.energy.weight[0]
    contexts, weights = [], []
    for s, sentence, n in zip(query, annotations, lengths.tolist(), strict=True):
        energies = []
        for h in sentence[:n]:
            hidden = [
                torch.tanh(sum(W[i, k] * s[k] + U[i, k] * h[k] for k in range(len(s))) + b[i]) for i in range(len(s))
            ]
            energies.append(sum(v[i] * hidden[i] for i in range(len(s))))
        total = sum(torch.exp(e) for e in energies)
        alpha = [torch.exp(e) / total for e in energies]
        contexts.append(sum(a * h for a, h in zip(alpha, sentence, strict=False)))
        weights.append(torch.stack(alpha + [torch.zeros_like(total)] * (len(sentence) - n)))
    return torch.stack(contexts), torch.stack(weights)


def test_additive_attention_equals_a_loop_over_positions_with_all_gradients():
    torch.manual_seed(0)
    layer = AdditiveAttention(3).double()
    query, annotations = numbers(3, 3).requires_grad_(), numbers(3, 5, 3).requires_grad_()
    inputs = [query, annotations, *layer.parameters()]
    ours = layer(query, layer.remember(annotations, REAL))
    naive = additive_loop(layer, query, annotations, LENGTHS)
    probes = [torch.randn_like(part) for part in ours]
    for a, b in zip(ours, naive, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    gradients = [
        torch.autograd.grad(sum((p * part).sum() for p, part in zip(probes, parts, strict=True)), inputs)
        for parts in (ours, naive)
    ]
    for a, b in zip(*gradients, strict=True):
        assert a.abs().max() > 0
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("padded", [False, True])
def test_cross_attention_equals_torchs_with_all_gradients(padded):
    torch.manual_seed(0)
    ours = CrossAttention(8, 2).double()
    theirs = torch.nn.MultiheadAttention(8, 2, bias=False, batch_first=True).double()
    projections = ours.query, ours.key, ours.value
    theirs.load_state_dict(
        {"in_proj_weight": torch.cat([p.weight for p in projections]), "out_proj.weight": ours.output.weight}
    )
    real = REAL if padded else torch.ones_like(REAL)
    x, source = numbers(3, 4, 8).requires_grad_(), numbers(3, 5, 8).requires_grad_()
    remembered = ours.remember(source, real)
    y = ours(x, remembered)
    expected, weights = theirs(x, source, source, ~real, average_attn_weights=False)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(ours.weights(x, remembered), weights, rtol=0, atol=1e-10)
    probe = torch.randn_like(y)
    a = torch.autograd.grad((y * probe).sum(), [x, source, *(p.weight for p in projections)])
    b = torch.autograd.grad((expected * probe).sum(), [x, source, theirs.in_proj_weight])
    torch.testing.assert_close([*a[:2], torch.cat(a[2:])], list(b), rtol=0, atol=1e-10)


def test_cross_attention_streams_and_keeps_its_source():
    torch.manual_seed(0)
    layer = CrossAttention(8, 2).double()
    x, remembered = numbers(3, 4, 8), layer.remember(numbers(3, 5, 8), REAL)
    state, rows = remembered, []
    for x_t in x.unbind(1):
        y, state = layer.step(x_t, state)
        rows.append(y)
    assert state is remembered
    torch.testing.assert_close(torch.stack(rows, 1), layer(x, remembered), rtol=0, atol=1e-12)


def test_weights_are_zero_on_padding_exactly_and_sum_to_one():
    additive, cross = AdditiveAttention(8), CrossAttention(8, 2)
    source = torch.randn(3, 5, 8)
    flat = additive.inside(torch.randn(3, 8), additive.remember(source, REAL))["weights"]
    heads = cross.inside(torch.randn(3, 4, 8), cross.remember(source, REAL))["weights"]
    assert flat.shape == (3, 5) and heads.shape == (3, 2, 4, 5)
    assert (flat[~REAL] == 0).all() and (heads[(~REAL)[:, None, None].expand_as(heads)] == 0).all()
    torch.testing.assert_close(flat.sum(-1), torch.ones(3))
    torch.testing.assert_close(heads.sum(-1), torch.ones(3, 2, 4))


@pytest.mark.parametrize("kind", [AdditiveAttention, lambda D: CrossAttention(D, 2)])
def test_bad_input_is_refused_by_name(kind):
    layer, source = kind(8), torch.randn(3, 5, 8)
    query = torch.randn(3, 8) if isinstance(layer, AdditiveAttention) else torch.randn(3, 4, 8)
    with pytest.raises(ValueError, match=r"expected shape \(batch, time, 8\), got \(3, 5, 7\)"):
        layer.remember(source[..., :7], REAL)
    with pytest.raises(ValueError, match=r"state: expected tensors of shapes .* got \(2, "):
        layer(query, layer.remember(source[:2], REAL[:2]))
    with pytest.raises(ValueError, match=r"(x|query): expected .*8\), got"):
        layer(query[..., :7], layer.remember(source, REAL))
    with pytest.raises(ValueError, match=r"(x|query): expected .*8\), got"):
        layer.inside(query[..., :7], layer.remember(source, REAL))


def test_cross_attention_cannot_step_without_a_source():
    with pytest.raises(ValueError, match="state: expected what remember returned for the source, got None"):
        CrossAttention(8, 2).step(torch.randn(3, 8))


@settings(max_examples=30)
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_each_sentence_is_reversed_within_its_own_length(lengths):
    x = torch.arange(len(lengths) * 6 * 2).view(-1, 6, 2)
    turned = reverse(x, torch.tensor(lengths))
    for row, original, n in zip(turned.tolist(), x.tolist(), lengths, strict=True):
        assert row == original[:n][::-1] + original[n:]
    assert torch.equal(reverse(turned, torch.tensor(lengths)), x)


def test_what_stands_in_the_padding_need_not_be_a_token():
    source = torch.tensor([[3, 4, -100], [2, 99, 99]])
    read, lengths = read_source(source, torch.tensor([2, 1]), 5)
    assert read.tolist() == [[3, 4, 0], [2, 0, 0]] and lengths.tolist() == [2, 1]
    assert read_source(source.clamp(0, 4), None, 5)[1].tolist() == [3, 3]


@pytest.mark.parametrize(
    ("source", "lengths", "message"),
    [
        (torch.zeros(2, 0).long(), None, r"source: expected tokens of shape \(batch, time\), .* got \(2, 0\)"),
        (torch.zeros(0, 3).long(), None, r"source: expected tokens of shape \(batch, time\), .* got \(0, 3\)"),
        (torch.zeros(3).long(), None, r"source: expected tokens of shape \(batch, time\), .* got \(3,\)"),
        (torch.zeros(2, 3), None, "source: expected whole numbers of int32 or int64, got torch.float32"),
        (torch.tensor([[1, 5]]), None, "source: expected tokens from 0 to 4, got 5"),
        (torch.tensor([[-1, 4]]), torch.tensor([1]), "source: expected tokens from 0 to 4, got -1"),
        (
            torch.ones(2, 3).long(),
            torch.tensor([3, 0]),
            r"source_lengths: expected 2 whole .* from 1 to 3, .* \[3, 0\]",
        ),
        (
            torch.ones(2, 3).long(),
            torch.tensor([4, 1]),
            r"source_lengths: expected 2 whole .* from 1 to 3, .* \[4, 1\]",
        ),
        (torch.ones(2, 3).long(), torch.tensor([3]), r"source_lengths: expected 2 whole numbers .* got \[3\]"),
        (torch.ones(2, 3).long(), torch.tensor([1.0, math.pi]), "source_lengths: expected 2 whole numbers"),
    ],
)
def test_bad_sources_are_refused(source, lengths, message):
    with pytest.raises(ValueError, match=message):
        read_source(source, lengths, 5)
