"""What some models need in training: auxiliary losses, a segment that slides in the test, `read`; HM-RNN's slope.

Al-Rfou et al. (2019), Character-Level Language Modeling with Deeper Self-Attention; Chung et al. (2017), HM-RNN.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.models import HMRNN, CharacterTransformer, LanguageModel
from rtx.nn.auxiliary_losses import AuxiliaryLosses
from rtx.tasks.task import Batch


def auxiliary_losses(model: nn.Module, targets: int) -> AuxiliaryLosses:
    """The losses beside a character Transformer's own, whose decoder stays the one that is used.

    Raises:
        ValueError: if the model is another.
    """
    backbone = segment_reader("auxiliary", model)
    layers, decoder = len(backbone.blocks), model.decoder
    return AuxiliaryLosses(backbone.d_model, layers, decoder.out_features, targets, decoder=decoder)  # type: ignore


def auxiliary_loss(model: LanguageModel, losses: AuxiliaryLosses, batch: Batch, progress: float) -> Tensor:
    """The mean over all positions, those too that are context only: a scalar, in nats.

    Args:
        model: predicts.
        losses: made by `auxiliary_losses`.
        batch: windows of a text.
        progress: share of the training that is done, 0 … 1.
    """
    hidden = model.backbone.hidden(model.embed(batch.inputs))  # type: ignore[operator]
    return losses(hidden, _followed(batch, losses.targets), progress)


def slide(model: nn.Module, inputs: Tensor) -> Tensor:
    """The logits (B, T, V) of a model of (B, T) tokens, each from the whole segment that ends at its position.

    Raises:
        ValueError: if the model reads no segments.
    """
    hidden = segment_reader("slide", model).slide(model.embed(inputs))  # type: ignore[operator]
    return model.decoder(hidden)  # type: ignore[operator]


def _followed(batch: Batch, targets: int) -> Tensor:
    """(B, T + targets): the text of each window, the symbol behind it, and -1 for those that are not known."""
    ends = batch.lengths[:, None]
    tokens = F.pad(batch.inputs, (0, targets))
    tokens = tokens.masked_fill(torch.arange(tokens.shape[1], device=tokens.device) >= ends, -1)
    return tokens.scatter(1, ends, batch.targets.gather(1, ends - 1))


def segment_reader(name: str, model: nn.Module) -> CharacterTransformer:
    """The character Transformer in a model of a text, for what needs one: the setting of that name.

    Raises:
        ValueError: if the model has another backbone, or none.
    """
    backbone = getattr(model, "backbone", None)
    if not isinstance(backbone, CharacterTransformer):
        found = type(backbone or model).__name__
        raise ValueError(f"{name}: expected a character-transformer over a text, got {found}")
    return backbone


def check_carries(model: nn.Module) -> None:
    """Check that a model reads a text in pieces and carries its state between them: what the setting `carry` needs.

    Raises:
        ValueError: if it does not.
    """
    reader = getattr(model, "backbone", model) if hasattr(model, "read") else model
    if not hasattr(reader, "read"):
        found = type(reader).__name__
        raise ValueError(f"carry: expected a model that reads a text in pieces, such as lstm, got {found}")


def anneal_boundaries(model: nn.Module, epoch: int) -> None:
    """Set the slope of HM-RNN's boundaries, wherever a model has any, to that of an epoch."""
    for module in model.modules():
        if isinstance(module, HMRNN):
            module.anneal(epoch)
