"""Killed at any moment: every file under its final name is whole, and only the work since the last one is lost.

Whole runs that are killed and resumed, bit for bit, are in tests/training/test_survival.py and test_shared_sweep.py.
"""

import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pytest

from rtx.tasks import data
from rtx.training.files import write_whole

CONTENT = b"a tune in eighty-eight columns\n" * 20_000
GOOD = hashlib.sha256(CONTENT).hexdigest()


class Slow(BaseHTTPRequestHandler):
    """Serves a file a little at a time."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        for start in range(0, len(CONTENT), 8192):
            try:
                self.wfile.write(CONTENT[start : start + 8192])
            except ConnectionError:  # who asked was killed
                return

    def log_message(self, *_: object) -> None:
        """Keep the tests' output quiet."""


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/tune"
        server.shutdown()
        thread.join()


def fetch(pipe: Any, address: str, cache: str) -> None:
    os.environ |= {"RTX_CACHE": cache, "NO_PROXY": "127.0.0.1"}
    data.DATASETS["tune"] = (data.File(PurePath("music/tune"), GOOD, (address,)),)
    path = Path(cache) / "music" / "tune"
    for number in count():
        pipe.send(number)
        path.unlink(missing_ok=True)
        data.fetch("tune")


@pytest.mark.slow
def test_a_download(killed, address, tmp_path, monkeypatch) -> None:
    path, whole = tmp_path / "music" / "tune", 0
    for _ in killed(fetch, address, str(tmp_path), longest=0.3):
        assert not path.exists() or path.read_bytes() == CONTENT
        whole += path.exists()
    monkeypatch.setenv("RTX_CACHE", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setitem(data.DATASETS, "tune", (data.File(PurePath("music/tune"), GOOD, (address,)),))
    assert data.fetch("tune")["tune"].read_bytes() == CONTENT
    assert whole < 8  # else nothing was cut short


def replace(pipe: Any, path: Path) -> None:
    write_whole(path, b"0" * 100_000)
    pipe.send(0)
    for number in count():
        write_whole(path, str(number % 10).encode() * 100_000)


@pytest.mark.slow
def test_any_file_that_is_replaced(killed, tmp_path) -> None:
    for _ in killed(replace, tmp_path / "file", longest=0.2):
        content = (tmp_path / "file").read_bytes()
        assert len(content) == 100_000 and len(set(content)) == 1


def compute(pipe: Any, cache: str) -> None:
    os.environ["RTX_CACHE"] = cache
    pipe.send(0)
    for number in count(1):
        name = f"squares-{os.getpid()}-{number}"
        data.cached_arrays(name, lambda n=number: {"squares": np.full(50_000, n)})
        pipe.send((name, number))


@pytest.mark.slow
def test_what_is_computed_once(killed, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RTX_CACHE", str(tmp_path))
    for said in killed(compute, str(tmp_path), longest=0.2):
        for name, number in said[1:]:
            assert (data.cached_arrays(name, dict)["squares"] == number).all()  # not made anew
    for path in (tmp_path / "computed").glob("squares*.npz"):
        assert "squares" in data.cached_arrays(path.stem, dict)
