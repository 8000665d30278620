"""The static site in a browser, opened as files: it lives, finds, shows equations, and asks no server for anything."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from build_book import build
from playwright.sync_api import Browser, Request, expect
from playwright.sync_api import Page as Tab

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOCAL = {"file", "data", "blob", "about"}
ELSEWHERE = ("pydata-sphinx-theme.readthedocs.io", "www.sphinx-doc.org")  # what a reader may click on
PIXELS = "canvas => canvas.toDataURL()"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("book") / "site").parent


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    """A tab that must meet no error and ask no server, of any page that is opened in it."""
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    tab.set_default_timeout(120_000)
    faults, asked = [], set()
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("request", lambda request: asked.add(request.url.split(":")[0]))
    tab.on("requestfailed", lambda request: was_left(request) or faults.append(request.url))
    yield tab
    tab.close()
    assert faults == [] and asked <= LOCAL and "file" in asked


def was_left(request: Request) -> bool:
    """Whether it ended since the tab went on to another page; about:blank is a frame's empty page."""
    return "ABORTED" in str(request.failure) or request.url == "about:blank"


class Links(HTMLParser):
    """What a page leads to, and the names that others can lead to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for key, value in attributes:
            if key in ("href", "src") and value:
                self.targets.append(value)
            elif key in ("id", "name") and value:
                self.names.add(value)


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {path: Links(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    followed, dead, elsewhere = 0, [], set()
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                elsewhere.add(target.partition(":")[0] if parts.scheme in ("data", "mailto") else target)
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            followed += 1
            known = pages[path].names if path in pages else set()
            if not path.is_file() or (parts.fragment and path in pages and unquote(parts.fragment) not in known):
                dead.append(f"{page.relative_to(site)}: {target}")
    assert dead == []
    assert len(pages) >= 20 and followed > 1000
    assert {urlsplit(each).hostname for each in elsewhere} <= {None, *ELSEWHERE}, elsewhere


def test_every_page_comes_to_life_without_a_server(site: Path, tab: Tab) -> None:
    alive = 0
    for page in sorted(site.glob("notebooks/*.html")):
        tab.goto(page.as_uri(), wait_until="domcontentloaded", timeout=120_000)
        expect(tab.locator("img + script.rtx-living")).to_have_count(0, timeout=20_000)  # its picture has gone
        alive += tab.locator("script.rtx-living + div :is(canvas, table)").count() > 0
    assert alive >= 7


def test_a_page_is_moved_and_its_equations_are_drawn_by_the_site_itself(site: Path, tab: Tab) -> None:
    tab.goto((site / "notebooks/02_slide_a_window.html").as_uri(), wait_until="domcontentloaded", timeout=120_000)
    debugger = tab.locator("script.rtx-living + div")
    slider, canvas = debugger.get_by_role("slider", name="step in the window"), debugger.locator("canvas").last
    sentence = debugger.locator("[aria-live=polite]")
    expect(sentence).to_contain_text("Step 1 of 4")
    before = canvas.evaluate(PIXELS)
    slider.press("ArrowRight")
    expect(sentence).to_contain_text("Step 2 of 4")
    assert canvas.evaluate(PIXELS) != before
    tab.wait_for_function("window.MathJax?.isReady", timeout=30_000)
    tab.wait_for_function("() => new Promise(done => MathJax.Hub.Queue(() => done(true)))", timeout=60_000)
    written, drawn = tab.locator("script[type^='math/tex']"), tab.locator(".math .MathJax .math")
    assert drawn.count() == written.count() > 50
    assert tab.locator(".math .merror, .MathJax_Error").count() == 0
    assert "\\(" not in tab.locator("article").inner_text()


def test_the_site_finds_words(site: Path, tab: Tab) -> None:
    tab.goto((site / "search.html").as_uri() + "?q=teacher+forcing", timeout=120_000)
    found = tab.locator("#search-results li a").filter(has_text="Translate and summarise")
    expect(found.first).to_be_visible(timeout=20_000)


def test_a_reader_walks_from_notebook_to_notebook(site: Path, tab: Tab) -> None:
    tab.goto((site / "index.html").as_uri(), wait_until="domcontentloaded", timeout=120_000)
    article = tab.locator("article")
    article.get_by_role("link", name="02 slide a window").click()
    expect(tab.get_by_role("heading", name="Slide a window", level=1)).to_be_visible(timeout=60_000)
    article.get_by_role("link", name="Attend to the past").click()
    expect(tab.get_by_role("heading", name="Attend to the past", level=1)).to_be_visible(timeout=60_000)
    article.get_by_role("link", name="README", exact=True).click()
    expect(article.get_by_role("heading", name="rtx", exact=False).first).to_be_visible()
