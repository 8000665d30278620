"""Where a run's numbers come from: its processor, the versions of its packages, and its commit."""

import logging
import os
import platform
import re
import secrets
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

PACKAGE = Path(__file__).parents[1]

log = logging.getLogger(__name__)


def stamp() -> str:
    """Return the time and a random number, so that two runs never have the same stamp."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(4)}"


def hardware(device: "torch.device") -> str:
    """Return the name of the GPU, or of the processor with its number of threads."""
    import torch  # takes seconds: what reads the ledger needs no torch

    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")  # Linux; the standard library knows other systems
    names = re.findall(r"model name\s*: (.*)", info.read_text()) if info.exists() else []
    processor = names[0] if names else platform.processor() or platform.machine()
    threads = torch.get_num_threads()
    return f"{processor}, {threads} thread{'s' if threads > 1 else ''}"


def versions() -> dict[str, str]:
    """Return the versions of the packages that decide a run's numbers."""
    packages = {name: version(name) for name in ("rtx", "torch", "lightning", "numpy")}
    return {"python": platform.python_version()} | packages


def git(*arguments: str) -> str | None:
    """Return what git prints in the package's folder; None if it fails or is not installed."""
    quietly = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}  # otherwise a commit at the same moment could fail
    try:
        done = subprocess.run(["git", *arguments], cwd=PACKAGE, capture_output=True, encoding="utf-8", env=quietly)
    except FileNotFoundError:
        return None
    if "dubious ownership" in done.stderr:  # of another user; git's last line says how to allow it
        allowed = done.stderr.strip().splitlines()[-1].strip()
        log.warning("git refuses the folder %s, so the ledger names no commit. To allow it: %s", PACKAGE, allowed)
    return done.stdout if done.returncode == 0 else None


def commit() -> str | None:
    """Return the package's commit, with "-dirty" if tracked files differ from it; None if git does not track it."""
    if git("ls-files", "--error-unmatch", "--", "__init__.py") is None:  # a copy, maybe inside another repository
        return None
    head = (git("rev-parse", "HEAD") or "").strip() or None
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
    return f"{head}-dirty" if head and changed else head


def in_commit(commit: str | None, file: str, text: str) -> bool | None:
    """Return whether a commit has a file of the package with this text; None without a commit."""
    return None if commit is None else git("show", f"{commit.removesuffix('-dirty')}:./{file}") == text
