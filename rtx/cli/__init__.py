"""The `rtx` command: one file for each of its larger verbs, the rest in `commands`.

Torch takes seconds to import. So the files of this folder import what loads torch only where a command computes.
"""

import signal
import sys


def main() -> None:
    """Run the command. Bad input or a missing file ends it with one line and exit code 2, any other failure with 1."""
    # Ctrl-C ends the command at once and without a traceback, also during an import. A training has its own handler.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from rtx.cli.commands import app

        app()
    except ModuleNotFoundError as error:  # the package alone brings the models, not what the command needs
        extra = f"the command rtx needs {error.name}, which is not installed"
        raise SystemExit(f'{extra}: pip install ".[train]" in the folder of rtx') from None
    except (ValueError, OverflowError, OSError, MemoryError) as error:
        from rtx.evidence.tables import printable

        print(f"rtx: {printable(str(error) or type(error).__name__)}", file=sys.stderr)
        mistake = isinstance(error, ValueError | OverflowError | FileNotFoundError | FileExistsError)
        raise SystemExit(2 if mistake else 1) from None
