"""Notebooks agree with their sources, hold their outputs and keep to their limits; rebuilds make no noise."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean, stdev
from symtable import SymbolTable, symtable
from textwrap import dedent

import jupytext
import nbformat
import pytest
from build_notebooks import VIEW, build, main, name_by_content
from jupytext.config import load_jupytext_config
from nbformat import NotebookNode
from solutions import solved

from rtx.evidence.claim import claims, judged
from rtx.evidence.ledger import Result, variant_of
from rtx.evidence.tables import cells
from rtx.evidence.verdict import Finding
from rtx.lab import explore
from rtx.training.recipe import load_recipe

FOLDER = Path(__file__).parents[1] / "notebooks"
LEDGER = FOLDER.parent / "results"
SOURCES = sorted(FOLDER.glob("*.py"))
WORDS, CODE_CELLS, LINES, BYTES = 2500, 25, 20, 500_000  # at most: of text, a notebook, a cell, a file
WEIGHTS = {"11_model_music": 300_000, "13_model_language": 300_000}
"""Bytes of trained models that a notebook holds besides, for its pages."""


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
    def parts(notebook: NotebookNode) -> list[tuple[str, str, NotebookNode]]:
        return [(cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells]

    assert parts(stored) == parts(jupytext.read(source)), "run `make notebooks`"


def test_saving_in_jupyterlab_leaves_the_source_as_it_is(source: Path, stored: NotebookNode) -> None:
    config = load_jupytext_config(str(source))
    assert jupytext.writes(stored, fmt="py:percent", config=config) == source.read_text(encoding="utf-8")


def test_the_notebook_was_built_and_not_saved_by_hand(source: Path, stored: NotebookNode) -> None:
    text = nbformat.writes(name_by_content(stored)).rstrip("\n") + "\n"
    assert text == source.with_suffix(".ipynb").read_text(encoding="utf-8"), "run `make notebooks`"


def test_every_figure_has_its_alt_text(stored: NotebookNode) -> None:
    outputs = [output for cell in code_cells(stored) for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {}) and VIEW not in output.data]
    assert pictures and all(output.metadata.get("image/png", {}).get("alt") for output in pictures)


def test_every_code_cell_ran_in_order_without_an_error(stored: NotebookNode) -> None:
    """nbval passes a cell that has no count without looking at its outputs."""
    cells = code_cells(stored)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [output for cell in cells for output in cell.outputs if output.output_type == "error"] == []


def test_a_cell_that_is_run_again_at_the_end_reads_what_it_read_first(source: Path) -> None:
    """No later cell replaces a name that a cell has from an earlier one: a figure would be another one, unnoticed."""
    parts = [symtable(cell.source, source.name, "exec") for cell in code_cells(jupytext.read(source))]
    binds = [{s.get_name() for s in part.get_symbols() if s.is_assigned() or s.is_imported()} - {"_"} for part in parts]
    for place, part in enumerate(parts):
        read = globals_read(part) - binds[place]
        earlier, later = set().union(*binds[:place]), set().union(*binds[place + 1 :])
        assert read & earlier & later == set(), f"code cell {place + 1}"


def globals_read(scope: SymbolTable) -> set[str]:
    """The names of the module that a piece of code, or a function in it, looks up."""
    here = scope.get_type() == "module"
    own = {s.get_name() for s in scope.get_symbols() if s.is_referenced() and (here or s.is_global())}
    return own.union(*map(globals_read, scope.get_children()))


def test_a_notebook_is_read_in_one_sitting(source: Path, stored: NotebookNode) -> None:
    text = [cell.source for cell in stored.cells if cell.cell_type == "markdown"]
    assert sum(len(part.split()) for part in text) <= WORDS
    assert len(code_cells(stored)) <= CODE_CELLS
    assert max(len(cell.source.splitlines()) for cell in code_cells(stored)) <= LINES
    assert source.with_suffix(".ipynb").stat().st_size <= BYTES + WEIGHTS.get(source.stem, 0)


def test_no_line_of_output_is_a_bare_truth_value(stored: NotebookNode) -> None:
    for cell in code_cells(stored):
        for output in cell.outputs:
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            assert not [line for line in text.splitlines() if re.search(r"\b(True|False)\W*$", line)], cell.source


def test_every_function_that_a_learner_writes_is_used_later(source: Path) -> None:
    cells = [cell.source for cell in code_cells(solved(jupytext.read(source)))]
    for place, code in enumerate(cells):
        for name, *_ in re.findall(r"^(\w+) = exercises\.yours\((\w+),", code, re.MULTILINE):
            later = [symtable(cell, source.name, "exec") for cell in cells[place + 1 :]]
            assert any(name in globals_read(part) for part in later), name


def test_the_list_of_explorers_names_the_notebooks_that_show_them() -> None:
    listed = re.findall(
        r"^\| `(\w+)`.*?\| ([\d, ]+) \|", (FOLDER.parent / "docs/explorers.md").read_text(), re.MULTILINE
    )
    shown: dict[str, set[str]] = {
        name: set() for name, one in vars(explore).items() if callable(one) and name != "Page"
    }
    for path in SOURCES:
        for name in re.findall(r"^(?:\w+ = )?explore\.(\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            shown[name].add(path.stem[:2])
    assert {name: set(places.split(", ")) for name, places in listed} == shown


# What the text says of the ledger, where no cell computes it.


@pytest.fixture(scope="module")
def found() -> dict[str, Finding]:
    """What the ledger says of each claim."""
    return {claim.name: finding for claim, finding in judged(LEDGER)}


def test_the_ledger_browser_in_notebook_15_holds_the_ledger() -> None:
    stored = nbformat.read(next(FOLDER.glob("15_*.ipynb")), as_version=4)
    models = stored.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
    kept = [json.loads(model["state"].get("data", "null")) for model in models]
    assert explore.ledger("nottingham", LEDGER).data in kept, "run `make notebooks`"


def test_notebook_14_says_how_translators_rank() -> None:
    groups = {model: lines[0] for model, lines in cells(load_recipe("multi30k"), LEDGER).items()}
    assert {(len(runs), runs[0].variant, runs[0].scale) for runs in groups.values()} == {(3, "adam", "cpu")}
    scores = {model: [run.test for run in runs] for model, runs in groups.items()}
    recurrent = [score for model in scores for score in scores[model] if "transformer" not in model]
    assert min(scores["r-transformer"]) > max(scores["transformer"])
    assert min(scores["transformer"]) > 1.2 * max(recurrent)
    sizes = {model: runs[0].parameters for model, runs in groups.items()}
    assert sizes["r-transformer"] / sizes["transformer"] == pytest.approx(1.1, abs=0.01)


def test_notebook_15_has_cards_that_say_what_was_found(found: dict[str, Finding]) -> None:
    assert [found[name].verdict for name in ("chorales-recurrent", "attention-chorales")] == ["fails", "fails"]
    assert found["chorales-tcn-transformer"].suggests == "both ways"
    assert [found[f"path-{which}"].verdict for which in ("shortest", "longest")] == ["holds", "fails"]
    for row in ("attention", "mean"):
        for steps in (50, 100, 500, 1000):
            names = (f"add-{row}-{steps}-padded", f"add-{row}-{steps}")
            assert [found[name].verdict for name in names] == ["holds", "fails"]
    assert found["multi30k-three-one"].suggests == "against"
    assert found["order-blind"].verdict == "holds"
    official = [line for line in ledger_lines("nottingham") if line[0].variant.startswith("official")]
    best = {
        line[0].model: min(mean(run.test for run in one) for one in official if one[0].model == line[0].model)
        for line in official
    }
    assert sorted(best, key=best.__getitem__).index("r-transformer") == 3 and len(best) == 6


def ledger_lines(recipe: str) -> list[list[Result]]:
    """All lines of a recipe's table, each as its runs."""
    return [line for of_row in cells(load_recipe(recipe), LEDGER).values() for line in of_row]


