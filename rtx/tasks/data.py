"""Find, download and verify the files of the real data sets, and keep what is computed once.

A file is looked for in the folder that the environment variable RTX_DATA names, then in the cache (RTX_CACHE, or
pooch's cache folder for this user). If neither has it, pooch downloads it. The table of files is datasets.toml.
"""

import gzip
import hashlib
import logging
import os
import tomllib
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtx.nn.validate import check_choice

log = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]


class File(NamedTuple):
    """A published file.

    Args:
        path: its place in a data folder. A folder may also hold the file packed by gzip, with ".gz" after its name.
        sha256: its checksum, before it is packed.
        addresses: URLs that serve it.
        by_hand: how to get it if no address serves it.
    """

    path: str
    sha256: str
    addresses: tuple[str, ...]
    by_hand: str = ""

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self.path.rpartition("/")[2]


class Found(NamedTuple):
    """A file, its place, and the checksum of what is there. Both are None if the file is missing."""

    file: File
    path: Path | None = None
    sha256: str | None = None

    @property
    def state(self) -> Literal["verified", "corrupt", "missing"]:
        """Whether the file is there with the published checksum."""
        if self.path is None:
            return "missing"
        return "verified" if self.sha256 == self.file.sha256 else "corrupt"


def _files(folder: str, sha256: dict[str, str], addresses: Sequence[str] = (), by_hand: str = "") -> Iterator[File]:
    for name, checksum in sha256.items():
        yield File(f"{folder}/{name}", checksum, tuple(address + name for address in addresses), by_hand)


TABLE = tomllib.loads((resources.files("rtx.tasks") / "datasets.toml").read_text(encoding="utf-8"))
DATASETS: dict[str, tuple[File, ...]] = {name: tuple(_files(**entry)) for name, entry in TABLE.items()}
"""The files of each data set."""


def fetch(name: str) -> dict[str, Path]:
    """Return the path of every file of a data set, by file name. Each file has the published checksum.

    Raises:
        ValueError: if RTX_DATA is not a folder, or a file in it has another checksum.
        FileNotFoundError: if a file is missing and no address serves it.
    """
    return {found.file.name: _verified(found) for found in check(name)}


def check(name: str) -> list[Found]:
    """Return what is there of a data set, where, and whether it is right. Nothing is downloaded."""
    check_choice("dataset", name, DATASETS)
    own, cache = _own_folder(), cache_folder()
    own_first = [Found(file) if own is None else _look(file, own) for file in DATASETS[name]]
    return [found if found.path else _look(found.file, cache) for found in own_first]


def sha256(name: str) -> str:
    """Return the published checksums of a data set, in the table's order, joined by "+"."""
    check_choice("dataset", name, DATASETS)
    return "+".join(file.sha256 for file in DATASETS[name])


def unpacked(path: Path) -> bytes:
    """Return the content of a file; one whose name ends in .gz is unpacked.

    Raises:
        ValueError: naming the file, if it should be gzipped but is not, or is cut short.
    """
    content = path.read_bytes()
    try:
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: corrupt or truncated gzip file ({error})") from error


def sha256_of_arrays(*arrays: NDArray[np.generic]) -> str:
    """Return the SHA-256 of the shapes, types and bytes of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype.str} ".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return the folder for downloads and computed files: RTX_CACHE, or pooch's cache folder for this user.

    Raises:
        ValueError: if the home folder in its name does not exist, as in a container whose user has none.
    """
    import pooch

    try:
        return Path(os.environ.get("RTX_CACHE") or pooch.os_cache("rtx")).expanduser().resolve()
    except RuntimeError as error:
        raise ValueError(f"RTX_CACHE: expected a folder to keep data in ({error}); set it to a full path") from None


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
    partial = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy reads it as allow_pickle
        os.replace(partial, path)
    except OSError as error:
        log.warning("%s: cannot be written (%s), so it is computed again next time", path, error.strerror)
    finally:
        if os.path.exists(partial):
            partial.unlink()
    return arrays


def _own_folder() -> Path | None:
    chosen = os.environ.get("RTX_DATA")
    if chosen and not os.path.isdir(os.path.expanduser(chosen)):
        raise ValueError(f"RTX_DATA: expected an existing folder, got {chosen!r}")
    return Path(chosen).expanduser().resolve() if chosen else None


def _look(file: File, folder: Path) -> Found:
    plain, packed = folder / file.path, folder / f"{file.path}.gz"
    try:
        if plain.is_file():
            return Found(file, plain, hashlib.sha256(plain.read_bytes()).hexdigest())
        return Found(file, packed, hashlib.sha256(unpacked(packed)).hexdigest()) if packed.is_file() else Found(file)
    except ValueError:  # not gzip
        return Found(file, packed)


def _verified(found: Found) -> Path:
    own = _own_folder()
    if found.path and found.state == "verified":
        return found.path
    if found.path and own and found.path.is_relative_to(own):  # RTX_DATA is the user's: nothing is written there
        raise ValueError(
            f"{found.path}: corrupt or truncated, its SHA-256 is {found.sha256}, expected {found.file.sha256}; "
            "replace the file, or remove it to have it downloaded"
        )
    return _download(found.file)


def _download(file: File) -> Path:
    import pooch
    from requests.exceptions import RequestException

    pooch.get_logger().setLevel(logging.WARNING)  # otherwise pooch writes a line per download on stderr
    path, failures = cache_folder() / file.path, []
    for address in file.addresses:
        try:
            return Path(pooch.retrieve(address, f"sha256:{file.sha256}", fname=path.name, path=path.parent))
        except (RequestException, ValueError) as error:  # no answer, or another checksum
            failures.append(f"  {address}\n    {type(error).__name__}: {error}\n")
    tried = "no address served it:\n" + "".join(failures) if failures else f"no address serves it. {file.by_hand}\n"
    raise FileNotFoundError(
        f"{file.name}: it is missing, and {tried}Get it by other means and put it at "
        f"{(_own_folder() or cache_folder()) / file.path} (or there packed by gzip, with .gz after its name; RTX_DATA "
        f"may name another folder); its SHA-256 before packing is {file.sha256}"
    )
