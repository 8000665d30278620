"""Transformer-XL: its four terms, its memory, its parameters. test_references.py compares it with loops."""

import pytest
import torch
from oracles import stream
from torch.utils.flop_counter import FlopCounterMode

from rtx.models import TransformerXL
from rtx.nn.reference import transformer_xl_terms
from rtx.nn.relative import XLAttention
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


def test_no_array_of_every_query_key_and_feature_is_made():
    attention, x = XLAttention(16, 2), torch.randn(1, 40, 16)
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t):
        attention(x)
    assert 2 * 40 * 40 <= max(sizes) <= 2 * 40 * 41


@pytest.mark.parametrize(("segment", "memory", "T"), [(3, 4, 11), (4, 8, 8), (5, 2, 3), (2, 0, 5)])
def test_introspect_returns_the_four_terms_of_the_equation_and_the_weights(segment, memory, T):
    xl, x = layer(segment=segment, memory=memory), torch.randn(2, T, 6, dtype=torch.float64)
    shown, attention = xl.introspect(x), xl.attention
    assert tuple(shown) == (*TERMS, "weights")
    seen = torch.zeros(T, T, dtype=torch.bool)
    for t in range(T):
        seen[t, max(0, t - t % segment - memory) : t + 1] = True
    total = sum(shown[name] for name in TERMS).masked_fill(~seen, -torch.inf)
    torch.testing.assert_close(total.softmax(-1), shown["weights"], rtol=0, atol=1e-12)
    for t, s in seen.nonzero().tolist():
        part = slice(3, 6)  # the second head
        q, k = attention.query.weight[part] @ x[1, t], attention.key.weight[part] @ x[1, s]
        biases = attention.content_bias[1, 0], attention.position_bias[1, 0]
        expected = transformer_xl_terms(q, k, attention.distance.weight[part], *biases, t - s)
        found = [shown[name][1, 1, t, s] for name in TERMS]
        torch.testing.assert_close(torch.stack(found), torch.stack(expected), rtol=0, atol=1e-12)
    for name in shown:
        assert not shown[name].masked_fill(seen, 0).any()


def test_introspect_on_a_continuation_has_the_columns_of_the_memory():
    xl, x = layer(segment=3, memory=4), torch.randn(1, 11, 6, dtype=torch.float64)
    whole, later = xl.introspect(x), xl.introspect(x[:, 7:], xl.read(x[:, :7])[1])
    for name, part in later.items():
        assert part.shape == (1, 2, 4, 5 + 4)  # memory 2 … 5, one position of the segment, four new ones
        torch.testing.assert_close(part, whole[name][:, :, 7:, 2:], rtol=0, atol=1e-12)


def test_introspect_is_zero_where_a_nan_is_hidden():
    xl, x = layer(segment=3, memory=1), torch.randn(1, 5, 6, dtype=torch.float64)
    x[:, 4] = torch.nan
    for part in xl.introspect(x).values():
        assert not part[:, :, :4, 4].any()


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
    for i, piece in enumerate(x.split([3, 2, 1, 1, 1, 4, 4, 2, 1, 4, 3], 1)):
        y, state = stream(xl, piece, state) if i % 2 else xl.read(piece, state)
        rows.append(y)
    torch.testing.assert_close(torch.cat(rows, 1), xl(x), rtol=0, atol=1e-10)


def flops(run, *arguments: object) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        run(*arguments)
    return counter.get_total_flops()


def test_a_step_does_not_project_all_distances():
    xl, x = layer(d_model=64, segment=256, memory=0), torch.randn(1, 200, 64, dtype=torch.float64)
    _, state = xl.read(x[:, :1], xl.read(x[:, :1], xl.read(x[:, 1:])[1])[1])
    projection = 2 * 201 * 64 * 64
    assert flops(xl.read, x[:, :1], state) < projection / 4


def test_a_sequence_shorter_than_a_segment_costs_no_whole_segment():
    xl, x = layer(segment=512, memory=512), torch.randn(1, 3, 6, dtype=torch.float64)
    assert flops(xl, x) == flops(layer(segment=3, memory=1), x)


def test_u_and_v_start_small_as_in_the_authors_code():
    torch.manual_seed(0)
    attention = XLAttention(1000, 1)
    for bias in (attention.content_bias, attention.position_bias):
        assert bias.std().item() == pytest.approx(0.02, rel=0.1)


def test_states_of_another_segmentation_are_refused():
    xl, x = model(), torch.randn(2, 7, 8, dtype=torch.float64)
    # 7 positions in a segment of 4; 4 positions, after which this segment would have ended
    for state in (model(memory=9, segment=9).read(x)[1], model(segment=9).read(x[:, :4])[1]):
        for call in (lambda state=state: xl.read(x, state), lambda state=state: xl.step(x[:, 0], state)):
            with pytest.raises(ValueError, match="^state: "):
                call()
