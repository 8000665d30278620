"""The ledger and the table made from it."""

import json
import math
import os
import re
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
import torch

from rtx.evidence.ledger import Result, read_result, read_results, write_result
from rtx.evidence.tables import Row, overview, printed, rows, to_markdown
from rtx.training import provenance
from rtx.training.fit import run_folder
from rtx.training.recipe import load_recipe, recipe_names

ROOT = Path(__file__).parents[2]
KEYS = (
    "recipe model variant scale data data_sha256 metric seed epoch validation test parameters seconds hardware "
    "versions commit command budget details chosen_from recipe_file earlier_commits"
)


def result(**changes) -> Result:
    facts = {f.name: f.name for f in fields(Result)} | {
        "recipe": "tiny",
        "model": "gru",
        "scale": "full",
        "data": "tiny",
    }
    facts |= {"seed": 0, "epoch": 3, "validation": 2.5, "test": 2.25, "parameters": 1000, "seconds": 120.0}
    facts |= {"versions": {}, "budget": None, "details": {}, "chosen_from": {}, "recipe_file": {}}
    facts |= {"earlier_commits": []}
    return Result(**facts | changes)


def test_a_run_comes_back_as_it_was_written(tmp_path):
    path = write_result(result(), tmp_path)
    assert path.parent == tmp_path / "tiny"
    assert list(json.loads(path.read_text())) == KEYS.split()
    assert read_result(path) == result()


def test_the_commit_is_the_packages_own_and_of_no_repository_around_it(tmp_path, monkeypatch, git, caplog):
    package = tmp_path / ".venv" / "rtx"
    (package / "training").mkdir(parents=True)
    (package / "__init__.py").touch()
    (tmp_path / ".gitignore").write_text(".venv\n")
    monkeypatch.setattr(provenance, "PACKAGE", package)
    git("init", "-q")
    git("add", ".gitignore")
    git("commit", "-q", "-m", "theirs")
    assert provenance.commit() is None
    git("add", "--force", ".venv")
    git("commit", "-q", "-m", "ours")
    head = git("rev-parse", "HEAD")
    os.utime(package / "__init__.py", (0, 0))  # touched, and the same: git would note that down
    index = tmp_path / ".git" / "index"
    before = index.read_bytes()
    assert provenance.commit() == head and index.read_bytes() == before  # else a commit that is made meanwhile fails
    (tmp_path / ".gitignore").write_text("nothing\n")  # theirs
    (package / "training" / "new.py").touch()  # which no commit knows
    assert provenance.commit() == head
    assert provenance.in_commit(head, "training/new.py", "") is False
    assert provenance.in_commit(head, "__init__.py", "") is True
    (package / "__init__.py").write_text("changed = True\n")
    assert provenance.commit() == f"{head}-dirty"
    assert provenance.in_commit(f"{head}-dirty", "__init__.py", "") is True
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # as in a container that runs as another user
    assert provenance.commit() is None and "safe.directory" in caplog.text
    assert provenance.in_commit(f"{head}-dirty", "__init__.py", "changed = True\n") is False
    assert provenance.in_commit(None, "__init__.py", "") is None


def test_a_run_that_is_written_again_stays_what_it_was(tmp_path):
    """One that has ended can be taken up again: by other code, or by a sweep that chose it."""
    path = write_result(result(commit="a-dirty"), tmp_path, ended="then")
    assert write_result(result(commit="b", test=9.0, chosen_from={"learning_rate=1": 2.0}), tmp_path, "then") == path
    assert write_result(result(commit="c"), tmp_path, "then") == path
    assert read_result(path) == result(commit="a-dirty", chosen_from={"learning_rate=1": 2.0})


def test_the_hardware_has_its_threads():
    before = torch.get_num_threads()
    try:
        for threads, told in ((1, ", 1 thread"), (2, ", 2 threads")):
            torch.set_num_threads(threads)
            assert provenance.hardware(torch.device("cpu")).endswith(told)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("value", ["/home/me/my.txt", "../" * 200, "C:\\a?", "ä" * 300, "\0"])
def test_a_run_has_one_folder_and_one_file_whatever_its_settings_hold(recipe, tmp_path, value):
    plan = recipe.plan("gru")
    folders = [run_folder(replace(plan, variant=f"plain+path={path}"), 0, tmp_path) for path in (value, f"{value}_")]
    assert len({*folders}) == 2
    for folder in folders:
        folder.mkdir(parents=True)
        assert folder.parent == tmp_path / "tiny"
    path = write_result(result(variant=f"plain+path={value}"), tmp_path / "results")
    assert path.parent == tmp_path / "results" / "tiny" and read_result(path).variant == f"plain+path={value}"


ODD = ["", "{", "[]", "null", '{"recipe": "tiny"}', '{"recipe": NaN}', "[" * 100_000, "9" * 5000, "x" * 2**21]


@pytest.mark.parametrize("text", ODD)
def test_a_damaged_file_is_named(tmp_path, text):
    path = write_result(result(), tmp_path)
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        list(read_results("tiny", tmp_path))


