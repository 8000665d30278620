"""A lock on a run's folder, so that only one process trains in it at a time."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from rtx.training.states import CannotGoOn


def is_locked(folder: Path) -> bool:
    """Return whether a run holds a folder's lock."""
    try:
        with lock_folder(folder):
            return False
    except CannotGoOn:
        return True


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Make a folder and lock it for one run. If the folder is empty at the end, it is removed.

    The lock is freed when the process ends, also if it is killed. A folder that another run has locked is refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", blocking=False)
    try:
        lock.acquire()
    except Timeout:
        busy = f"{folder}: another process trains this run"
        raise CannotGoOn(f"{busy}; wait for its end, or give another folder for --runs") from None
    try:
        yield
    finally:
        with suppress(OSError):  # some systems cannot remove a file that is locked
            if [*folder.iterdir()] == [folder / ".lock"]:
                (folder / ".lock").unlink()  # before the release, when no other run can have begun here
                folder.rmdir()
        lock.release()
