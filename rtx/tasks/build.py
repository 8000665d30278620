"""`build` joins an embedding, a backbone and a head into a model for a task."""

import inspect

from jaxtyping import Float, Int
from torch import Tensor, nn

from rtx.models import MODELS
from rtx.nn.validate import check_choice, check_sequence
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Task


class SequenceModel(nn.Module):
    """A backbone with a linear layer before it and one after it.

    Args:
        backbone: maps (B, T, D) to (B, T, D), causally; has `d_model`.
        inputs: F, numbers per step.
        outputs: K, numbers per prediction.
        per: "step" predicts at every step; "sequence" once, from the state at the last real step.
    """

    def __init__(self, backbone: nn.Module, inputs: int, outputs: int, per: str) -> None:
        super().__init__()
        self.inputs = inputs
        self.per = check_choice("per", per, ("step", "sequence"))
        width = int(backbone.d_model)  # type: ignore[arg-type]
        self.embedding = nn.Linear(inputs, width)
        self.backbone = backbone
        self.head = nn.Linear(width, outputs)

    def forward(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B ... K"]:
        """Predict from `x`: (B, T, K) for "step", (B, K) for "sequence".

        Args:
            x: sequences, padded at their end.
            lengths: real steps of each; all T by default. A causal backbone's real steps never see the padding.

        Raises:
            ValueError: if `x` is not (B, T, F), or a length is not in 1 … T.
        """
        check_sequence("x", x, self.inputs, like=self.embedding.weight)
        hidden = self.backbone(self.embedding(x))
        return self.head(hidden if self.per == "step" else last_step(hidden, lengths))


def last_step(hidden: Float[Tensor, "B T D"], lengths: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B D"]:
    """The state at each sequence's last real step.

    Raises:
        ValueError: if `lengths` is not one number in 1 … T for each sequence.
    """
    if lengths is None:
        return hidden[:, -1]
    B, T, D = hidden.shape
    if lengths.shape != (B,) or lengths.min() < 1 or lengths.max() > T:
        raise ValueError(f"lengths: expected {B} numbers from 1 to {T}, got {lengths.tolist()}")
    return hidden.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, D)).squeeze(1)


def build(task: str | Task, model: str, **hyperparameters: object) -> SequenceModel:
    """A model for a task: linear embedding, the named backbone, linear head.

    Args:
        task: a name (see `rtx list`) or a `Task`.
        model: a name (see `rtx list`).
        hyperparameters: the backbone's own arguments, such as `d_model=32, layers=2`.

    Raises:
        ValueError: if a name or a hyper-parameter is unknown (the nearest is suggested), missing or out of range.
    """
    check_choice("model", model, MODELS)
    if isinstance(task, str):
        task = task_by_name(task)
    check_arguments(model, hyperparameters)
    return SequenceModel(MODELS[model](**hyperparameters), task.inputs, task.outputs, task.per)


def hyperparameter_names(model: str) -> dict[str, inspect.Parameter]:
    """The arguments of a model's constructor, by name; those fixed by the model's name are left out."""
    factory = MODELS[check_choice("model", model, MODELS)]
    fixed = getattr(factory, "keywords", {})
    return {k: p for k, p in inspect.signature(factory).parameters.items() if k not in fixed}


def check_arguments(model: str, hyperparameters: dict[str, object]) -> None:
    """Check names, and that none without a default is missing.

    Raises:
        ValueError: otherwise.
    """
    known = hyperparameter_names(model)
    for name in hyperparameters:
        check_choice(f"hyper-parameter of {model}", name, known)
    missing = [k for k, p in known.items() if p.default is p.empty and k not in hyperparameters]
    if missing:
        raise ValueError(f"hyper-parameters of {model}: missing {', '.join(missing)}")
