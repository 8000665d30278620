"""Cell arrays of numbers out of MATLAB files, version 5 to 7: no more is reserved than the file holds.

scipy's `loadmat` believes what a file claims: one of 184 bytes may reserve 16 GB, one of nested cells end the process.
MathWorks, MAT-File Format (2016), chapter 1.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Cell = list[NDArray[np.generic]]
LARGEST = 2**24  # bytes of a file; the largest of the data sets' has 0.9 million
UNPACKED = 2**27  # bytes of what is in it; of the data sets' 35 million at most
HEADER = 128
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
MATRIX, COMPRESSED = 14, 15
CELL, NUMERIC, COMPLEX = 1, range(6, 16), 0x0800


def read_cells(path: Path) -> dict[str, Cell]:
    """Every cell array of a file by its name: the real matrices in it, in MATLAB's order. All else is left out.

    Raises:
        ValueError: if the file is no MATLAB file of version 5 to 7, is damaged or is too large.
    """
    if path.stat().st_size > LARGEST:
        raise ValueError(f"expected at most {LARGEST} bytes, got {path.stat().st_size}")
    content = memoryview(path.read_bytes())
    mark = bytes(content[HEADER - 2 : HEADER])
    if mark not in (b"IM", b"MI"):
        raise ValueError("no MATLAB file of version 5 to 7")
    order = "<" if mark == b"IM" else ">"
    try:
        return dict(_cell_arrays(content[HEADER:], order))
    except (struct.error, zlib.error) as error:
        raise ValueError(f"damaged: {error}") from None


def _cell_arrays(content: memoryview, order: str) -> Iterator[tuple[str, Cell]]:
    left = UNPACKED
    for kind, data in _elements(content, order):
        if kind == COMPRESSED:
            unpacked = zlib.decompressobj().decompress(data, left + 1)
            left -= len(unpacked)
            if left < 0:
                raise ValueError(f"expected at most {UNPACKED} bytes in it, it has more")
            ((kind, data),) = _elements(memoryview(unpacked), order)
        if kind == MATRIX:
            flags, _, name, *parts = _elements(data, order)
            if _flags(flags, order) & 0xFF == CELL:
                yield bytes(name[1]).decode("ascii", "replace"), [_matrix(*part, order) for part in parts]


def _matrix(kind: int, data: memoryview, order: str) -> NDArray[np.generic]:
    """A real matrix; what is no such thing is refused, a cell inside a cell, too."""
    if kind != MATRIX:
        raise ValueError(f"damaged: expected a matrix in a cell, got type {kind}")
    flags, dims, _, *parts = _elements(data, order)
    found = _flags(flags, order)
    if found & 0xFF not in NUMERIC or found & COMPLEX or len(parts) != 1 or parts[0][0] not in NUMBERS:
        raise ValueError("expected real matrices in its cells, got something else")
    shape = np.frombuffer(dims[1], f"{order}i4").tolist()
    numbers = np.frombuffer(parts[0][1], order + NUMBERS[parts[0][0]])
    if any(size < 0 for size in shape) or int(np.prod(shape, dtype=object)) != len(numbers):
        raise ValueError(f"damaged: a matrix claims the shape {tuple(shape)} and has {len(numbers)} numbers")
    return numbers.reshape(shape, order="F")


def _flags(element: tuple[int, memoryview], order: str) -> int:
    flags: int = struct.unpack_from(f"{order}I", element[1])[0]
    return flags


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Type and data of each element; those up to 4 bytes lie in the tag itself, others begin at a multiple of 8."""
    at = 0
    while at < len(content):
        kind, size = struct.unpack_from(f"{order}II", content, at)
        if kind >> 16:  # small: the size is in the upper half of the type
            kind, size, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            start = at + 8
            end = start + size if kind == COMPRESSED else start + size + -size % 8
        if start + size > min(len(content), end):
            raise ValueError("damaged: it ends inside an element")
        yield kind, content[start : start + size]
        at = end