FINDINGS = FOLDER.parent / "docs/findings.md"


def table_of_findings(name: str) -> list[list[str]]:
    """The cells of a table, row by row, without its head."""
    table = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", FINDINGS.read_text(encoding="utf-8"), re.DOTALL)[1]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]


def test_the_findings_say_what_models_of_one_size_have() -> None:
    rows = ("transformer", "tcn", "gru", "lstm", "rnn")
    equal = [line for line in ledger_lines("nottingham") if variant_of(line[0]) == "same-parameters"]
    assert sorted(line[0].model for line in equal) == sorted(rows)
    assert {(len(line), run.scale, run.budget) for line in equal for run in line} == {(3, "full", None)}
    of = {line[0].model: mean(run.test for run in line) for line in equal}
    said = "the Transformer has {:.2f} nats, the TCN {:.2f}, the GRU {:.2f}, the LSTM {:.2f}, the RNN {:.2f}."
    assert said.format(*(of[row] for row in rows)) in " ".join(FINDINGS.read_text(encoding="utf-8").split())


def test_the_pages_quote_the_transformer_with_relative_positions_as_the_ledger_has_it() -> None:
    findings, readme = (" ".join(path.read_text("utf-8").split()) for path in (FINDINGS, FOLDER.parent / "README.md"))
    relative, said = "adam+max_distance=64+position=relative", {}
    for recipe in ("nottingham", "jsb", "piano"):
        (runs,) = [line for line in ledger_lines(recipe) if line[0].variant == relative]
        tests = [run.test for run in runs]
        assert [run.seed for run in runs] == [0, 1, 2] and all(run.budget is None for run in runs)
        said[recipe] = f"{mean(tests):.2f} ± {stdev(tests):.2f}"
        assert f"{said[recipe]} nats" in findings
    assert f"relative positions the Transformer has {said['nottingham']}" in readme
    for line in ledger_lines("ptb-word"):
        if line[0].variant.startswith("strong") and line[0].model.endswith("transformer"):
            tests = [run.test for run in line]
            assert f"{mean(tests):.1f} ± {stdev(tests):.1f}" in readme


