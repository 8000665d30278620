"""Measure what a newcomer waits for: from `make lab` to the first figure that notebook 00 draws in a browser, on Linux.

    .venv/bin/python tools/first_picture.py 3

runs three times and prints for each the seconds to the first figure and to the end of the notebook, and the most memory
that JupyterLab and the kernel took. Needs Chromium, and what `make test` installs, or playwright and psutil.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from headless import opened
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
NOTEBOOK = "notebooks/00_start_here.ipynb"
MINUTE = 60_000  # in milliseconds
FIGURE = ".jp-OutputArea-output img"
IDLE = '.jp-Notebook-ExecutionIndicator[data-status="idle"]'
DRAWN = f"() => [...document.querySelectorAll('{FIGURE}')].some(image => image.complete && image.naturalWidth > 0)"
FINISHED = """() => [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]
    .every(prompt => /\\d/.test(prompt.textContent))"""


def address(runtime: Path, server: subprocess.Popen[bytes]) -> str:
    """The notebook's address, once the server has written it down and answers there."""
    while server.poll() is None:
        with suppress(OSError, ValueError, StopIteration):  # not there yet, half written, not listening yet
            running = json.loads(next(runtime.glob("jpserver-*.json")).read_text())
            socket.create_connection(("127.0.0.1", running["port"]), timeout=1).close()
            return f"{running['url']}lab/tree/{NOTEBOOK}?token={running['token']}"
        time.sleep(0.05)
    raise SystemExit("make lab ended before it served anything")


def peaks(process: psutil.Process) -> dict[str, float]:
    """The most memory in MB that the server and the kernel, both under `process`, have taken so far."""
    found = {}
    for one in process.children(recursive=True):
        status = Path(f"/proc/{one.pid}/status").read_text().splitlines()
        (kilobytes,) = (line.split()[1] for line in status if line.startswith("VmHWM:"))
        if "python" in one.name():
            found["kernel" if any("ipykernel" in word for word in one.cmdline()) else "server"] = int(kilobytes) / 1000
    return found


def choose(page: Page, menu: str, item: str) -> None:
    """Choose an item of one of JupyterLab's menus."""
    page.get_by_role("menuitem", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def measure(browser: Browser) -> str:
    """One line about one `make lab`, in settings of its own."""
    with tempfile.TemporaryDirectory() as home:
        folders = {f"JUPYTER_{kind}_DIR": f"{home}/{kind.lower()}" for kind in ("CONFIG", "DATA", "RUNTIME")}
        folders |= {f"JUPYTERLAB_{kind}_DIR": f"{home}/{kind.lower()}" for kind in ("SETTINGS", "WORKSPACES")}
        environment = os.environ | folders | {"BROWSER": "true"}  # which opens nothing
        page, start = browser.new_page(viewport={"width": 1280, "height": 1000}), time.perf_counter()
        silent = subprocess.DEVNULL
        server = subprocess.Popen(
            ["make", "lab"], cwd=ROOT, env=environment, stdout=silent, stderr=silent, start_new_session=True
        )
        try:
            page.goto(address(Path(folders["JUPYTER_RUNTIME_DIR"]), server), timeout=MINUTE)
            page.locator(".jp-Notebook .jp-Cell").first.click(timeout=MINUTE)
            # or the figures that are in the file would count
            choose(page, "Edit", "Clear Outputs of All Cells")
            page.wait_for_function(f"() => !document.querySelector('{FIGURE}')", timeout=MINUTE)
            page.locator(IDLE).first.wait_for(timeout=MINUTE)
            choose(page, "Run", "Run All Cells")
            page.wait_for_function(DRAWN, timeout=MINUTE)
            figure = time.perf_counter() - start
            page.wait_for_function(FINISHED, timeout=4 * MINUTE)
            memory = peaks(psutil.Process(server.pid))
            whole = time.perf_counter() - start
        finally:
            page.close()
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(60)
    taken = ", ".join(f"{name} {peak:.0f} MB" for name, peak in sorted(memory.items()))
    return f"first figure after {figure:.1f} s, all cells after {whole:.1f} s; {taken} at most"


def main(times: int) -> None:
    """Print a line for each of `times` measurements."""
    with opened() as browser:
        for _ in range(times):
            print(measure(browser), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
