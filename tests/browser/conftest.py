"""A private JupyterLab and a headless Chromium, so that tests use a notebook as a reader does."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import headless
import nbformat
import psutil
import pytest
from drawn import KEEP_TEXTS
from notebook_page import LOOPBACK
from playwright.sync_api import Browser, Page, expect

from rtx.lab import explore

# Five seconds by default, which a busy machine may take for anything; what is so already is not waited for.
expect.set_options(timeout=60_000)
REPOSITORY = Path(__file__).parents[2]
CHROMIUM_OPTIONS = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {LOOPBACK}",
]


@dataclass
class Lab:
    """A running JupyterLab: the folder that it serves, its process, and its address with the token."""

    root: Path
    process: psutil.Process
    url: str
    token: str

    def add(self, cells: Iterable[str]) -> str:
        """The address of a new notebook of these cells."""
        page = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
        page.cells = [nbformat.v4.new_code_cell(one) for one in cells]
        nbformat.write(page, self.root / "notebooks" / "cells.ipynb")
        return f"{self.url}lab/tree/notebooks/cells.ipynb?reset&token={self.token}"


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; without one the test is skipped, or fails where RTX_REQUIRE_BROWSER is set."""
    found = headless.chromium()
    if not found:
        stop = pytest.fail if os.environ.get("RTX_REQUIRE_BROWSER") else pytest.skip
        stop("found no Chromium: install it, or give its path in the variable CHROMIUM")
    return found


# One browser for the files of this folder. While it is open its event loop runs, which other tests must not meet.
OPEN, BROWSERS = ExitStack(), []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """Close the browser after the last test of this folder."""
    try:
        return (yield)
    finally:
        if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
            BROWSERS.clear()
            OPEN.close()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Browser:
    """A headless Chromium that can reach this machine only."""
    if not BROWSERS:
        BROWSERS.append(OPEN.enter_context(headless.opened(*CHROMIUM_OPTIONS)))
    return BROWSERS[0]


@pytest.fixture(scope="module")
def watched(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A tab, and what goes wrong in it: errors, and requests to a server."""
    tab, faults = browser.new_page(), []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    own = ("file:", "blob:", "data:", "about:")
    tab.on("request", lambda request: None if request.url.startswith(own) else faults.append(request.url))
    tab.add_init_script(KEEP_TEXTS)
    yield tab, faults
    tab.close()


@pytest.fixture
def tab(watched: tuple[Page, list[str]]) -> Iterator[Page]:
    """A tab for pages that are opened as files: they may not fail, and may ask no server for anything."""
    tab, faults = watched
    faults.clear()
    tab.set_viewport_size({"width": 940, "height": 700})
    tab.emulate_media(color_scheme="light", reduced_motion="no-preference")
    yield tab
    tab.goto("about:blank")
    assert faults == []


@pytest.fixture
def computed(tab: Page, tmp_path: Path) -> Callable[..., Any]:
    """A function that opens a page of this script, which says JSON, and returns what it says."""

    def found(script: str, data: dict[str, Any], weights: bytes = b"", **state: object) -> Any:
        (tmp_path / "piece.js").write_text(script)
        page = explore.Page(tmp_path / "piece.js", data, "read", weights=weights, **state)
        tab.goto(page.save(tmp_path / "computed.html").as_uri())
        return json.loads(str(tab.locator(".sentence").text_content()))

    return found


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """What `make lab` starts, with separate settings, in a folder laid out as the repository."""
    home = tmp_path_factory.mktemp("lab")
    root, log = home / "root", home / "log"
    (root / "notebooks").mkdir(parents=True)
    (root / "tools").symlink_to(REPOSITORY / "tools")
    given = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "JUPYTER"))}
    planned = subprocess.run(["make", "--dry-run", "lab"], cwd=REPOSITORY, env=given, capture_output=True, text=True)
    (line,) = (line for line in planned.stdout.splitlines() if " -m jupyterlab " in line)
    options = [*shlex.split(line.partition(" -m jupyterlab ")[2]), "--no-browser", "--expose-app-in-browser"]
    # its own folders keep it and its kernels from the user's settings, and those from them
    own = ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"]
    own += ["JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"]
    given |= {name: str(home / name.lower()) for name in own} | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "jupyterlab", *options, "--ServerApp.port=0"]
    with log.open("wb") as stream:
        server = subprocess.Popen(command, cwd=root, env=given, stdout=stream, stderr=stream)
    running = home / "jupyter_runtime_dir" / f"jpserver-{server.pid}.json"
    try:
        for _ in range(1500):  # five minutes
            with suppress(OSError, ValueError):  # not there yet, half written, not listening yet
                known = json.loads(running.read_text())
                urlopen(f"{known['url']}api/status?token={known['token']}", timeout=60).close()
                break
            assert server.poll() is None, log.read_text()
            time.sleep(0.2)
        yield Lab(root, psutil.Process(server.pid), known["url"], known["token"])
    finally:
        server.terminate()
        server.wait(60)
