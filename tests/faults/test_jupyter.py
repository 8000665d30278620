"""The JupyterLab of `make lab`: on loopback, behind a token, with no asset from elsewhere.

That no notebook asks another host for anything, tests/browser sees in Chromium: `notebook.hosts == {LOOPBACK}`.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import psutil
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[psutil.Process, dict[str, str]]]:
    """Start what `make lab` starts, without a browser and with separate settings; yield its process and its address."""
    home = tmp_path_factory.mktemp("lab")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "JUPYTER"))}
    planned = subprocess.run(["make", "--dry-run", "lab"], cwd=ROOT, env=environment, capture_output=True, text=True)
    (line,) = (line for line in planned.stdout.splitlines() if " -m jupyterlab " in line)
    options = shlex.split(line.partition(" -m jupyterlab ")[2])
    environment |= {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    command = [sys.executable, "-m", "jupyterlab", *options, "--no-browser", "--ServerApp.port=0"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server_file = home / "runtime" / f"jpserver-{process.pid}.json"
    try:
        for _ in range(1500):  # five minutes
            with suppress(OSError, ValueError):  # not there yet, half written, not listening yet
                running = json.loads(server_file.read_text())
                urlopen(f"{running['url']}api/status?token={running['token']}", timeout=60).close()
                break
            time.sleep(0.2)
        else:
            raise RuntimeError("JupyterLab did not start")
        yield psutil.Process(process.pid), running
    finally:
        process.terminate()
        process.wait(60)


def test_it_listens_on_loopback_only(server) -> None:
    process, running = server
    listening = {c.laddr.ip for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"} and urlsplit(running["url"]).hostname in ("127.0.0.1", "localhost")


def test_it_refuses_requests_without_the_token(server) -> None:
    _, running = server
    assert len(running["token"]) >= 32
    for path in ("api/contents", "api/kernels", "api/contents?token=wrong"):
        with pytest.raises(HTTPError, match="403"):
            urlopen(running["url"] + path, timeout=60)
    assert urlopen(f"{running['url']}api/kernels?token={running['token']}", timeout=60).status == 200


def test_its_page_names_no_other_host(server) -> None:
    _, running = server
    page = urlopen(f"{running['url']}lab?token={running['token']}", timeout=60).read().decode()
    fetched = re.findall(r'(?:src|href)\s*=\s*"([^"]+)"', page)
    assert fetched and {urlsplit(one).hostname for one in fetched} == {None}
