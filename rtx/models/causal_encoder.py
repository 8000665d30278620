"""A backbone where `torch.nn.TransformerEncoder` stands: the same call, and one clear error for what is not causal."""

import torch
from torch import Tensor, nn

from rtx.nn.validate import check_backbone, check_flag, check_tensor


class CausalEncoder(nn.Module):
    """`encoder(src, mask, src_key_padding_mask, is_causal)` as torch has it, done by a backbone that sees no future.

    In `encoder = nn.TransformerEncoder(layer, 2)`, put `CausalEncoder(RTransformer(64, 2, 4, window=7))`; the training
    script around it stays as it is. The padding's outputs are zero.

    Args:
        backbone: any of `rtx.models.MODELS`, whose `d_model` is that of the layers it replaces.
        batch_first: whether sequences come as (B, T, D); else as (T, B, D), which is torch's default.

    Raises:
        ValueError: if the backbone is none, or `batch_first` is not true or false.
    """

    def __init__(self, backbone: nn.Module, batch_first: bool = False) -> None:
        super().__init__()
        self.d_model = check_backbone("backbone", backbone)
        self.backbone, self.batch_first = backbone, check_flag("batch_first", batch_first)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Map sequences to ones of the same shape.

        Args:
            src: (B, T, D) or (T, B, D), see `batch_first`; (T, D) for one sequence.
            mask: the causal one: True, or -∞, above the diagonal, (T, T). It may be left out if `is_causal`.
            src_key_padding_mask: (B, T), True, or -∞, at the padding, which is behind each sequence; (T,) for one.
            is_causal: True says that `mask` is causal; None or False leaves that to the mask.

        Raises:
            ValueError: if the future is to be seen, a sequence is padding alone or has some before a real position; of
                another shape, dtype or device, as the backbone.
        """
        check_tensor("src", src)
        one = src.ndim == 2
        x = src[None] if one else src if self.batch_first or src.ndim < 2 else src.transpose(0, 1)
        if x.ndim == 3:  # else the backbone says what is wrong
            self._check_mask(mask, is_causal, x.shape[1])
        padding = self._padding(src_key_padding_mask, x)
        y = self.backbone(x if padding is None else x.masked_fill(padding[..., None], 0.0))
        y = y if padding is None else y.masked_fill(padding[..., None], 0.0)
        return y[0] if one else y if self.batch_first else y.transpose(0, 1)

    def _check_mask(self, mask: Tensor | None, is_causal: bool | None, length: int) -> None:
        sees = f"{type(self.backbone).__name__} is causal and cannot see the future"
        if mask is None:
            if not is_causal:
                raise ValueError(f"mask: expected the causal mask or is_causal=True, as {sees}; got none")
            return
        hidden = _hidden("mask", mask)
        future = torch.ones(length, length, dtype=torch.bool, device=hidden.device).triu(1)
        if hidden.shape != future.shape or not torch.equal(hidden, future):
            given = f"{tuple(mask.shape)}" if hidden.shape != future.shape else "another"
            raise ValueError(f"mask: expected the causal mask of {(length, length)}, as {sees}; got {given}")

    def _padding(self, mask: Tensor | None, x: Tensor) -> Tensor | None:
        if mask is None:
            return None
        padding = _hidden("src_key_padding_mask", mask)
        padding = padding[None] if padding.ndim == 1 else padding
        if padding.shape != x.shape[:2]:
            raise ValueError(f"src_key_padding_mask: expected {tuple(x.shape[:2])}, got {tuple(mask.shape)}")
        if bool(padding.all(1).any()):
            raise ValueError("src_key_padding_mask: expected a real position in each sequence, got padding alone")
        if bool((padding[:, :-1] & ~padding[:, 1:]).any()):
            raise ValueError("src_key_padding_mask: expected padding behind each sequence only, got some before")
        return padding


def _hidden(name: str, mask: Tensor) -> Tensor:
    """Where a mask hides, True; torch takes masks of bool, and of 0 and -∞ to be added to scores."""
    check_tensor(name, mask)
    if mask.dtype == torch.bool:
        return mask
    if not mask.is_floating_point() or not bool(((mask == 0) | (mask == -torch.inf)).all()):
        raise ValueError(f"{name}: expected bool, or 0 and -inf, got {mask.dtype} with other values")
    return mask == -torch.inf
