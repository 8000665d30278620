"""Recurrent layers and convolutions of cuDNN compute in float32 if torch's matrix products do."""

import pytest
import torch

from rtx.training.precision import float32_cudnn

cudnn = torch.backends.cudnn


def test_cudnn_does_not_round_to_tf32_inside_the_block():
    """By default torch rounds in cuDNN but not in products."""
    assert cudnn.allow_tf32
    with pytest.raises(ZeroDivisionError), float32_cudnn():
        with float32_cudnn():
            assert not cudnn.allow_tf32
        assert not cudnn.allow_tf32
        raise ZeroDivisionError
    assert cudnn.allow_tf32


def test_cudnn_may_round_if_products_may():
    torch.set_float32_matmul_precision("high")
    try:
        with float32_cudnn():
            assert cudnn.allow_tf32
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.skipif(not hasattr(cudnn, "rnn"), reason="torch has these settings from 2.9 on")
def test_a_users_setting_for_one_kind_of_layer_stays():
    before, cudnn.rnn.fp32_precision = cudnn.rnn.fp32_precision, "ieee"
    try:
        with float32_cudnn():
            assert (cudnn.rnn.fp32_precision, cudnn.conv.fp32_precision) == ("ieee", "tf32")
    finally:
        cudnn.rnn.fp32_precision = before
    assert cudnn.allow_tf32
