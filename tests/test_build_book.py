"""What the static site is made of: pages that stay alive, pictures of explorers, links that lead somewhere."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml
from build_book import TEXTS, living, main, shown, still_alive, tell_figures, without_dead_links
from build_notebooks import VIEW, widget_states
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PNG = "image/png"


def test_the_table_of_contents_names_every_notebook_and_text() -> None:
    contents = yaml.safe_load((ROOT / "book/_toc.yml").read_text())
    listed = [contents["root"], *(one["file"] for part in contents["parts"] for one in part["chapters"])]
    texts = [text.removesuffix(".md") for text in TEXTS]
    assert sorted(listed) == sorted(texts + [f"notebooks/{path.stem}" for path in NOTEBOOKS])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_widget_is_left_and_each_page_is_alive(path: Path) -> None:
    before = nbformat.read(path, as_version=4)
    states = widget_states(before)
    views = [output.data[VIEW]["model_id"] for output in outputs(before) if VIEW in output.get("data", {})]
    pages = sum("_esm" in states[view]["state"] for view in views)
    assert views
    after = still_alive(before)
    html = [output.data["text/html"] for output in outputs(after) if "<img alt=" in str(output.get("data"))]
    assert len(html) == len(views) and sum("rtx-living" in one for one in html) == pages
    assert sum("<figcaption>" in one for one in html) == len(views) - pages
    assert VIEW not in str(after) and "widgets" not in after.metadata


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_an_explorer_is_its_picture_with_a_word_on_its_controls() -> None:
    html = shown({"text/plain": "[explorer of a, b: set a < b]", PNG: "AAAA\n"}, {})
    assert html == (
        '<figure><img alt="[explorer of a, b: set a &lt; b]" src="data:image/png;base64,AAAA">'
        "<figcaption>Here it stands still; in JupyterLab it moves: explorer of a, b: set a &lt; b</figcaption></figure>"
    )


def test_a_figures_alt_text_is_handed_to_the_site() -> None:
    def picture(alt: str) -> NotebookNode:
        return new_output("display_data", {PNG: "AAAA"}, metadata={PNG: {"alt": alt}})

    pictures = new_code_cell(outputs=[picture("a band"), new_output("stream", text="3"), picture("a triangle")])
    notebook = new_notebook(cells=[new_markdown_cell("# Bands"), pictures, new_code_cell()])
    tell_figures(notebook)
    assert [cell.metadata for cell in notebook.cells] == [{}, {"mystnb": {"image": {"alt": "a band a triangle"}}}, {}]


class Script(HTMLParser):
    """The text of the script elements."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script"

    def handle_data(self, data: str) -> None:
        self.found = data if self.inside else self.found


def test_a_page_carries_its_module_its_traits_and_its_bytes() -> None:
    traits = {"_esm": "export default 1 < 2", "_model_name": "AnyModel", "caption": "</script><!--"}
    html = living({"state": traits, "buffers": [{"path": ["notes"], "data": "AAE="}]})
    reader = Script()
    reader.feed(html)
    kept = {"module": "export default 1 < 2", "traits": {"caption": "</script><!--"}, "buffers": {"notes": "AAE="}}
    assert json.loads(reader.found) == kept
    assert "<" not in unescape(re.sub(r"^<script[^>]*>|</script>$", "", html))


def test_links_out_of_the_site_become_words(tmp_path: Path) -> None:
    (tmp_path / "there.md").touch()
    (tmp_path / "folder").mkdir()
    text = "[a](there.md#b) [c](gone.py) [d](folder) [e](https://example.org) [f](#g) ![h](gone.png)"
    kept = "[a](there.md#b) c d [e](https://example.org) [f](#g) ![h](gone.png)"
    assert without_dead_links(text, tmp_path) == kept


def test_what_is_no_former_site_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").touch()
    for place in (tmp_path, tmp_path / "mine"):
        assert main([str(place)]) == 1
        assert "site: " in capsys.readouterr().err
    assert (tmp_path / "mine").is_file()
