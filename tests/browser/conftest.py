"""A private JupyterLab and a headless Chromium, so that tests use a notebook as a reader does."""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from drawn import KEEP_TEXTS
from notebook_page import LOOPBACK, Notebook, written
from playwright.sync_api import Browser, Page, expect, sync_playwright
from ports import free_port
from private import private_environment, wait_for

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
    """A running JupyterLab: the folder that it serves, and where."""

    root: Path
    url: str
    token: str

    def add(self, notebook: Path) -> str:
        """The address of a copy of `notebook` without its outputs: what is seen then, was made then."""
        copy = nbformat.read(notebook, as_version=4)
        for cell in copy.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        copy.metadata.pop("widgets", None)
        nbformat.write(copy, self.root / "notebooks" / notebook.name)
        return f"{self.url}lab/tree/notebooks/{notebook.name}?reset&token={self.token}"


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; without one the test is skipped, or fails where RTX_REQUIRE_BROWSER is set."""
    installed = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    found = os.environ.get("CHROMIUM") or next(filter(None, installed), None)
    if not found:
        stop = pytest.fail if os.environ.get("RTX_REQUIRE_BROWSER") else pytest.skip
        stop("found no Chromium: install it, or give its path in the variable CHROMIUM")
    return found


# One browser a file, closed after it: while it is open its event loop runs, which other tests must not meet.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A headless Chromium that can reach this machine only."""
    root = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox refuses to work for root
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS + root)


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


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab of its own on loopback, with a token, serving a folder laid out as the repository."""
    home = tmp_path_factory.mktemp("lab")
    root, log = home / "root", home / "log"
    (root / "notebooks").mkdir(parents=True)
    for folder in ("results", "figures"):
        (root / folder).symlink_to(REPOSITORY / folder)
    options = [f"--ip={LOOPBACK}", "--no-browser", "--allow-root", "--expose-app-in-browser"]
    port, token = free_port(), secrets.token_hex()
    options += [f"--ServerApp.port={port}", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}"]
    options += [f"--LabApp.app_settings_dir={REPOSITORY}/tools/jupyterlab"]
    environment = private_environment(home)
    with log.open("wb") as stream:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], env=environment, stdout=stream, stderr=stream
        )
    try:
        address = f"http://{LOOPBACK}:{port}/"
        wait_for(server, f"{address}api/status?token={token}", log)
        yield Lab(root, address, token)
    finally:
        server.terminate()
        server.wait(60)


@pytest.fixture
def open_notebook(lab: Lab, browser: Browser) -> Iterator[Callable[[Path], Notebook]]:
    """A function that opens a copy of a notebook in JupyterLab."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    yield lambda notebook: Notebook(page, lab.add(notebook))
    page.evaluate("() => window.jupyterapp.serviceManager.sessions.shutdownAll()")  # its kernel ends with the test
    page.close()


@pytest.fixture
def open_cells(open_notebook: Callable[[Path], Notebook], tmp_path: Path) -> Callable[..., Notebook]:
    """A function that opens a notebook of these cells in JupyterLab and runs it."""

    def opened(*cells: str) -> Notebook:
        notebook = open_notebook(written(cells, tmp_path))
        notebook.run_all()
        return notebook

    return opened
