"""Checks of arguments. Each raises a ValueError that names the argument, what is wrong and what is allowed.

A value is checked where it enters: in a constructor, in a model's `forward`, `read` and `step`, in a recipe, on a
command line. Of the bricks, only those that one is most likely to put into a model of one's own check the shape of
their input: `LocalRNN`, `MultiHeadAttention` and `MultiChannelRNN`.
"""

import torch
from torch import Tensor, nn

from rtx.checks import check_above_zero as check_above_zero
from rtx.checks import check_at_least_zero as check_at_least_zero
from rtx.checks import check_choice as check_choice
from rtx.checks import check_flag as check_flag
from rtx.checks import check_fraction as check_fraction
from rtx.checks import check_whole
from rtx.checks import is_number as is_number
from rtx.checks import is_whole as is_whole


def check_positive(name: str, value: int) -> int:
    """Return `value` as an int if it is a whole number of at least 1."""
    if isinstance(value, torch.SymInt):
        return value  # a size that an exported program leaves open
    return check_whole(name, value, 1)


def check_count(name: str, value: int) -> int:
    """Return `value` as an int if it is a whole number of at least 0."""
    return check_whole(name, value, 0)


def check_divides(name: str, value: int, width: int) -> int:
    """Return `value` if it is a whole number that divides `width`."""
    if width % check_positive(name, value):
        divisors = [n for n in range(1, min(width, 1000) + 1) if width % n == 0]
        raise ValueError(f"{name}: expected a divisor of {width}, such as one of {divisors}, got {value}")
    return int(value)


def check_module(name: str, module: nn.Module) -> None:
    """Check that `module` is a `torch.nn.Module`, not a function or a class."""
    if not isinstance(module, nn.Module):
        raise ValueError(f"{name}: expected a torch.nn.Module, got {type(module).__name__}")


def check_tensor(name: str, x: Tensor) -> None:
    """Check that `x` is a tensor, not a list or a NumPy array."""
    if not isinstance(x, Tensor):
        raise ValueError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")


def check_sequence(name: str, x: Tensor, width: int, like: Tensor | None = None) -> None:
    """Check that `x` is a float tensor (B, T, width) that is not empty, with the dtype and device of `like`.

    Under autocast torch chooses the dtype.
    """
    check_tensor(name, x)
    if x.ndim != 3 or x.shape[-1] != width:
        raise ValueError(f"{name}: expected shape (batch, time, {width}), got {tuple(x.shape)}")
    if 0 in x.shape:
        raise ValueError(f"{name}: expected at least one sequence of at least one step, got {tuple(x.shape)}")
    _check_dtype_and_device(name, x, like)


def check_step(name: str, x: Tensor, width: int, like: Tensor | None = None) -> None:
    """Check that `x` is a float tensor (B, width) that is not empty: one step of a batch of streams."""
    check_tensor(name, x)
    if x.ndim != 2 or x.shape[-1] != width or not x.shape[0]:
        raise ValueError(f"{name}: expected one step of at least one stream, (batch, {width}), got {tuple(x.shape)}")
    _check_dtype_and_device(name, x, like)


def check_tokens(name: str, tokens: Tensor, vocabulary: int, ndim: int) -> None:
    """Check that `tokens` is a tensor of int32 or int64 from 0 to vocabulary - 1, not empty, with `ndim` axes."""
    check_tensor(name, tokens)
    axes = {1: "(batch,)", 2: "(batch, time)"}[ndim]
    if tokens.ndim != ndim or not tokens.numel():
        raise ValueError(f"{name}: expected tokens of shape {axes}, at least one, got {tuple(tokens.shape)}")
    if tokens.dtype not in (torch.int32, torch.int64):  # torch's embedding takes no others
        raise ValueError(f"{name}: expected whole numbers of int32 or int64, got {tokens.dtype}")
    if has_values(tokens):
        low, high = int(tokens.min()), int(tokens.max())
        if low < 0 or high >= vocabulary:
            wrong = low if low < 0 else high
            raise ValueError(f"{name}: expected tokens from 0 to {vocabulary - 1}, got {wrong}")


def check_lengths(name: str, lengths: Tensor, batch: int, longest: int) -> None:
    """Check that `lengths` has one whole number from 1 to `longest` for each sequence of the batch."""
    check_tensor(name, lengths)
    whole = not (lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool)
    fits = whole and lengths.shape == (batch,)
    if not fits or (has_values(lengths) and not (int(lengths.min()) >= 1 and int(lengths.max()) <= longest)):
        raise ValueError(
            f"{name}: expected {batch} whole numbers from 1 to {longest}, one for each sequence, got {lengths.tolist()}"
        )


def check_finite(name: str, x: Tensor) -> None:
    """Check that no number in `x` is NaN or infinite."""
    bad = ~torch.isfinite(x)
    if bad.any():
        first = tuple(bad.nonzero()[0].tolist())
        raise ValueError(f"{name}: expected finite numbers, got {int(bad.sum())} NaN or infinite, the first at {first}")


def has_values(x: Tensor) -> bool:
    """Whether the values of `x` can be read.

    There are none on the meta device and in FakeTensorMode. Inside `torch.func.vmap` there is one for each sample.
    Reading one would break a graph that is being compiled or exported.
    """
    if torch.compiler.is_compiling():  # check this first: the checks below would break the graph
        return False
    return not (x.is_meta or hasattr(x, "fake_mode") or torch._C._are_functorch_transforms_active())


def _check_dtype_and_device(name: str, x: Tensor, like: Tensor | None) -> None:
    if not x.is_floating_point():
        raise ValueError(f"{name}: expected floating-point numbers, got {x.dtype}")
    if not isinstance(like, Tensor):  # a quantised layer has a function instead of a weight
        return
    if x.device != like.device:
        raise ValueError(f"{name}: is on {x.device}, but the model is on {like.device}")
    if x.dtype != like.dtype and not torch.is_autocast_enabled(x.device.type):
        raise ValueError(f"{name}: is {x.dtype}, but the model is {like.dtype}")
