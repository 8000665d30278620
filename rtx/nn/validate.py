"""One clear error for bad input: the argument's name, what was given, what is allowed."""

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real

import torch
from torch import Tensor, nn


def check_positive(name: str, value: int) -> int:
    """Return `value` if it is a whole number of at least 1, as Python's own where it is NumPy's.

    Raises:
        ValueError: otherwise.
    """
    if torch.jit.is_tracing() and isinstance(value, Tensor):
        return value  # in a trace sizes are tensors
    if isinstance(value, torch.SymInt):  # a size that a program is exported for any value of
        return value
    if not is_whole(value) or value < 1:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return int(value)


def check_count(name: str, value: int) -> int:
    """Return `value` if it is a whole number of at least 0, as Python's own where it is NumPy's.

    Raises:
        ValueError: otherwise.
    """
    if not is_whole(value) or value < 0:
        raise ValueError(f"{name}: expected a whole number of at least 0, got {value!r}")
    return int(value)


def check_flag(name: str, value: bool) -> bool:
    """Return `value` if it is true or false, and nothing that merely counts as one.

    Raises:
        ValueError: otherwise.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{name}: expected true or false, got {value!r}")
    return value


def is_whole(value: object) -> bool:
    """Whether it is a whole number, NumPy's too; Python counts true and false among them."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether it is one, NumPy's too: text cannot be compared, and Python counts true and false among the numbers."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_fraction(name: str, value: float) -> float:
    """Return `value` if it lies in [0, 1), as a dropout rate must.

    Raises:
        ValueError: otherwise.
    """
    if not (is_number(value) and 0 <= value < 1):
        raise ValueError(f"{name}: expected a number from 0 up to, not including, 1, got {value!r}")
    return value


def check_above_zero(name: str, value: float) -> float:
    """Return `value` if it is a finite number above 0, as a rate or a limit must be.

    Raises:
        ValueError: otherwise.
    """
    if not (is_number(value) and 0 < value < float("inf")):
        raise ValueError(f"{name}: expected a finite number above 0, got {value!r}")
    return value


