"""Compile the C++ files of the operations into one library, once for each machine and version.

This takes some seconds at the first use. The library is kept in the user's cache folder. Without a compiler, or with
the environment variable CXX set to nothing, other implementations do the same work.
"""

import ctypes
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

log = logging.getLogger(__name__)

HERE = Path(__file__).parent
SOURCES, HEADERS = sorted(HERE.glob("*/*.cpp")), sorted([*HERE.glob("*.h"), *HERE.glob("*/*.h")])
# not -ffast-math: infinities and the order of sums must stay as written
FLAGS = ["-std=c++17", "-O3", "-shared", "-fPIC", "-pthread", "-fno-math-errno", "-fno-trapping-math", f"-I{HERE}"]
COMPILERS = ("c++", "g++", "clang++")


class BuildError(RuntimeError):
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
        except (OSError, RuntimeError) as error:  # the cache is unknown or read-only, or the library is damaged
            if isinstance(error, BuildError):
                raise
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


def find_compiler(wanted: str | None) -> str:
    """Return the path of the C++ compiler: the wanted one, or the first of the usual names.

    Raises:
        BuildError: if it is not found.
    """
    names = COMPILERS if wanted is None else (wanted,)
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        given = "CXX is set to nothing" if wanted == "" else f"{' or '.join(names)} is not installed"
        raise BuildError(f"it needs a C++ compiler, but {given}")
    return found


def _load_or_compile(compiler: str, path: Path) -> ctypes.CDLL:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        _compile(compiler, path)
    return ctypes.CDLL(str(path))


def _compile(compiler: str, path: Path) -> None:
    """Compile to `path`, for this processor if the compiler can. Other processes see a whole file or none."""
    log.info("compiling the C++ operations with %s, once for this machine", compiler)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        for processor in (["-march=native"], ["-mcpu=native"], []):
            command = [compiler, *FLAGS, *processor, *map(str, SOURCES), "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                os.replace(made, path)
                return
    message = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
    raise BuildError(f"the C++ compiler {compiler} failed: {message}")


def _fingerprint(compiler: str) -> str:
    """A hash of all that the library depends on: sources, flags, compiler and processor."""
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    known = [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    machine = "\n".join([platform.machine(), platform.processor(), *known, *FLAGS[:-1]]).encode()
    parts = [*(path.read_bytes() for path in (*HEADERS, *SOURCES)), version, machine]
    return sha256(b"\0".join(parts)).hexdigest()[:16]


def _cache_folder() -> Path:
    own = os.environ.get("XDG_CACHE_HOME")
    return (Path(own) if own else Path.home() / ".cache") / "rtx" / "ops"
