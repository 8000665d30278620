"""What some models need in training: auxiliary losses, separate segments, a state that is carried along a text.

Al-Rfou et al. (2019), Character-Level Language Modeling with Deeper Self-Attention.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.models import Backbone, CausalModel, CharacterTransformer, LanguageModel
from rtx.tasks.task import Batch
from rtx.training.auxiliary_losses import AuxiliaryLosses


def language_model(model: nn.Module, setting: str = "model") -> LanguageModel:
    """The model, if it predicts a text.

    Raises:
        ValueError: otherwise, naming the setting that needs one.
    """
    if not isinstance(model, LanguageModel):
        raise ValueError(f"{setting}: expected a language model, which predicts a text, got {type(model).__name__}")
    return model


def auxiliary_losses(model: nn.Module, targets: int) -> AuxiliaryLosses:
    """The losses beside a character Transformer's own, whose decoder stays the one that is used.

    Raises:
        ValueError: if the model is another.
    """
    text_model = language_model(model, "auxiliary")
    backbone = text_model.backbone
    if "layers" not in backbone.auxiliary_losses:
        raise ValueError(f"auxiliary: expected a character-transformer, got {type(backbone).__name__}")
    layers, decoder = len(cast(CharacterTransformer, backbone).blocks), text_model.decoder
    return AuxiliaryLosses(backbone.d_model, layers, decoder.out_features, targets, decoder=decoder)


def auxiliary_loss(model: nn.Module, losses: AuxiliaryLosses, batch: Batch, progress: float) -> Tensor:
    """The mean over all positions, those too that are context only: a scalar, in nats.

    Args:
        model: predicts.
        losses: made by `auxiliary_losses`.
        batch: windows of a text.
        progress: share of the training that is done, 0 … 1.
    """
    text_model = language_model(model, "auxiliary")
    hidden = cast(CharacterTransformer, text_model.backbone).hidden(text_model.embed(batch.inputs))
    return losses(hidden, _followed(batch, losses.targets), progress)


def _followed(batch: Batch, targets: int) -> Tensor:
    """(B, T + targets): the text of each window, the symbol behind it, and -1 for those that are not known."""
    ends = batch.lengths[:, None]
    tokens = F.pad(batch.inputs, (0, targets))
    tokens = tokens.masked_fill(torch.arange(tokens.shape[1], device=tokens.device) >= ends, -1)
    return tokens.scatter(1, ends, batch.targets.gather(1, ends - 1))


def check_slides(model: nn.Module) -> None:
    """Check that a model reads a text in separate segments, so that the setting `slide` changes something.

    Raises:
        ValueError: if it does not.
    """
    backbone = language_model(model, "slide").backbone
    if not backbone.separate_segments:
        raise ValueError(f"slide: expected a character-transformer, got {type(backbone).__name__}")


def check_carries(model: nn.Module) -> None:
    """Check that a model's state has a fixed size, so that it can be carried along a text: the setting `carry`.

    Raises:
        ValueError: if it does not.
    """
    backbone = language_model(model, "carry").backbone
    if not backbone.stateful:
        found = type(backbone).__name__
        raise ValueError(f"carry: expected a model with a state of fixed size, such as lstm, got {found}")


def recurrent_backbone(model: nn.Module) -> Backbone:
    """The backbone of a language model, for the penalty on its activations.

    Raises:
        ValueError: if the model is no language model.
    """
    return language_model(model, "ar, tar").backbone


def start_epoch(model: nn.Module, epoch: int) -> None:
    """Tell all backbones in a model that an epoch begins."""
    for module in model.modules():
        if isinstance(module, CausalModel):
            module.start_epoch(epoch)
