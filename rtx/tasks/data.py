"""Find, download and verify the files of the real data sets, and keep what is computed once.

Each file is looked for in the folder that the environment variable RTX_DATA names, then in the cache
(RTX_CACHE, or pooch's place for this user), then at its upstream addresses, one after the other. The table of
files is datasets.toml.
"""

import gzip
import hashlib
import io
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
from rtx.tasks.download import download

log = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]
DIGEST = hashlib.sha256().digest_size


class File(NamedTuple):
    """A published file.

    Args:
        path: its place below a data folder.
        sha256: its checksum; of the text in it, if it is `gzipped`.
        addresses: what serves it, as `download` takes them.
        gzipped: whether it is packed here, and plain where it is served. Packed anew it has other bytes, the same text.
        by_hand: how to come by it, if no address serves it.
    """

    path: str
    sha256: str
    addresses: tuple[str, ...]
    gzipped: bool = False
    by_hand: str = ""

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self.path.rpartition("/")[2]


class Found(NamedTuple):
    """What `check` sees of one file; `path` is None where it is missing, `sha256` also where it cannot be unpacked."""

    file: File
    path: Path | None
    sha256: str | None

    @property
    def state(self) -> Literal["verified", "corrupt", "missing"]:
        """Whether the file is there with the published checksum."""
        if self.path is None:
            return "missing"
        return "verified" if self.sha256 == self.file.sha256 else "corrupt"


def _read_datasets() -> dict[str, tuple[File, ...]]:
    table = tomllib.loads((resources.files("rtx.tasks") / "datasets.toml").read_text(encoding="utf-8"))
    return {name: tuple(_files(**entry)) for name, entry in table.items()}


def _files(
    folder: str, sha256: dict[str, str], addresses: Sequence[str] = (), gzipped: bool = False, by_hand: str = ""
) -> Iterator[File]:
    for name, checksum in sha256.items():
        served = name.removesuffix(".gz") if gzipped else name
        yield File(f"{folder}/{name}", checksum, tuple(address + served for address in addresses), gzipped, by_hand)


DATASETS: dict[str, tuple[File, ...]] = _read_datasets()
"""The files of each data set."""


def fetch(name: str) -> dict[str, Path]:
    """File name → path of every file of the data set `name`, each with a verified SHA-256.

    Raises:
        ValueError: if `name` is unknown, RTX_DATA is no folder, or a file in it has another checksum.
        OSError: if a file is nowhere and no address serves it (FileNotFoundError), or it cannot be read or written.
    """
    check_choice("dataset", name, DATASETS)
    return {file.name: _locate(file) for file in DATASETS[name]}


def check(name: str) -> list[Found]:
    """What is there of the data set `name`, where, and whether it is right; downloads nothing.

    Raises:
        ValueError: if `name` is unknown or RTX_DATA is no folder.
        OSError: if a file cannot be read, as one in a closed folder.
    """
    check_choice("dataset", name, DATASETS)
    own, cache = _own_folder(), cache_folder()
    own_first = [_look(file, own or cache) for file in DATASETS[name]]
    return [found if found.path else _look(found.file, cache) for found in own_first]


def sha256(name: str) -> str:
    """The published checksums of the data set `name`, in the table's order, joined by "+".

    Raises:
        ValueError: if `name` is unknown.
    """
    check_choice("dataset", name, DATASETS)
    return "+".join(file.sha256 for file in DATASETS[name])


def unpacked(path: Path) -> bytes:
    """What a gzipped file holds.

    Raises:
        ValueError: naming the file, if it is none, or cut short.
    """
    try:
        return gzip.decompress(path.read_bytes())
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: corrupt or truncated gzip file ({error})") from error


def sha256_of_arrays(*arrays: NDArray[np.generic]) -> str:
    """SHA-256 over the shapes, types and bytes of arrays, for data that come from no file of ours."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype.str} ".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Where downloads and computed files are kept: RTX_CACHE, or pooch's cache folder for this user.

    Raises:
        ValueError: if this user has no home, as in a container, and RTX_CACHE is not set, or is in no home that exists.
    """
    if chosen := os.environ.get("RTX_CACHE"):
        return _folder("RTX_CACHE", chosen)
    import pooch

    try:
        return Path(pooch.os_cache("rtx"))
    except RuntimeError:
        raise ValueError("there is no home folder to keep data in: set RTX_CACHE to a folder") from None


