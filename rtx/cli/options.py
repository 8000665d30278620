"""The arguments and options that several commands have."""

import os
from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from rtx.checks import LARGEST_SEED
from rtx.training.recipe import recipe_names

Scale = StrEnum("Scale", ["quick", "cpu", "full"])
Recipe = Annotated[str, typer.Argument(help="A recipe; see `rtx list recipes`.", autocompletion=recipe_names)]
Row = Annotated[str, typer.Argument(help="A row of its table; see `rtx table RECIPE`.")]
Variant = Annotated[str | None, typer.Option(help="A variant of the recipe. Default: the recipe's own.")]
HowMuch = Annotated[
    Scale, typer.Option(help="quick: about a minute; cpu: 1 to 100 minutes on one core; full: the paper's size.")
]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="The seed of all random draws.")]
FEWER = "Stop after this many epochs, if the recipe has more; the ledger records it."
Epochs = Annotated[int | None, typer.Option(min=1, help=FEWER)]
Texts = Annotated[list[str] | None, typer.Option("--text", help="A file or folder of yours, for the recipe text.")]
Midi = Annotated[list[str] | None, typer.Option(help="A folder or MIDI file of yours, for the recipe music.")]
Precision = Annotated[str, typer.Option(help="A precision of Lightning, such as 32-true or bf16-mixed.")]
MaxTime = Annotated[str | None, typer.Option(metavar="HH:MM:SS", help="Save and stop after this time (exit code 124).")]
HOME = {"callback": lambda folder: Path(os.path.expanduser(folder))}  # a shell leaves the ~ of --runs=~/runs
Runs = Annotated[Path, typer.Option(help="Folder for checkpoints and logs.", **HOME)]
Results = Annotated[Path, typer.Option(help="The ledger's folder.", **HOME)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def _checkpoint(path: Path) -> Path:
    """Return the checkpoint in the folder of a run or of `save_pretrained`. A file is returned as it is."""
    names = ("best.safetensors", "model.safetensors")
    found = [path / name for name in names if (path / name).is_file()]
    if path.is_dir() and not found:
        raise ValueError(f"checkpoint: expected a file, or a folder with {' or '.join(names)}, got {path}")
    return found[0] if found else path


CHECKPOINT = "best.safetensors of a run, or its folder."
Checkpoint = Annotated[Path, typer.Argument(help=CHECKPOINT, exists=True, callback=_checkpoint)]


def own_files(recipe: str, texts: list[str] | None, midi: list[str] | None, set_: list[str] | None = None) -> list[str]:
    """Return the one setting of all a user's own files, which only the recipes text and music read."""
    if (texts and recipe != "text") or (midi and recipe != "music"):
        raise ValueError(f"recipe: expected text with --text, or music with --midi, got {recipe!r}")
    if (texts or midi) and (paths := [one for one in set_ or [] if one.startswith("path=")]):
        raise ValueError(f"--set: expected no path with --text or --midi, got {paths[0]!r}")
    given = [*(texts or []), *(midi or [])]
    if lost := [path for path in given if not os.path.exists(os.path.expanduser(path))]:  # "" is an unset variable
        option = "--text" if texts else "--midi"
        raise FileNotFoundError(f"{option}: expected a file or a folder, but {lost[0]!r} does not exist")
    files = [os.path.normpath(path) for path in given]  # songs/ and songs are one run
    return [f"path={dumps(files, ensure_ascii=False) if files[1:] else files[0]}"] if files else []


def device() -> str:
    """Return a CUDA device if there is one, otherwise the CPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
