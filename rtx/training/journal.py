"""A sweep's journal that outlives a kill, or a full disk, in the middle of a line."""

import json
import os
from pathlib import Path
from typing import Any

from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock


class Journal(JournalFileBackend):
    """Optuna's journal, one JSON line for each change, but a line that was cut short is dropped before the next.

    Optuna's own would add the next line to its half, and no process could read the journal again. A line cut short is
    a change that nobody has heard of yet.

    Args:
        path: the file; made if there is none.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path, self.lock = path, lock_of(path)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add changes.

        Raises:
            OSError: if they cannot be written; those before are whole.
        """
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        self.lock.acquire()
        try:
            with self.path.open("r+b") as file:
                file.seek(end := _end_of_lines(file.read()))
                file.truncate(end)
                file.write(lines.encode())
                file.flush()
                os.fsync(file.fileno())
        finally:
            self.lock.release()


def lock_of(path: Path) -> JournalFileOpenLock:
    """The lock for a file, which Optuna frees if its holder was killed.

    Its usual one, a link, is never freed where that leads nowhere: in a folder that was moved since, or that this
    machine sees under another name.
    """
    return JournalFileOpenLock(str(path.resolve()))


def _end_of_lines(content: bytes) -> int:
    return content.rfind(b"\n") + 1
