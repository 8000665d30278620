"""The site in a browser, served by this machine, with nothing else to reach."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from rtx.lab import explore

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAPERS: dict[str, str] = tomllib.loads((ROOT / "site/papers.toml").read_text(encoding="utf-8"))
EXPLORERS = sorted(name for name, one in vars(explore).items() if callable(one) and name != "Page")
LESSON = "notebooks/02_slide_a_window.html"
KINDS = ["index.html", "explore/index.html", "explore/attention.html", "notebooks/00_start_here.html", "results.html"]
# axe takes ten seconds for 400 rows that are alike: three tables are enough, and three rows of each
SHORTER = """[...document.querySelectorAll("table")].slice(3).forEach((table) => table.remove());
document.querySelectorAll("tbody tr:nth-child(n + 4)").forEach((row) => row.remove())"""
PIXELS = "canvas => canvas.toDataURL()"
BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"


# What a reader sees: the pixels of each canvas, texts, which buttons are pressed, and the sentence.
SEEN = """() => [...document.querySelectorAll('.pictures canvas:not([hidden])')].map(one => one.toDataURL()).join()
    + document.querySelector('.pictures').innerText + document.querySelector('.sentence').textContent
    + [...document.querySelectorAll('.pictures button')].map(one => one.getAttribute('aria-pressed'))"""
# Nothing is wider than the page, and each canvas shows more than one colour.
FITS = "() => document.scrollingElement.scrollWidth <= innerWidth"
DRAWN = """() => [...document.querySelectorAll('.pictures canvas')].filter(one => one.clientWidth).every(one => {
    const { data } = one.getContext('2d').getImageData(0, 0, one.width, one.height);
    return new Set(new Uint32Array(data.buffer)).size > 1;
})"""
KEYS = ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "End", "Home", "Space")


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, *_: object) -> None: ...


class Elements(HTMLParser):
    """The elements of a page, each with its attributes."""

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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "rtx"
    subprocess.run([sys.executable, "site/build.py", folder], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, Elements]:
    """The pages by their addresses."""
    found = (path for path in folder.rglob("*.html") if "mathjax" not in path.parts)
    return {path.relative_to(folder).as_posix(): Elements(path) for path in found}


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Where the site is served: in a folder, as on GitHub Pages."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder.parent)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/rtx/"
        server.shutdown()


@pytest.fixture
def tab(browser: Browser, address: str) -> Iterator[Tab]:
    """A tab in which no page may print an error, miss a file, or ask another server."""
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    faults: list[str] = []
    own = (address, "data:", "blob:")  # a blob is a worker of the page itself
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("request", lambda asked: faults.append(asked.url) if not asked.url.startswith(own) else None)
    yield tab
    tab.close()
    assert faults == []


def test_every_notebook_has_a_page(pages: dict[str, Elements]) -> None:
    built = {Path(page).stem for page in pages if page.startswith("notebooks/")}
    assert built == {path.stem for path in NOTEBOOKS}


def test_every_page_has_one_title_one_heading_landmarks_and_described_pictures(pages: dict[str, Elements]) -> None:
    for address, page in pages.items():
        tags = [tag for tag, _ in page.found]
        assert [tags.count(tag) for tag in ("title", "h1", "main", "header", "footer")] == [1] * 5, address
        assert all(given.get("alt") for tag, given in page.found if tag == "img"), address
        assert not [name for _, given in page.found for name in given if name.startswith("on")], address


def test_every_link_leads_somewhere(folder: Path, pages: dict[str, Elements]) -> None:
    followed, dead = set(), []
    for address, page in pages.items():
        for target in page.all("href", "src"):
            parts = urlsplit(target)
            if parts.scheme:
                continue
            path = ((folder / address).parent / unquote(parts.path)).resolve() if parts.path else folder / address
            there = path.relative_to(folder).as_posix()
            followed.add(there)
            if not path.is_file() or (parts.fragment and unquote(parts.fragment) not in pages[there].all("id")):
                dead.append(f"{address}: {target}")
    assert dead == []
    assert set(pages) <= followed  # a reader can come to every page


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_links_each_paper_once(pages: dict[str, Elements], path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    text = " ".join(" ".join(cell.source for cell in cells if cell.cell_type == "markdown").split())
    for name, year in re.findall(r"([\w-]+ (?:et al\.|& [\w-]+)),? \(?(\d{4})", text):
        (address,) = (link for paper, link in PAPERS.items() if paper.endswith(f"{name} {year}"))
        assert pages[f"notebooks/{path.stem}.html"].all("href").count(address) == 1, name


@pytest.mark.parametrize("page", KINDS)
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_page(tab: Tab, address: str, page: str) -> None:
    for theme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        tab.emulate_media(color_scheme=theme)
        tab.goto(address + page)
        expect(tab.locator(".living > img")).to_have_count(0)
        tab.evaluate(SHORTER)
        found = Axe().run(tab, options={"resultTypes": ["violations"]} | rules).response["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical") or one["id"] == "heading-order"]
        assert [(one["id"], node["html"]) for one in serious for node in one["nodes"]] == [], theme
    for width in (1400, 700, 390):
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_every_page_comes_to_life(tab: Tab, address: str, pages: dict[str, Elements]) -> None:
    tab.set_viewport_size({"width": 390, "height": 400})
    tab.route("**/MathJax.js", lambda route: route.fulfill(body=""))  # the equations have a test of their own
    explorers = {f"explore/{name}.html" for name in EXPLORERS}  # these have a test of their own, too
    assert explorers < set(pages)
    for page in set(pages) - explorers:
        tab.goto(address + page, wait_until="domcontentloaded")
        expect(tab.locator(".living > img")).to_have_count(0)
        assert tab.locator(".living > div:empty").count() == 0


def test_an_explorer_in_a_lesson_is_moved(tab: Tab, address: str) -> None:
    tab.goto(address + LESSON)
    debugger = tab.locator(".living").last
    canvas, sentence = debugger.locator("canvas").last, debugger.locator("[aria-live=polite]")
    expect(sentence).not_to_be_empty()
    before = canvas.evaluate(PIXELS), str(sentence.text_content())
    debugger.get_by_role("slider").last.press("ArrowRight")
    expect(sentence).not_to_have_text(before[1])
    assert canvas.evaluate(PIXELS) != before[0]


def seen(tab: Tab) -> str:
    """What stands there once nothing moves any more. What plays is stopped."""
    for button in tab.get_by_role("button", name="■ Stop").all():
        button.click()
    tab.wait_for_function("!document.querySelector('[aria-busy=true]')")  # a worker may be at work
    now = tab.evaluate(SEEN)
    while (before := now) != (now := (tab.wait_for_timeout(60), tab.evaluate(SEEN))[1]):
        pass
    return str(before)


def by_pointer(tab: Tab) -> str:
    """Press places of the picture, then buttons, then sliders, until the picture changes; return what was pressed."""
    before = seen(tab)
    for canvas in tab.locator("canvas.held").all():
        box = canvas.bounding_box()
        for across, down in ((0.7, 0.1), (0.3, 0.3), (0.6, 0.5), (0.8, 0.7), (0.4, 0.9), (0.2, 0.1)) if box else ():
            canvas.click(position={"x": box["width"] * across, "y": box["height"] * down})  # type: ignore[index]
            if seen(tab) != before:
                return "canvas"
    for button in tab.locator(".living button:enabled").filter(has_not_text=re.compile("Play|Reset|Copy")).all():
        button.click()
        if seen(tab) != before:
            return "button"
    for slider in tab.locator("input[type=range]:enabled").all():
        box = slider.bounding_box()
        for across in (0.9, 0.1) if box else ():
            slider.click(position={"x": box["width"] * across, "y": box["height"] / 2})  # type: ignore[index]
            if seen(tab) != before:
                return "slider"
    return "nothing"


def by_keyboard(tab: Tab) -> str:
    """Walk through what takes the focus and press keys until another picture is seen."""
    before = seen(tab)
    tab.locator(".living button, .living input, .living canvas[tabindex]").first.focus()
    for _ in range(20):
        # what plays moves on its own, and what is opened is not in the link
        passive = tab.locator(":focus", has_text="Play").count() or tab.locator("summary:focus").count()
        for key in () if passive else KEYS:
            tab.keyboard.press(key)
            if seen(tab) != before:
                return key
        tab.keyboard.press("Tab")
    return "nothing"


@pytest.mark.parametrize("name", EXPLORERS)
def test_an_explorer_is_moved_by_pointer_and_keyboard_and_its_link_shows_the_same(
    tab: Tab, address: str, name: str
) -> None:
    page = f"{address}explore/{name}.html"
    for scheme, width in (("light", 1400), ("light", 700), ("dark", 390)):
        tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(page)
        expect(tab.locator(".sentence")).not_to_be_empty()
        assert tab.locator(".living").count() == 1
        assert tab.evaluate(FITS) and tab.evaluate(DRAWN), (scheme, width)
    assert by_pointer(tab) != "nothing"
    assert by_keyboard(tab) != "nothing"
    tab.wait_for_timeout(400)  # the address follows a little later
    changed, link = seen(tab), tab.url
    assert link.startswith(f"{page}#")
    tab.goto("about:blank")
    tab.goto(link)
    expect(tab.locator(".sentence")).not_to_be_empty()
    assert seen(tab) == changed
    tab.get_by_role("button", name="Reset").click()
    tab.wait_for_function("hash => location.hash !== hash", arg=link[len(page) :])


def test_equations_are_drawn_by_the_site_itself(tab: Tab, address: str) -> None:
    tab.goto(address + LESSON)
    tab.wait_for_function("window.MathJax?.isReady")
    tab.wait_for_function("() => new Promise(done => MathJax.Hub.Queue(() => done(true)))")
    assert tab.locator(".MathJax").count() == tab.locator(".math.inline, .math.block").count() > 20
    assert tab.locator(".merror, .MathJax_Error, .MathJax[tabindex='0']").count() == 0


def test_the_theme_is_kept_from_page_to_page(tab: Tab, address: str) -> None:
    tab.goto(address + "index.html")
    light = tab.evaluate(BACKGROUND)
    tab.get_by_label("Theme").select_option("dark")
    tab.get_by_role("link", name="What does a window see?").click()
    expect(tab.get_by_label("Theme")).to_have_value("dark")
    expect(tab).to_have_url(address + LESSON)
    assert tab.evaluate(BACKGROUND) != light
