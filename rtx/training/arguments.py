"""The names of arguments, read from source files, so that a wrong name is refused before torch is imported."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

FROM_TASK = ("inputs", "outputs", "backbone", "vocabulary", "source_vocabulary", "target_vocabulary")
"""Arguments of models that come from the task."""


class Made(NamedTuple):
    """A class or function that a name stands for, its file, and the arguments that the name has fixed."""

    file: str
    name: str
    fixed: tuple[str, ...] = ()


def argument_names(model: str, task: str, recurrent: str) -> list[str]:
    """Return what `--set` may change: arguments of the model and of the task, and settings of the training.

    `recurrent` is the model inside RNNSearch. The list is empty for a model or a task that the package does not have.
    """
    models, tasks = _models(), _tasks()
    if model not in models or task not in tasks:
        return []
    of_model = _arguments("models", models[model])
    if model == "rnnsearch" and recurrent in models:
        of_model += _arguments("models", models[recurrent])
    if tasks[task].file == "text" or task == "look-up":  # tasks of tokens
        of_model += _arguments("models", Made("language_model", "LanguageModel"))
    of_model = [name for name in of_model if name not in FROM_TASK]
    settings = _arguments("training", Made("settings", "Settings"))
    return list(dict.fromkeys([*of_model, *_arguments("tasks", tasks[task]), *settings]))


def _models() -> dict[str, Made]:
    """Return what makes each model. Its card has the name, and the class or function."""
    found = {}
    for file in (Path(__file__).parents[1] / "models").glob("[!_]*.py"):
        for statement in _source("models", file.stem):
            match statement:
                case ast.Assign(value=ast.Call(func=ast.Name("Card"), args=[ast.Constant(str(name)), make, *_])):
                    found[name] = Made(file.stem, *_without_partial(make))
    return found


def _tasks() -> dict[str, Made]:
    """Return what makes each task, as `module.function` in the list of all tasks."""
    for statement in _source("tasks", "registry"):
        match statement:
            case ast.AnnAssign(target=ast.Name("TASKS"), value=ast.Dict(keys, values)):
                names = [key.value for key in keys if isinstance(key, ast.Constant)]
                made = zip(names, map(_without_partial, values), strict=True)
                return {str(name): Made(*of.split("."), fixed=fixed) for name, (of, fixed) in made}
    return {}


def _without_partial(make: ast.expr) -> tuple[str, tuple[str, ...]]:
    if isinstance(make, ast.Call):
        return ast.unparse(make.args[0]), tuple(str(one.arg) for one in make.keywords)
    return ast.unparse(make), ()


def _arguments(folder: str, made: Made) -> list[str]:
    named = {one.name: one for one in _source(folder, made.file) if isinstance(one, ast.ClassDef | ast.FunctionDef)}
    function = named[made.name]
    if isinstance(function, ast.ClassDef):
        own = [one for one in function.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
        if not own:  # a dataclass
            return [ast.unparse(one.target) for one in function.body if isinstance(one, ast.AnnAssign)]
        (function,) = own
    names = [one.arg for one in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]]
    return [one for one in names if one != "self" and one not in made.fixed]


@cache
def _source(folder: str, name: str) -> list[ast.stmt]:
    """Return the statements of a file, or of all files of a folder."""
    place = Path(__file__).parents[1] / folder / name
    files = sorted(place.glob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [statement for file in files for statement in ast.parse(file.read_text(encoding="utf-8")).body]
