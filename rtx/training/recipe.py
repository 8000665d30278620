"""Recipes: one TOML file per table of the papers, with each model's hyper-parameters, number and variants."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import resources
from typing import Any

from rtx.nn.validate import check_choice, check_positive
from rtx.tasks import task_by_name
from rtx.tasks.build import hyperparameter_names
from rtx.tasks.loader import ORDERS
from rtx.tasks.registry import task_arguments

OPTIMIZERS = ("sgd", "adam", "nt-asgd")
SCALES = ("quick", "cpu", "full")
NOT_OF_THE_MODEL = ("paper", "paper_epochs", "model", "task", "task_arguments")
WHOLE_NUMBERS = (
    "epochs",
    "batch_size",
    "patience",
    "anneal_every",
    "stop_after",
    "accumulate",
    "limit",
    "limit_evaluation",
)


@dataclass(frozen=True)
class Settings:
    """How a model is trained.

    Args:
        epochs: passes over the training split.
        batch_size: sequences per update.
        optimizer: "sgd", "adam", or "nt-asgd", SGD that averages once validation stops improving.
        learning_rate: at the start.
        reduction: a batch's loss is the "sum" over what is scored, or its "mean".
        clip: largest gradient norm; None leaves gradients as they are.
        anneal: factor on the learning rate when validation has not improved for `patience` epochs; None: constant.
        patience: epochs; of "nt-asgd" its non-monotone interval.
        anneal_every: epochs; if given, the rate is annealed so often, whatever validation says.
        stop_after: epochs without improvement after which training ends; None: never.
        stop_at: training ends when validation is better than this; None: never.
        order: of the training split, one of `rtx.tasks.loader.ORDERS`.
        carry: read a text in order, each batch from the state the one before left; needs order "columns" and a
            model with `read`.
        accumulate: batches per update.
        weight_decay: the optimiser's.
        ar, tar: weights of activation regularisation, α and β of `rtx.models.awd_lstm.activation_penalty`.
        auxiliary: symbols ahead that every layer of a character Transformer learns to predict at every position, see
            `rtx.nn.auxiliary_losses`; 0: only what is scored is learned.
        slide: a character Transformer is tested by a segment that slides by one symbol.
        seconds: training ends after so many, wherever it is; None: only after its epochs.
        limit: train on the first so many sequences only; None: on all.
        limit_evaluation: validate and test on the first so many sequences only; None: on all.
    """

    epochs: int
    batch_size: int
    optimizer: str
    learning_rate: float
    reduction: str = "mean"
    clip: float | None = None
    anneal: float | None = None
    patience: int = 3
    anneal_every: int | None = None
    stop_after: int | None = None
    stop_at: float | None = None
    order: str = "shuffled"
    carry: bool = False
    accumulate: int = 1
    weight_decay: float = 0.0
    ar: float = 0.0
    tar: float = 0.0
    auxiliary: int = 0
    slide: bool = False
    seconds: float | None = None
    limit: int | None = None
    limit_evaluation: int | None = None

    def __post_init__(self) -> None:
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("reduction", self.reduction, ("sum", "mean"))
        check_choice("order", self.order, ORDERS)
        for name in ("carry", "slide"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}: expected true or false, got {getattr(self, name)!r}")
        if self.carry and self.order != "columns":
            raise ValueError(
                f"carry: expected order 'columns', which keeps a text's pieces in order, got {self.order!r}"
            )
        if self.auxiliary != 0:
            check_positive("auxiliary", self.auxiliary)
        for name in WHOLE_NUMBERS:
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        for name in ("learning_rate", "clip", "anneal", "stop_at", "seconds"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 < value < math.inf):
                raise ValueError(f"{name}: expected a finite number above 0, got {value!r}")
        for name in ("weight_decay", "ar", "tar"):
            value = getattr(self, name)
            if not (_is_number(value) and 0 <= value < math.inf):
                raise ValueError(f"{name}: expected a finite number of at least 0, got {value!r}")


def _is_number(value: Any) -> bool:
    """Whether it is one; Python counts true and false among them."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Recipe:
    """One table of a paper: its task, each row's model and printed number, the variants and scales of training.

    A row is named as its model, unless it says which one `model` is; the rest of it are the model's arguments, but for

    - `paper`, the number that the paper prints, and `paper_epochs`, after how many epochs, where it prints that;
    - `task`, where it is not the recipe's, and `task_arguments`, such as its `length`.

    A variant is a way to train, `like` another but for what it says itself; it may name another `task`. A scale changes
    the task, the settings and the sizes of a variant: "full" nothing, "cpu" for hours on two cores, "quick" for about a
    minute on data that need no download. Both may hold settings, `task_arguments.…`, arguments `model.…` for every row
    whose model has them, and `rows.<row>.…` for one row. `sweep` holds, by setting or argument, the values that the
    paper chose from by validation; a variant or a scale has its own where these are none for its optimiser.
    """

    name: str
    title: str
    source: str
    task: str
    default_variant: str
    variants: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]
    scales: dict[str, dict[str, Any]] = field(default_factory=dict)
    sweep: dict[str, list[Any]] = field(default_factory=dict)

    def paper(self, row: str) -> float | None:
        """The number that the paper prints in a row; None where it has none."""
        return self._row(row).get("paper")

    def paper_epochs(self, row: str) -> int | None:
        """The epochs that the paper trained a row for, where its table prints them."""
        return self._row(row).get("paper_epochs")

    def sweep_values(self, variant: str | None = None, scale: str = "full") -> dict[str, list[Any]]:
        """What to choose from by validation: the scale's own values, else the variant's, else the recipe's.

        Raises:
            ValueError: for an unknown variant or scale.
        """
        check_choice("variant", variant := variant or self.default_variant, self.variants)
        check_choice("scale", scale, ["full", *self.scales])
        own = self.variants[variant].get("sweep", self.sweep)
        return dict(self.scales.get(scale, {}).get("sweep", own))

    def plan(
        self,
        row: str,
        variant: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        scale: str = "full",
    ) -> "Plan":
        """What to train, and how: a row's hyper-parameters and settings, after variant, scale and `overrides`.

        Raises:
            ValueError: for an unknown row, variant, scale or key (the nearest is suggested), or a bad value.
        """
        printed = self._row(row)
        check_choice("variant", variant := variant or self.default_variant, self.variants)
        check_choice("scale", scale, ["full", *self.scales])
        settings, changes = dict(self.variants[variant]), dict(self.scales.get(scale, {}))
        own_task = settings.pop("task", printed.get("task", self.task))
        task = changes.pop("task", own_task)
        arguments = dict(printed.get("task_arguments", {}))
        of_task = task_arguments(task)
        model = printed.get("model", row)
        hyperparameters = {k: v for k, v in printed.items() if k not in NOT_OF_THE_MODEL}
        known = hyperparameter_names(model, task_by_name(task).per, hyperparameters.get("recurrent", "lstm"))
        for one in (settings, changes):  # each may change every row whose model has the argument
            one.pop("sweep", None)
            hyperparameters |= {k: v for k, v in one.pop("model", {}).items() if k in known}
            hyperparameters |= one.pop("rows", {}).get(row, {})
            arguments |= one.pop("task_arguments", {})
        settings |= changes
        if task != own_task:  # the other task's arguments may be none of this one's
            arguments = {k: v for k, v in arguments.items() if k in of_task}
        train = [f.name for f in fields(Settings)]
        for key, value in (overrides or {}).items():
            check_choice("key", key, [*known, *of_task, *train])
            (hyperparameters if key in known else arguments if key in of_task else settings)[key] = value
        chosen = Settings(**settings)
        if chosen.carry and "context" in of_task:  # what came before is in the state
            arguments["context"] = 0
        changed = "".join(f"+{as_setting(k, v)}" for k, v in sorted((overrides or {}).items()))
        return Plan(self, row, model, task, variant + changed, scale, hyperparameters, chosen, arguments)

    def _row(self, row: str) -> dict[str, Any]:
        return self.models[check_choice("model", row, self.models)]


