"""Download a file, verify it, and only then put it in its place."""

import gzip
import hashlib
import logging
import os
import posixpath
import shutil
import tarfile
import time
import zlib
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

LARGEST = 2**28  # bytes; no file of the data sets comes near it
UNDER_WAY = ".download-"
DAY = 24 * 60 * 60  # seconds


def download(address: str, path: Path, sha256: str, gzipped: bool = False) -> None:
    """Write what an address serves to `path`; a file that is there is replaced, and stays if anything fails.

    Args:
        address: a URL; after a "#" the name of a file inside the tar archive that it serves.
        path: where to.
        sha256: of what is served.
        gzipped: pack it by gzip.

    Raises:
        RequestException: if there is no answer, or it is cut short.
        ValueError: if its checksum is another, or the archive is damaged or has no such file.
        OSError: if it cannot be written, as in a cache that is for reading only.
    """
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)  # else it writes a line per download on stderr
    url, _, member = address.partition("#")
    path.parent.mkdir(parents=True, exist_ok=True)
    forget_killed(path.parent)
    with TemporaryDirectory(prefix=UNDER_WAY, dir=path.parent) as folder:
        expected = None if member else f"sha256:{sha256}"
        served = Path(pooch.retrieve(url, expected, fname="served", path=folder))
        if member:
            content = read_member(served, member)
            if (found := hashlib.sha256(content).hexdigest()) != sha256:
                raise ValueError(f"{member}: its SHA-256 is {found}, expected {sha256}")
            served.write_bytes(content)
        if gzipped:
            served.write_bytes(gzip.compress(served.read_bytes(), mtime=0))
        os.replace(served, path)


def forget_killed(folder: Path) -> None:
    """Remove what downloads left that were killed: nothing was written there for a day."""
    for left in folder.glob(UNDER_WAY + "*"):
        with suppress(FileNotFoundError):  # another process ends, or removes it too
            if time.time() - left.stat().st_mtime > DAY:
                shutil.rmtree(left, ignore_errors=True)


def read_member(archive: Path, name: str) -> bytes:
    """One file of a tar archive, read into memory: nothing is unpacked on the disk, whatever the archive holds.

    Raises:
        ValueError: if the archive is damaged, or the file is missing in it or larger than any of the data sets'.
    """
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if posixpath.normpath(member.name) == name and member.isfile():
                    if member.size > LARGEST:
                        raise ValueError(f"{name}: expected at most {LARGEST} bytes, got {member.size}")
                    return tar.extractfile(member).read()  # type: ignore[union-attr]  # a file has one
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"expected a tar archive with {name}, it is damaged ({error})") from error
    raise ValueError(f"expected a tar archive with {name}, it has no such file")