def check_choice(name: str, value: str, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of `allowed`; the error suggests the nearest name.

    Raises:
        ValueError: otherwise.
    """
    names = list(allowed)
    if value in names:
        return value
    lower = {one.lower(): one for one in names}  # papers write GRU and MNIST
    near = get_close_matches(str(value).lower(), lower, n=1)
    hint = f"; did you mean {lower[near[0]]!r}?" if near else ""
    raise ValueError(f"{name}: {value!r} is unknown, allowed are {', '.join(names) or 'none'}{hint}")


def check_backbone(name: str, module: nn.Module, width: int | None = None) -> int:
    """Return the width D of `module` if it has one and a `step`, as every backbone does.

    Args:
        name: of the argument.
        module: what should be a backbone.
        width: that of the encoder that it belongs to, if there is one: D must be the same.

    Raises:
        ValueError: otherwise.
    """
    found = getattr(module, "d_model", None)
    if not isinstance(found, int) or not hasattr(module, "step"):
        raise ValueError(f"{name}: expected a backbone with a d_model and a step, got {type(module).__name__}")
    if width is not None and found != width:
        raise ValueError(f"{name}: expected the encoder's d_model = {width}, got {found}")
    return found


def check_module(name: str, module: nn.Module) -> None:
    """Check that `module` is one of torch's modules: no function, no class.

    Raises:
        ValueError: otherwise.
    """
    if not isinstance(module, nn.Module):
        raise ValueError(f"{name}: expected a torch.nn.Module, got {type(module).__name__}")


def check_tensor(name: str, x: Tensor) -> None:
    """Check that `x` is a tensor: no list, no array of NumPy's, none of torch's packed sequences.

    Raises:
        ValueError: otherwise.
    """
    if not isinstance(x, Tensor):
        raise ValueError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")


def check_sequence(name: str, x: Tensor, width: int, like: Tensor | None = None) -> None:
    """Check that `x` is a non-empty (B, T, width) float tensor, of the dtype and device of `like` if given.

    Under autocast the dtype is left to torch.

    Raises:
        ValueError: naming `name`, the shape, dtype or device given, and the one expected.
    """
    check_tensor(name, x)
    if x.ndim != 3 or x.shape[-1] != width:
        raise ValueError(f"{name}: expected shape (batch, time, {width}), got {tuple(x.shape)}")
    if 0 in x.shape:
        raise ValueError(f"{name}: expected at least one sequence of at least one step, got {tuple(x.shape)}")
    _check_numbers(name, x, like)


def check_step(name: str, x: Tensor, width: int, like: Tensor | None = None) -> None:
    """Check that `x` is a non-empty (B, width) float tensor: one step of a batch of streams.

    Raises:
        ValueError: as `check_sequence`.
    """
    check_tensor(name, x)
    if x.ndim != 2 or x.shape[-1] != width or not x.shape[0]:
        raise ValueError(f"{name}: expected one step of at least one stream, (batch, {width}), got {tuple(x.shape)}")
    _check_numbers(name, x, like)


def check_tokens(name: str, tokens: Tensor, vocabulary: int, ndim: int) -> None:
    """Check that `tokens` is a non-empty tensor of int32 or int64 from 0 to vocabulary - 1, with `ndim` axes.

    Raises:
        ValueError: naming `name`, what was given, and what is allowed.
    """
    check_tensor(name, tokens)
    axes = {1: "(batch,)", 2: "(batch, time)"}[ndim]
    if tokens.ndim != ndim or not tokens.numel():
        raise ValueError(f"{name}: expected tokens of shape {axes}, at least one, got {tuple(tokens.shape)}")
    if tokens.dtype not in (torch.int32, torch.int64):  # torch's embedding takes no others
        raise ValueError(f"{name}: expected whole numbers of int32 or int64, got {tokens.dtype}")
    if not _has_numbers(tokens):
        return
    low, high = int(tokens.min()), int(tokens.max())
    if low < 0 or high >= vocabulary:
        wrong = low if low < 0 else high
        raise ValueError(f"{name}: expected tokens from 0 to {vocabulary - 1}, got {wrong}")


def check_lengths(name: str, lengths: Tensor, batch: int, longest: int) -> None:
    """Check that `lengths` is one whole number from 1 to `longest` for each sequence of the batch.

    Raises:
        ValueError: naming `name`, what was given, and what is allowed.
    """
    check_tensor(name, lengths)
    whole = not (lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool)
    fits = whole and lengths.shape == (batch,)
    if not fits or (_has_numbers(lengths) and not (int(lengths.min()) >= 1 and int(lengths.max()) <= longest)):
        raise ValueError(
            f"{name}: expected {batch} whole numbers from 1 to {longest}, one for each sequence, got {lengths.tolist()}"
        )


def _has_numbers(x: Tensor) -> bool:
    """Whether the numbers in `x` can be asked for.

    There are none on the meta device and in FakeTensorMode, and one for each sample within `torch.func.vmap`. A CUDA
    graph that is recorded (`rtx.nn.kernels.graphs`) and a program that is exported cannot ask for them at all, one that
    is compiled not without a break in its graph.
    """
    if torch.compiler.is_compiling():  # asked first: what else is asked here would break the graph
        return False
    if x.is_meta or hasattr(x, "fake_mode") or torch._C._are_functorch_transforms_active():
        return False
    return not (x.is_cuda and torch.cuda.is_current_stream_capturing())


def _check_numbers(name: str, x: Tensor, like: Tensor | None) -> None:
    if not x.is_floating_point():
        raise ValueError(f"{name}: expected floating-point numbers, got {x.dtype}")
    if not isinstance(like, Tensor):  # of a quantised layer, the weight is a function
        return
    if x.device != like.device:
        raise ValueError(f"{name}: is on {x.device}, but the model is on {like.device}")
    if x.dtype != like.dtype and not torch.is_autocast_enabled(x.device.type):
        raise ValueError(f"{name}: is {x.dtype}, but the model is {like.dtype}")


def check_finite(name: str, x: Tensor) -> None:
    """Check that no number in `x` is NaN or infinite.

    Raises:
        ValueError: naming `name`, how many numbers are bad, and where the first one stands.
    """
    bad = ~torch.isfinite(x)
    if bad.any():
        first = tuple(bad.nonzero()[0].tolist())
        raise ValueError(f"{name}: expected finite numbers, got {int(bad.sum())} NaN or infinite, the first at {first}")
