"""How LocalRNN's kernels divide the work, and what they need of the device: known without Triton."""

from typing import NamedTuple

WIDEST = 160
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
KEPT = {"rnn": 1, "gru": 4, "lstm": 4}
"""Numbers that a step keeps for the way back, for each of the state's; see `cells`."""


class Plan(NamedTuple):
    """How a width is worked on.

    Args:
        sizes: widths of the tiles that lie beside one another, powers of two, their sum at least D.
        rows: windows of a tile. The tensor cores take 16 at least; more share one copy of the weights, and take more
            registers, of which there are 255 for each thread.
        warps: of 32 threads each, that work on one tile.
    """

    sizes: tuple[int, ...]
    rows: int
    warps: int


def plan(d_model: int) -> Plan:
    """The plan for a width. Compiled for compute capability 9.0, none of them runs out of registers by much."""
    if d_model > 128:
        return Plan((128, 16 if d_model <= 144 else 32), 16, 8)
    width = max(16, 1 << (d_model - 1).bit_length())
    return Plan((width,), 32, 4 if width <= 32 else 8)


def shared_bytes(d_model: int, cell: str, itemsize: int) -> int:
    """A bound of the shared memory that a program takes: the weights, and tiles on their way between layouts.

    A float32 weight is there as two numbers that the tensor cores take, its leading digits and the rest.
    """
    sizes, rows, _ = plan(d_model)
    width = sum(sizes)
    weights = GATES[cell] * width * width * itemsize * (2 if itemsize == 4 else 1)
    return weights + (KEPT[cell] + 1) * rows * width * itemsize


MOST_INPUTS, MOST_UNITS = 31, 128  # F and D of feed-forward attention, whose weights are one tile


class PoolingPlan(NamedTuple):
    """How feed-forward attention is worked on.

    Args:
        inputs, units: of a tile of weights: powers of two, with room for F + 1, a bias, and for D.
        rows: steps of a tile.
        span: steps that one program sums over.
        warps: of 32 threads each.
    """

    inputs: int
    units: int
    rows: int
    span: int
    warps: int


def pooling_plan(inputs: int, d_hidden: int) -> PoolingPlan:
    """The plan for sizes."""
    units = max(16, 1 << (d_hidden - 1).bit_length())
    return PoolingPlan(max(16, 1 << inputs.bit_length()), units, 32, 512, 4)
