"""The `rtx` command: one file for each of its larger verbs, the rest in `commands`."""

try:
    from rtx.cli.commands import app, main
except ModuleNotFoundError as error:  # the package alone brings the models, not what the command needs
    said = f'the command rtx needs {error.name}, which is not installed: pip install ".[train]" in the folder of rtx'
    raise SystemExit(said) from None

__all__ = ["app", "main"]
