"""Write files in one step, and check the folders and names that they get."""

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

LONGEST = 180  # bytes of a name: most systems allow 255, and seed, time and ending are added to it
NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]')  # at least one system forbids these


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Replace a file in one step. If the process is killed or the disk is full, the former file is there and whole."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # otherwise a power cut could leave the new name with an empty file
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(f"{path} could not be written ({error.strerror})") from error


def check_writable(name: str, folder: Path) -> None:
    """Make a folder if needed and check that files can be written there, before hours of work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # permissions alone are not enough: the disk may be read-only
            pass
    except OSError as error:
        raise ValueError(f"{name}: expected a folder that can be written, got {folder} ({error.strerror})") from None


def check_output(name: str, path: Path, inputs: Iterable[str | Path] = ()) -> None:
    """Check that a file can be written: its folder exists, no folder has its name, and it is none of the inputs."""
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise ValueError(f"{name}: expected a file in a folder that exists, got {path}")
    if path.resolve() in {Path(one).resolve() for one in inputs}:
        raise ValueError(f"{name}: expected another file than the input, got {path}")


def file_name(text: str) -> str:
    """Return a text as a part of a file name: unchanged if possible.

    Otherwise forbidden characters become "_", a long text is cut, and a checksum keeps different texts apart.
    """
    name = NOT_IN_NAMES.sub("_", text)
    if name == text and len(text.encode()) <= LONGEST:
        return text
    checksum = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
    return name.encode()[: LONGEST - len(checksum) - 1].decode(errors="ignore") + f"-{checksum}"
