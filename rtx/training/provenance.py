"""Where a run's numbers come from: its processor, the versions of its packages, and its commit."""

import os
import platform
import secrets
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch

PACKAGE = Path(__file__).parents[1]


def stamp() -> str:
    """The time, and a random number: runs that end in the same microsecond have names of their own."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(4)}"


def hardware(device: torch.device) -> str:
    """The processor a run used, with its threads, or the GPU's name."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{_processor()}, {threads} thread{'s' if threads > 1 else ''}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")  # Linux; elsewhere the standard library knows
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of what decides a run's numbers."""
    packages = {name: version(name) for name in ("rtx", "torch", "lightning", "numpy")}
    return {"python": platform.python_version()} | packages


def git(*arguments: str) -> str | None:
    """What git says in the package's folder; None where it fails, or is not there."""
    quietly = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}  # else it locks the index, and a commit made just then fails
    try:
        done = subprocess.run(["git", *arguments], cwd=PACKAGE, capture_output=True, text=True, env=quietly)
    except FileNotFoundError:  # no git on this machine
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit() -> str | None:
    """The package's git commit, marked "-dirty" if tracked files differ from it; None where git does not track it."""
    if git("ls-files", "--error-unmatch", "--", "__init__.py") is None:  # a copy, maybe in another's repository
        return None
    head = git("rev-parse", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
    return f"{head}-dirty" if head and changed else head
