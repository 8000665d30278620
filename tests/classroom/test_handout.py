"""What students get: notebooks without solutions that work where they are unpacked."""

import json
import re
from pathlib import Path

import pytest

from rtx.classroom.notebooks import chosen_notebooks, code_cells, exercises_of, make_handout
from rtx.evidence.ledger import read_results
from rtx.training.recipe import load_recipe

OWN = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(scope="module")
def handout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("class") / "hand out"
    make_handout(folder, OWN)
    return folder / "notebooks"


@pytest.mark.parametrize("source", chosen_notebooks(OWN), ids=lambda path: path.stem)
def test_solutions_and_outputs_go_and_stubs_hints_and_links_stay(handout: Path, source: Path) -> None:
    before, after = (json.loads(path.read_text()) for path in (source, handout / source.name))
    assert code_cells(source) == code_cells(handout / source.name) and "widgets" not in after["metadata"]
    assert [cell["outputs"] for cell in after["cells"] if cell.get("outputs")] == []
    was, text = (
        "\n".join("".join(cell["source"]) for cell in one["cells"] if cell["cell_type"] == "markdown")
        for one in (before, after)
    )
    assert was.count("<summary>Solution") == len(exercises_of(code_cells(source))) and "Solution" not in text
    assert text.count("<summary>Hint") == was.count("<summary>Hint")
    links = re.findall(r"\]\(([^):#]+)\)", text)
    assert links and [link for link in links if not (handout / link).exists()] == []


def test_files_that_cells_read_are_beside_the_handout(handout: Path) -> None:
    cells = "\n".join(cell for path in sorted(handout.glob("*.ipynb")) for cell in code_cells(path))
    read = re.findall(r'"(\.\./[^"]+)"', cells)
    assert len(read) == len(re.findall(r"(?<!\.)\.\.(?!\.)", cells))  # there is no other way out of the folder
    assert "../results" in read and [path for path in read if not (handout / path).exists()] == []
    assert next(read_results("nottingham", handout / "../results")).model in load_recipe("nottingham").models


def test_a_folder_that_is_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match=tmp_path.name):
        make_handout(tmp_path, OWN, ["02"])


def test_a_link_to_a_notebook_that_is_not_handed_out_becomes_text(tmp_path: Path) -> None:
    make_handout(tmp_path / "out", OWN, ["02", "03"])
    text = (tmp_path / "out" / "notebooks" / "02_slide_a_window.ipynb").read_text()
    assert "Why is the past hard to hold?" in text and "[Why is the past hard to hold?](" not in text
    assert not (tmp_path / "out" / "README.md").exists()  # most of its links would lead nowhere
    assert "[How does a position fetch what it needs?](03_attend_to_the_past.ipynb)" in text
