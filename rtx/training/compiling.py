"""`torch.compile` for a model in training."""

import torch
from torch import nn

from rtx.models import LanguageModel


def compile_model(model: nn.Module) -> None:
    """Compile a model in place at its first call. Without a working compiler, torch logs a warning and goes on."""
    torch._dynamo.config.suppress_errors = True
    model.compile()
    if isinstance(model, LanguageModel):  # a stateful run calls `read` instead of the model
        model.read = torch.compile(model.read)  # type: ignore[method-assign]
