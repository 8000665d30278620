"""Files that are whole or not there, and folders that can hold them."""

import hashlib
import os
import re
from pathlib import Path
from tempfile import TemporaryFile

LONGEST = 180  # bytes of a name; most systems end at 255, and seed, time and ending follow
NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]')  # one of the systems cannot hold it


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file in one step: whenever this is cut short, what stood there before still stands there, whole.

    Raises:
        OSError: if it cannot be written, as on a full disk; nothing is left of it.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # else the new name may outlive a loss of power, and what it names not
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(f"{path} could not be written ({error.strerror})") from error
    if os.name == "posix":  # elsewhere a folder cannot be opened
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def check_writable(name: str, folder: Path) -> None:
    """Check, before hours of work, that a folder can be written; it is made if it is not there.

    Raises:
        ValueError: naming `name` and the folder, otherwise.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # rights alone do not tell: a disk may be read-only
            pass
    except OSError as error:
        raise ValueError(f"{name}: expected a folder that can be written, got {folder} ({error.strerror})") from None


def file_name(text: str) -> str:
    """A text as a part of a file's name: itself, where a name can hold it.

    Else with "_" for what no name can hold, cut where it is too long, and with a checksum: two texts never share one.
    """
    name = NOT_IN_NAMES.sub("_", text)
    if name == text and len(text.encode()) <= LONGEST:
        return text
    checksum = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
    return name.encode()[: LONGEST - len(checksum) - 1].decode(errors="ignore") + f"-{checksum}"
