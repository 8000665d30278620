"""Find, download and verify the files of the real data sets, and keep what is computed once.

A file is looked for in the folder that the environment variable RTX_DATA names, then in the cache (RTX_CACHE, or
pooch's cache folder for this user). If neither has it, pooch downloads it. The table of files is datasets.toml.
"""

import codecs
import gzip
import hashlib
import logging
import os
import tomllib
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtx.checks import check_choice

log = logging.getLogger(__name__)
Arrays = dict[str, NDArray[Any]]


class File(NamedTuple):
    """A published file. A data folder may also hold it packed by gzip, with ".gz" after its name."""

    path: PurePath  # in a data folder
    sha256: str  # as it is published
    addresses: Sequence[str]  # URLs that serve it
    by_hand: str = ""  # how to get it if no address serves it


class Found(NamedTuple):
    """A file, whether it is there with the published checksum, and where."""

    file: File
    state: Literal["verified", "corrupt", "missing"]
    path: Path | None = None


TABLE = tomllib.loads((resources.files("rtx.tasks") / "datasets.toml").read_text(encoding="utf-8"))
DATASETS: dict[str, tuple[File, ...]] = {
    name: tuple(
        File(PurePath(of["folder"], file), sha256, [at + file for at in of.get("addresses", ())], of.get("by_hand", ""))
        for file, sha256 in of["sha256"].items()
    )
    for name, of in TABLE.items()
}


def fetch(name: str) -> dict[str, Path]:
    """Return the path of every file of a data set, by file name. Each file has the published checksum."""
    paths = {}
    for file, state, path in check(name):
        if path and state == "corrupt" and not path.is_relative_to(cache_folder()):  # nothing is written there
            raise ValueError(f"{path}: expected SHA-256 {file.sha256}, got another; replace or remove the file")
        paths[file.path.name] = path if path and state == "verified" else _download(file)
    return paths


def check(name: str) -> list[Found]:
    """Return what is there of a data set, where, and whether it is right. Nothing is downloaded."""
    return [_look(file, folders()) for file in DATASETS[check_choice("data set", name, DATASETS)]]


def folders() -> list[Path]:
    """Return the folders that a file is looked for in, in this order."""
    return [folder for folder in (_own_folder(), cache_folder()) if folder]


def sha256(name: str) -> str:
    """Return the published checksums of a data set, in the table's order, joined by "+"."""
    return "+".join(file.sha256 for file in DATASETS[name])


def unpacked(path: Path) -> bytes:
    """Return the content of a file, unpacked if gzip packed it. A damaged one is a ValueError."""
    content = path.read_bytes()
    try:
        return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: corrupt or truncated gzip file ({error})") from error


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte-order mark. Other text is a ValueError.

    The text is in NFC, where an accented letter is one character if there is one. Each "\\r\\n" is read as "\\n".
    """
    content = unpacked(path)
    form = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    try:
        text = content.decode(form)
        wrong = content.find(b"\0") if "\0" in text else -1  # UTF-16 without its mark, UTF-32, or no text at all
    except UnicodeDecodeError as error:
        wrong = error.start
    if wrong >= 0:
        found = f"the byte 0x{content[wrong]:02x} at offset {wrong}"
        raise ValueError(f"{path}: expected UTF-8, got {found}; save as UTF-8")
    return unicodedata.normalize("NFC", text.removeprefix("\ufeff").replace("\r\n", "\n"))


def own_files(path: str | Path | Sequence[str], endings: Sequence[str]) -> list[Path]:
    """Return a user's files: those that are given, and those with one of the endings in a folder and its subfolders.

    The files of a folder are in the order of their names. Hidden files, and those in hidden folders, are left out.
    """
    found: dict[Path, None] = {}
    for given in [path] if isinstance(path, str | Path) else path:
        place = Path(os.path.expanduser(str(given)))  # a shell leaves the ~ of path=~/x
        inside = [place]
        if place.is_dir():
            inside = [one for one in sorted(place.rglob("*")) if one.suffix.lower() in endings]
            inside = [one for one in inside if not any(part.startswith(".") for part in one.relative_to(place).parts)]
        files = [one for one in inside if one.is_file()]  # reading a device may never end
        if not files:
            wanted = f"{' or '.join(endings)} file"
            odd = f"has no {wanted}" if place.is_dir() else "is no file" if place.exists() else "does not exist"
            raise FileNotFoundError(f"{given} {odd} (in {Path.cwd()}); expected a file, or a folder with a {wanted}")
        found |= dict.fromkeys(files)
    return [*found]


def own_name(path: str | Path | Sequence[str]) -> str:
    """Return the names of a user's files and folders, without the folders that they are in."""
    given = [path] if isinstance(path, str | Path) else path
    return "+".join(Path(one).absolute().name for one in given)


