"""Make a virtual environment with the Python that runs this, or say in one line why that cannot be.

    python3 tools/make_venv.py .venv

Kept to the syntax of old Pythons, which are to get as far as the message.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        "rtx needs Python 3.11 or newer, and " + sys.executable + " is " + sys.version.split()[0] + ".\n"
        "Name a newer one, as in: make lab PYTHON=python3.12"
    )
try:
    import ensurepip  # noqa: F401  (Debian and Ubuntu package it apart; venv needs it)
    import venv
except ImportError as error:
    sys.exit(
        sys.executable + " cannot make a virtual environment (" + str(error) + ").\n"
        "On Debian and Ubuntu: apt install python3-venv"
    )

venv.create(sys.argv[1], clear=True, symlinks=True, with_pip=True)
