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
    state. Both take any number of streams. `torch.onnx.export(program)` makes ONNX files of them. MC-RNN counts its
    steps: where torch runs the second program, give it that part of the state as `int(count)`.

    Args:
        model: a backbone, or a model of tokens or sequences around one. Transformer-XL and the character Transformer
            are refused: their state changes its form at the end of a segment, which one program cannot express.
        x: an example of one position of at least two streams, (B, D) or, for tokens, (B,).
    """
    step, examples, programs = Step(model), list[tuple[Any, ...]](), list[ExportedProgram]()
    with evaluating(step):
        for rows in (x[[0, 1]], x[[0, 1, 0]]):
            state = None
            for _ in rows:
                state = cast(Streaming, model).step(rows, state)[1]
            examples.append((rows, state))
        for parts in (1, 2):
            sizes = AdditionalInputs()  # leaves open the sizes in which the two examples differ
            sizes.add(examples[1][:parts])
            programs.append(export(step, examples[0][:parts], dynamic_shapes=cast(Any, sizes)))
    return programs[0], programs[1]