def sha256_of_arrays(*arrays: NDArray[np.generic]) -> str:
    """Return the SHA-256 of the shapes, types and bytes of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype.str} ".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return the folder for downloads and computed files: RTX_CACHE, or pooch's cache folder for this user."""
    import pooch

    try:
        return Path(os.environ.get("RTX_CACHE") or pooch.os_cache("rtx")).expanduser().resolve()
    except RuntimeError as error:  # a user without a home
        raise ValueError(f"RTX_CACHE: expected the path of a folder ({error})") from error


def cached_arrays(name: str, make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays that `make()` computes. They are kept in the cache as `name`.npz and read from there next time.

    A damaged file is computed again. Where the cache cannot be written, a warning says so.
    """
    path = cache_folder() / "computed" / f"{name}.npz"
    try:
        with np.load(path) as stored:
            return dict(stored)
    except FileNotFoundError:
        pass
    except Exception as error:  # numpy and zipfile raise many kinds for a damaged file
        log.warning("%s: cannot be read (%s), so it is computed again", path, error)
    arrays = make()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as folder:  # so that the file is whole, or not there
            np.savez(partial := Path(folder, path.name), **arrays)  # type: ignore[arg-type]
            partial.replace(path)
    except OSError as error:
        log.warning("%s: cannot be written (%s), so it is computed again next time", path, error.strerror)
    return arrays


def _own_folder() -> Path | None:
    chosen = os.path.expanduser(os.environ.get("RTX_DATA", ""))
    if chosen and not os.path.isdir(chosen):
        raise ValueError(f"RTX_DATA: expected an existing folder, got {chosen!r}")
    return Path(chosen).resolve() if chosen else None


def _look(file: File, folders: Sequence[Path]) -> Found:
    places = (folder / name for folder in folders for name in (file.path, f"{file.path}.gz"))
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        return Found(file, "missing")
    try:
        contents = path.read_bytes(), unpacked(path)
    except ValueError:  # damaged
        return Found(file, "corrupt", path)
    right = file.sha256 in [hashlib.sha256(content).hexdigest() for content in contents]
    return Found(file, "verified" if right else "corrupt", path)


def _download(file: File) -> Path:
    import pooch
    from requests.exceptions import RequestException

    pooch.get_logger().setLevel(logging.WARNING)  # otherwise pooch writes a line per download on stderr
    path, failures = cache_folder() / file.path, []
    for address in file.addresses:
        try:
            return Path(pooch.retrieve(address, f"sha256:{file.sha256}", fname=path.name, path=path.parent))
        except (RequestException, ValueError) as error:  # no answer, or another checksum
            failures.append(f"{address}: {error}")
    raise FileNotFoundError(
        "\n  ".join([f"{file.path.name} is missing. {file.by_hand or 'No address served it:'}", *failures])
        + f"\nPut it at {(_own_folder() or cache_folder()) / file.path} (or there packed by gzip, with .gz after its "
        f"name; RTX_DATA may name another folder). Its SHA-256 before packing is {file.sha256}"
    )
