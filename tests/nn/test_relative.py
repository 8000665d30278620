"""Shaw's attention against loops over its equations, and what its clipped distances do and do not hide."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.nn import RelativeAttention
from rtx.nn.naive_attention import shaw_attention


def layer(d_model: int = 8, heads: int = 2, clip: int = 2, two_sided: bool = False) -> RelativeAttention:
    torch.manual_seed(0)
    return RelativeAttention(d_model, heads, clip, two_sided=two_sided).double()


def full_mask(T: int) -> torch.Tensor:
    return torch.ones(T, T, dtype=torch.bool)


@settings(max_examples=20)
@given(
    T=st.integers(1, 7),
    heads=st.integers(1, 3),
    width=st.integers(1, 4),
    clip=st.integers(1, 8),
    two_sided=st.booleans(),
)
def test_equals_its_naive_twin_with_all_gradients(T, heads, width, clip, two_sided):
    fast = layer(heads * width, heads, clip, two_sided)
    x = torch.randn(2, T, heads * width, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, T, heads * width, dtype=torch.float64)
    inputs = [x, *fast.parameters()]
    y = fast(x, full_mask(T) if two_sided else None)
    expected = shaw_attention(x, *fast.parameters(), clip=clip, future=two_sided)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    for one, two in zip(*(torch.autograd.grad((z * weight).sum(), inputs) for z in (y, expected)), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-10)


def test_without_its_tables_it_is_plain_attention():
    relative, x = layer(), torch.randn(2, 6, 8, dtype=torch.float64)
    with torch.no_grad():
        relative.key_table.zero_(), relative.value_table.zero_()
    q, k, v = (f(x).unflatten(-1, (2, 4)).transpose(1, 2) for f in (relative.query, relative.key, relative.value))
    plain = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    expected = relative.output(plain.transpose(1, 2).flatten(2))
    torch.testing.assert_close(relative(x), expected, rtol=0, atol=1e-12)


def test_tables_hold_a_row_for_each_distance_that_can_be_told_apart():
    one, two = layer(clip=3), layer(clip=3, two_sided=True)
    assert one.key_table.shape == one.value_table.shape == (4, 4)
    assert two.key_table.shape == two.value_table.shape == (7, 4)
    assert one.rows(6, 6)[5].tolist() == [0, 0, 0, 1, 2, 3]
    assert two.rows(6, 6)[1].tolist() == [2, 3, 4, 5, 6, 6]
    assert two.rows(2, 6).tolist() == two.rows(6, 6)[4:].tolist()


@pytest.mark.parametrize("clip", [1, 2, 4])
def test_keys_beyond_the_clipped_distance_are_seen_though_the_survey_says_otherwise(clip):
    relative, x = layer(clip=clip), torch.randn(1, 12, 8, dtype=torch.float64, requires_grad=True)
    weights = relative.weights(x)[0, :, -1]  # (H, 12)
    assert (weights > 0).all()
    (gradient,) = torch.autograd.grad(relative(x)[0, -1].square().sum(), x)
    assert (gradient[0].abs().amax(-1) > 0).all()


def test_beyond_the_clipped_distance_order_is_lost_and_within_it_is_not():
    relative, x = layer(clip=3), torch.randn(1, 10, 8, dtype=torch.float64)
    far, near = torch.arange(10), torch.arange(10)
    far[:7] = far[:7].flip(0)  # distances 3 … 9 from the last position share the last vector
    near[[7, 8]] = near[[8, 7]]
    last = relative(x)[:, -1]
    torch.testing.assert_close(relative(x[:, far])[:, -1], last, rtol=0, atol=1e-12)
    assert not torch.allclose(relative(x[:, near])[:, -1], last)


@pytest.mark.parametrize("queries", [1, 3, 7])
def test_queries_are_the_last_of_the_keys_in_any_number(queries):
    relative = layer()
    q, k, v = (torch.randn(2, 2, 7, 4, dtype=torch.float64) for _ in range(3))
    scores = relative.scores(q, k)
    torch.testing.assert_close(relative.scores(q[:, :, -queries:], k), scores[:, :, -queries:], rtol=0, atol=1e-12)
    weights = scores.softmax(-1)
    gathered = relative.gather(weights, v)[:, :, -queries:]
    torch.testing.assert_close(relative.gather(weights[:, :, -queries:], v), gathered, rtol=0, atol=1e-12)


def test_more_queries_than_keys_end_where_the_keys_do():
    relative = layer()
    assert relative.rows(4, 2).tolist() == (relative.rows(4, 4)[:, 2:]).tolist()
    q, k, v = (torch.randn(2, 2, 7, 4, dtype=torch.float64) for _ in range(3))
    scores = relative.scores(q, k)[..., 4:]
    torch.testing.assert_close(relative.scores(q, k[:, :, 4:]), scores, rtol=0, atol=1e-12)
    weights = torch.cat([torch.zeros_like(scores[..., :1]).expand(-1, -1, -1, 4), scores.softmax(-1)], -1)
    few = relative.gather(weights[..., 4:], v[:, :, 4:])
    torch.testing.assert_close(few, relative.gather(weights, v), rtol=0, atol=1e-12)


def test_scores_do_not_know_absolute_positions():
    relative = layer(clip=20)
    q, k = (torch.randn(1, 2, 9, 4, dtype=torch.float64) for _ in range(2))
    late, early = relative.scores(q, k), relative.scores(q[:, :, 3:], k[:, :, 3:])
    visible = torch.ones(6, 6).tril().bool()
    torch.testing.assert_close(late[:, :, 3:, 3:][:, :, visible], early[:, :, visible], rtol=0, atol=1e-12)


def test_no_array_of_every_query_key_and_feature_is_made():
    relative, x = RelativeAttention(16, 2, clip=5), torch.randn(1, 40, 16)
    sizes: list[int] = []

    def record(tensor: torch.Tensor) -> torch.Tensor:
        sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
        relative(x)
    assert max(sizes) == 2 * 40 * 40


def test_a_stream_equals_the_whole_sequence():
    relative, x = layer(), torch.randn(2, 9, 8, dtype=torch.float64)
    rows, state = [], None
    for x_t in x.unbind(1):
        y, state = relative.step(x_t, state)
        rows.append(y)
    torch.testing.assert_close(torch.stack(rows, 1), relative(x), rtol=0, atol=1e-12)


def test_dropout_acts_on_the_tables_values_too_and_in_training_only():
    torch.manual_seed(0)
    relative, x = RelativeAttention(8, 2, 2, dropout=0.5).double(), torch.randn(1, 5, 8, dtype=torch.float64)
    with torch.no_grad():
        mean = torch.stack([relative(x) for _ in range(3000)]).mean(0)
        torch.testing.assert_close(mean, relative.eval()(x), rtol=0, atol=0.05)
        assert torch.equal(relative(x), relative(x))


def test_vectors_of_distances_start_within_one_over_the_root_of_a_heads_width():
    torch.manual_seed(0)
    relative = RelativeAttention(32, 2, clip=16)
    for table in (relative.key_table, relative.value_table):
        assert 0.23 < table.abs().max() <= 0.25  # 1 / √16


def test_a_clip_below_one_is_refused():
    with pytest.raises(ValueError, match="clip: expected a whole number of at least 1, got 0"):
        RelativeAttention(8, 2, clip=0)
