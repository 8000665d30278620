"""Folders and files of the package import one another in one direction only, load no more than needed, have docs."""

import ast
import importlib
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "rtx"
FILES = sorted(PACKAGE.rglob("*.py"))
# each may import itself and the ones before it
LAYERS = ["checks", "nn", "models", "tasks", "training", "evidence", "lab", "classroom", "cli"]
HEAVY = {"lightning", "torchmetrics", "matplotlib", "seaborn", "ipywidgets", "anywidget", "IPython"}
HEAVY |= {"pooch", "scipy", "sklearn", "music21", "typer", "rich"}
HEAVY |= {"triton", "optuna", "tensorboard", "tokenizers", "sacrebleu", "rouge_score", "babel"}


@cache
def imported(path: Path) -> list[str]:
    """Return the full names of the modules and members that a file imports anywhere."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: line {node.lineno} imports by a relative name"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def layer_of(path: Path) -> str | None:
    """Return the layer of a file; None for the package's own __init__.py."""
    name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return None if name == "__init__" else name


def test_a_file_imports_only_its_own_layer_and_those_before_it() -> None:
    for path in FILES:
        layer = layer_of(path)
        allowed = LAYERS if layer is None else LAYERS[: LAYERS.index(layer) + 1]
        parts = [name.split(".") for name in imported(path) if name == "rtx" or name.startswith("rtx.")]
        assert [".".join(part) for part in parts if len(part) < 2 or part[1] not in allowed] == [], path


def module_of(path: Path) -> str:
    """Return the name of a file's module. A package's __init__.py has the name of the package."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def import_graph() -> dict[str, set[str]]:
    """Return the modules that each module imports. A member counts as the module that it is imported from."""
    names = {module_of(path): imported(path) for path in FILES}
    found = {
        module: {one if one in names else one.rpartition(".")[0] for one in imports if one.split(".")[0] == "rtx"}
        for module, imports in names.items()
    }
    assert {one for imports in found.values() for one in imports} <= set(names)
    return found


def test_no_two_files_import_each_other_directly_or_through_others() -> None:
    graph = import_graph()
    TopologicalSorter(graph).prepare()  # a CycleError names the files of a cycle
    assert {"rtx.models.rnn", "rtx.models.backbone"} <= graph["rtx.models.registry"]  # a module, a member of a module
    assert "rtx.nn" in graph["rtx.models.transformer"] and "rtx.nn" not in graph["rtx.nn.attention"]


def test_no_model_imports_another() -> None:
    for path in {*(PACKAGE / "models").glob("[!_]*.py")} - {PACKAGE / "models/registry.py"}:
        names = [name for name in imported(path) if name.startswith("rtx.models")]
        assert [name for name in names if not name.startswith("rtx.models.backbone.")] == [], path


def test_plots_take_arrays_and_never_a_model() -> None:
    assert not [name for name in imported(PACKAGE / "lab" / "plots.py") if name.startswith(("rtx.", "torch"))]


def test_importing_the_core_loads_torch_and_little_else() -> None:
    code = f"import sys, rtx, rtx.nn, rtx.models, rtx.tasks; print(*{HEAVY} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


@pytest.mark.parametrize("name", ["rtx", "rtx.nn", "rtx.models", "rtx.tasks"])
def test_public_names_exist_and_are_documented(name: str) -> None:
    module = importlib.import_module(name)
    members = {public: getattr(module, public) for public in dir(module) if public[0] != "_"}
    assert module.__doc__ and members
    undocumented = [public for public, member in members.items() if callable(member) and not member.__doc__]
    assert undocumented == []
