"""Multiply-adds: against sums by hand."""

import pytest

from rtx.tasks.costs import multiply_adds

T, D, F, K = 12, 8, 88, 88  # chorales: 88 notes in, 88 out


def attention(T, D):
    return 4 * T * D * D + T * T * D  # four projections; two products of T × T pairs, half of them masked


def feed_forward(T, D):
    return 2 * T * D * 4 * D


def gated(D):
    return 3 * 3 * D * D  # two layers to a width of 3 D, one back


@pytest.mark.parametrize(
    ("model", "sizes", "inside"),
    [
        ("gru", {"layers": 2}, 2 * T * 6 * D * D),
        ("lstm", {"layers": 1}, T * 8 * D * D),
        ("tcn", {"layers": 3, "kernel": 2}, 3 * 2 * T * 2 * D * D),
        ("transformer", {"layers": 2, "heads": 2}, 2 * (attention(T, D) + feed_forward(T, D))),
        # the projection once, and the recurrent product at each of the window's steps but the first
        (
            "r-transformer",
            {"layers": 1, "heads": 2, "window": 4, "cell": "gru"},
            attention(T, D) + feed_forward(T, D) + T * 3 * D * D * 4,
        ),
        # a matrix for the input and for each earlier state
        ("ho-rnn", {"layers": 1, "order": 3}, T * 4 * (1 + 3) * D * D),
        # three projections, a convolution of 4 steps, two gates in blocks, which no mask halves; each block's network
        ("griffin", {"layers": 2, "heads": 2, "window": 4}, 2 * T * (3 * D * D + 4 * D + D * D + gated(D))),
        # with queries and output, keys and values of one head, and T positions a query, half of them masked
        (
            "griffin",
            {"layers": 3, "heads": 2, "window": 4},
            T * (2 * (4 * D * D + 4 * D) + 3 * D * D + T * D + 3 * gated(D)),
        ),
        # one segment: beside attention's, the distances' own projection and their products with the queries
        (
            "transformer-xl",
            {"layers": 1, "heads": 2, "segment": T, "memory": 4},
            attention(T, D) + T * D * D + T * T * D // 2 + feed_forward(T, D),
        ),
    ],
)
def test_torch_counts_what_a_sum_by_hand_gives(model, sizes, inside):
    assert multiply_adds("chorales", model, T, d_model=D, **sizes) == inside + T * D * (F + K)


def test_a_sequence_has_one_prediction():
    once = multiply_adds("digits", "gru", T, d_model=D, layers=1)
    assert once == T * 6 * D * D + T * D + D * 10
