"""What a model costs on any machine: its multiply-adds."""

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from rtx.models import LanguageModel
from rtx.nn import MultiHeadAttention
from rtx.nn.local_attention import LocalAttention
from rtx.nn.validate import check_positive
from rtx.tasks.build import SequenceModel, build
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Task

ATTENTIONS = (MultiHeadAttention, LocalAttention)


def multiply_adds(task: str | Task, model: str, steps: int, **hyperparameters: Any) -> int:
    """Return the multiply-adds of the matrix products and convolutions in a forward pass over `steps` steps.

    torch counts them. Products of two tensors in an attention count half, because the other half is masked (less is
    masked in Transformer-XL, which has a memory). An embedding of tokens costs nothing. The other arguments are those
    of `rtx.build`, for a model with a backbone.
    """
    task = task_by_name(task) if isinstance(task, str) else task
    with torch.device("meta"):  # shapes without numbers
        built = build(task, model, **hyperparameters)
        if not isinstance(built, (SequenceModel, LanguageModel)):
            raise ValueError(f"model: expected one with a backbone, got {model}")
        width = built.backbone.d_model
        x = torch.zeros(1, check_positive("steps", steps), width)
    backbone = built.get_submodule("backbone")
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        backbone.eval()(x)
    counts, whole = counter.get_flop_counts(), type(backbone).__name__
    places = [name for name, module in backbone.named_modules() if isinstance(module, ATTENTIONS)]
    masked = sum(counts.get(f"{whole}.{place}", {}).get(torch.ops.aten.bmm, 0) for place in places)
    inside = (sum(counts["Global"].values()) - masked) // 2 + masked // 4  # torch counts multiply and add separately
    read = 0 if task.per == "token" else steps * task.inputs
    predictions = 1 if task.per == "sequence" else steps
    return inside + width * (read + predictions * task.outputs)
