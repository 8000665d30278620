"""`torch.compile` for a model in training, if the machine has a compiler."""

import logging

import torch
from torch import nn

from rtx.models import LanguageModel

log = logging.getLogger(__name__)


def compile_model(model: nn.Module, device: torch.device) -> None:
    """Compile a model in place at its first call. Without a working compiler, log a warning and change nothing."""
    from torch._dynamo.exc import TorchDynamoException  # takes seconds to import

    try:
        torch.compile(lambda x: x.sin() + 1)(torch.zeros(4, device=device))  # torch looks for the compiler only now
    except (TorchDynamoException, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split("\n\n")[0].split())  # the rest is advice
        log.warning("--compile: this machine has no working compiler (%s); the run continues without it", reason)
        return
    model.compile()
    if isinstance(model, LanguageModel):  # a stateful run calls `read` instead of the model
        model.read = torch.compile(model.read)  # type: ignore[method-assign]
