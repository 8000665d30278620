"""`torch.compile` for a model in training, where the machine has a compiler."""

import logging

import torch
from torch import nn

from rtx.models import LanguageModel

log = logging.getLogger(__name__)


def compile_model(model: nn.Module, device: torch.device) -> bool:
    """Have a model compiled at its first call, in place; or say why it cannot be, and leave it as it is."""
    from torch._dynamo.exc import TorchDynamoException  # takes seconds to import

    try:
        torch.compile(lambda x: x.sin() + 1)(torch.zeros(4, device=device))  # the compiler is only looked for when used
    except (TorchDynamoException, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split("\n\n")[0].split())  # advice follows
        log.warning("--compile: this machine has no working compiler (%s); training goes on without", reason)
        return False
    model.compile()
    if isinstance(model, LanguageModel):  # which is called by `read` where a text is carried on
        model.read = torch.compile(model.read)  # type: ignore[method-assign]
    return True
