"""A model's step as programs for other runtimes, such as onnxruntime, that read a stream."""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.export import AdditionalInputs, ExportedProgram, export
from torch.utils._pytree import tree_map_only

from rtx.nn.mode import evaluating
from rtx.nn.streaming import Streaming


class Step(nn.Module):
    """A module whose `forward` is the `step` of a model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Read one position; return its output and the next state."""
        y, state = cast(Streaming, self.model).step(x, state)
        return y, tree_map_only(int, torch.tensor, state)  # ONNX has no constant numbers as outputs


def export_step(model: nn.Module, x: Tensor) -> tuple[ExportedProgram, ExportedProgram]:
    """Return the first step and every later step of a stream as programs, in evaluation mode.

    The first program maps `x` to the output and the state. The second one maps (x, state) to the output and the next
    state. Both take any number of streams. `torch.onnx.export(program)` makes ONNX files of them.

    Args:
        model: a backbone, or a model of tokens or sequences around one. Transformer-XL and the character Transformer
            are refused: their state changes its form at the end of a segment, which one program cannot express.
        x: an example of one position of at least two streams, (B, D) or, for tokens, (B,).
    """
    step = Step(model)
    with evaluating(step):
        one, two = (_example(model, rows) for rows in (x[[0, 1]], x[[0, 1, 0]]))
        return _exported(step, one[:1], two[:1]), _exported(step, one, two)


def _example(model: nn.Module, x: Tensor) -> tuple[Tensor, Any]:
    """Return `x` and the state after as many steps as there are streams."""
    state = None
    for _ in x:
        state = cast(Streaming, model).step(x, state)[1]
    return x, state


def _exported(step: Step, inputs: tuple[Any, ...], others: tuple[Any, ...]) -> ExportedProgram:
    """Return the program for `inputs`. It leaves open the sizes in which `others` differ."""
    both = AdditionalInputs()
    both.add(others)
    return export(step, inputs, dynamic_shapes=cast(Any, both))
