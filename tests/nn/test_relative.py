"""Shaw's attention against the reference, what the clipped distances change, and ALiBi's slopes."""

import pytest
import torch
from comparison import Largest

from rtx.nn import RelativeAttention
from rtx.nn.relative import LinearBiasAttention


def test_the_order_of_keys_matters_only_within_the_clipped_distance():
    relative, x = RelativeAttention(8, 2, clip=3).double(), torch.randn(1, 10, 8, dtype=torch.float64)
    far, near = torch.arange(10), torch.arange(10)
    far[:7] = far[:7].flip(0)  # distances 3 … 9 from the last position share the last vector
    near[[7, 8]] = near[[8, 7]]
    last = relative(x)[:, -1]
    torch.testing.assert_close(relative(x[:, far])[:, -1], last, rtol=0, atol=1e-12)
    assert not torch.allclose(relative(x[:, near])[:, -1], last)


def test_no_tensor_has_an_axis_for_queries_keys_and_features():
    relative, x = RelativeAttention(16, 2, clip=5), torch.randn(1, 40, 16)
    with Largest() as largest:
        relative(x)
    assert largest.numbers == 2 * 40 * 40


def test_tables_start_uniform_within_the_bound_of_a_heads_width():
    torch.manual_seed(0)
    relative = RelativeAttention(32, 2, clip=16)
    for table in (relative.key_table, relative.value_table):
        assert 0.23 < table.abs().max() <= 0.25  # 1 / √16


def test_alibi_takes_slope_times_distance_from_each_score():
    torch.manual_seed(0)
    q, k = (torch.randn(1, 8, 5, 2, dtype=torch.float64) for _ in range(2))
    scores = LinearBiasAttention(16, 8).double().scores(q[:, :, 2:], k)
    for h, t, s in [(0, 0, 0), (0, 2, 1), (3, 1, 0), (7, 2, 2)]:  # with 8 heads: slopes 1/2, 1/4, … 1/256
        expected = float(q[0, h, t + 2] @ k[0, h, s]) / 2**0.5 - 0.5 ** (h + 1) * (t + 2 - s)
        assert scores[0, h, t, s].item() == pytest.approx(expected, abs=1e-12)
