"""Digits and MNIST: splits, pixels, labels, and idx files that are not what they should be."""

import gzip
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from rtx.tasks.images import digits, mnist, permutation, read_idx, shrunk

# how many images of 0 … 9 the published training and test files hold
TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.fixture(scope="module")
def read():
    """Return `mnist`, which reads each version of the images once."""
    return cache(mnist)


def labels_of(task, split: str) -> np.ndarray:
    return np.array([int(e.target) for e in task.split(split)[:]])


def test_digits_are_split_by_class_and_none_is_lost():
    task = digits()
    whole = load_digits()
    rows = {
        split: torch.stack([e.inputs[:, 0] for e in task.split(split)]) for split in ("train", "validation", "test")
    }
    assert {split: len(r) for split, r in rows.items()} == {"train": 1439, "validation": 179, "test": 179}
    together = torch.cat(list(rows.values()))
    expected = torch.tensor(whole.data / 16, dtype=torch.float32)
    torch.testing.assert_close(together.sort(0).values, expected.sort(0).values)
    assert together.min() == 0 and together.max() == 1
    for split, share in (("train", 0.8), ("validation", 0.1), ("test", 0.1)):
        counts = np.bincount(labels_of(task, split), minlength=10)
        assert np.abs(counts / np.bincount(whole.target) - share).max() < 0.01


def test_mnist_has_the_standard_test_set_and_validation_comes_from_training(real_data, read):
    task = read()
    counts = {s: np.bincount(labels_of(task, s), minlength=10) for s in ("train", "validation", "test")}
    assert {s: int(c.sum()) for s, c in counts.items()} == {
        "train": 55_000,
        "validation": 5000,
        "test": 10_000,
    }
    assert (counts["train"] + counts["validation"]).tolist() == TRAIN
    assert counts["test"].tolist() == TEST
    assert len(task.sha256().split("+")) == 4


def test_mnist_is_normalised_by_the_training_images_mean_and_deviation(real_data, read):
    pixels = read_idx(real_data / "mnist" / "train-images-idx3-ubyte.gz")
    assert pixels.mean() / 255 == pytest.approx(0.1307, abs=5e-5)
    assert pixels.std() / 255 == pytest.approx(0.3081, abs=5e-5)
    inputs = read().split("test")[0].inputs
    assert inputs.shape == (784, 1) and inputs.min() == pytest.approx(-0.1307 / 0.3081)
    assert inputs.max() <= (1 - 0.1307) / 0.3081 + 1e-6


def test_a_smaller_image_holds_the_mean_of_each_square():
    images = np.arange(2 * 16, dtype=np.uint8).reshape(2, 4, 4)
    # rows 0 1 2 3 / 4 5 6 7 / …: the mean of 0, 1, 4 and 5 is 2.5, which rounds to the even number
    np.testing.assert_array_equal(shrunk(images, 2), [[2, 4, 10, 12], [18, 20, 26, 28]])
    np.testing.assert_array_equal(shrunk(images, 4), images.reshape(2, 16))


def test_permuted_mnist_reads_the_same_pixels_in_one_fixed_order(real_data, read):
    plain, permuted = read(), read(permuted=True)
    order = permutation(784)
    assert sorted(order) == list(range(784)) and (order != np.arange(784)).mean() > 0.9
    for split in ("train", "validation", "test"):
        for index in (0, 1000, -1):
            a, b = (task.split(split)[index] for task in (plain, permuted))
            torch.testing.assert_close(b.inputs, a.inputs[torch.from_numpy(order)], rtol=0, atol=0)
            assert a.target == b.target
    assert (plain.name, permuted.name) == ("mnist", "permuted-mnist")


def test_the_baseline_is_the_commonest_class(real_data, read):
    assert read().baseline() == read(permuted=True).baseline() == 11.35  # the 1,135 ones among 10,000
    counts = np.bincount(labels_of(digits(), "test"))
    assert digits().baseline() == pytest.approx(100 * counts.max() / 179)


def test_permuted_digits_are_the_same_digits_in_one_fixed_order():
    order = torch.from_numpy(permutation(64))
    for plain, permuted in zip(digits().split("test"), digits(permuted=True).split("test"), strict=True):
        assert torch.equal(permuted.inputs, plain.inputs[order]) and permuted.target == plain.target
    assert digits(permuted=True).name == "permuted-digits" and digits(permuted=True).sha256() != digits().sha256()


def test_an_idx_file_is_read_as_written(tmp_path):
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    header = bytes((0, 0, 8, 3)) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    (tmp_path / "images.gz").write_bytes(gzip.compress(header + array.tobytes()))
    np.testing.assert_array_equal(read_idx(tmp_path / "images.gz"), array)
