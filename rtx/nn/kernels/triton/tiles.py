"""What LocalRNN's kernels share: the tiles that a program holds, and how it fills and empties them.

A tile is an array of registers that all threads of a program hold together. Its sides are powers of two: Triton
knows no others. A width D that is none is covered by one tile, or by two of 128 and at most 32 columns, beside one
another; SIZES are their widths, and a mask keeps what lies beyond D at zero. Zeros stay zeros in every product.
"""

import triton
import triton.language as tl


@triton.jit
def columns(p: tl.constexpr, SIZES: tl.constexpr) -> tl.tensor:
    """The columns of part p, (1, C): 0 … 127, and 128 … 159, say."""
    return (p * SIZES[0] + tl.arange(0, SIZES[p]))[None, :]


@triton.jit
def zero_tile(ROWS: tl.constexpr, COLUMNS: tl.constexpr) -> tl.tensor:
    """One tile of zeros."""
    return tl.zeros((ROWS, COLUMNS), tl.float32)


@triton.jit
def zero_state(ROWS: tl.constexpr, SIZES: tl.constexpr) -> tl.tuple:
    """A state of zeros: a tile for each part of its columns."""
    found: tl.tuple = ()
    for p in tl.static_range(len(SIZES)):
        found = found + (zero_tile(ROWS, SIZES[p]),)
    return found


@triton.jit
def load(
    place: tl.tensor, rows: tl.tensor, real: tl.tensor, p: tl.constexpr, D: tl.constexpr, SIZES: tl.constexpr
) -> tl.tensor:
    """Part p of the D numbers that begin `rows` behind `place`, in float32; zeros in rows that are not `real`."""
    column = columns(p, SIZES)
    return tl.load(place + (rows[:, None] + column), mask=real[:, None] & (column < D), other=0.0).to(tl.float32)


@triton.jit
def store(
    place: tl.tensor,
    tile: tl.tensor,
    rows: tl.tensor,
    real: tl.tensor,
    p: tl.constexpr,
    D: tl.constexpr,
    SIZES: tl.constexpr,
) -> None:
    """The other way round, in the dtype that is there."""
    column = columns(p, SIZES)
    tl.store(place + (rows[:, None] + column), tile.to(place.dtype.element_ty), mask=real[:, None] & (column < D))


@triton.jit
def load_gates(
    place: tl.tensor,
    rows: tl.tensor,
    real: tl.tensor,
    p: tl.constexpr,
    D: tl.constexpr,
    GATES: tl.constexpr,
    SIZES: tl.constexpr,
) -> tl.tuple:
    """Part p of so many gates, which stand beside one another, D columns each."""
    found: tl.tuple = ()
    for g in tl.static_range(GATES):
        found = found + (load(place + g * D, rows, real, p, D, SIZES),)
    return found


@triton.jit
def load_weights(
    w_hh: tl.tensor, D: tl.constexpr, GATES: tl.constexpr, SIZES: tl.constexpr, TURN: tl.constexpr
) -> tl.tuple:
    """Every gate's W (D, D), in tiles that map the columns k of a state to the columns p of a gate; or back, if TURN.

    They are read before the loop over the window. As its products have them on their right-hand side, the compiler
    puts them in shared memory, where they stay for all M steps. Tile (g, p, k) is number (g P + p) P + k, of P parts.
    """
    tiles: tl.tuple = ()
    for g in tl.static_range(GATES):
        for p in tl.static_range(len(SIZES)):
            for k in tl.static_range(len(SIZES)):
                row, column = columns(p, SIZES).trans(), columns(k, SIZES)
                w = tl.load(w_hh + (g * D + row) * D + column, mask=(row < D) & (column < D), other=0.0)
                tiles = tiles + (w if TURN else w.trans(),)
    return tiles


@triton.jit
def recurrent_product(
    h: tl.tuple, weights: tl.tuple, g: tl.constexpr, p: tl.constexpr, SIZES: tl.constexpr, PRECISION: tl.constexpr
) -> tl.tensor:
    """Part p of W_g h by the tensor cores, which add up in float32."""
    P: tl.constexpr = len(SIZES)
    found = zero_tile(h[0].shape[0], SIZES[p])
    for k in tl.static_range(P):
        w = weights[(g * P + p) * P + k]
        found = tl.dot(h[k].to(w.dtype), w, found, input_precision=PRECISION)
    return found
