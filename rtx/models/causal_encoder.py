"""Use a backbone in place of `torch.nn.TransformerEncoder`, with the same call."""

import torch
from torch import Tensor, nn

from rtx.models.backbone import Backbone, check_backbone
from rtx.nn.padding import turned
from rtx.nn.validate import check_flag, check_tensor, has_values


class CausalEncoder(nn.Module):
    """`encoder(src, mask, src_key_padding_mask, is_causal)` as in torch, computed by a causal backbone.

    Replace `nn.TransformerEncoder(layer, 2)` by `CausalEncoder(RTransformer(64, 2, 4, window=7))`. The training script
    around it needs no change. The outputs at the padding are zero.

    Args:
        backbone: any `Backbone` whose `d_model` is that of the layers it replaces.
        batch_first: whether sequences are (B, T, D). Otherwise they are (T, B, D), torch's default.
    """

    backbone: Backbone

    def __init__(self, backbone: Backbone, batch_first: bool = False) -> None:
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
            mask: the causal mask, (T, T): True, or -∞, above the diagonal. It may be left out if `is_causal` is True.
            src_key_padding_mask: (B, T), or (T,) for one sequence: True, or -∞, at the padding. A sequence may have
                padding at its start and at its end. Its first real position is position 1 for the backbone.
            is_causal: True if there is no mask. With a mask it is not read.
        """
        check_tensor("src", src)
        if src.ndim not in (2, 3):
            raise ValueError(f"src: expected (T, D) or three axes, got {tuple(src.shape)}")
        one = src.ndim == 2
        turn = not one and not self.batch_first
        x = src[None] if one else src.transpose(0, 1) if turn else src
        self._check_mask(mask, is_causal, x.shape[1])
        padding = self._padding(src_key_padding_mask, x)
        if padding is None:
            y = self.backbone(x)
        else:
            start = padding.long().argmin(1)  # the first real position
            x = turned(x.masked_fill(padding[..., None], 0.0), start)  # with all padding at the end
            y = turned(self.backbone(x), -start)
            y = y.masked_fill(padding[..., None], 0.0)
        return y[0] if one else y.transpose(0, 1) if turn else y

    def _check_mask(self, mask: Tensor | None, is_causal: bool | None, length: int) -> None:
        why = f"because {type(self.backbone).__name__} cannot see the future"
        if mask is None:
            if not is_causal:
                raise ValueError(f"mask: expected the causal mask or is_causal=True, {why}, got None")
            return
        hidden = _hidden("mask", mask)
        future = torch.ones(length, length, dtype=torch.bool, device=hidden.device).triu(1)
        if hidden.shape != future.shape or (has_values(hidden) and not torch.equal(hidden, future)):
            given = f"shape {tuple(mask.shape)}" if hidden.shape != future.shape else "another mask"
            raise ValueError(f"mask: expected the causal mask of shape {(length, length)}, {why}, got {given}")

    def _padding(self, mask: Tensor | None, x: Tensor) -> Tensor | None:
        if mask is None:
            return None
        name = "src_key_padding_mask"
        padding = _hidden(name, mask)
        padding = padding[None] if padding.ndim == 1 else padding
        if padding.shape != x.shape[:2]:
            raise ValueError(f"{name}: expected {tuple(x.shape[:2])}, got {tuple(mask.shape)}")
        if not has_values(padding):
            return padding
        if bool(padding.all(1).any()):
            raise ValueError(f"{name}: expected a real position in each sequence, got one that is all padding")
        at_end = turned(padding, padding.long().argmin(1))
        if bool((at_end[:, :-1] & ~at_end[:, 1:]).any()):
            raise ValueError(f"{name}: expected padding at the start or the end of a sequence, got some in between")
        return padding


def _hidden(name: str, mask: Tensor) -> Tensor:
    """Return True where a mask hides a position. torch has masks of bool, and of 0 and -∞ that are added to scores."""
    check_tensor(name, mask)
    if mask.dtype == torch.bool:
        return mask
    if not mask.is_floating_point() or (has_values(mask) and not bool(((mask == 0) | (mask == -torch.inf)).all())):
        found = f"{mask.dtype} with other values" if mask.is_floating_point() else mask.dtype
        raise ValueError(f"{name}: expected bool, or floating-point 0 and -inf, got {found}")
    return mask == -torch.inf
