"""The setting for float32 products: taken only where it is as exact and faster, and put back."""

import logging
import subprocess
import sys

import pytest
import torch

from rtx.nn.kernels.precision import float32_cudnn, product_error
from rtx.nn.kernels.triton.launch import precision
from rtx.training.compiling import fast_products


def test_the_error_is_that_of_float32_and_the_setting_is_put_back():
    before = torch.get_float32_matmul_precision()
    assert 1e-8 < product_error("highest") < 1e-5
    assert torch.get_float32_matmul_precision() == before


def test_within_fast_products_a_product_is_as_exact_as_before():
    """On this machine, whichever setting it takes."""
    before = torch.get_float32_matmul_precision()
    with pytest.raises(ZeroDivisionError), fast_products(True):
        assert product_error(torch.get_float32_matmul_precision()) < 1e-5
        raise ZeroDivisionError
    assert torch.get_float32_matmul_precision() == before


def test_tritons_products_are_as_exact_as_torchs_setting_asks_for():
    before = torch.get_float32_matmul_precision()
    found = []
    for setting in ("highest", "high"):
        torch.set_float32_matmul_precision(setting)
        found.append(precision())
    torch.set_float32_matmul_precision(before)
    assert found == ["tf32x3", "tf32"]


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="torch 2.9 brought it")
def test_so_they_are_where_the_setting_is_that_of_the_device():
    """torch itself refuses to tell the older setting then."""
    products = torch.backends.cuda.matmul
    before, found = products.fp32_precision, []
    for setting in ("tf32", "ieee"):
        products.fp32_precision = setting
        found.append(precision())
    products.fp32_precision = before
    assert found == ["tf32", "tf32x3"]


@pytest.fixture
def tf32_by_device():
    products = torch.backends.cuda.matmul
    if not hasattr(products, "fp32_precision"):
        pytest.skip("torch 2.9 brought it")
    before, products.fp32_precision = products.fp32_precision, "tf32"
    yield products
    products.fp32_precision = before


def test_a_setting_of_a_device_stays_and_a_run_goes_on(tf32_by_device, caplog):
    caplog.set_level(logging.INFO)
    with pytest.raises(RuntimeError):
        torch.get_float32_matmul_precision()
    for wanted in (False, True):
        with fast_products(wanted):
            assert tf32_by_device.fp32_precision == "tf32"
    assert tf32_by_device.fp32_precision == "tf32"
    assert [message.split(":")[0] for message in caplog.messages] == ["--fast-matmul"]


def test_cudnn_does_not_round_where_products_do_not():
    """torch's own setting of cuDNN rounds, that of products does not."""
    cudnn = torch.backends.cudnn
    assert cudnn.allow_tf32
    with pytest.raises(ZeroDivisionError), float32_cudnn():
        assert not cudnn.allow_tf32
        with float32_cudnn():
            assert not cudnn.allow_tf32
        assert not cudnn.allow_tf32
        raise ZeroDivisionError
    assert cudnn.allow_tf32


def test_cudnn_may_round_where_products_may():
    torch.set_float32_matmul_precision("high")
    try:
        with float32_cudnn():
            assert torch.backends.cudnn.allow_tf32
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.skipif(not hasattr(torch.backends.cudnn, "rnn"), reason="torch 2.9 brought it")
def test_a_setting_of_cudnns_layers_stays():
    rnn = torch.backends.cudnn.rnn
    before, rnn.fp32_precision = rnn.fp32_precision, "ieee"
    try:
        with float32_cudnn():
            assert (rnn.fp32_precision, torch.backends.cudnn.conv.fp32_precision) == ("ieee", "tf32")
    finally:
        rnn.fp32_precision = before
    assert torch.backends.cudnn.allow_tf32


def test_importing_rtx_leaves_the_setting():
    code = "import torch, rtx.nn.kernels.precision; print(torch.get_float32_matmul_precision())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "highest"
