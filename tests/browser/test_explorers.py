"""Every explorer as a page of its own, in both themes and at three widths; used by pointer, keyboard and link."""

from pathlib import Path
from typing import Any

import pytest
from explorer_cells import EXPLORERS, SETUP
from playwright.sync_api import Page as Tab

pytestmark = pytest.mark.browser

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


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(SETUP, found)
    return found


def seen(tab: Tab) -> str:
    """What stands there once nothing moves any more."""
    tab.wait_for_function("!document.querySelector('[aria-busy=true]')")  # a worker may be at work
    now = tab.evaluate(SEEN)
    while (before := now) != (now := (tab.wait_for_timeout(60), tab.evaluate(SEEN))[1]):
        pass
    return str(before)


def by_pointer(tab: Tab) -> str:
    """Press places of the picture, then sliders, until another picture is seen; return what was pressed."""
    before = seen(tab)
    for canvas in tab.locator("canvas.held").all():
        box = canvas.bounding_box()
        for across, down in ((0.7, 0.1), (0.3, 0.3), (0.6, 0.5), (0.8, 0.7), (0.4, 0.9), (0.2, 0.1)) if box else ():
            canvas.click(position={"x": box["width"] * across, "y": box["height"] * down})  # type: ignore[index]
            if seen(tab) != before:
                return "canvas"
    for button in tab.locator(".pictures button").all():
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
    tab.locator("body").press("Tab")
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
def test_it_is_moved_by_pointer_and_keyboard_and_its_link_shows_the_same(
    tab: Tab, names: dict[str, Any], name: str, tmp_path: Path
) -> None:
    page = eval(EXPLORERS[name], names)
    address = page.save(tmp_path / f"{name}.html").as_uri()
    for scheme, width in (("light", 1400), ("light", 700), ("dark", 390)):
        tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto("about:blank")
        tab.goto(address)
        assert tab.evaluate(FITS) and tab.evaluate(DRAWN), (scheme, width)
        assert tab.locator(".sentence").inner_text(), (scheme, width)
    assert by_pointer(tab) != "nothing"
    assert by_keyboard(tab) != "nothing"
    changed, link = seen(tab), tab.url
    assert "#" in link and link != address
    tab.goto("about:blank")
    tab.goto(link)
    assert seen(tab) == changed
    tab.get_by_role("button", name="Reset").click()
    tab.wait_for_function("location.hash === '' || location.hash === '#'")
