"""Exercises of notebook 02: windows, LocalRNN with and without pads, and how far back a stack of LocalRNNs looks.

Wang et al. (2019), R-Transformer, §3.1.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from rtx.lab.exercises.exercise import bug, exercise


# with M = 1 there is nothing before the sequence, and a slice [:-0] is empty
@exercise(lambda: [(torch.randn(B, T, D), M) for B, T, D, M in ((2, 6, 3, 4), (1, 5, 2, 5), (2, 4, 3, 1))])
@bug("there are only T - M + 1 windows: put M - 1 zeros before the sequence", {"window - 1, 0": "0, 0"})
@bug("the zeros are after the sequence, so your windows read the future", {"window - 1, 0": "0, window - 1"})
@bug("windows centred on t read the future: zeros go in front", {"window - 1, 0": "window // 2, (window - 1) // 2"})
@bug("the order is reversed: a window starts with its oldest position", {".mT": ".mT.flip(2)"})
@bug("positions and numbers are mixed: use `.mT`, not a reshape", {".mT": ".flatten(2).unflatten(2, (window, -1))"})
def windows(x: Tensor, window: int) -> Tensor:
    """There is one window per position. Each ends at its own position, and none reads the future."""
    return pad(x, (0, 0, window - 1, 0)).unfold(1, window, 1).mT


def _with_gru() -> list[tuple[nn.GRU, Tensor, int]]:
    """Return a GRU, sequences and a window. The biases are large, so that pads matter."""
    cases = []
    for B, T, D, M in ((2, 7, 3, 4), (3, 5, 2, 2), (2, 4, 3, 1)):
        gru = nn.GRU(D, D, batch_first=True).requires_grad_(False)
        for bias in (one for one in gru.parameters() if one.ndim == 1):
            nn.init.uniform_(bias, -1, 1)
        cases.append((gru, torch.randn(B, T, D), M))
    return cases


@exercise(_with_gru)
@bug(
    "your first windows still read pads",
    {"x[:, max(0, end - window) : end]": "pad(x, (0, 0, window, 0))[:, end : end + window]"},
)
@bug("this is the whole RNN: an output must depend on its window only", lambda gru, x, window: gru(x)[0])
@bug("the first M - 1 outputs are zeros: their windows do have positions to read", {"-1]": "-1] * (end >= window)"})
def without_pads(gru: nn.GRU, x: Tensor, window: int) -> Tensor:
    """A cut window is the start of the sequence, so its output is that of the plain RNN."""
    ends = range(1, x.shape[1] + 1)
    return torch.stack([gru(x[:, max(0, end - window) : end])[0][:, -1] for end in ends], 1)


@exercise(_with_gru)
@bug("this is the whole RNN: an output must depend on its window only", lambda gru, x, window: gru(x)[0])
@bug("a window's last state is wanted; you took its first", {"[:, -1]": "[:, 0]"})
@bug(
    "each window must start from a zero state; yours starts with the state of the window before",
    {"flatten(0, 1))[0][:, -1].unflatten(0, x.shape[:2])": "flatten(1, 2))[0][:, window - 1 :: window]"},
)
@bug("all M states of each window are here: return only the last, (B, T, D)", {"[:, -1]": ""})
@bug("your first windows skip the pads; the GRU reads them, and its biases act", without_pads.solution)
def local_rnn(gru: nn.GRU, x: Tensor, window: int) -> Tensor:
    """The same GRU reads each window from a zero state, and its last state is the output."""
    return gru(windows.solution(x, window).flatten(0, 1))[0][:, -1].unflatten(0, x.shape[:2])


@exercise(lambda: [(1, 4), (2, 4), (3, 7), (4, 1)])
@bug("a layer adds M - 1 new positions, not M: it shares one with the layer below", lambda L, M: L * M)
@bug("the layers' windows add up, they do not multiply", lambda L, M: M**L)
@bug("the output's own position is missing", {" + 1": ""})
def stacked_reach(layers: int, window: int) -> int:
    """Each layer adds M - 1 positions."""
    return layers * (window - 1) + 1
