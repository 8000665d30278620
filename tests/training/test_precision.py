"""Float32 in cuDNN."""

import pytest
import torch

from rtx.training.precision import float32_cudnn

cudnn = torch.backends.cudnn


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
