"""LocalRNN's operation: the last hidden state of a recurrent cell run over the window that ends at each position.

Wang et al. (2019), R-Transformer, Eq. 2-3.
"""

from typing import Any

from torch import Tensor

from rtx.nn import reference
from rtx.nn.ops.conditions import no_native_code, other_sizes
from rtx.nn.ops.dispatch import Implementation, Operation
from rtx.nn.ops.local_rnn.native import native_local_rnn
from rtx.nn.ops.local_rnn.torch import torch_local_rnn
from rtx.nn.recurrent import CELLS


def _triton(*arguments: Any) -> Tensor:
    from rtx.nn.ops.local_rnn.triton import triton_local_rnn  # needs Triton

    return triton_local_rnn(*arguments)


def _no_triton(*arguments: Any) -> str | None:
    from importlib.util import find_spec

    if find_spec("triton") is None:
        return 'it needs Triton: pip install ".[gpu]" in the folder of rtx'
    from rtx.nn.ops.local_rnn.triton import obstacle

    return obstacle(*arguments) or _other_sizes(*arguments)


def _not_native(*arguments: Any) -> str | None:
    if arguments[-1] == "rnn":
        return "it is written for GRU and LSTM, which the papers use"
    return no_native_code(*arguments) or _other_sizes(*arguments)


def _other_sizes(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> str | None:
    if window < 1:
        return f"it needs a window of at least 1, and this is {window}"
    D, G = x.shape[-1:], CELLS[cell].gates * x.shape[-1]
    w, b = (G, *D), (G,)
    return other_sizes(x=(x, (None, None, *D)), w_ih=(w_ih, w), w_hh=(w_hh, w), b_ih=(b_ih, b), b_hh=(b_hh, b))


local_rnn = Operation(
    "local_rnn",
    {
        "native": Implementation(native_local_rnn, _not_native),
        "torch": Implementation(torch_local_rnn),
        "triton": Implementation(_triton, _no_triton, opt_in=True),
        "reference": Implementation(reference.local_rnn, opt_in=True),
    },
)
"""`local_rnn(x, w_ih, w_hh, b_ih, b_hh, window, cell)`: (B, T, D) to (B, T, D).

The weights have the shapes and gate order of `torch.nn.RNN`, `GRU` or `LSTM`; `cell` is the name of one of these.
"""
