"""Rebuild notebooks from their .py sources: executed afresh, and the same bytes for the same source.

    python tools/build_notebooks.py notebooks/02_*.py

The .py file (jupytext's percent format) is the only source. Of the .ipynb beside it, only those outputs are
read that differ from the fresh ones by nothing but durations: they stay as they were.
"""

import argparse
import os
import re
import sys
import time
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jupytext
import nbformat
from figure_extension import smaller
from headless import opened
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbval.plugin import get_sanitize_patterns

from rtx.lab.explore.page import TRAITS, standalone

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
CACHE = Path(__file__).parents[1] / "build/notebooks"  # of what the notebooks compute, without downloads
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# What a picture of an explorer leaves out, and its greatest height in pixels.
STILL, HIGHEST = ".controls, .foot, .note, .rtx-page > .caption { display: none !important; }", 700
NOISE = get_sanitize_patterns(Path(__file__).with_name("nbval_sanitize.cfg").read_text(encoding="utf-8"))


def execute(source: Path, timeout: int = 300) -> NotebookNode:
    """The notebook of `source`, run in its own folder by a new kernel; a cell may take `timeout` seconds.

    Of the data that are here it sees none but those that come with the libraries: what explorers offer hangs on them.

    Raises:
        CellExecutionError: if a cell fails.
    """
    notebook = jupytext.read(source)
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name=KERNEL["name"],
        resources={"metadata": {"path": str(source.parent)}},
        record_timing=False,
        store_widget_state=True,
        coalesce_streams=True,  # how a kernel cuts its output into messages depends on timing
        # each kernel would warn that its local socket is not encrypted
        extra_arguments=["--log-level=ERROR", "--ext=figure_extension"],
    )
    own = {name: value for name, value in os.environ.items() if name != "RTX_DATA"}
    places = [str(Path(__file__).parent), *filter(None, [own.get("PYTHONPATH")])]  # of the extension, and others
    client.execute(env=own | {"RTX_CACHE": str(CACHE), "PYTHONPATH": os.pathsep.join(places)})
    return notebook


def widget_states(notebook: NotebookNode) -> dict[str, Any]:
    """Widget id → stored state, in order of creation."""
    stored: dict[str, Any] = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    return stored


def name_by_content(notebook: NotebookNode) -> NotebookNode:
    """Replace what is drawn at random, ids of cells and widgets, and what tells of this machine."""
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        digest = sha256(cell.source.encode()).hexdigest()[:8]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    kept = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    if widget_states(notebook):
        kept["widgets"] = notebook.metadata["widgets"]
    notebook.metadata = nbformat.from_dict(kept)

    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    shown = [out.data[VIEW]["model_id"] for out in outputs if VIEW in out.get("data", {})]
    ids = dict.fromkeys([*widget_states(notebook), *shown])
    numbers = {old: f"{number:032x}" for number, old in enumerate(ids, start=1)}
    text = nbformat.writes(notebook)
    text = re.sub(r"[0-9a-f]{32}", lambda found: numbers.get(found[0], found[0]), text)
    return nbformat.reads(text, as_version=4)


def photograph(notebook: NotebookNode) -> None:
    """Store a picture of each explorer beside it, for readers of the file where no script runs."""
    states = widget_states(notebook)
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    shown = [(out, states[out.data[VIEW]["model_id"]]) for out in outputs if VIEW in out.get("data", {})]
    explorers = [(out, model) for out, model in shown if "_esm" in model["state"]]
    if not explorers:
        return
    with opened() as browser, TemporaryDirectory() as folder:
        tab = browser.new_page(viewport={"width": 940, "height": 900}, reduced_motion="reduce")
        for out, model in explorers:
            traits = {name: model["state"][name] for name in TRAITS}
            traits["weights"] = model["buffers"][0]["data"]
            page = Path(folder) / "page.html"
            page.write_text(standalone(model["state"]["_esm"], traits), encoding="utf-8")
            tab.goto(page.as_uri())
            tab.add_style_tag(content=STILL)
            tab.wait_for_function("!document.querySelector('[aria-busy=true]')")
            area = tab.locator(".rtx-page").bounding_box()
            shot = tab.screenshot(clip=area | {"height": min(area["height"], HIGHEST)})
            out.data["image/png"] = b64encode(smaller(shot)).decode()


def masked(value: Any) -> Any:
    """`value` with every string freed of the noise that the comparison by nbval leaves out, too."""
    if isinstance(value, str):
        for pattern, substitute in NOISE:
            value = re.sub(pattern, substitute, value)
        return value
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value


def keep_durations(notebook: NotebookNode, stored: NotebookNode) -> None:
    """Take the `stored` outputs and widgets where those of `notebook` differ from them by noise only."""
    before = {cell.id: cell.outputs for cell in stored.cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        if cell.cell_type == "code" and masked(cell.outputs) == masked(before.get(cell.id)):
            cell.outputs = before[cell.id]
    states, old_states = widget_states(notebook), widget_states(stored)
    for name, state in states.items():
        if masked(state) == masked(old_states.get(name)):
            states[name] = old_states[name]


def build(source: Path) -> str:
    """Write `source`'s notebook beside it, whole or not at all, and return a line that says what was done.

    Raises:
        ValueError: if `source` is no .py file.
        CellExecutionError: if a cell fails; the notebook that was there stays.
    """
    if source.suffix != ".py" or not source.is_file():
        raise ValueError(f"source: expected the .py file of a notebook, got {str(source)!r}")
    start, target = time.perf_counter(), source.with_suffix(".ipynb")
    notebook = name_by_content(execute(source))
    photograph(notebook)
    old = target.read_text(encoding="utf-8") if target.exists() else ""
    if old:
        keep_durations(notebook, nbformat.reads(old, as_version=4))
    nbformat.validate(notebook)
    new = nbformat.writes(notebook).rstrip("\n") + "\n"
    if new != old:
        unfinished = target.with_suffix(".ipynb.part")
        unfinished.write_text(new, encoding="utf-8")
        os.replace(unfinished, target)
    what = "unchanged" if new == old else "written"
    return f"{target}: {what}, {len(new.encode()) / 1000:.0f} kB, {time.perf_counter() - start:.0f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build each named source, telling of each; return 1 if a cell of one failed."""
    parser = argparse.ArgumentParser(description="Rebuild notebooks (.ipynb) from their sources (.py).")
    parser.add_argument("sources", nargs="+", type=Path, metavar="notebooks/NAME.py")
    failed = False
    for source in parser.parse_args(arguments).sources:
        try:
            print(build(source), flush=True)
        except CellExecutionError as error:
            failed = True
            print(f"{source}: a cell failed; the notebook was left as it was\n{error}", file=sys.stderr)
        except ValueError as error:
            parser.error(str(error))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