@dataclass(frozen=True)
class Plan:
    """One row of a recipe with everything decided but the seed."""

    recipe: Recipe
    row: str
    model: str
    task: str
    variant: str
    scale: str
    hyperparameters: dict[str, Any]
    settings: Settings
    task_arguments: dict[str, Any] = field(default_factory=dict)


def as_setting(key: str, value: Any) -> str:
    """`key=value` as it is typed after `--set`: true and false as in TOML."""
    return f"{key}={str(value).lower() if isinstance(value, bool) else value}"


def recipe_names() -> list[str]:
    """Every recipe that ships with the package."""
    folder = resources.files("rtx.training") / "recipes"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def load_recipe(name: str) -> Recipe:
    """Read a recipe.

    Raises:
        ValueError: if there is none of that name; the nearest is suggested.
    """
    check_choice("recipe", name, recipe_names())
    text = (resources.files("rtx.training") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    table["variants"] = {name: _resolved(table["variants"], name) for name in table["variants"]}
    table["default_variant"] = check_choice("variant", table.pop("variant"), table["variants"])
    return Recipe(name=name, **table)


def _resolved(variants: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """A variant with what it takes over from the one that it is like."""
    own = dict(variants[name])
    other = own.pop("like", None)
    return own if other is None else _resolved(variants, check_choice("like", other, variants)) | own
