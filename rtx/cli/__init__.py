"""The `rtx` command: one file for each of its larger verbs, the rest in `commands`."""

from rtx.cli.commands import app, main

__all__ = ["app", "main"]
