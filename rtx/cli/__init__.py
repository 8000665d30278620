"""The `rtx` command: one file for each of its larger verbs, the rest in `commands`.

Torch takes seconds to import. So the files of this folder import what loads torch only where a command computes.
"""

import os
import signal
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT  # the exit code of shells


def main() -> None:
    """Run the command. Ctrl-C ends it with exit code 130 and without a traceback, also while torch is imported."""
    signal.signal(signal.SIGINT, _on_interrupt)
    try:
        from rtx.cli.commands import run

        run()
    except ModuleNotFoundError as error:  # the package alone brings the models, not what the command needs
        extra = f"the command rtx needs {error.name}, which is not installed"
        raise SystemExit(f'{extra}: pip install ".[train]" in the folder of rtx') from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, so that open files are tidied up. End the process at once during an import.

    An exception in the middle of an import may be caught there, or change into another one.
    """
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # a second one, while the first is handled
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt
