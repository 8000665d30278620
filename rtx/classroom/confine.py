"""Take away the rights of a process before it runs a student's code.

Landlock limits the files that a process may open. Seccomp, by the library libseccomp, refuses system calls.
"""

import ctypes
import errno
import os
import resource
import struct
import sys
from contextlib import suppress
from pathlib import Path

import torch

LINUX = sys.platform == "linux"
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # Landlock's system calls have these numbers on all processors
BENEATH, VERSION, NO_NEW_PRIVILEGES = 1, 1, 38
READ, READ_OR_WRITE = 0b1101, 0b110  # rights: execute, read and list what is in a folder; read and write one file
MEMORY = 2 << 30  # bytes beyond what rtx itself uses
ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # libseccomp's answers to a system call
# processes and signals, the network, keys and shared memory, limits, and what Landlock leaves of files
REFUSED = """
    fork vfork clone execve execveat setsid setpgid ptrace process_vm_readv process_vm_writev unshare setns mount bpf
    kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal
    socket socketpair io_uring_setup memfd_create mq_open mq_unlink add_key request_key keyctl
    shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semtimedop semctl
    setrlimit prlimit64 setpriority ioprio_set sched_setaffinity sched_setscheduler sched_setparam sched_setattr
    truncate ftruncate creat chmod fchmod fchmodat chown fchown lchown fchownat utime utimes futimesat utimensat
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
"""


def confine(seconds: int) -> None:
    """Take away from this process, until it ends, all rights that the system can take away."""
    limits = dict.fromkeys((resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC), 0)
    limits |= {resource.RLIMIT_CPU: seconds, resource.RLIMIT_NOFILE: 256}
    if LINUX:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limits[resource.RLIMIT_AS] = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
    for kind, most in limits.items():
        with suppress(ValueError):  # where the machine's own limit is lower
            resource.setrlimit(kind, (most, most))
    if version := _landlock_version():
        _landlock(version)
    if library := _libseccomp():
        _seccomp(library)


def can_confine() -> bool:
    """Return whether this system can keep a process from files, the network and other processes."""
    return _landlock_version() >= 3 and bool(_libseccomp())  # before version 3, code could empty any file


def _landlock_version() -> int:
    return max(0, ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, VERSION)) if LINUX else 0


def _landlock(version: int) -> None:
    """Let the process read Python and its packages, and write only to the null device."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    files = (1 << 13 + sum(version >= newer for newer in (2, 3, 5))) - 1  # every right that this version knows
    ruleset = call(CREATE_RULESET, struct.pack("Q", files), 8, 0)
    packages = [str(Path(file).parents[1]) for file in (__file__, torch.__file__)]
    places = dict.fromkeys([*packages, sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", "/etc"], READ)
    for path, allowed in {**places, os.devnull: READ_OR_WRITE}.items():
        with suppress(FileNotFoundError, NotADirectoryError):
            place = os.open(path, os.O_PATH)
            call(ADD_RULE, ruleset, BENEATH, struct.pack("=Qi", allowed, place), 0)
            os.close(place)
    ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if call(RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "Landlock could not limit the files")


def _libseccomp() -> ctypes.CDLL | None:
    with suppress(OSError):
        return ctypes.CDLL("libseccomp.so.2")
    return None


def _seccomp(library: ctypes.CDLL) -> None:
    """Refuse system calls by their names, and give up the rights of an administrator."""
    ctypes.CDLL(None).capset(struct.pack("Ii", 0x20080522, 0), bytes(24))
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(ALLOW))
    numbers = [library.seccomp_syscall_resolve_name(name.encode()) for name in ("clone3", *REFUSED.split())]
    absent = dict.fromkeys([numbers[0], *range(450, 512)], errno.ENOSYS)  # libc uses older calls where these are absent
    for number, answer in {**dict.fromkeys(numbers, errno.EPERM), **absent}.items():
        library.seccomp_rule_add(rules, REFUSE | answer, number, 0)  # a negative number is unknown to this processor
    fcntl = library.seccomp_syscall_resolve_name(b"fcntl")
    for command in (8, 15):  # F_SETOWN, F_SETOWN_EX: the kernel sends signals to the owner, which may be any process
        argument = struct.pack("IIQQ", 1, 7, 0xFFFFFFFF, command)  # 7: compare the lower half, which the kernel reads
        library.seccomp_rule_add_array(rules, REFUSE | errno.EPERM, fcntl, 1, argument)
    if library.seccomp_load(rules):
        raise OSError("libseccomp could not refuse system calls")
