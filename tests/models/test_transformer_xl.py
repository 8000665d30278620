"""Transformer-XL against loops over its equations, its memory, its four terms, its reach, its parameters."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from rtx.models import TransformerXL
from rtx.nn import naive
from rtx.nn.naive_attention import transformer_xl_attention, transformer_xl_terms
from rtx.nn.relative import XLAttention, relative_shift
from rtx.nn.segment_memory import SegmentMemory

TERMS = ("content", "content_position", "global_content", "global_position")


def layer(d_model: int = 6, heads: int = 2, segment: int = 3, memory: int = 4) -> SegmentMemory:
    torch.manual_seed(0)
    made = SegmentMemory(XLAttention(d_model, heads), segment, memory).double()
    for bias in (made.attention.content_bias, made.attention.position_bias):
        torch.nn.init.normal_(bias)  # as large as the rest, so that each term counts
    return made


def model(**changes: object) -> TransformerXL:
    torch.manual_seed(0)
    sizes: dict[str, object] = {"d_model": 8, "layers": 2, "heads": 2, "segment": 4, "memory": 4}
    made = TransformerXL(**(sizes | changes)).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


def stream(run: torch.nn.Module, x: torch.Tensor, state=None) -> tuple[torch.Tensor, object]:
    rows = []
    for x_t in x.unbind(1):
        y, state = run.step(x_t, state)
        rows.append(y)
    return torch.stack(rows, 1), state


@settings(max_examples=12)
@given(
    T=st.integers(1, 9),
    heads=st.integers(1, 3),
    width=st.integers(1, 4),
    segment=st.integers(1, 4),
    memory=st.integers(0, 5),
)
def test_equals_its_naive_twin_with_all_gradients(T, heads, width, segment, memory):
    fast = layer(heads * width, heads, segment, memory)
    x = torch.randn(2, T, heads * width, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, T, heads * width, dtype=torch.float64)
    parameters = dict(fast.attention.named_parameters())
    expected = transformer_xl_attention(x, *parameters.values(), segment=segment, memory=memory)
    y = fast(x)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    inputs = [x, *parameters.values()]
    for one, two in zip(*(torch.autograd.grad((z * weight).sum(), inputs) for z in (y, expected)), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-10)


def test_a_block_is_attention_then_feed_forward_each_with_its_residual_and_norm():
    xl, x = model(layers=1), torch.randn(1, 7, 8, dtype=torch.float64)
    first, second = xl.blocks[0]
    attended = transformer_xl_attention(x, *first.sublayer.attention.parameters(), segment=4, memory=4)
    rows = []
    for t in range(7):
        o = naive.layer_norm(x[0, t] + attended[0, t], *first.norm.parameters())
        rows.append(
            naive.layer_norm(o + naive.feed_forward(o, *second.sublayer.parameters()), *second.norm.parameters())
        )
    torch.testing.assert_close(xl(x)[0], torch.stack(rows), rtol=0, atol=1e-10)


@settings(max_examples=30)
@given(T=st.integers(1, 6), more=st.integers(0, 6))
def test_relative_shift_equals_direct_indexing(T, more):
    S = T + more
    by_distance = torch.randn(2, 3, T, S)
    shifted = relative_shift(by_distance)
    for i in range(T):
        for j in range(S - T + i + 1):
            distance = S - T + i - j
            assert torch.equal(shifted[..., i, j], by_distance[..., i, S - 1 - distance])


def test_no_array_of_every_query_key_and_feature_is_made():
    attention, x = XLAttention(16, 2), torch.randn(1, 40, 16)
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t):
        attention(x)
    assert 2 * 40 * 40 <= max(sizes) <= 2 * 40 * 41


@pytest.mark.parametrize(("segment", "memory", "T"), [(3, 4, 11), (4, 8, 8), (5, 2, 3), (2, 0, 5)])
def test_the_four_terms_are_those_of_the_equation_and_give_the_weights(segment, memory, T):
    xl, x = layer(segment=segment, memory=memory), torch.randn(2, T, 6, dtype=torch.float64)
    inside, attention = xl.inside(x), xl.attention
    assert tuple(inside) == (*TERMS, "weights")
    seen = torch.zeros(T, T, dtype=torch.bool)
    for t in range(T):
        seen[t, max(0, t - t % segment - memory) : t + 1] = True
    total = sum(inside[name] for name in TERMS).masked_fill(~seen, -torch.inf)
    torch.testing.assert_close(total.softmax(-1), inside["weights"], rtol=0, atol=1e-12)
    for t, s in seen.nonzero().tolist():
        part = slice(3, 6)  # the second head
        q, k = attention.query.weight[part] @ x[1, t], attention.key.weight[part] @ x[1, s]
        biases = attention.content_bias[1, 0], attention.position_bias[1, 0]
        expected = transformer_xl_terms(q, k, attention.distance.weight[part], *biases, t - s)
        found = [inside[name][1, 1, t, s] for name in TERMS]
        torch.testing.assert_close(torch.stack(found), torch.stack(expected), rtol=0, atol=1e-12)
    for name in inside:
        assert not inside[name].masked_fill(seen, 0).any()


@pytest.mark.parametrize("shape", [(2, 5, 7), (2, 0, 6), (5, 6)])
def test_what_forward_refuses_is_not_looked_inside(shape):
    xl, x = layer(segment=3, memory=4), torch.randn(shape, dtype=torch.float64)
    for method in (xl, xl.inside):
        with pytest.raises(ValueError, match="x: expected"):
            method(x)


def test_inside_a_continuation_has_the_columns_of_what_is_remembered():
    xl, x = layer(segment=3, memory=4), torch.randn(1, 11, 6, dtype=torch.float64)
    whole, later = xl.inside(x), xl.inside(x[:, 7:], xl.after(x[:, :7]))
    for name, part in later.items():
        assert part.shape == (1, 2, 4, 5 + 4)  # memory 2 … 5, one position of the segment, four new ones
        torch.testing.assert_close(part, whole[name][:, :, 7:, 2:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("segment", [1, 3, 7])
def test_with_a_memory_of_the_whole_past_it_is_attention_to_the_whole_past(segment, norm):
    x = torch.randn(2, 20, 8, dtype=torch.float64)
    cut, whole = model(segment=segment, memory=20, norm=norm), model(segment=20, memory=0, norm=norm)
    whole.load_state_dict(cut.state_dict())
    torch.testing.assert_close(cut(x), whole(x), rtol=0, atol=1e-10)
    attention = whole.blocks[0][0].sublayer.attention
    torch.testing.assert_close(whole.blocks[0][0].sublayer(x), attention(x), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("segment", "memory"), [(4, 4), (3, 7), (5, 2), (1, 1), (6, 0)])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_pieces_of_any_length_and_steps_in_any_order_equal_the_whole(segment, memory, norm):
    xl, x = model(segment=segment, memory=memory, norm=norm), torch.randn(2, 26, 8, dtype=torch.float64)
    rows, state = [], None
    for piece in x.split([5, 1, 2, 8, 3, 7], 1):
        for run in (xl.read, lambda part, before: stream(xl, part, before)):
            half, piece = piece[:, : (piece.shape[1] + 1) // 2], piece[:, (piece.shape[1] + 1) // 2 :]
            if half.shape[1]:
                y, state = run(half, state)
                rows.append(y)
        if piece.shape[1]:
            y, state = xl.read(piece, state)
            rows.append(y)
    torch.testing.assert_close(torch.cat(rows, 1), xl(x), rtol=0, atol=1e-10)


def test_steps_and_pieces_have_the_gradients_of_the_whole():
    xl, x = model(), torch.randn(1, 11, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(1, 11, 8, dtype=torch.float64)

    def in_pieces(x: torch.Tensor) -> torch.Tensor:
        first, state = xl.read(x[:, :6])
        second, state = stream(xl, x[:, 6:9], state)
        return torch.cat([first, second, xl.read(x[:, 9:], state)[0]], 1)

    grads = []
    for run in (xl, lambda x: stream(xl, x)[0], in_pieces):
        grads.append(torch.autograd.grad((run(x) * weight).sum(), [x, *xl.parameters()]))
    for whole, steps, pieces in zip(*grads, strict=True):
        torch.testing.assert_close(steps, whole, rtol=0, atol=1e-10)
        torch.testing.assert_close(pieces, whole, rtol=0, atol=1e-10)


def test_no_gradient_reaches_what_is_remembered_though_its_values_count():
    xl, x = model(), torch.randn(1, 8, 8, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(xl(x)[:, 4:].sum(-1).square().sum(), x)
    assert gradient[:, :4].abs().max() == 0
    assert (gradient[:, 4:].abs().amax(-1) > 0).all()
    other = x.detach().clone()
    other[:, 0] += 1
    assert not torch.allclose(xl(other)[:, 4:], xl(x)[:, 4:])


def test_the_projections_learn_from_the_memory_all_the_same():
    xl, x = layer(segment=4, memory=4), torch.randn(1, 5, 6, dtype=torch.float64)
    (with_memory,) = torch.autograd.grad(xl(x)[:, 4].sum(), xl.attention.value.weight)
    own = (
        x[0, 4]
        * (xl.attention.output.weight.sum(0) * xl.inside(x)["weights"][0, :, 4, 4].repeat_interleave(3))[:, None]
    )
    assert not torch.allclose(with_memory, own)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("segment", "memory"), [(4, 4), (4, 8), (4, 6), (4, 1), (3, 5), (4, 0)])
def test_the_reach_grows_by_a_memory_rounded_up_to_segments_with_every_layer(layers, segment, memory):
    T = 10 * segment
    xl, x = model(layers=layers, segment=segment, memory=memory), torch.randn(1, T, 8, dtype=torch.float64)
    moved = x.repeat(T, 1, 1)
    moved[torch.arange(T), torch.arange(T)] += 1
    with torch.no_grad():
        counts = (xl(moved)[:, -1] - xl(x)[:, -1]).abs().amax(-1) > 1e-13  # input s alone is moved in row s
    reach = segment + (layers - 1) * segment * -(-memory // segment) + memory
    assert counts.nonzero()[0].item() == T - min(T, reach)
    if memory % segment == 0:
        assert reach == segment + layers * memory


def test_a_longer_memory_at_evaluation_needs_no_other_parameters():
    x = torch.randn(1, 16, 8, dtype=torch.float64)
    trained, longer = model(), model(memory=12)
    longer.load_state_dict(trained.state_dict())
    torch.testing.assert_close(trained(x)[:, :8], longer(x)[:, :8], rtol=0, atol=1e-12)
    assert not torch.allclose(trained(x)[:, 8:], longer(x)[:, 8:])


def test_biases_are_shared_as_in_the_equation_or_each_layers_own():
    shared, own = model(layers=3), model(layers=3, biases="per layer")
    count = {xl: sum(p.numel() for p in xl.parameters()) for xl in (shared, own)}
    assert count[own] - count[shared] == 2 * 2 * 8
    first, second, _ = (block[0].sublayer.attention for block in shared.blocks)
    assert first.content_bias is second.content_bias and first.position_bias is second.position_bias
    own.load_state_dict(shared.state_dict())
    x = torch.randn(1, 6, 8, dtype=torch.float64)
    torch.testing.assert_close(own(x), shared(x), rtol=0, atol=0)
    with torch.no_grad():
        own.blocks[1][0].sublayer.attention.content_bias += 1
    assert not torch.allclose(own(x), shared(x))


def test_parameters_are_those_of_the_paper_for_enwik8():
    with torch.device("meta"):
        xl = TransformerXL(512, 12, 8, 512, 512)
    backbone = sum(p.numel() for p in xl.parameters())
    assert backbone == 40_950_784
    assert round((backbone + 204 * 512 + 204) / 1e6) == 41


def test_steps_equal_the_whole_with_a_memory_of_several_segments():
    xl, x = layer(segment=50, memory=300), torch.randn(1, 350, 6, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(stream(xl, x)[0], xl(x), rtol=0, atol=1e-10)


def flops(run, *arguments: object) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        run(*arguments)
    return counter.get_total_flops()


def test_a_step_maps_one_query_to_the_distances_instead_of_all_of_them():
    xl, x = layer(d_model=64, segment=256, memory=0), torch.randn(1, 200, 64, dtype=torch.float64)
    _, state = stream(xl, x[:, :1], xl.step(x[:, 0], xl.after(x[:, 1:]))[1])
    mapped = 2 * 201 * 64 * 64
    assert flops(xl.step, x[:, 0], state) < mapped / 4


def test_a_sequence_shorter_than_a_segment_does_not_pay_for_the_segment():
    xl, x = layer(segment=512, memory=512), torch.randn(1, 3, 6, dtype=torch.float64)
    assert flops(xl, x) == flops(layer(segment=3, memory=1), x)


def test_a_step_reads_no_more_than_memory_and_segment():
    xl = model(segment=4, memory=6)
    _, state = stream(xl, torch.randn(1, 31, 8, dtype=torch.float64))
    for inputs, cache, count in state[::2]:
        assert (inputs.shape, cache.length, count) == ((1, 9, 8), 9, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"segment": 0}, "segment: expected a whole number of at least 1, got 0"),
        ({"memory": -1}, "memory: expected a whole number of at least 0, got -1"),
        ({"memory": True}, "memory: expected a whole number of at least 0, got True"),
        ({"biases": "sharde"}, "biases: 'sharde' is unknown, allowed are shared, per layer; did you mean 'shared'"),
        ({"norm": "both"}, "norm: 'both' is unknown"),
        ({"heads": 3}, "heads: expected a divisor of d_model = 8"),
    ],
)
def test_bad_sizes_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        model(**changes)


def test_u_and_v_start_small_as_in_the_authors_code():
    torch.manual_seed(0)
    attention = XLAttention(4000, 1)
    for bias in (attention.content_bias, attention.position_bias):
        assert bias.std().item() == pytest.approx(0.02, rel=0.1)


def test_dropout_is_on_attention_weights_and_keeps_their_mean():
    torch.manual_seed(0)
    xl, x = SegmentMemory(XLAttention(6, 2, dropout=0.5), segment=3, memory=4), torch.randn(1, 7, 6)
    y = xl(x.repeat(4000, 1, 1))
    torch.testing.assert_close(y.mean(0), xl.eval()(x)[0], rtol=0, atol=0.05)
    assert (y.std(0) > 0.05).all()


def test_states_of_other_models_are_refused():
    xl, x = model(), torch.randn(2, 7, 8, dtype=torch.float64)
    for other, message in [
        (model(layers=1), "state: expected one of 4 layers, got one of 2"),
        (model(memory=9, segment=9), "state: expected at most 4 positions before a segment of 4, got 0 before 7"),
        (model(heads=4), "state: expected a cache of 2 sequences, 2 heads of width 4"),
        (model(d_model=4), "state: expected tensors of shapes"),
    ]:
        state = other.read(x[..., : other.d_model])[1]
        with pytest.raises(ValueError, match=message):
            xl.read(x, state)
        with pytest.raises(ValueError, match=message):
            xl.step(x[:, 0], state)
    state = model(segment=9).read(x[:, :4])[1]  # which begins a new segment in a model of segments of 4
    with pytest.raises(ValueError, match="before a segment of 4, got 0 before 4"):
        xl.step(x[:, 0], state)
    with pytest.raises(ValueError, match="state: expected"):
        xl.read(x[:1], xl.read(x)[1])
    with pytest.raises(ValueError, match=r"state: expected \(inputs, cache, count\), got 0 parts"):
        xl.read(x, ((), (), (), ()))
