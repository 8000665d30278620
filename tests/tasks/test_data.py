"""Files are found, downloaded, verified and cached, and every fault has one clear error."""

import gzip
import hashlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePath

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
    def offer(*addresses: str, by_hand: str = "") -> None:
        monkeypatch.setitem(data.DATASETS, "tune", (data.File(PurePath("music/tune"), GOOD, addresses, by_hand),))

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


def test_a_file_that_no_address_serves_is_one_error_and_leaves_nothing(server, offer, cache):
    dead, pages = closed_port(), [server.address(f"/{page}/tune") for page in ("absent", "other", "short")]
    offer(dead, *pages)
    with pytest.raises(FileNotFoundError) as error:
        data.fetch("tune")
    for part in ("tune", dead, *pages, "404", "hash", "IncompleteRead", GOOD, str(cache / "music/tune"), "RTX_DATA"):
        assert part in str(error.value)
    assert files_in(cache) == []
    offer(by_hand="Ask the archive for it.")
    with pytest.raises(FileNotFoundError, match="Ask the archive for it"):
        data.fetch("tune")


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


PACKED = gzip.compress(CONTENT)
DAMAGED = {"tune": [CONTENT[:100]], "tune.gz": [PACKED[:-9], b"plain text", b"", gzip.compress(CONTENT[1:])]}


@pytest.mark.parametrize(("name", "content"), [(name, content) for name in DAMAGED for content in DAMAGED[name]])
def test_a_corrupt_file_in_rtx_data_is_named_and_left_alone(name, content, server, offer, tmp_path, monkeypatch):
    offer(server.address("/good/tune"))
    own = tmp_path / "own" / "music" / name
    own.parent.mkdir(parents=True)
    own.write_bytes(content)
    monkeypatch.setenv("RTX_DATA", str(tmp_path / "own"))
    assert data.check("tune")[0].state == "corrupt"
    with pytest.raises(ValueError, match=f"{own}: ") as error:
        data.fetch("tune")
    assert GOOD in str(error.value) and own.read_bytes() == content and not server.requests
    own.write_bytes(gzip.compress(CONTENT, 1) if name == "tune.gz" else CONTENT)  # packed differently, the same text
    assert data.check("tune")[0].state == "verified"
    assert data.unpacked(data.fetch("tune")["tune"]) == CONTENT


def test_a_corrupt_file_in_the_cache_is_fetched_anew(server, offer, cache):
    offer(server.address("/good/tune"))
    (cache / "music").mkdir(parents=True)
    (cache / "music" / "tune").write_bytes(CONTENT[:100])
    assert data.check("tune")[0].state == "corrupt"
    assert data.fetch("tune")["tune"].read_bytes() == CONTENT


FILES = {"nottingham": 1, "jsb": 1, "piano": 1, "muse": 1, "mnist": 4}
FILES |= {"ptb-word": 3, "multi30k": 12, "iwslt14": 8, "gigaword": 6}


def test_every_published_file_has_an_address_or_a_word_on_how_to_get_it():
    assert {name: len(files) for name, files in data.DATASETS.items()} == FILES
    everything = [file for files in data.DATASETS.values() for file in files]
    assert len({file.path for file in everything}) == len({file.sha256 for file in everything}) == 37
    for file in everything:
        assert len(file.sha256) == 64 and bool(file.addresses) != bool(file.by_hand)
        assert all(address.endswith(f"/{file.path.name}") and address.startswith("https") for address in file.addresses)


@pytest.mark.parametrize("name", FILES)
def test_published_files_are_verified(name, real_data):
    found = data.check(name)
    assert [file.state for file in found] == ["verified"] * FILES[name]
    assert list(data.fetch(name).values()) == [file.path for file in found]
    assert len(data.sha256(name).split("+")) == FILES[name]


def test_arrays_are_computed_once(cache):
    made = []

    def make() -> data.Arrays:
        made.append(1)
        return {"squares": np.arange(10) ** 2}

    for _ in range(2):
        np.testing.assert_array_equal(data.cached_arrays("squares", make)["squares"], np.arange(10) ** 2)
    assert made == [1]
    assert files_in(cache) == ["computed/squares.npz"]


@pytest.mark.parametrize("damage", [b"", b"not a zip file", "cut", "a folder"])
def test_a_damaged_cache_of_arrays_is_computed_again(damage, cache, caplog):
    numbers = np.arange(1000)
    path = cache / "computed" / "numbers.npz"
    if damage == "a folder":
        path.mkdir(parents=True)
    else:
        data.cached_arrays("numbers", lambda: {"numbers": numbers})
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if damage == "cut" else damage)
    read = data.cached_arrays("numbers", lambda: {"numbers": numbers})
    np.testing.assert_array_equal(read["numbers"], numbers)
    assert str(path) in caplog.text
    assert damage == "a folder" or path.read_bytes() == whole


@pytest.mark.parametrize("look", [data.fetch, data.check])
def test_a_folder_that_does_not_exist_is_named(look, offer, monkeypatch):
    offer()
    monkeypatch.setenv("RTX_DATA", "/nowhere")
    with pytest.raises(ValueError, match="^RTX_DATA: .*/nowhere"):
        look("tune")


def test_the_hash_of_arrays_tells_shape_type_and_content_apart():
    a = np.arange(6)
    others = [a.reshape(2, 3), a.astype(np.int32), a[::-1]]
    hashes = {data.sha256_of_arrays(array) for array in (a, *others)} | {data.sha256_of_arrays(a, a)}
    assert len(hashes) == 5
    assert data.sha256_of_arrays(a) == data.sha256_of_arrays(a.copy())


def test_a_cache_that_cannot_be_used_costs_only_time(cache, caplog, monkeypatch):
    cache.mkdir()
    monkeypatch.setenv("RTX_CACHE", str(cache / ("long" * 100)))  # root may write everywhere, but not under such a name
    read = data.cached_arrays("numbers", lambda: {"numbers": np.arange(3)})
    np.testing.assert_array_equal(read["numbers"], np.arange(3))
    assert "long" in caplog.text
