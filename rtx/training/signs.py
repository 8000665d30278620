"""Signs of life: by them, processes and machines that share a sweep know which of its runs are under way."""

import json
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rtx.training.files import write_whole

log = logging.getLogger(__name__)

BEAT = 10.0  # seconds between two signs of life
SILENCE = 60.0  # seconds without one, after which a run counts as dead


def write_sign(sign: Path) -> None:
    """Give a sign of life: a file that names machine and process."""
    write_whole(sign, json.dumps([_here(), os.getpid()]).encode())


@contextmanager
def alive(sign: Path) -> Iterator[None]:
    """Give a sign of life every few seconds while this runs."""
    end = threading.Event()

    def beat() -> None:
        while not end.wait(BEAT):
            try:
                write_sign(sign)
            except OSError as error:  # as on a disk that is full, or out of reach, for a while
                log.warning("no sign of life: %s; the run goes on", error)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
        sign.unlink(missing_ok=True)


def is_dead(sign: Path) -> bool:
    """Whether nobody gives this sign of life: its process on this machine has ended, or it is long silent."""
    try:
        host, process = json.loads(sign.read_text())
        last = sign.stat().st_mtime
    except FileNotFoundError:
        return True
    probe = sign.with_name(f"clock-{socket.gethostname()}-{os.getpid()}")
    probe.touch()  # the file system's clock, which may not be this machine's
    now = probe.stat().st_mtime
    probe.unlink()
    return now - last > SILENCE or (host == _here() and not _runs(process))


def _here() -> str:
    """What tells this machine from one of the same name, and from a container, which counts processes anew."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # elsewhere than on Linux the name must do
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return " ".join(parts)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
