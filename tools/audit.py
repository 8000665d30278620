"""Ask pip-audit for known faults of the packages in constraints.txt; say plainly where its data cannot be reached.

Exit code 0: none is known. 1: some are, and listed. 3: nobody could be asked, so nothing is known.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PINS = Path(__file__).parents[1] / "constraints.txt"
UNREACHED = (
    "ConnectionError",
    "ServiceError",
    "Max retries",
    "timed out",
    "Failed to resolve",
    "HTTPError",
    "Could not connect",
)
NOT_ASKED = 3


def main() -> int:
    """Run it; return the exit code."""
    if find_spec("pip_audit") is None:
        print(
            "audit: not asked, pip-audit is not installed: .venv/bin/python -m pip install pip-audit", file=sys.stderr
        )
        return NOT_ASKED
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(PINS), "--no-deps", "--disable-pip"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and any(sign in done.stderr for sign in UNREACHED):
        last = done.stderr.strip().splitlines()[-1]
        print(f"audit: not asked, the data of known faults cannot be reached from here ({last[:200]})", file=sys.stderr)
        return NOT_ASKED
    print(done.stdout + done.stderr, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
