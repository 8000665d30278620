"""Notebooks agree with their sources, hold their outputs and keep to their limits; rebuilds make no noise."""

from pathlib import Path
from textwrap import dedent

import jupytext
import nbformat
import pytest
from build_notebooks import build, main, name_by_content
from jupytext.config import load_jupytext_config
from nbformat import NotebookNode

FOLDER = Path(__file__).parents[1] / "notebooks"
SOURCES = sorted(FOLDER.glob("*.py"))
WORDS, CODE_CELLS, LINES, BYTES = 2500, 25, 20, 500_000  # at most: of text, a notebook, a cell, a file


@pytest.fixture(params=SOURCES, ids=lambda source: source.stem)
def source(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def stored(source: Path) -> NotebookNode:
    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_every_notebook_has_a_source_and_every_source_a_notebook() -> None:
    assert SOURCES
    assert {path.stem for path in SOURCES} == {path.stem for path in FOLDER.glob("*.ipynb")}


def test_cells_are_those_of_the_source(source: Path, stored: NotebookNode) -> None:
    def cells(notebook: NotebookNode) -> list[tuple[str, str, NotebookNode]]:
        return [(cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells]

    assert cells(stored) == cells(jupytext.read(source)), "run `make notebooks`"


def test_saving_in_jupyterlab_leaves_the_source_as_it_is(source: Path, stored: NotebookNode) -> None:
    config = load_jupytext_config(str(source))
    assert jupytext.writes(stored, fmt="py:percent", config=config) == source.read_text(encoding="utf-8")


def test_the_notebook_was_built_and_not_saved_by_hand(source: Path, stored: NotebookNode) -> None:
    text = nbformat.writes(name_by_content(stored)).rstrip("\n") + "\n"
    assert text == source.with_suffix(".ipynb").read_text(encoding="utf-8"), "run `make notebooks`"


def test_every_code_cell_ran_in_order_without_an_error(stored: NotebookNode) -> None:
    """nbval passes a cell that has no count without looking at its outputs."""
    cells = code_cells(stored)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [output for cell in cells for output in cell.outputs if output.output_type == "error"] == []


def test_a_notebook_is_read_in_one_sitting(source: Path, stored: NotebookNode) -> None:
    text = [cell.source for cell in stored.cells if cell.cell_type == "markdown"]
    assert sum(len(part.split()) for part in text) <= WORDS
    assert len(code_cells(stored)) <= CODE_CELLS
    assert max(len(cell.source.splitlines()) for cell in code_cells(stored)) <= LINES
    assert source.with_suffix(".ipynb").stat().st_size <= BYTES


# The builder, on a notebook with everything that differs from run to run.

QUIET = """\
    # %%
    import ipywidgets as widgets
    import matplotlib.pyplot as plt

    print("one")
    print("two")
    widgets.VBox([widgets.IntSlider(2, max=9), widgets.HTML("a sentence")])

    # %%
    plt.plot([1, 2, 3])
    plt.show()
    """
TIMED = """\
    # %%
    import time
    from tqdm.auto import tqdm

    start = time.perf_counter()
    for _ in tqdm(range(20)):
        time.sleep(0.005)
    print(f"took {time.perf_counter() - start:.6f} s")

    # %%
    print(1)
    """


def write_source(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    source = folder / "tiny.py"
    source.write_text(dedent(text), encoding="utf-8")
    return source


@pytest.mark.slow
def test_the_same_source_gives_the_same_bytes_in_a_new_place(tmp_path: Path) -> None:
    first, second = (write_source(tmp_path / name, QUIET) for name in ("one", "two words"))
    build(first)
    build(second)
    written = first.with_suffix(".ipynb").read_bytes()
    assert b"image/png" in written and b"IntSliderModel" in written and b"one\\n" in written
    assert written == second.with_suffix(".ipynb").read_bytes()


@pytest.mark.slow
def test_a_rebuild_changes_what_changed_and_no_durations(tmp_path: Path) -> None:
    source = write_source(tmp_path, TIMED)
    target = source.with_suffix(".ipynb")
    assert "written" in build(source)
    before = target.read_text()
    assert "unchanged" in build(source)
    assert target.read_text() == before

    write_source(tmp_path, TIMED.replace("print(1)", "print(2)"))
    assert "written" in build(source)
    old, new = before.splitlines(), target.read_text().splitlines()
    changed = [(a.strip(), b.strip()) for a, b in zip(old, new, strict=True) if a != b and '"id"' not in a]
    assert changed == [('"1\\n"', '"2\\n"'), ('"print(1)"', '"print(2)"')]


@pytest.mark.slow
def test_a_failing_cell_leaves_the_notebook_and_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_source(tmp_path, "# %%\n1 / 0\n")
    source.with_suffix(".ipynb").write_text("what was there")
    assert main([str(source)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert source.with_suffix(".ipynb").read_text() == "what was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.ipynb", "tiny.py"]


def test_the_builder_takes_sources_only(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["notebooks/none.ipynb"])
    assert "expected the .py file of a notebook, got 'notebooks/none.ipynb'" in capsys.readouterr().err
