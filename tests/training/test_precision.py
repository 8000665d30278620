"""The names of precisions, and float32 in cuDNN."""

import pytest
import torch

from rtx.training.precision import PRECISIONS, float32_cudnn, parse_precision

cudnn = torch.backends.cudnn


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("32", "32-true"),
        ("16", "16-mixed"),
        ("bf16", "bf16-mixed"),
        ("64", "64-true"),
        *((name, name) for name in PRECISIONS),
    ],
)
def test_a_precision_has_one_name(typed, name):
    assert parse_precision(typed) == name


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="^precision: .*bf16-mixd"):
        parse_precision("bf16-mixd")


def test_cudnn_does_not_round_to_tf32_inside_the_block():
    """By default torch rounds in cuDNN but not in matrix products."""
    assert cudnn.allow_tf32
    with pytest.raises(ZeroDivisionError), float32_cudnn():
        with float32_cudnn():
            assert not cudnn.allow_tf32
        assert not cudnn.allow_tf32
        raise ZeroDivisionError
    assert cudnn.allow_tf32


def test_a_users_setting_for_one_kind_of_layer_stays():
    before, cudnn.rnn.fp32_precision = cudnn.rnn.fp32_precision, "ieee"
    try:
        with float32_cudnn():
            assert (cudnn.rnn.fp32_precision, cudnn.conv.fp32_precision) == ("ieee", "tf32")
    finally:
        cudnn.rnn.fp32_precision = before
    assert cudnn.allow_tf32
