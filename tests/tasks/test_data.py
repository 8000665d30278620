"""Files are found, downloaded, verified and cached, and every fault has one clear error."""

import hashlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from rtx.tasks import data

CONTENT = b"a tune in eighty-eight columns\n" * 1000
GOOD = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `pages`, path → (body, the length it claims), and counts requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, tuple[bytes, int]] = {}
        self.requests: Counter[str] = Counter()

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests[self.path] += 1
        if self.path not in self.server.pages:
            self.send_error(404)
            return
        body, length = self.server.pages[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the tests' output quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.pages = {
            "/good/tune": (CONTENT, len(CONTENT)),
            "/other/tune": (b"something else", 14),
            "/short/tune": (CONTENT[:-7], len(CONTENT)),
        }
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("RTX_CACHE", str(folder))
    monkeypatch.delenv("RTX_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return folder


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    def offer(*addresses: str) -> None:
        monkeypatch.setitem(data.DATASETS, "tune", (data.File("music/tune", GOOD, addresses),))

    return offer


def closed_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}/tune"


def files_in(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


def test_a_download_is_verified_kept_and_silent(server, offer, cache, capfd):
    offer(server.address("/good/tune"))
    assert data.check("tune")[0].state == "missing"
    path = data.fetch("tune")["tune"]
    assert path == cache / "music" / "tune" and path.read_bytes() == CONTENT
    assert data.fetch("tune")["tune"] == path
    assert server.requests == {"/good/tune": 1}
    assert data.check("tune")[0].state == "verified"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("first", ["/absent/tune", "/other/tune", "/short/tune", None])
def test_the_next_mirror_serves_when_one_is_dead_wrong_or_cut_short(first, server, offer, cache):
    offer(server.address(first) if first else closed_port(), server.address("/good/tune"))
    assert data.fetch("tune")["tune"].read_bytes() == CONTENT
    assert files_in(cache) == ["music/tune"]


@pytest.mark.parametrize(
    ("page", "reason"), [("/absent/tune", "404"), ("/other/tune", "hash"), ("/short/tune", "IncompleteRead")]
)
def test_a_file_nobody_serves_is_one_error_and_leaves_nothing(page, reason, server, offer, cache):
    offer(server.address(page))
    with pytest.raises(FileNotFoundError, match=reason):
        data.fetch("tune")
    assert files_in(cache) == []


def test_without_network_the_error_names_file_addresses_checksum_and_folder(offer, cache):
    addresses = closed_port(), closed_port()
    offer(*addresses)
    with pytest.raises(FileNotFoundError) as error:
        data.fetch("tune")
    for part in ("tune", *addresses, GOOD, str(cache / "music" / "tune"), "RTX_DATA"):
        assert part in str(error.value)


def test_rtx_data_comes_before_the_cache_and_the_network(server, offer, tmp_path, monkeypatch):
    offer(server.address("/good/tune"))
    data.fetch("tune")
    own = tmp_path / "own" / "music" / "tune"
    own.parent.mkdir(parents=True)
    own.write_bytes(CONTENT)
    monkeypatch.setenv("RTX_DATA", str(tmp_path / "own"))
    assert data.fetch("tune")["tune"] == own == data.check("tune")[0].path
    own.unlink()
    assert data.fetch("tune")["tune"] == data.check("tune")[0].path == data.cache_folder() / "music" / "tune"
    assert server.requests.total() == 1


def test_a_corrupt_file_in_rtx_data_is_named_with_both_checksums_and_left_alone(server, offer, tmp_path, monkeypatch):
    offer(server.address("/good/tune"))
    own = tmp_path / "own" / "music" / "tune"
    own.parent.mkdir(parents=True)
    own.write_bytes(CONTENT[:100])
    monkeypatch.setenv("RTX_DATA", str(tmp_path / "own"))
    assert data.check("tune")[0].state == "corrupt"
    with pytest.raises(ValueError, match="corrupt or truncated") as error:
        data.fetch("tune")
    for part in (str(own), GOOD, hashlib.sha256(CONTENT[:100]).hexdigest()):
        assert part in str(error.value)
    assert own.read_bytes() == CONTENT[:100] and not server.requests


def test_a_corrupt_file_in_the_cache_is_fetched_anew(server, offer, cache):
    offer(server.address("/good/tune"))
    (cache / "music").mkdir(parents=True)
    (cache / "music" / "tune").write_bytes(CONTENT[:100])
    assert data.check("tune")[0].state == "corrupt"
    assert data.fetch("tune")["tune"].read_bytes() == CONTENT


def test_rtx_data_must_be_a_folder(offer, tmp_path, monkeypatch):
    offer()
    monkeypatch.setenv("RTX_DATA", str(tmp_path / "nowhere"))
    for look in (data.fetch, data.check):
        with pytest.raises(ValueError, match=r"RTX_DATA: expected an existing folder, got .*nowhere"):
            look("tune")


@pytest.mark.parametrize("look", [data.fetch, data.check, data.sha256])
def test_an_unknown_data_set_suggests_the_nearest(look):
    with pytest.raises(ValueError, match="did you mean 'nottingham'"):
        look("notingham")


def test_published_files_are_verified(real_data):
    found = [found for name in ("nottingham", "mnist") for found in data.check(name)]
    assert [file.state for file in found] == ["verified"] * 5
    assert list(data.fetch("mnist").values()) == [file.path for file in found[1:]]


def test_arrays_are_computed_once(cache):
    made = []

    def make() -> data.Arrays:
        made.append(1)
        return {"squares": np.arange(10) ** 2}

    for _ in range(2):
        np.testing.assert_array_equal(data.cached_arrays("squares", make)["squares"], np.arange(10) ** 2)
    assert made == [1]
    assert files_in(cache) == ["computed/squares.npz"]


@pytest.mark.parametrize("damage", [b"", b"not a zip file", None])
def test_a_damaged_cache_of_arrays_is_made_anew(damage, cache):
    numbers = np.arange(1000)
    data.cached_arrays("numbers", lambda: {"numbers": numbers})
    path = cache / "computed" / "numbers.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    read = data.cached_arrays("numbers", lambda: {"numbers": numbers})
    np.testing.assert_array_equal(read["numbers"], numbers)
    assert path.read_bytes() == whole


def test_a_computation_that_fails_leaves_nothing(cache):
    def fail() -> data.Arrays:
        raise RuntimeError("stopped half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        data.cached_arrays("numbers", fail)
    with pytest.raises(Exception, match="pickle"):  # half-way through its writing
        data.cached_arrays("numbers", lambda: {"numbers": np.ones(3), "bad": np.array([lambda: 0])})
    assert files_in(cache) == []


def test_the_hash_of_arrays_tells_shape_type_and_content_apart():
    a = np.arange(6)
    others = [a.reshape(2, 3), a.astype(np.int32), a[::-1]]
    hashes = {data.sha256_of_arrays(array) for array in (a, *others)} | {data.sha256_of_arrays(a, a)}
    assert len(hashes) == 5
    assert data.sha256_of_arrays(a) == data.sha256_of_arrays(a.copy())