def cached_arrays(name: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays that `make()` computes, kept as `name`.npz in the cache, with their SHA-256 behind.

    A run cut short leaves no half-written file behind; one that is damaged or cannot be read is made anew. Where the
    cache cannot be written, that is said, and the arrays are as good.
    """
    path = cache_folder() / "computed" / f"{name}.npz"
    if (content := _content(path)) is not None:
        whole, digest = content[:-DIGEST], content[-DIGEST:]
        if hashlib.sha256(whole).digest() == digest:
            with np.load(io.BytesIO(whole)) as stored:
                return dict(stored)
        log.warning("%s: damaged, or not to be read; is made anew", path)
    arrays = make()
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # numpy reads it as allow_pickle
    try:
        _write_whole(path, buffer.getvalue() + hashlib.sha256(buffer.getbuffer()).digest())
    except OSError as error:
        log.warning("%s could not be written (%s): it is computed again next time", path, error.strerror)
    return arrays


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError as error:  # none is there; or it is a folder, or another user's
        return None if isinstance(error, FileNotFoundError) else b""


def _write_whole(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _folder(name: str, chosen: str) -> Path:
    try:
        return Path(chosen).expanduser().resolve()
    except RuntimeError:
        raise ValueError(f"{name}: expected a folder, got {chosen!r}, and there is no such home") from None


def _own_folder() -> Path | None:
    chosen = os.environ.get("RTX_DATA")
    if not chosen:
        return None
    folder = _folder("RTX_DATA", chosen)
    if not folder.is_dir():
        raise ValueError(f"RTX_DATA: expected an existing folder, got {chosen!r}, which is {folder}")
    return folder


def _look(file: File, folder: Path) -> Found:
    path = folder / file.path
    if not path.is_file():
        return Found(file, None, None)
    try:
        with gzip.open(path) if file.gzipped else path.open("rb") as stream:
            return Found(file, path, hashlib.file_digest(stream, "sha256").hexdigest())
    except (gzip.BadGzipFile, EOFError, zlib.error):  # of a packed file: no gzip, or cut short
        return Found(file, path, None)


def _locate(file: File) -> Path:
    own = _own_folder()
    if own and (found := _look(file, own)).path:
        # The user's folder is neither written to nor passed over: a wrong file there is the user's to know.
        if found.state == "corrupt":
            raise ValueError(
                f"{found.path}: corrupt or truncated, {_checksum(file)} is {found.sha256 or 'not to be read'}, "
                f"expected {file.sha256}; replace it" + (", or remove it to have it downloaded" * bool(file.addresses))
            )
        return found.path
    found = _look(file, cache_folder())
    return found.path if found.path and found.state == "verified" else _download(file)


def _download(file: File) -> Path:
    from requests.exceptions import RequestException

    path = cache_folder() / file.path
    failures = []
    for address in file.addresses:
        try:
            download(address, path, file.sha256, file.gzipped)
        except (RequestException, ValueError) as error:  # no answer or cut short; another checksum or archive
            log.info("%s: %s", address, error)
            failures.append(f"  {address}\n    {type(error).__name__}: {error}\n")
        else:
            log.info("downloaded %s to %s", address, path)
            return path
    tried = "no address served it:\n" + "".join(failures) if failures else f"no address serves it. {file.by_hand}\n"
    raise FileNotFoundError(
        f"{file.name}: not here, and {tried}"
        f"Get it by other means and put it at {(_own_folder() or cache_folder()) / file.path} "
        f"(RTX_DATA may name another folder); {_checksum(file)} is {file.sha256}"
    )


def _checksum(file: File) -> str:
    return "the SHA-256 of the text in it" if file.gzipped else "its SHA-256"
