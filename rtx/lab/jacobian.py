"""`receptive_field` and `xray`: which input changes which output of a module.

There are two ways to find out, and each misses something. Derivatives are exact, but they are zero behind `detach()`,
`round()` or `argmax`. A changed input shows such a path too, but a very weak dependency can vanish in rounding.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.functional import jacobian

from rtx.lab.counted import counted
from rtx.lab.seeded import seeded
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite, check_module, check_sequence, check_tensor

MAGNITUDES = (1e-3, 1.0, 100.0)  # a small change shows a smooth path, a large one a rounded path


class XRay(NamedTuple):
    """Which outputs of a module depend on which inputs.

    Args:
        derivatives: how much output t changes with input s, (T, T), row t, column s.
        changed: experiment: whether output t was different after input s was changed.
        leaks: (output, input) pairs, counted from 0, where the input is later and one of the two tables shows it.
        span: the largest distance over which an output depends on an input, counted with its own position.
        window: the effective window: how many of the last inputs have 95 % of the derivatives of the last output.
    """

    derivatives: Float[Tensor, "T T"]
    changed: Bool[Tensor, "T T"]
    leaks: list[tuple[int, int]]
    span: int
    window: int

    @property
    def verdict(self) -> str:
        """The result in words, with positions counted from 1, as in the pictures."""
        back = f"An output looks back over {self.span} of {counted(len(self.derivatives), 'position')}"
        if self.window:  # 0 where the last output has no derivative
            back += f". 95 % of the derivative of the last output is within the last {counted(self.window, 'input')}"
        back += "."
        if not self.leaks:
            return f"Causal: no output depends on a later input. {back}"
        t, s = max(self.leaks, key=lambda pair: self.derivatives[pair].item())
        shown, noticed = (sum(bool(table[pair]) for pair in self.leaks) for table in (self.derivatives, self.changed))
        return (
            f"Sees the future in {counted(len(self.leaks), 'place')}. For example, output {t + 1} depends on input "
            f"{s + 1}. Derivatives, which end at a detach(), show {shown}; changed inputs show {noticed}. {back}"
        )


def xray(module: nn.Module, x: Float[Tensor, "1 T D"]) -> XRay:
    """Find out which inputs each output of a module depends on, in evaluation mode, by derivatives and by experiment.

    Meant for short sequences: it takes a backward pass for each output number and three forward passes for each
    position. If a module returns a tuple, as torch's recurrent layers do, its first part is used.

    Args:
        module: maps (1, T, D) to (1, T, …). A layer of torch with `batch_first=False` is given (T, 1, D).
        x: one sequence, with the batch first.
    """
    moved, differs = receptive_field(module, x), changed(module, x)
    depends = (moved > 0) | differs
    leaks = [(int(t), int(s)) for t, s in depends.triu(1).nonzero()]
    back = depends.tril().nonzero()
    span = int((back[:, 0] - back[:, 1]).max()) + 1 if len(back) else 0
    from_last = moved[-1].flip(0).cumsum(0)  # the derivatives of the last 1, 2, … inputs, added up
    window = int((from_last < 0.95 * from_last[-1]).sum()) + 1 if from_last[-1] > 0 else 0
    return XRay(moved, differs, leaks, span, window)


def receptive_field(model: nn.Module, x: Float[Tensor, "1 T D"]) -> Float[Tensor, "T T"]:
    """Return how much each output changes with each input: the Frobenius norm of ∂y_t / ∂x_s at row t, column s.

    Exact, by one backward pass for each output number. The upper right of a causal model is zero. A derivative does
    not see what a module detaches from the graph, for example the memory of Transformer-XL; `changed` does.

    Raises:
        ValueError: if `model` is no module, `x` is not one sequence of floating-point numbers, the output is no tensor
            or has another number of positions, or a derivative is NaN or infinite.
    """
    check_one(model, x)
    _, T, D = x.shape
    # cuDNN's recurrent networks have no backward pass in evaluation mode
    with evaluating(model), torch.backends.cudnn.flags(enabled=False):
        derivatives = jacobian(lambda one: output_of(model, one), x)  # (1, T, …, 1, T, D)
    moved = derivatives.reshape(T, -1, T, D).square().sum((1, 3)).sqrt()
    check_finite("derivatives of the model, (output, input)", moved)
    return moved


@torch.no_grad()
def changed(model: nn.Module, x: Float[Tensor, "1 T D"]) -> Bool[Tensor, "T T"]:
    """Return whether output t (row) has any other bit after input s (column) was changed.

    Each input is changed by noise of three magnitudes, one after the other. Random numbers that the model draws are
    the same in each call.

    Raises:
        ValueError: as `receptive_field`, or if two calls with one input give two outputs.
    """
    check_one(model, x)
    T = x.shape[1]
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).to(x)

    def differs(other: Float[Tensor, "1 T D"]) -> Bool[Tensor, " T"]:
        with seeded(0):
            same = torch.isclose(output_of(model, other), before, rtol=0, atol=0, equal_nan=True)
        return ~same.reshape(T, -1).all(1)

    with evaluating(model):
        with seeded(0):
            before = output_of(model, x)
        if differs(x).any():
            raise ValueError("model: expected equal outputs for equal inputs, got different ones in two calls")
        table = torch.zeros(T, T, dtype=torch.bool)
        for s in range(T):
            for magnitude in MAGNITUDES:
                other = x.clone()
                other[:, s] += magnitude * noise[:, s]
                table[:, s] |= differs(other).cpu()
    return table


def check_one(model: nn.Module, x: Tensor) -> None:
    """Check that `model` is a module and `x` one sequence of floating-point numbers."""
    check_module("model", model)
    check_tensor("x", x)
    if x.ndim != 3 or len(x) != 1:
        raise ValueError(f"x: expected one sequence (1, time, width), got {tuple(x.shape)}")
    check_sequence("x", x, x.shape[-1])


def first_part(output: Any) -> Any:
    """Return a module's output, or the first part of a tuple, as torch's recurrent layers return it."""
    return output[0] if isinstance(output, tuple) and output else output


def output_of(model: nn.Module, x: Float[Tensor, "1 T D"]) -> Tensor:
    """Return the first part of a module's output, batch first. The module gets a copy of x, to change in place.

    Raises:
        ValueError: if the output is no tensor, or has another number of positions than x.
    """
    if _time_first(model):
        y = first_part(model(x.transpose(0, 1).clone())).transpose(0, 1)
    else:
        y = first_part(model(x.clone()))
    if not isinstance(y, Tensor) or y.shape[:2] != x.shape[:2]:
        found = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(f"model: expected an output (1, {x.shape[1]}, …) for this x, got {found}")
    return y


def _time_first(model: nn.Module) -> bool:
    """Whether a recurrent or Transformer layer of torch reads (T, B, D); a Transformer's attention says so."""
    layers = (nn.RNNBase, nn.TransformerEncoder, nn.TransformerEncoderLayer)
    return isinstance(model, layers) and not all(getattr(part, "batch_first", True) for part in model.modules())
