"""What a model costs on any machine: its multiply-adds."""

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from rtx.nn import MultiHeadAttention
from rtx.nn.local_attention import LocalAttention
from rtx.nn.validate import check_positive
from rtx.tasks.build import build
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Task


def multiply_adds(task: str | Task, model: str, steps: int, **hyperparameters: Any) -> int:
    """Return the multiply-adds of the matrix products and convolutions in a forward pass over `steps` steps.

    torch counts them. Products of two tensors in an attention count half, because the other half is masked (less is
    masked in Transformer-XL, which has a memory). An embedding of tokens costs nothing. The other arguments are those
    of `rtx.build`, for a model with a backbone.
    """
    task = task_by_name(task) if isinstance(task, str) else task
    with torch.device("meta"):  # shapes without numbers
        backbone = build(task, model, **hyperparameters).get_submodule("backbone")
        width = int(backbone.d_model)  # type: ignore[arg-type]
        x = torch.zeros(1, check_positive("steps", steps), width)
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        backbone.eval()(x)
    counts, whole = counter.get_flop_counts(), type(backbone).__name__
    modules, attentions = backbone.named_modules(), (MultiHeadAttention, LocalAttention)
    places = [f"{whole}.{name}" for name, module in modules if isinstance(module, attentions)]
    masked = sum(counts.get(place, {}).get(torch.ops.aten.bmm, 0) for place in places)
    inside = (sum(counts["Global"].values()) - masked) // 2 + masked // 4  # torch counts multiply and add separately
    read = 0 if task.per == "token" else steps * task.inputs
    predictions = 1 if task.per == "sequence" else steps
    return inside + width * (read + predictions * task.outputs)
