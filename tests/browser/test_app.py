"""Explorers as web pages by Voilà: three visitors at once, each with a kernel and a picture of their own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from notebook_page import LOOPBACK
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab
from ports import free_port
from private import private_environment, wait_for
from serve_app import first_page, stage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SERVE = Path(__file__).parents[2] / "tools" / "serve_app.py"
VISITED = ["who_sees_whom", "slide_a_window", "causality"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of the app, and its process."""
    home = tmp_path_factory.mktemp("app")
    port = free_port()
    with (home / "log").open("wb") as log:
        command = [sys.executable, str(SERVE), "--port", str(port), "--idle", "20"]
        server = subprocess.Popen(command, env=private_environment(home), stdout=log, stderr=log)
    try:
        wait_for(server, f"http://{LOOPBACK}:{port}/voila/static/voila.js", home / "log")
        yield f"http://{LOOPBACK}:{port}/voila/render", server
    finally:
        started = psutil.Process(server.pid).children(recursive=True)
        server.terminate()
        server.wait(60)
        assert psutil.wait_procs(started, timeout=60)[1] == []  # it leaves nothing behind


def test_three_visitors_at_once_move_their_own_pictures(
    served: tuple[str, subprocess.Popen[bytes]], browser: Browser
) -> None:
    address, server = served
    hosts: set[str] = set()
    tabs: list[Tab] = []
    for name in VISITED:
        tab = browser.new_page()
        tab.set_default_timeout(120_000)
        tab.on("request", lambda request: hosts.add(urlsplit(request.url).hostname or LOOPBACK))
        tab.on("websocket", lambda opened: hosts.add(urlsplit(opened.url).hostname or LOOPBACK))
        tab.goto(f"{address}/{name}.ipynb", wait_until="commit")  # the next is opened while this one starts
        tabs.append(tab)
    pictures = [tab.locator("img.widget-image").first for tab in tabs]
    for picture in pictures:
        expect(picture).to_be_visible(timeout=120_000)
    assert len(kernels(server)) == len(VISITED)

    before = [picture.get_attribute("src") for picture in pictures]
    for tab in tabs:
        slider = tab.get_by_role("slider").first
        at_end = slider.get_attribute("aria-valuenow") == slider.get_attribute("aria-valuemax")
        slider.press("ArrowLeft" if at_end else "ArrowRight")
    for picture, old in zip(pictures, before, strict=True):
        expect(picture).not_to_have_attribute("src", str(old), timeout=60_000)
    megabytes = [process.memory_info().rss // 2**20 for process in kernels(server)]
    assert max(megabytes) < 1000, megabytes

    for tab in tabs:
        tab.close()
    for _ in range(90):  # a kernel outlives its page by twenty seconds
        if not kernels(server):
            break
        time.sleep(1)
    assert kernels(server) == []
    assert hosts == {LOOPBACK}


def kernels(server: subprocess.Popen[bytes]) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(server.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it may end while it is asked; so says a zombie, too
            found += [child] if "ipykernel_launcher" in " ".join(child.cmdline()) else []
    return found


def test_the_index_leads_to_every_page(served: tuple[str, subprocess.Popen[bytes]], browser: Browser) -> None:
    address, _ = served
    tab = browser.new_page()
    tab.goto(f"{address}/index.ipynb", timeout=120_000)
    links = tab.get_by_role("link")
    expect(links.first).to_be_visible(timeout=120_000)
    targets = {str(link.get_attribute("href")).rpartition("/")[2] for link in links.all()}
    pages = {f"{path.stem}.ipynb" for path in (SERVE.parents[1] / "app").glob("*.py")}
    assert targets == pages - {"index.ipynb"}
    links.first.click()
    expect(tab.locator("img.widget-image").first).to_be_visible(timeout=120_000)
    tab.close()


def test_the_address_that_is_printed_is_one_to_open() -> None:
    """0.0.0.0 is none: on another machine of the class it would be that machine itself."""
    assert first_page(LOOPBACK, 8866) == f"http://{LOOPBACK}:8866/voila/render/index.ipynb"
    assert first_page("0.0.0.0", 80) == f"http://{socket.gethostname()}:80/voila/render/index.ipynb"


def test_no_template_names_another_server(tmp_path: Path) -> None:
    pages = stage(tmp_path / "app")
    assert len(list(pages.glob("*.ipynb"))) == 7
    templates = [path for path in (tmp_path / "app" / "share").rglob("*") if path.is_file()]
    assert any(path.name == "index.html.j2" and path.parent.name == "lab" for path in templates)
    assert [path for path in templates if b'href="https://' in path.read_bytes()] == []
    assert os.path.commonpath([tmp_path, pages]) == str(tmp_path)
