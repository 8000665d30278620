"""Compile the C++ files of the operations into one library, once for each machine and version.

This takes some seconds at the first use. The library is kept in the user's cache folder. Without a compiler, or with
the environment variable CXX set to nothing, other implementations do the same work.
"""

import ctypes
import logging
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

log = logging.getLogger(__name__)

HERE = Path(__file__).parent
SOURCES, HEADERS = sorted(HERE.glob("*/*.cpp")), sorted([*HERE.glob("*.h"), *HERE.glob("*/*.h")])
# not -ffast-math: infinities and the order of sums must stay as written
FLAGS = ["-std=c++17", "-O3", "-shared", "-fPIC", "-pthread", "-fno-math-errno", "-fno-trapping-math", f"-I{HERE}"]
COMPILERS = ("c++", "g++", "clang++")


class BuildError(Exception):
    """The library could not be built; the message says why."""


@cache
def library() -> ctypes.CDLL:
    """Return the compiled library.

    Raises:
        BuildError: if there is no compiler, or compiling fails.
    """
    compiler = find_compiler(os.environ.get("CXX"))
    try:
        name = f"rtx-ops-{_fingerprint(compiler)}.so"
        try:
            return _load_or_compile(compiler, _cache_folder() / name)
        except (OSError, RuntimeError) as error:  # the cache is unknown or read-only
            log.info("the compiled library is not kept in the cache: %s", error)
        with tempfile.TemporaryDirectory(prefix="rtx-ops-") as folder:  # a loaded library needs its file no longer
            return _load_or_compile(compiler, Path(folder) / name)
    except OSError as error:
        raise BuildError(f"the library cannot be compiled, stored or loaded: {error}") from None


@cache
def obstacle() -> str | None:
    """Return why there is no library, or None if there is one. The first call may compile it."""
    try:
        library()
    except BuildError as error:
        return str(error)
    return None


def find_compiler(wanted: str | None) -> list[str]:
    """Return the command of the C++ compiler: the wanted one, or the first of the usual names.

    Raises:
        BuildError: if it is not found.
    """
    try:  # a path may have spaces, and a command may have arguments, such as "ccache g++"
        words = [wanted or ""] if not wanted or shutil.which(wanted) else shlex.split(wanted)
    except ValueError as error:
        raise BuildError(f"CXX: expected a command, got {wanted!r}: {error}") from None
    names: Sequence[str] = COMPILERS if wanted is None else words[:1]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        given = "CXX is set to nothing" if wanted == "" else f"{' or '.join(names)} is not installed"
        raise BuildError(f"it needs a C++ compiler, but {given}")
    return [found, *words[1:]]


def _load_or_compile(compiler: list[str], path: Path) -> ctypes.CDLL:
    """Load the library, and compile it before if the cache does not have it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            _compile(compiler, made := Path(folder) / path.name)
            os.replace(made, path)  # other processes see a whole file or none
    return ctypes.CDLL(str(path))


def _compile(compiler: list[str], path: Path) -> None:
    """Compile to `path`, for this processor if the compiler can."""
    log.info("compiling the C++ operations with %s, once for this machine", shlex.join(compiler))
    for processor in (["-march=native"], ["-mcpu=native"], []):
        done = _run([*compiler, *FLAGS, *processor, *map(str, SOURCES), "-o", str(path)])
        if done.returncode == 0:
            return
    reason = (done.stdout.strip().splitlines() or [f"exit code {done.returncode}"])[0]
    raise BuildError(f"the C++ compiler {shlex.join(compiler)} failed: {reason}")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a compiler. Its messages may have any encoding."""
    null, pipe, joined = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    return subprocess.run(command, stdin=null, stdout=pipe, stderr=joined, encoding="utf-8", errors="replace")


def _fingerprint(compiler: list[str]) -> str:
    """A hash of all that the library depends on: sources, flags, compiler, processor and C library."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    known = [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    version = _run([*compiler, "--version"]).stdout
    machine = [platform.machine(), platform.processor(), *platform.libc_ver(), *known, *FLAGS[:-1], *compiler, version]
    parts = [*(path.read_bytes() for path in (*HEADERS, *SOURCES)), "\n".join(machine).encode()]
    return sha256(b"\0".join(parts)).hexdigest()[:16]


def _cache_folder() -> Path:
    own = os.environ.get("XDG_CACHE_HOME")
    return (Path(own) if own else Path.home() / ".cache") / "rtx" / "ops"
