"""Build the notebooks and the README as a static site, which needs no server, no kernel and no network.

    python tools/build_book.py build/book

Nothing is executed: the notebooks hold their outputs. Pages whose arithmetic runs in the page stay alive; an
explorer, which needs a kernel, stands there as its picture.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import jupyter_server_mathjax
import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
TEXTS = ["README.md", "docs/teaching.md", "docs/original-code.md", "CONTRIBUTING.md", "CHANGELOG.md"]
TEXTS += ["benchmarks/README.md"]
# it has no `python -m`, and the script of its own is on nobody's PATH
JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def stage(folder: Path, root: Path = ROOT) -> None:
    """Lay out in `folder` what the site is made of, from the project at `root`."""
    shutil.copytree(root / "book", folder, dirs_exist_ok=True)
    for figures in (folder / "figures", folder / "extra/figures"):  # of Markdown's images, and of HTML's
        shutil.copytree(root / "figures", figures, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    mathjax = Path(jupyter_server_mathjax.__file__).with_name("static")
    shutil.copytree(mathjax, folder / "extra/mathjax", ignore=shutil.ignore_patterns("localization", "a11y"))
    notebooks = sorted((root / "notebooks").glob("*.ipynb"))
    for path in [*notebooks, *(root / text for text in TEXTS)]:
        target = folder / path.relative_to(root)
        target.parent.mkdir(exist_ok=True)
        target.touch()  # before any text is read: they link to one another
    for text in TEXTS:
        path = folder / text
        path.write_text(without_dead_links((root / text).read_text(encoding="utf-8"), path.parent), encoding="utf-8")
    for source in notebooks:
        notebook = still_alive(nbformat.read(source, as_version=4))
        tell_figures(notebook)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = without_dead_links(cell.source, folder / "notebooks")
        nbformat.write(notebook, folder / "notebooks" / source.name)


def tell_figures(notebook: NotebookNode) -> None:
    """Give each figure's alt text to myst-nb, which takes it from the cell, and from nowhere else."""
    for cell in notebook.cells:
        kept = [output.get("metadata", {}).get("image/png", {}) for output in cell.get("outputs", [])]
        told = [each["alt"] for each in kept if "alt" in each]
        if told:
            cell.metadata["mystnb"] = {"image": {"alt": " ".join(told)}}


def without_dead_links(text: str, folder: Path) -> str:
    """Markdown in which a link to a file that the site does not hold is its words alone."""

    def kept(found: re.Match[str]) -> str:
        words, target = found.groups()
        path = target.partition("#")[0]
        elsewhere = re.match(r"[a-z]+:", target) or not path
        return found[0] if elsewhere or (folder / path).is_file() else words

    return LINK.sub(kept, text)


def still_alive(notebook: NotebookNode) -> NotebookNode:
    """A notebook whose widgets stand there as HTML that needs no kernel."""
    states = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if VIEW in output.get("data", {}):
                state = states.get(output.data[VIEW]["model_id"], {})
                output.data = nbformat.from_dict({"text/html": shown(output.data, state)})
    notebook.metadata.pop("widgets", None)
    return notebook


def shown(data: dict[str, Any], state: dict[str, Any]) -> str:
    """A widget as HTML: its picture, and behind it what living.js needs to draw it anew, or a word on its controls."""
    told = data["text/plain"]
    picture = f'<img alt="{escape(told)}" src="data:image/png;base64,{data["image/png"].strip()}">'
    if "_esm" in state.get("state", {}):
        return picture + living(state)
    hint = f"Here it stands still; in JupyterLab it moves: {told.strip('[]')}"
    return f"<figure>{picture}<figcaption>{escape(hint)}</figcaption></figure>"


def living(state: dict[str, Any]) -> str:
    """The script element with a widget's module and traits."""
    traits = {name: value for name, value in state["state"].items() if not name.startswith("_")}
    buffers = {".".join(each["path"]): each["data"] for each in state.get("buffers", [])}
    kept = {"module": state["state"]["_esm"], "traits": traits, "buffers": buffers}
    text = json.dumps(kept).replace("<", "\\u003c")  # a "<" could end the element
    return f'<script type="application/json" class="rtx-living">{text}</script>'


def build(site: Path) -> Path:
    """Build the site into `site`, in the place of what was there, and return its first page.

    Raises:
        RuntimeError: if jupyter-book fails or warns, or what is there is no such site; what was there before stays.
    """
    new = not site.exists() or (site.is_dir() and not any(site.iterdir()))
    if not new and not (site / ".buildinfo").is_file():  # which Sphinx leaves in its sites
        raise RuntimeError(f"site: expected a new folder, an empty one or a former site, got {str(site)!r}")
    with tempfile.TemporaryDirectory() as scratch:
        source, built = Path(scratch, "source"), Path(scratch, "built")
        stage(source)
        command = [sys.executable, "-c", JUPYTER_BOOK, "build", str(source), "--path-output", str(built)]
        done = subprocess.run([*command, "--warningiserror", "--keep-going", "--quiet"], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"jupyter-book could not build the site:\n{done.stdout}{done.stderr}")
        html = built / "_build" / "html"
        shutil.rmtree(html / "_sources")
        shutil.rmtree(site, ignore_errors=True)
        site.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(html, site)
    return site / "index.html"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site into the folder that is named, and say where it begins."""
    parser = argparse.ArgumentParser(description="Build the notebooks as a static site.")
    parser.add_argument("site", type=Path, help="the folder to build it into, in the place of what is there")
    try:
        print(build(parser.parse_args(arguments).site))
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
