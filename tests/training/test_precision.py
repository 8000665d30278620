"""Float32 in cuDNN."""

import pytest
import torch
from lightning.pytorch.callbacks import Callback

from rtx.evidence.record import train
from rtx.training.precision import float32_cudnn
from rtx.training.sweep import Sweep

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


def test_a_run_and_a_run_of_a_sweep_train_validate_and_test_without_tf32(recipe, tmp_path):
    class Flags(Callback):
        def on_train_batch_start(self, *_, **__):
            seen.append(cudnn.allow_tf32)

        on_validation_batch_start = on_test_batch_start = on_train_batch_start

    seen: list[bool] = []
    how = {"callbacks": [Flags()], "accelerator": "cpu", "enable_progress_bar": False}
    train(recipe.plan("gru"), epochs=1, runs=tmp_path / "one", results=tmp_path, **how)
    Sweep(recipe, "gru", {"learning_rate": [1e-2]}, epochs=1, runs=tmp_path).run(**how)
    assert len(seen) == (4 + 1 + 1) + (4 + 1) and not any(seen)  # batches of training, validation and test
    assert cudnn.allow_tf32


def test_a_users_setting_for_one_kind_of_layer_stays():
    before, cudnn.rnn.fp32_precision = cudnn.rnn.fp32_precision, "ieee"
    try:
        with float32_cudnn():
            assert (cudnn.rnn.fp32_precision, cudnn.conv.fp32_precision) == ("ieee", "tf32")
    finally:
        cudnn.rnn.fp32_precision = before
    assert cudnn.allow_tf32
