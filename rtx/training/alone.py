"""One run at a time in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from rtx.training.processes import first
from rtx.training.states import CannotGoOn


def is_held(folder: Path) -> bool:
    """Whether a run holds a folder."""
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    except FileNotFoundError:  # none has begun there
        return False
    lock.release()
    return False


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make a folder and hold it for one run; however its process ends, the folder is free again.

    If nothing is in it at the end, as where the model cannot be built, it is removed.

    Of several processes that train together, the first holds it for all.

    Raises:
        CannotGoOn: if another run holds it.
        OSError: if it cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not first():
        yield
        return
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise CannotGoOn(f"{folder}: the same run is under way there; wait for its end, or give other --runs") from None
    try:
        yield
    finally:
        with suppress(OSError):  # some systems do not remove what is held: there it stays
            if [*folder.iterdir()] == [folder / ".lock"]:
                (folder / ".lock").unlink()  # while it is held: nobody else has begun here
                folder.rmdir()
        lock.release()