def test_the_table_averages_seeds_and_says_what_was_not_run(recipe, tmp_path):
    write_result(result(test=2.0), tmp_path)
    write_result(result(test=3.0, seed=1), tmp_path)
    write_result(result(test=9.0, variant="other", budget="1 of 4 epochs"), tmp_path)
    table = rows(recipe, tmp_path)
    assert [(row.model, row.paper, row.ours) for row in table] == [
        ("r-transformer", "0.50", "not run"),
        ("gru", "-", "9.000"),
        ("gru", "-", f"2.500 ± {math.sqrt(0.5):.3f}"),
    ]
    assert table[1].budget == "1 of 4 epochs, 2 min" and table[2].budget == "full, 2 min"
    assert table[2].seeds == "0, 1"


def test_a_table_of_one_variant_has_its_runs_whatever_was_set(recipe, tmp_path):
    for number, variant in enumerate(("plain", "plain+learning_rate=0.1", "plainer")):
        write_result(result(test=float(number), variant=variant), tmp_path)
    assert [(row.variant, row.ours) for row in rows(recipe, tmp_path, "plain")] == [
        ("", "not run"),
        ("plain", "0.000"),
        ("plain+learning_rate=0.1", "1.000"),
    ]
    with pytest.raises(ValueError, match=r"variant: 'plainer' is unknown, allowed are .*did you mean 'plain'"):
        rows(recipe, tmp_path, "plainer")


def test_each_cell_of_a_line_is_of_its_runs(recipe, tmp_path):
    shared = {"scale": "quick", "parameters": 12_345}
    write_result(result(validation=1.0, seconds=60.0, chosen_from={"a": 1.0, "b": None}, **shared), tmp_path)
    write_result(result(seed=1, epoch=4, validation=3.0, test=3.25, seconds=300.0, **shared), tmp_path)
    assert rows(recipe, tmp_path)[1] == Row(
        model="gru",
        paper="-",
        ours=f"2.750 ± {math.sqrt(0.5):.3f}",
        variant="variant, quick",
        seeds="0, 1",
        epoch="3, 4",
        validation=f"2.000 ± {math.sqrt(2):.3f}, best of 2",
        budget="full, 3 min",
        parameters="12,345",
        hardware="hardware",
    )


def test_runs_of_another_precision_have_a_line_of_their_own(recipe, tmp_path):
    for number, more in enumerate([" --precision bf16-mixed", "", " --epochs 4"]):
        write_result(result(command=f"rtx train tiny gru{more}", test=float(number)), tmp_path, ended=str(number))
    lines = sorted(line.ours for line in rows(recipe, tmp_path) if line.seeds)
    assert lines == ["0.000", "2.000"]  # of the same, the newest


def test_seeds_of_two_machines_stand_together_unless_seconds_were_the_budget(recipe, tmp_path):
    for seed, hardware in enumerate(("one", "other", "one")):
        for variant in ("paper", "same-seconds"):
            write_result(result(seed=seed, hardware=hardware, variant=variant), tmp_path)
    lines = {(line.variant, line.seeds, line.hardware) for line in rows(recipe, tmp_path) if line.seeds}
    assert lines == {
        ("paper", "0, 1, 2", "one; other"),
        ("same-seconds", "0, 2", "one"),
        ("same-seconds", "1", "other"),
    }


@pytest.mark.parametrize("change", [{"metric": "bits"}, {"data_sha256": "other"}, {"parameters": 1001}])
def test_runs_on_other_data_or_of_another_size_have_a_line_of_their_own(recipe, tmp_path, change):
    write_result(result(test=2.0), tmp_path)
    write_result(result(test=3.0, seed=1, **change), tmp_path)
    assert sorted(row.ours[:5] for row in rows(recipe, tmp_path) if row.model == "gru") == ["2.000", "3.000"]


def test_a_seed_counts_once_by_its_newest_run_and_epochs_stand_in_the_order_of_seeds(recipe, tmp_path):
    for ended, changes in [
        ("1", {"seed": 10, "epoch": 30, "test": 4.0}),
        ("2", {"seed": 2, "epoch": 20, "test": 9.0}),
        ("3", {"seed": 2, "epoch": 21, "test": 2.0}),
    ]:
        write_result(result(**changes), tmp_path, ended)
    line = rows(recipe, tmp_path)[1]
    assert (line.seeds, line.epoch, line.ours) == ("2, 10", "21, 30", f"3.000 ± {math.sqrt(2):.3f}")


@pytest.mark.parametrize(("bad", "shown"), [(math.nan, "nan ± nan"), (math.inf, "inf ± nan")])
def test_a_line_with_a_score_that_is_no_number_is_printed_all_the_same(recipe, tmp_path, bad, shown):
    write_result(result(validation=bad, test=bad), tmp_path)
    write_result(result(seed=1), tmp_path)
    (line,) = (row for row in rows(recipe, tmp_path) if row.seeds)
    assert (line.ours, line.validation) == (shown, shown)


def test_a_markdown_table_has_rows_without_runs_and_escapes_what_parts_cells(recipe, tmp_path):
    write_result(result(variant="plain+path=a|b"), tmp_path)
    *_, empty, row = to_markdown(rows(recipe, tmp_path)).splitlines()
    assert empty.startswith("| r-transformer | 0.50 | not run |") and "| plain+path=a\\|b |" in row


