"""A model's step as programs for other runtimes, such as onnxruntime, that read a stream."""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.export import AdditionalInputs, ExportedProgram, export
from torch.utils._pytree import tree_leaves, tree_map_only

from rtx.models.backbone import Backbone
from rtx.nn.mode import evaluating


class Step(nn.Module):
    """A module whose `forward` is the `step` of a model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Read one position; return its output and the next state."""
        y, state = cast(Backbone, self.model).step(x, state)
        return y, tree_map_only(int, torch.tensor, state)  # ONNX has no constant numbers as outputs


def export_step(model: nn.Module, x: Tensor) -> tuple[ExportedProgram, ExportedProgram]:
    """Return the first step and every later step of a stream as programs, in evaluation mode.

    The first program maps `x` to the output and the state. The second one maps (x, state) to the output and the next
    state. Both take any number of streams. `torch.onnx.export(program)` makes ONNX files of them. Some models
    count steps: where torch runs the second program, give it that part of the state as `int(count)`.

    Args:
        model: a backbone, or a model of tokens or sequences around one.
        x: an example of one position of at least two streams, (B, D) or, for tokens, (B,).
    """
    if x.ndim == 0 or len(x) < 2:
        raise ValueError(f"x: expected one position of at least two streams, got shape {tuple(x.shape)}")
    step, examples, programs = Step(model), list[tuple[Any, ...]](), list[ExportedProgram]()
    with evaluating(step), torch.no_grad():
        for rows in (x[[0, 1]], x[[0, 1, 0]]):
            state = begun = cast(Backbone, model).step(rows)[1]
            for _ in rows[1:]:
                state = cast(Backbone, model).step(rows, state)[1]
            examples.append((rows, state))
        _check_growth(begun, *(state for _, state in examples))
        for parts in (1, 2):
            sizes = AdditionalInputs()  # leaves open the sizes in which the two examples differ
            sizes.add(examples[1][:parts])
            programs.append(export(step, examples[0][:parts], dynamic_shapes=cast(Any, sizes)))
    return programs[0], programs[1]


def _check_growth(begun: Any, *examples: Any) -> None:
    """Raise a ValueError if two examples of a state do not show which of its sizes and numbers change."""
    for first, *others in zip(*map(_sizes, (begun, *examples)), strict=True):
        if len({*others}) == 1 and (first != others[0] or first == 0):
            wrong = "two examples do not show which sizes of its state grow"
            allowed = "segments of 2 or more (3 if the memory is 1), local windows and kernels of 2 or more"
            raise ValueError(f"model: {wrong}. Expected {allowed}, and no attention window of 2")


def _sizes(state: Any) -> list[int]:
    """Return all sizes of a state's tensors but the number of streams, and its counts."""
    return [size for leaf in tree_leaves(state) for size in (leaf.shape[1:] if isinstance(leaf, Tensor) else [leaf])]
