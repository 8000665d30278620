"""Exercises of notebook 02: windows, LocalRNN with and without pads, and how far back a stack of LocalRNNs looks.

Wang et al. (2019), R-Transformer, §3.1.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from rtx.lab.exercises.exercise import Exercise
from rtx.lab.seeded import seeded


def _cut(x: Tensor, window: int, before: int, after: int = 0) -> Tensor:
    """Return every window of x (B, T, D), after zero vectors were put before and after it: (B, number, M, D)."""
    return pad(x, (0, 0, before, after)).unfold(1, window, 1).mT


def _windows(x: Tensor, window: int) -> Tensor:
    return _cut(x, window, before=window - 1)


def _sequences() -> list[tuple[Tensor, int]]:
    """Return three cases. With M = 1 there is nothing before the sequence, and a slice [:-0] is empty."""
    draw = torch.Generator().manual_seed(0)
    return [(torch.randn(B, T, D, generator=draw), M) for B, T, D, M in ((2, 6, 3, 4), (1, 5, 2, 5), (2, 4, 3, 1))]


windows = Exercise(
    cases=_sequences,
    solution=_windows,
    bugs={
        "there are only T - M + 1 windows: put M - 1 zeros before the sequence": lambda x, M: _cut(x, M, before=0),
        "there are T + 1 windows: put M - 1 zero vectors before the sequence, not M": lambda x, M: _cut(x, M, before=M),
        "the zeros are after the sequence, so your windows read the future": (
            lambda x, M: _cut(x, M, before=0, after=M - 1)
        ),
        "windows centred on t read the future: put all zeros in front": (
            lambda x, M: _cut(x, M, before=M // 2, after=M - 1 - M // 2)
        ),
        "`roll` moves the end of the sequence into the first windows, so they read the future": (
            lambda x, M: torch.stack([x.roll(M - 1 - j, 1) for j in range(M)], 2)
        ),
        "the order is reversed: a window starts with its oldest position": lambda x, M: _windows(x, M).flip(2),
        "positions and numbers are mixed: a reshape does not swap two axes, `.mT` does": (
            lambda x, M: _windows(x, M).mT.reshape(*x.shape[:2], M, x.shape[2])
        ),
    },
    praise="one window per position, each ends at its own position, and none reads the future",
)


def _with_gru() -> list[tuple[nn.GRU, Tensor, int]]:
    """Return a GRU, sequences and a window. The biases are large, so that pads matter."""
    cases = []
    with seeded(0):
        for B, T, D, M in ((2, 7, 3, 4), (3, 5, 2, 2), (2, 4, 3, 1)):
            gru = nn.GRU(D, D, batch_first=True).requires_grad_(False)
            for name, one in gru.named_parameters():
                if name.startswith("bias"):
                    nn.init.uniform_(one, -1, 1)
            cases.append((gru, torch.randn(B, T, D), M))
    return cases


def _states(gru: nn.GRU, x: Tensor, window: int) -> Tensor:
    """Return the states after each of the M steps of each window, (B, T, M, D)."""
    return gru(_windows(x, window).flatten(0, 1))[0].unflatten(0, x.shape[:2])


def _local_rnn(gru: nn.GRU, x: Tensor, window: int) -> Tensor:
    return _states(gru, x, window)[:, :, -1]


def _whole(gru: nn.GRU, x: Tensor, window: int) -> Tensor:
    return gru(x)[0]


def _state_kept(gru: nn.GRU, x: Tensor, window: int) -> Tensor:
    """Start each window from the last state of the window before."""
    return gru(_windows(x, window).flatten(1, 2))[0][:, window - 1 :: window]


def _without_pads(gru: nn.GRU, x: Tensor, window: int) -> Tensor:
    ends = range(1, x.shape[1] + 1)
    return torch.stack([gru(x[:, max(0, end - window) : end])[0][:, -1] for end in ends], 1)


local_rnn = Exercise(
    cases=_with_gru,
    solution=_local_rnn,
    bugs={
        "this is the RNN over the whole sequence: each output must depend on its own window only": _whole,
        "a window's last state is wanted; you took its first": lambda *given: _states(*given)[:, :, 0],
        "each window must start from a zero state; yours starts with the state of the window before": _state_kept,
        "all M states of each window are here: return only the last, (B, T, D)": _states,
        "your first windows skip the pads; the GRU reads them, and its biases act": _without_pads,
    },
    praise="the same GRU reads each window from a zero state, and its last state is the output",
)


without_pads = Exercise(
    cases=_with_gru,
    solution=_without_pads,
    bugs={
        "your first windows still read pads": _local_rnn,
        "this is the RNN over the whole sequence: each output must depend on its own window only": _whole,
        "the first M - 1 outputs are zeros: their windows do have positions to read": lambda gru, x, M: pad(
            _local_rnn(gru, x, M)[:, M - 1 :], (0, 0, M - 1, 0)
        ),
    },
    praise="a cut window is the start of the sequence, so its output is that of the plain RNN",
)

stacked_reach = Exercise(
    cases=lambda: [(1, 4), (2, 4), (3, 7), (4, 1)],
    solution=lambda layers, window: layers * (window - 1) + 1,
    bugs={
        "a layer adds M - 1 new positions, not M: it shares one with the layer below": lambda L, M: L * M,
        "the layers' windows add up, they do not multiply": lambda L, M: M**L,
        "the output's own position is missing": lambda L, M: L * (M - 1),
        "a layer adds M - 1 positions, not M": lambda L, M: L * M + 1,
    },
    praise="each layer adds M - 1 positions",
)