def test_the_findings_have_every_run_of_the_authors_own_training() -> None:
    said, found = table_of_findings("official"), []
    for line in ledger_lines("nottingham"):
        if line[0].variant.startswith("official"):
            assert {run.budget for run in line} == {"15 of 100 epochs"}
            rate = float(line[0].variant.partition("learning_rate=")[2] or 5e-6)
            tests = [run.test for run in line]
            seeds = ", ".join(str(run.seed) for run in line)
            found.append((line[0].model, rate, seeds, f"{mean(tests):.2f} ± {stdev(tests):.2f}"))
    assert sorted((row[0].lower(), float(row[1]), *row[2:]) for row in said) == sorted(found)


@pytest.mark.parametrize("recipe", ["nottingham", "jsb", "piano", "ptb-word"])
def test_the_findings_have_every_model_of_the_search(recipe: str) -> None:
    said, found = table_of_findings(f"{recipe}-strong"), []
    for line in ledger_lines(recipe):
        if re.match(r"strong(?!.*dropout)", line[0].variant):
            name, tried = strong_name(line[0]), str(points_run(line[0]) or "–")
            found.append([name, tried, f"{line[0].parameters:,}", *of_seeds(line)])
            eight = ("lstm", "r-transformer", "r-transformer, at 2e-4", "r-transformer, without attention")
            assert [run.seed for run in line] == [*range(8 if recipe == "jsb" and name in eight else 3)]
            assert {run.budget for run in line} == {None}
    assert sorted([row[0].lower(), *row[2:]] for row in said) == sorted([row[0].lower(), *row[1:]] for row in found)


def test_the_findings_have_the_dropout_that_validation_chose_on_jsb() -> None:
    said, tried = table_of_findings("jsb-dropout"), defaultdict(list)
    for line in ledger_lines("jsb"):
        if line[0].variant.startswith("strong"):
            tried[line[0].model, re.sub(r"\+dropout=[^+]+", "", line[0].variant)].append(line)
    chosen = [
        min(lines, key=lambda line: line[0].validation) for lines in tried.values() if len(lines) > 2
    ]  # of seed 0
    found = []
    for line in chosen:
        dropout = re.search(r"dropout=([^+]+)", line[0].variant)
        name = strong_name(line[0]).replace(", at 2e-4", "")
        found.append([name, dropout[1] if dropout else "0.1", str(len(line)), *of_seeds(line)])
    assert sorted([row[0].lower(), *row[1:]] for row in said) == sorted([row[0].lower(), *row[1:]] for row in found)


def strong_name(run: Result) -> str:
    """The name that the findings give to a row of the variant strong."""
    variant = re.sub(r"\+dropout=[^+]+", "", run.variant)
    name = run.model + ", a convolution for each LocalRNN" * ("cell=convolution" in variant)
    name += ", relative" * ("cell=convolution" in variant and "position=relative" in variant)
    name += ", without attention" * ("heads=0" in variant) + ", narrower" * ("d_model=140" in variant)
    name += ", wider" * ("d_model=196" in variant)
    name += ", at 4e-3" * (run.recipe == "piano" and "learning_rate=0.004" in variant)
    return name + ", at 2e-4" * (variant == "strong+learning_rate=0.0002")


def points_run(run: Result) -> int:
    """How many points of the search were run. Without attention, those with relative positions could not be."""
    return sum(score is not None for score in (run.chosen_from or {}).values())


def of_seeds(line: list[Result]) -> tuple[str, str]:
    """The best epochs of a row, and its score."""
    tests, epochs = [run.test for run in line], [run.epoch for run in line]
    return f"{min(epochs)} to {max(epochs)}", f"{mean(tests):.2f} ± {stdev(tests):.2f}"


def test_the_readme_has_the_ledgers_totals(found: dict[str, Finding]) -> None:
    text = " ".join((FOLDER.parent / "README.md").read_text(encoding="utf-8").split())
    pattern = r"judged (\d+) claims. (\d+) are open. Of the (\d+) verdicts, (\d+) are .*? \((\d+) hold, (\d+) fail\)"
    numbers = re.search(pattern, text)
    verdicts = Counter(finding.verdict for finding in found.values())
    first = Counter(found[claim.name].verdict for claim in claims() if claim.paper == "ff_attention")
    settled, of_first = (of["holds"] + of["fails"] for of in (verdicts, first))
    expected = [len(claims()), verdicts["open"], settled, of_first, first["holds"], first["fails"]]
    assert numbers and [*map(int, numbers.groups())] == expected


# The builder, on a notebook with everything that differs from run to run.

QUIET = """\
    # %%
    import os

    import ipywidgets as widgets
    import matplotlib.pyplot as plt

    print("one")
    print(os.environ.get("RTX_DATA"), os.environ["RTX_CACHE"].endswith("notebooks"))
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
def test_the_same_source_gives_the_same_bytes_in_a_new_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (write_source(tmp_path / name, QUIET) for name in ("one", "two words"))
    build(first)
    for variable in ("RTX_DATA", "RTX_CACHE"):  # data that are here and not everywhere
        monkeypatch.setenv(variable, str(tmp_path))
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