def test_the_ledgers_readme_has_its_tables_with_title_and_source():
    text = (ROOT / "results/README.md").read_text(encoding="utf-8")
    printed = dict(re.findall(r"<!-- table: (\S+) -->\n(.*?)\n<!-- end -->", text, re.DOTALL))
    assert sorted(printed) == [name for name in recipe_names() if [*(ROOT / "results" / name).glob("*.json")]]
    for name, table in printed.items():
        recipe = load_recipe(name)
        assert table == overview(recipe, ROOT / "results").to_markdown(), "`make tables` writes it anew"
        source = recipe.source[0].upper() + recipe.source[1:]
        assert f"## {recipe.title}\n\n{source}; the recipe `{name}`.\n\n<!-- table: {name} -->" in text


def test_the_best_score_is_marked_among_rows_that_have_the_same_data(tmp_path):
    scores = {"attention-50": 0.9, "mean-50": 0.8, "attention-100": 0.5, "mean-100": 0.6, "attention-500": 1.0}
    for model, score in scores.items():
        write_result(result(recipe="ffa-add", model=model, variant="sloped", data_sha256=None, test=score), tmp_path)
    found = overview(load_recipe("ffa-add"), tmp_path)
    assert {found.lines[place].model for place in found.best} == {"attention-50", "mean-100"}  # nothing is beside 500


def test_sums_are_not_compared_with_products_nor_a_short_training_with_a_whole_one(tmp_path):
    rows = {"add-attention": 0.98, "add-mean": 0.97, "multiply-attention": 0.89, "multiply-mean": 0.88}
    for model, score in rows.items():
        like = {"recipe": "ffa-variable", "model": model, "variant": "sloped", "data_sha256": None}
        like["data"] = model.split("-")[0]
        budget = "5 of 100 epochs" if model == "multiply-attention" else None
        write_result(result(**like, test=score, budget=budget), tmp_path)
        write_result(result(**like, test=score, budget=None), tmp_path / "whole")
    for ledger, marked in (tmp_path, {"add-attention"}), (tmp_path / "whole", {"add-attention", "multiply-attention"}):
        found = overview(load_recipe("ffa-variable"), ledger)
        assert {found.lines[place].model for place in found.best} == marked


def test_a_line_names_another_score_and_other_data_than_the_tables(tmp_path):
    like = {"recipe": "text", "variant": "adam"}
    write_result(result(**like, model="gru", data="characters", metric="bits per character"), tmp_path)
    write_result(result(**like, model="lstm", data="words", metric="perplexity"), tmp_path)
    write_result(result(recipe="nottingham", variant="adam", model="gru", data="chorales"), tmp_path)
    lines = {line.model: line for line in rows(load_recipe("text"), tmp_path)}
    assert lines["lstm"].ours.endswith("perplexity") and lines["lstm"].variant.endswith("words")
    assert "bits" not in lines["gru"].ours
    assert next(line for line in rows(load_recipe("nottingham"), tmp_path) if line.ours != "not run").variant == (
        "adam, chorales"
    )


def test_a_seed_that_solved_its_problem_stands_beside_the_seeds_that_were_cut_before(tmp_path):
    like = {"recipe": "copy-memory", "model": "transformer", "variant": "adam", "data_sha256": None, "scale": "cpu"}
    for seed, test, budget in ((0, 13.0, "3 of 20 epochs"), (1, 12.0, "3 of 20 epochs"), (2, 100.0, None)):
        write_result(result(**like, seed=seed, test=test, validation=test, budget=budget, epoch=2), tmp_path)
    (line,) = (line for line in overview(load_recipe("copy-memory"), tmp_path).lines if line.model == "transformer")
    assert (line.seeds, line.ours) == ("0, 1, 2", "41.667 ± 50.521") and line.budget.startswith("3 of 20 epochs")
    late = result(**like, seed=2, test=100.0, validation=100.0, budget=None, epoch=4)  # three epochs were not enough
    write_result(late, tmp_path, "later")
    assert {line.seeds for line in rows(load_recipe("copy-memory"), tmp_path) if line.model == "transformer"} == {
        "0, 1",
        "2",
    }


def test_a_command_that_cannot_be_given_again_is_named_with_its_file(recipe, tmp_path):
    path = write_result(result(command="rtx train tiny 'gru"), tmp_path)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        rows(recipe, tmp_path)


@pytest.mark.parametrize("change", [{"test": "<b>"}, {"seed": 0.5}, {"seed": True}, {"versions": []}, {"budget": 1}])
def test_a_value_of_another_type_is_refused(tmp_path, change):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(asdict(result()) | change))
    with pytest.raises(ValueError, match=rf"(?s)odd\.json.*{next(iter(change))}"):
        read_result(path)


def test_the_papers_number_keeps_its_digits():
    assert printed(load_recipe("ffa-variable"), "add-attention") == "0.999"
    assert printed(load_recipe("mnist"), "r-transformer") == "99.10"
