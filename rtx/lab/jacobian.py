"""`reach` and `xray`: which input moves which output of a module, by exact derivatives."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rtx.lab.counted import counted
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite, check_module, check_sequence, check_tensor


class XRay(NamedTuple):
    """What a module's derivatives say about it.

    Args:
        reach: how much output t moves when input s moves, (T, T), row t, column s.
        leaks: (output, input) pairs, counted from 0, where the input is later: the module sees the future.
        span: the widest distance over which an output looks back, its own position included.
        window: the effective window: how many of the last inputs make up 95 % of what moves the last output.
    """

    reach: Float[Tensor, "T T"]
    leaks: list[tuple[int, int]]
    span: int
    window: int

    @property
    def verdict(self) -> str:
        """The same in one sentence, with positions counted from 1, as in the pictures."""
        T = len(self.reach)
        if self.leaks:
            t, s = max(self.leaks, key=lambda pair: self.reach[pair].item())
            places = counted(len(self.leaks), "place")
            seen = f"Sees the future in {places}: output {t + 1} depends on input {s + 1}, most of all"
        else:
            seen = "Causal: no output depends on a later input"
        back = f"an output looks back over {self.span} of {counted(T, 'position')}"
        return f"{seen}; {back}, 95 % of it within the last {self.window}."


def xray(module: nn.Module, x: Float[Tensor, "1 T D"]) -> XRay:
    """Look through any module that maps (1, T, D) to (1, T, …), also one of your own, in evaluation mode.

    Meant for short sequences: it takes a backward pass per output number. Where a module returns a tuple, as torch's
    recurrent layers do (with `batch_first=True`), its first part is meant.

    Raises:
        ValueError: as `reach`.
    """
    moved = reach(module, x)
    back = moved.tril().nonzero()
    leaks = [(int(t), int(s)) for t, s in moved.triu(1).nonzero()]
    span = int((back[:, 0] - back[:, 1]).max()) + 1 if len(back) else 0
    from_last = moved[-1].flip(0).cumsum(0)  # what the last 1, 2, … inputs have to say
    window = int((from_last < 0.95 * from_last[-1]).sum()) + 1 if from_last[-1] > 0 else 0
    return XRay(moved, leaks, span, window)


def reach(model: nn.Module, x: Float[Tensor, "1 T D"]) -> Float[Tensor, "T T"]:
    """How much each output moves when each input moves: the Frobenius norm of ∂y_t / ∂x_s at row t, column s.

    Exact, by one backward pass per output number. A causal model's upper right is zero. Where a model stops
    gradients, as Transformer-XL does at its memory, what lies behind moves the output all the same, unseen here.

    Raises:
        ValueError: if `model` is no module, `x` is not one sequence of floating-point numbers, the output is no tensor
            or has another number of positions, or a derivative is NaN or infinite, as where a softmax has nothing to
            attend to.
    """
    check_module("model", model)
    check_tensor("x", x)
    if x.ndim != 3 or len(x) != 1:
        raise ValueError(f"x: expected one sequence (1, time, width), got {tuple(x.shape)}")
    check_sequence("x", x, x.shape[-1])
    x = x.detach().requires_grad_()
    # cuDNN's recurrent networks have no backward pass in evaluation mode
    with torch.enable_grad(), evaluating(model), torch.backends.cudnn.flags(enabled=False):
        y = model(x.clone())  # a copy, which a module may change in place
    y = first_part(y)
    if not isinstance(y, Tensor) or y.shape[:2] != x.shape[:2]:
        found = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(f"model: expected an output (1, {x.shape[1]}, …) for this x, got {found}")
    if not y.requires_grad:  # nothing that is differentiable leads from x to y
        return x.new_zeros(x.shape[1], x.shape[1])
    moved = torch.stack([_moved_by(output, x) for output in y[0]])
    check_finite("derivatives of the model, (output, input)", moved)
    return moved


def first_part(output: Any) -> Any:
    """A module's output; of several in a tuple, as torch's recurrent layers give them, the first."""
    return output[0] if isinstance(output, tuple) and output else output


def _moved_by(output: Tensor, x: Tensor) -> Float[Tensor, " T"]:
    rows = [torch.autograd.grad(n, x, retain_graph=True, allow_unused=True)[0] for n in output.flatten()]
    gradients = torch.stack([torch.zeros_like(x) if row is None else row for row in rows])  # (K, 1, T, D)
    return gradients.square().sum((0, 1, 3)).sqrt()
