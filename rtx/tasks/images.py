"""Handwritten digits read one pixel at a time: the class is told after the last pixel.

Digits: the 8 × 8 images bundled with scikit-learn. MNIST: LeCun, Cortes & Burges, 28 × 28, normalised as in
the published code of TCN and R-Transformer (Section 4.1); permuted MNIST: Le, Jaitly & Hinton (2015).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rtx.nn.validate import check_flag, is_whole
from rtx.tasks import data
from rtx.tasks.classification import percent_commonest, percent_correct, summed_cross_entropy
from rtx.tasks.task import Example, Examples, Split, Task

Bytes = NDArray[np.uint8]

SEED = 0  # of the splits and of the permutation, which every run shares
MNIST_MEAN, MNIST_STD = 0.1307, 0.3081


class Images(NamedTuple):
    """Images as sequences of pixels (N, T), and their classes (N,)."""

    pixels: Bytes
    labels: Bytes


def digits(permuted: bool = False) -> Task:
    """Scikit-learn's digits: 64 pixels scaled to [0, 1]; about 80/10/10 % of each class per split.

    Args:
        permuted: as for `mnist`.

    Raises:
        ValueError: if `permuted` is not true or false.
    """
    check_flag("permuted", permuted)

    @cache
    def whole() -> Images:
        from sklearn.datasets import load_digits

        bunch = load_digits()  # pixels are whole numbers from 0 to 16
        pixels = bunch.data.astype(np.uint8)
        return Images(pixels[:, permutation(64)] if permuted else pixels, bunch.target.astype(np.uint8))

    def read() -> Mapping[Split, Images]:
        parts = stratified_split(whole().labels)
        return {split: Images(whole().pixels[part], whole().labels[part]) for split, part in parts.items()}

    name = "permuted-digits" if permuted else "digits"
    return _task(name, read, lambda: data.sha256_of_arrays(*whole()), mean=0.0, scale=16.0)


def mnist(permuted: bool = False, side: int = 28) -> Task:
    """MNIST: 784 pixels, normalised by mean 0.1307 and standard deviation 0.3081; the standard test images.

    The standard set has no validation images: 5,000 of the 60,000 training images, drawn once with a fixed
    seed, are held out for it.

    Args:
        permuted: whether the pixels of every image are read in one random order, drawn with a fixed seed.
        side: pixels along an edge, a divisor of 28: smaller images, each pixel the mean of a square, are shorter
            sequences; normalised by the same numbers.

    Raises:
        ValueError: if `side` does not divide 28, or `permuted` is not true or false.
    """
    check_flag("permuted", permuted)
    if not (is_whole(side) and side > 0 and 28 % side == 0):
        raise ValueError(f"side: expected a divisor of 28, such as 14, got {side!r}")

    def read() -> Mapping[Split, Images]:
        paths = data.fetch("mnist")
        train, test = (
            read_mnist(paths[f"{part}-images-idx3-ubyte.gz"], paths[f"{part}-labels-idx1-ubyte.gz"])
            for part in ("train", "t10k")
        )
        if side != 28:
            train, test = (Images(shrunk(part.pixels, side), part.labels) for part in (train, test))
        if permuted:
            order = permutation(train.pixels.shape[1])
            train, test = (Images(part.pixels[:, order], part.labels) for part in (train, test))
        shuffled = np.random.default_rng(SEED).permutation(len(train.labels))
        held_out, kept = np.sort(shuffled[:5000]), np.sort(shuffled[5000:])
        return {
            "train": Images(train.pixels[kept], train.labels[kept]),
            "validation": Images(train.pixels[held_out], train.labels[held_out]),
            "test": test,
        }

    name = ("permuted-mnist" if permuted else "mnist") + (f"-{side}" if side != 28 else "")
    return _task(name, read, lambda: data.sha256("mnist"), mean=255 * MNIST_MEAN, scale=255 * MNIST_STD)


def shrunk(pixels: Bytes, side: int) -> Bytes:
    """Square images (N, T) with `side` pixels along an edge, (N, side²): each the mean of a square, rounded."""
    edge = math.isqrt(pixels.shape[1])
    squares = pixels.reshape(-1, side, edge // side, side, edge // side)
    return np.rint(squares.mean((2, 4))).astype(np.uint8).reshape(-1, side * side)


def permutation(pixels: int) -> NDArray[np.int64]:
    """The fixed order in which permuted images are read."""
    return np.random.default_rng(SEED).permutation(pixels)


def stratified_split(labels: Bytes) -> dict[Split, NDArray[np.int64]]:
    """Indices of each split: a tenth of every class for test, a tenth for validation, the rest to train."""
    rng = np.random.default_rng(SEED)
    parts: dict[Split, list[NDArray[np.int64]]] = {"train": [], "validation": [], "test": []}
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        tenth = round(len(members) / 10)
        for split, part in zip(parts, np.split(members, [-2 * tenth, -tenth]), strict=True):
            parts[split].append(part)
    return {split: np.sort(np.concatenate(part)) for split, part in parts.items()}


def read_mnist(images: Path, labels: Path) -> Images:
    """The images (N, 784) and labels (N,) of two gzipped idx files.

    Raises:
        ValueError: if a file is no such file or is cut short, or their counts disagree.
    """
    pixels, classes = read_idx(images, 3), read_idx(labels, 1)
    if len(pixels) != len(classes):
        raise ValueError(f"{labels}: holds {len(classes)} labels, but {images} holds {len(pixels)} images")
    return Images(pixels.reshape(len(pixels), -1), classes)


def read_idx(path: Path, dimensions: int) -> Bytes:
    """The array in a gzipped idx file of unsigned bytes.

    Raises:
        ValueError: if it is not gzipped, cut short, or of another type, dimension or size than it should be.
    """
    content = data.unpacked(path)
    magic = bytes((0, 0, 8, dimensions))  # 8: unsigned bytes
    header = 4 + 4 * dimensions
    if content[:4] != magic or len(content) < header:
        raise ValueError(
            f"{path}: expected an idx file of {dimensions} dimensions, starting with {magic.hex(' ')}, "
            f"got {content[:4].hex(' ')}"
        )
    shape = np.frombuffer(content, ">u4", dimensions, offset=4).astype(int)
    if len(content) != header + shape.prod():
        raise ValueError(
            f"{path}: expected {' × '.join(map(str, shape))} bytes by its header, got {len(content) - header}"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _example(images: Images, mean: float, scale: float, index: int) -> Example:
    pixels = torch.from_numpy(images.pixels[index].astype(np.float32))
    return Example(((pixels - mean) / scale)[:, None], torch.tensor(int(images.labels[index])))


def _task(
    name: str,
    read: Callable[[], Mapping[Split, Images]],
    sha256: Callable[[], str],
    mean: float,
    scale: float,
) -> Task:
    splits = cache(read)  # read when a split is first asked for, and once

    def examples(split: Split) -> Sequence[Example]:
        images = splits()[split]
        return Examples(len(images.labels), partial(_example, images, mean, scale))

    return Task(
        name=name,
        inputs=1,
        outputs=10,
        per="sequence",
        examples=examples,
        loss=summed_cross_entropy,
        measured=lambda predictions, batch: (predictions, batch.targets),
        scorer=percent_correct,
        metric="accuracy (%)",
        best="max",
        sha256=sha256,
        baseline=lambda: percent_commonest(splits()["test"].labels.tolist()),
    )
