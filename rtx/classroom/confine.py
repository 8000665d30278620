"""Taking rights from a process that is about to run a student's code.

On Linux, Landlock (5.13 and newer) is how a process gives up rights without being root: it then cannot write, remove
or rename any file outside its scratch folder, trace another process, nor, where the kernel can, open TCP connections
(6.7) or send signals. Its children have no more rights than it has. Limits of time and file size hold on any Unix, that
of memory not on macOS.
"""

import ctypes
import math
import os
import resource
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path

WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
# remove folders and files; make devices, folders, files, sockets, pipes, links; from the 2nd version on, move
WRITE = WRITE_FILE | sum(1 << bit for bit in range(4, 13))
MOVE, TCP, SCOPES = 1 << 13, 0b11, 0b11
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, with the same numbers on every processor
BENEATH, VERSION, NO_NEW_PRIVILEGES = 1, 1, 38
MEMORY = 8 << 30  # bytes of address space; torch alone takes a good one
FILE = 50 << 20  # bytes


def limit(seconds: int) -> None:
    """Bound the time from now on, the memory and the files of this process and of those that it starts."""
    signal.alarm(seconds)  # by the clock, for whoever sleeps; a student's code could undo this, and not the next
    time = math.ceil(seconds + sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))  # of the processor
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE), (resource.RLIMIT_CPU, time)):
        hard = resource.getrlimit(kind)[1]
        with suppress(ValueError):  # macOS takes no bound on addresses below what it has mapped: hundreds of GB
            resource.setrlimit(kind, (most, most) if hard == resource.RLIM_INFINITY else (min(most, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def confine(folder: Path) -> bool:
    """Let this process write in `folder` only, for good; False where the system has no such thing."""
    if not can_confine():
        return False
    version = _call(CREATE_RULESET, None, 0, VERSION)
    files = WRITE | (MOVE if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    rights = struct.pack("QQQ", files, TCP if version >= 4 else 0, SCOPES if version >= 6 else 0)
    rights = rights[: 24 if version >= 6 else 16 if version >= 4 else 8]
    ruleset = _call(CREATE_RULESET, rights, len(rights), 0)
    _allow(ruleset, folder, files)
    _allow(ruleset, Path(os.devnull), files & (WRITE_FILE | TRUNCATE))
    _libc().prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _call(RESTRICT_SELF, ruleset, 0)
    return True


def can_confine() -> bool:
    """Whether this system has Landlock."""
    return sys.platform == "linux" and _libc().syscall(CREATE_RULESET, None, 0, VERSION) >= 1


def _allow(ruleset: int, path: Path, rights: int) -> None:
    place = os.open(path, os.O_PATH)
    _call(ADD_RULE, ruleset, BENEATH, struct.pack("=Qi", rights, place), 0)
    os.close(place)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result = _libc().syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock's system call {number} failed")
    return int(result)
