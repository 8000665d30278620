"""The C++ files of this folder as one library: made once for each machine and version, by the compiler found there.

It takes some seconds, is kept in the user's cache, and says so in the log. Without a compiler, or with the
variable CXX set to nothing, the kernels in eager torch do the same work.
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

SOURCES = sorted(Path(__file__).parent.glob("*.cpp"))
HEADERS = sorted(Path(__file__).parent.glob("*.h"))
# not -ffast-math: infinities and the order of sums are to stay as written
FLAGS = ["-std=c++17", "-O3", "-shared", "-fPIC", "-pthread", "-fno-math-errno", "-fno-trapping-math"]
COMPILERS = ("c++", "g++", "clang++")


class BuildError(RuntimeError):
    """Why there is no library."""


@cache
def library() -> ctypes.CDLL:
    """The functions of all C++ files.

    Raises:
        BuildError: if there is no compiler, or it cannot make them.
    """
    return _load(os.environ.get("CXX"))


@cache
def obstacle() -> str | None:
    """Why there is no library, or None if there is one; the first call may make it."""
    try:
        library()
    except BuildError as error:
        return str(error)
    return None


def _load(wanted: str | None) -> ctypes.CDLL:
    compiler = find_compiler(wanted)
    name = f"rtx-kernels-{_fingerprint(compiler)}.so"
    try:
        return _made(compiler, _cache() / name)
    except (OSError, RuntimeError) as error:  # a folder that cannot be written or is not known, or a damaged library
        if isinstance(error, BuildError):
            raise
        log.info("the compiled kernels are not kept: %s", error)
    with tempfile.TemporaryDirectory(prefix="rtx-kernels-") as folder:  # once loaded, its file is not needed any more
        try:
            return _made(compiler, Path(folder) / name)
        except OSError as error:
            raise BuildError(f"the compiled kernels cannot be kept or loaded: {error}") from None


def _made(compiler: str, path: Path) -> ctypes.CDLL:
    """The library at `path`, which is compiled if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        _make(compiler, path)
    return ctypes.CDLL(str(path))


def find_compiler(wanted: str | None) -> str:
    """The path of the C++ compiler: the one that is wanted, or the first of the usual names.

    Raises:
        BuildError: if there is none.
    """
    names = COMPILERS if wanted is None else (wanted,)
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        told = "CXX is set to nothing" if wanted == "" else f"found none of the name {' or '.join(names)}"
        raise BuildError(f"it needs a C++ compiler, and {told}")
    return found


def _make(compiler: str, path: Path) -> None:
    """Compile to `path`, for this processor where the compiler can; other processes see all of it or nothing."""
    log.info("compiling the CPU kernels with %s, once for this machine", compiler)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        for processor in (["-march=native"], ["-mcpu=native"], []):
            command = [compiler, *FLAGS, *processor, *map(str, SOURCES), "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                os.replace(made, path)
                return
    told = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
    raise BuildError(f"the C++ compiler {compiler} failed: {told}")


def _fingerprint(compiler: str) -> str:
    """What the library depends on: its sources, the compiler and the processor."""
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    parts = [*(path.read_bytes() for path in (*HEADERS, *SOURCES)), version, _processor().encode(), str(FLAGS).encode()]
    return sha256(b"\0".join(parts)).hexdigest()[:16]


def _processor() -> str:
    """What tells a processor from one with other instructions."""
    description = Path("/proc/cpuinfo")
    lines = description.read_text().splitlines() if description.exists() else []
    known = [line for line in lines if line.startswith(("flags", "Features", "model name"))]
    return "\n".join([platform.machine(), platform.processor(), *known[:2]])


def _cache() -> Path:
    own = os.environ.get("XDG_CACHE_HOME")
    return (Path(own) if own else Path.home() / ".cache") / "rtx" / "kernels"
