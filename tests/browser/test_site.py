"""The site: every page in a browser, from a server on this machine, with nothing else to reach."""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

pytestmark = [pytest.mark.browser]

ROOT = Path(__file__).parents[2]
KINDS = [
    "index.html",
    "explore/index.html",
    "explore/debugger.html",
    "notebooks/02_slide_a_window.html",
    "results.html",
]
"""A page of each kind."""
PIXELS = "canvas => canvas.toDataURL()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "site/build.py", folder], cwd=ROOT, check=True)
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Where the site is served, in a folder of its own, as on GitHub Pages."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder.parent)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{folder.name}/"
        server.shutdown()


@pytest.fixture
def tab(browser: Browser, address: str) -> Iterator[Tab]:
    """A tab in which no page may print an error or ask another server."""
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    faults: list[str] = []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("request", lambda asked: faults.append(asked.url) if not asked.url.startswith((address, "data:")) else None)
    yield tab
    tab.close()
    assert faults == []


class Elements(HTMLParser):
    """What a page is made of: the tags with their attributes."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def all(self, *names: str) -> list[str]:
        """The values of these attributes."""
        return [value for _, given in self.found for name, value in given.items() if name in names and value]


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[Path, Elements]:
    """What each page of the site is made of."""
    return {path: Elements(path) for path in folder.rglob("*.html") if "mathjax" not in path.parts}


def test_every_notebook_and_explorer_has_a_page_and_every_picture_a_description(
    folder: Path, pages: dict[Path, Elements]
) -> None:
    assert {path.stem for path in (folder / "notebooks").iterdir()} == {p.stem for p in ROOT.glob("notebooks/*.ipynb")}
    for path, page in pages.items():
        tags = [tag for tag, _ in page.found]
        assert [tags.count(tag) for tag in ("title", "h1", "main", "header", "footer")] == [1] * 5, path
        assert all(given.get("alt") for tag, given in page.found if tag == "img"), path
        assert not [name for _, given in page.found for name in given if name.startswith("on")], path
    listed = {
        link for link in pages[folder / "explore/index.html"].all("href") if "/" not in link.removeprefix("../explore/")
    }
    assert {f"../explore/{path.name}" for path in (folder / "explore").iterdir()} <= listed


def test_titles_differ(tab: Tab, address: str, folder: Path, pages: dict[Path, Elements]) -> None:
    titles = [path.read_text(encoding="utf-8").split("<title>")[1].split("</title>")[0] for path in pages]
    numbered = [path for path in pages if path.stem.rpartition("-")[2].isdigit()]
    assert len(set(titles)) >= len(titles) - len(numbered) and all(titles)


def test_every_link_leads_somewhere(folder: Path, pages: dict[Path, Elements]) -> None:
    followed, dead = 0, []
    for page, elements in pages.items():
        for target in elements.all("href", "src"):
            parts = urlsplit(target)
            if parts.scheme:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            followed += 1
            if not path.is_file() or (parts.fragment and unquote(parts.fragment) not in pages[path].all("id")):
                dead.append(f"{page.relative_to(folder)}: {target}")
    assert dead == []
    assert followed > 500


def test_a_lesson_links_the_paper_that_it_names(pages: dict[Path, Elements], folder: Path) -> None:
    links = pages[folder / "notebooks/02_slide_a_window.html"].all("href")
    assert links.count("https://arxiv.org/abs/1907.05572") == 1


@pytest.mark.parametrize("page", KINDS)
def test_axe_finds_nothing_serious_and_no_page_scrolls_sideways(tab: Tab, address: str, page: str) -> None:
    for theme in ("light", "dark"):
        tab.emulate_media(color_scheme=theme)
        tab.goto(address + page)
        expect(tab.locator(".living > img")).to_have_count(0)
        found = Axe().run(tab, options={"resultTypes": ["violations"]}).response["violations"]
        serious = [
            (one["id"], [n["html"][:200] for n in one["nodes"]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == [], theme
    for width in (1400, 700, 390):
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_every_explorer_comes_to_life(tab: Tab, address: str, folder: Path) -> None:
    for path in sorted(folder.glob("explore/*.html")):
        tab.goto(f"{address}explore/{path.name}")
        expect(tab.locator(".living > img")).to_have_count(0)
        assert tab.locator(".living").count() == tab.locator(".living :is(canvas, svg, table)").first.count()


def test_an_explorer_is_moved_and_equations_are_drawn_by_the_site_itself(tab: Tab, address: str) -> None:
    tab.goto(f"{address}notebooks/02_slide_a_window.html")
    debugger = tab.locator(".living").last
    before = debugger.locator("canvas").last.evaluate(PIXELS)
    debugger.get_by_role("slider", name="step in the window").press("ArrowRight")
    expect(debugger.locator("[aria-live=polite]")).to_contain_text("Step 2 of 4")
    assert debugger.locator("canvas").last.evaluate(PIXELS) != before
    tab.wait_for_function("window.MathJax?.isReady")
    tab.wait_for_function("() => new Promise(done => MathJax.Hub.Queue(() => done(true)))")
    assert tab.locator(".math .MathJax").count() == tab.locator("span.math, div.math.block").count() > 50
    assert tab.locator(".math .merror, .MathJax_Error").count() == 0


def test_the_theme_is_kept_from_page_to_page(tab: Tab, address: str) -> None:
    tab.goto(f"{address}index.html")
    light = tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    tab.get_by_label("Theme").select_option("dark")
    tab.get_by_role("link", name="Slide a window").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Slide a window")
    expect(tab.get_by_label("Theme")).to_have_value("dark")
    assert tab.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light
