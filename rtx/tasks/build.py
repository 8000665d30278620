"""`build` makes a model for a task: an embedding, a backbone and a head, or a model that needs neither."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rtx.models import CARDS, MODELS, RECURRENT, TRANSLATORS, WHOLE, Backbone, LanguageModel, parameter_bytes
from rtx.models.backbone import check_backbone
from rtx.nn.padding import real_positions
from rtx.nn.streaming import State
from rtx.nn.validate import check_choice, check_lengths, check_sequence, check_step
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Per, Task

# arguments that `build` sets itself
FROM_TASK = ("inputs", "outputs", "backbone", "vocabulary", "source_vocabulary", "target_vocabulary")


class SequenceModel(nn.Module):
    """A backbone with a linear layer before it and one after it.

    `per` is "step" to predict at every step, or "sequence" to predict once, from the state at the last real step.
    """

    backbone: Backbone

    def __init__(self, backbone: Backbone, inputs: int, outputs: int, per: str) -> None:
        super().__init__()
        self.inputs = inputs
        self.per = check_choice("per", per, ("step", "sequence"))
        width = check_backbone("backbone", backbone)
        self.embedding = nn.Linear(inputs, width)
        self.backbone = backbone
        self.head = nn.Linear(width, outputs)

    def forward(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B ... K"]:
        """Predict from sequences that are padded at their end: (B, T, K) for "step", (B, K) for "sequence".

        `lengths` are their real steps, by default all T. The padding is not read.
        """
        check_sequence("x", x, self.inputs, like=self.embedding.weight)
        if lengths is not None:
            B, T, _ = x.shape
            check_lengths("lengths", lengths, B, T)
            lengths = lengths.to(x.device)
            # a causal backbone gives the padding no weight, but NaN times 0 is NaN
            x = x.masked_fill(~real_positions(lengths, T)[..., None], 0.0)
        hidden = self.backbone(self.embedding(x))
        if self.per == "sequence":  # from the state at the last real step
            rows = torch.arange(x.shape[0], device=x.device)
            hidden = hidden[:, -1] if lengths is None else hidden[rows, lengths.long() - 1]
        return self.head(hidden)

    def step(self, x: Float[Tensor, "B F"], state: State | None = None) -> tuple[Float[Tensor, "B K"], State]:
        """Read one step of each stream. For "sequence" the prediction is the one for a sequence that ends here."""
        check_step("x", x, self.inputs, like=self.embedding.weight)
        hidden, state = self.backbone.step(self.embedding(x), state)
        return self.head(hidden), state


def build(task: str | Task, model: str, **hyperparameters: Any) -> nn.Module:
    """Make a model for a task. Names are those of `rtx list`. A model of more than 16 GiB is refused.

    For numbers it is a `SequenceModel` around the named backbone, or one of `WHOLE`, which read and predict without
    other layers. For a text it is a `LanguageModel` around the backbone, for pairs of sentences one of `TRANSLATORS`.
    `hyperparameters` are those of `hyperparameter_names`, such as `d_model=32, layers=2`.
    """
    if not isinstance(task, Task):
        task = task_by_name(task)
    models = models_for(task.per)
    if isinstance(model, str) and model in WHOLE and model not in models:
        raise ValueError(f"model: {model} makes one prediction per sequence, but {task.name} needs one per {task.per}")
    check_choice("model", model, models)
    known = hyperparameter_names(model, task.per, hyperparameters.get("recurrent", "lstm"))
    for name in hyperparameters:
        check_choice(f"hyper-parameter of {model}", name, known)
    missing = [k for k, p in known.items() if p.default is p.empty and k not in hyperparameters]
    if missing:
        raise ValueError(f"hyper-parameters of {model}: missing {', '.join(missing)}")
    make = partial(_make, task, model)
    read = {"vocabulary": task.inputs} if task.texts else {}
    parameter_bytes(lambda vocabulary=0, **sizes: make(**sizes), **read, **hyperparameters)
    return make(**hyperparameters)


def _make(task: Task, model: str, **hyperparameters: Any) -> nn.Module:
    models = models_for(task.per)
    if task.per == "pair":
        return models[model](source_vocabulary=task.inputs, target_vocabulary=task.outputs, **hyperparameters)
    if model in WHOLE:
        return models[model](inputs=task.inputs, outputs=task.outputs, **hyperparameters)
    around = {k: hyperparameters.pop(k) for k in _arguments(LanguageModel) if k in hyperparameters}
    backbone = MODELS[model](**hyperparameters)
    if task.per == "token":
        return LanguageModel(backbone, task.inputs, **around)
    return SequenceModel(backbone, task.inputs, task.outputs, task.per)


def models_for(per: Per) -> dict[str, Callable[..., nn.Module]]:
    """Return the models that can make such predictions, by name."""
    if per == "pair":
        return TRANSLATORS
    return {**MODELS, **WHOLE} if per == "sequence" else {**MODELS}


def hyperparameter_names(model: str, per: Per = "sequence", recurrent: str = "lstm") -> dict[str, inspect.Parameter]:
    """Return the arguments that `build` takes for a model: its own, those of `LanguageModel` for a text ("token").

    RNNSearch also takes those of `recurrent`, the model inside it.
    """
    models = models_for(per)
    found = _arguments(models[check_choice("model", model, models)])
    if per == "token":
        found |= _arguments(LanguageModel)
    if model == "rnnsearch":
        found |= _arguments(MODELS[check_choice("recurrent", recurrent, RECURRENT)])
    return found


def _arguments(factory: Callable[..., nn.Module]) -> dict[str, inspect.Parameter]:
    fixed = {*getattr(factory, "keywords", {}), *FROM_TASK}
    parameters = inspect.signature(factory).parameters
    return {k: p for k, p in parameters.items() if k not in fixed and p.kind is not p.VAR_KEYWORD}


def parameters(model: str) -> int:
    """Return the number of parameters of a model of its paper's size, without the embedding and head of a backbone."""
    card = CARDS[check_choice("model", model, CARDS)]
    with torch.device("meta"):  # no memory, whatever the size
        return sum(p.numel() for p in card.make(**card.sizes).parameters())
