"""LocalRNN's operation: the last hidden state of a recurrent cell run over the window that ends at each position.

Wang et al. (2019), R-Transformer, Eq. 2-3.
"""

from typing import Any

from torch import Tensor

from rtx.nn import reference
from rtx.nn.ops.conditions import no_native_code
from rtx.nn.ops.dispatch import Implementation, Operation
from rtx.nn.ops.local_rnn.native import native_local_rnn
from rtx.nn.ops.local_rnn.torch import torch_local_rnn


def _triton(*arguments: Any) -> Tensor:
    from rtx.nn.ops.local_rnn.triton import triton_local_rnn  # needs Triton

    return triton_local_rnn(*arguments)


def _no_triton(*arguments: Any) -> str | None:
    from importlib.util import find_spec

    if find_spec("triton") is None:
        return 'it needs Triton: pip install ".[gpu]" in the folder of rtx'
    from rtx.nn.ops.local_rnn.triton import obstacle

    return obstacle(*arguments)


local_rnn = Operation(
    "local_rnn",
    {
        "native": Implementation(native_local_rnn, no_native_code),
        "torch": Implementation(torch_local_rnn),
        "triton": Implementation(_triton, _no_triton, opt_in=True),
        "reference": Implementation(reference.local_rnn, opt_in=True),
    },
)
"""`local_rnn(x, w_ih, w_hh, b_ih, b_hh, window, cell)`: (B, T, D) to (B, T, D).

The weights have the shapes and gate order of `torch.nn.RNN`, `GRU` or `LSTM`; `cell` is the name of one of these.
"""
