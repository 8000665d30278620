"""Handwritten digits read one pixel at a time. The class is predicted after the last pixel.

Digits: the 8 × 8 images bundled with scikit-learn. MNIST: LeCun, Cortes & Burges, 28 × 28, normalised as in
the published code of TCN and R-Transformer (Section 4.1); permuted MNIST: Le, Jaitly & Hinton (2015).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rtx.nn.validate import check_flag, is_whole
from rtx.tasks import data
from rtx.tasks.losses import classification
from rtx.tasks.task import SPLITS, Example, Examples, Split, Task

Bytes = NDArray[np.uint8]
Images = tuple[Bytes, Bytes]  # sequences of pixels (N, T), and their classes (N,)

SEED = 0  # of the splits and of the permutation, which all runs share
HELD_OUT = 5000  # of MNIST's training images, for validation
MNIST_MEAN, MNIST_STD = 0.1307, 0.3081


def digits(permuted: bool = False) -> Task:
    """Scikit-learn's digits: 64 pixels scaled to [0, 1]; about 80/10/10 % of each class per split."""
    check_flag("permuted", permuted)

    @cache
    def whole() -> Images:
        from sklearn.datasets import load_digits

        bunch = load_digits()  # pixels are whole numbers from 0 to 16
        pixels = bunch.data.astype(np.uint8)
        return pixels[:, permutation(64)] if permuted else pixels, bunch.target.astype(np.uint8)

    def read() -> Mapping[Split, Images]:
        pixels, labels = whole()
        return {split: (pixels[part], labels[part]) for split, part in stratified_split(labels).items()}

    name = "permuted-digits" if permuted else "digits"
    return _task(name, read, lambda: data.sha256_of_arrays(*whole()), mean=0.0, scale=16.0)


def mnist(permuted: bool = False, side: int = 28) -> Task:
    """MNIST: 784 pixels, normalised by mean 0.1307 and standard deviation 0.3081; the standard test images.

    The standard set has no validation images. So 5,000 of the 60,000 training images, drawn once with a fixed seed, are
    held out for it. If `permuted`, the pixels of every image are read in one random order, drawn with a fixed seed.
    `side` is the number of pixels along an edge, a divisor of 28. A pixel of a smaller image is the mean of a square.
    """
    check_flag("permuted", permuted)
    if not (is_whole(side) and side > 0 and 28 % side == 0):
        raise ValueError(f"side: expected a divisor of 28, such as 14, got {side!r}")

    def read_part(images: Path, labels: Path) -> Images:
        pixels = shrunk(read_idx(images), side)
        return pixels[:, permutation(pixels.shape[1])] if permuted else pixels, read_idx(labels)

    def read() -> Mapping[Split, Images]:
        train_images, train_labels, *of_test = data.fetch("mnist").values()
        train, test = read_part(train_images, train_labels), read_part(*of_test)
        shuffled = np.random.default_rng(SEED).permutation(len(train[1]))
        parts = [np.sort(rows) for rows in np.split(shuffled, [HELD_OUT])]
        held_out, kept = ((train[0][rows], train[1][rows]) for rows in parts)
        return {"train": kept, "validation": held_out, "test": test}

    name = ("permuted-mnist" if permuted else "mnist") + (f"-{side}" if side != 28 else "")
    return _task(name, read, lambda: data.sha256("mnist"), mean=255 * MNIST_MEAN, scale=255 * MNIST_STD)


def shrunk(images: Bytes, side: int) -> Bytes:
    """Shrink square images (N, L, L) to (N, side²). Each new pixel is the mean of a square, rounded."""
    step = images.shape[1] // side
    squares = images.reshape(-1, side, step, side, step)
    return np.rint(squares.mean((2, 4))).astype(np.uint8).reshape(-1, side * side)


def permutation(pixels: int) -> NDArray[np.int64]:
    """Return the fixed order in which permuted images are read."""
    return np.random.default_rng(SEED).permutation(pixels)


def stratified_split(labels: Bytes) -> dict[Split, NDArray[np.int64]]:
    """Return the indices of each split: a tenth of every class for test, a tenth for validation, the rest to train."""
    rng = np.random.default_rng(SEED)
    parts: dict[Split, list[NDArray[np.int64]]] = {split: [] for split in SPLITS}
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        tenth = round(len(members) / 10)
        for split, part in zip(parts, np.split(members, [-2 * tenth, -tenth]), strict=True):
            parts[split].append(part)
    return {split: np.sort(np.concatenate(part)) for split, part in parts.items()}


def read_idx(path: Path) -> Bytes:
    """Return the array in an idx file of unsigned bytes, the format of MNIST."""
    content = data.unpacked(path)
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", dimensions, offset=4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def _task(
    name: str, read: Callable[[], Mapping[Split, Images]], sha256: Callable[[], str], mean: float, scale: float
) -> Task:
    splits = cache(read)  # reads once, when a split is first needed

    def examples(split: Split) -> Sequence[Example]:
        pixels, labels = splits()[split]

        def make(indices: list[int]) -> list[Example]:
            rows = (torch.from_numpy(pixels[indices].astype(np.float32)) - mean) / scale
            classes = torch.from_numpy(labels[indices].astype(np.int64))
            return [Example(row[:, None], label) for row, label in zip(rows, classes, strict=True)]

        return Examples(len(labels), make)

    return classification(name, 1, 10, examples, sha256)
