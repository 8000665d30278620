"""What the settings of texts need from a model: a carried state, a sliding segment, auxiliary losses."""

from torch import nn

from rtx.models import CausalModel, LanguageModel
from rtx.training.settings import Settings


def check_model(model: nn.Module, settings: Settings) -> None:
    """Check that a model can be trained with the settings `auxiliary`, `slide`, `carry`, `ar` and `tar`."""
    backbone = model.backbone if isinstance(model, LanguageModel) else None
    offered = () if backbone is None else backbone.auxiliary_losses
    for name, asked, able, example in (
        ("auxiliary", settings.auxiliary, "layers" in offered, "character-transformer"),
        ("slide", settings.slide, backbone and backbone.separate_segments, "character-transformer"),
        ("carry", settings.carry, backbone and backbone.stateful, "lstm"),
        ("ar, tar", settings.ar or settings.tar, "activations" in offered, "awd-lstm"),
    ):
        if asked and not able:
            given = type(model if backbone is None else backbone).__name__
            raise ValueError(f"{name}: expected a language model such as {example}, got {given}")


def start_epoch(model: nn.Module, epoch: int) -> None:
    """Tell all backbones in a model that an epoch begins."""
    for module in model.modules():
        if isinstance(module, CausalModel):
            module.start_epoch(epoch)
