"""Sequences of different lengths in one tensor: which positions are real, and each sequence backwards."""

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from rtx.nn.validate import check_lengths, check_tensor, check_tokens


def read_source(
    source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"] | None, vocabulary: int
) -> tuple[Int[Tensor, "B S"], Int[Tensor, " B"]]:
    """Check a source; return it with token 0 in all its padding, and the lengths, by default S for each.

    The padding is not checked, so it may have any values.
    """
    check_tensor("source", source)
    if source.ndim != 2 or not source.numel():
        check_tokens("source", source, vocabulary, 2)  # raises
    if lengths is None:
        lengths = torch.full((source.shape[0],), source.shape[1], device=source.device)
    check_lengths("source_lengths", lengths, *source.shape)
    lengths = lengths.to(source.device, torch.long)
    source = source.where(real_positions(lengths, source.shape[1]), 0)
    check_tokens("source", source, vocabulary, 2)
    return source, lengths


def check_target(target: Int[Tensor, "B T"], source: Int[Tensor, "B S"], vocabulary: int) -> None:
    """Check that `target` has tokens, one sequence of them for each of the source."""
    check_tokens("target", target, vocabulary, 2)
    check_tensor("source", source)
    if source.ndim and target.shape[0] != source.shape[0]:
        sources, targets = source.shape[0], target.shape[0]
        raise ValueError(f"target: expected one sequence for each of the {sources} sources, got {targets}")


def real_positions(lengths: Int[Tensor, " B"], longest: int) -> Bool[Tensor, "B S"]:
    """Return True where a position belongs to its sequence, False in the padding at its end."""
    return torch.arange(longest, device=lengths.device) < lengths[:, None]


def turned(x: Shaped[Tensor, "B S ..."], by: Int[Tensor, " B"]) -> Shaped[Tensor, "B S ..."]:
    """Return each sequence moved to the left by its own number of positions. What leaves at the left comes in again."""
    at = torch.arange(x.shape[1], device=x.device) + by[:, None]
    return x[torch.arange(x.shape[0], device=x.device)[:, None], at % x.shape[1]]


def reverse(x: Shaped[Tensor, "B S ..."], lengths: Int[Tensor, " B"]) -> Shaped[Tensor, "B S ..."]:
    """Return each sequence from its last position to its first. The padding stays at the end."""
    at = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1)
    rows = torch.arange(x.shape[0], device=x.device)[:, None]
    return x[rows, torch.where(real_positions(lengths, x.shape[1]), lengths[:, None] - 1 - at, at)]
