"""Ask pip-audit for known faults of the packages in constraints.txt; say plainly of which nothing could be learned.

Exit code 0: none is known of those that were looked up. 1: some are, and listed. 3: none could be looked up.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PINS = Path(__file__).parents[1] / "constraints.txt"
FAULTY, NOT_ASKED = 1, 3


def verdict(packages: list[dict[str, Any]]) -> tuple[int, str]:
    """Exit code and text for pip-audit's list of packages, each with its `vulns` or with a `skip_reason`."""
    asked = [one for one in packages if "skip_reason" not in one]
    if not asked:
        return NOT_ASKED, f"none of {len(packages)} packages could be looked up from here: nothing is known"
    faults = [
        f"{one['name']} {one['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'none yet'}"
        for one in asked
        for fault in one["vulns"]
    ]
    told = [f"{len(asked)} of {len(packages)} packages looked up, {len(faults)} known faults"]
    return FAULTY if faults else 0, "\n".join(told + faults)


def main() -> int:
    """Run it; return the exit code."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(PINS), "--no-deps", "--disable-pip"]
    done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True)
    try:
        code, text = verdict(json.loads(done.stdout)["dependencies"])
    except ValueError:  # it answered nothing: as without a network
        code, text = NOT_ASKED, f"no answer: {(done.stderr.strip().splitlines() or ['nothing was said'])[-1][:200]}"
    print(f"audit: {text}", file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main())
