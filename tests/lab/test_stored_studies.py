"""Stored results of studies, as notebooks read them."""

import importlib
import json
from pathlib import Path

import pytest

from rtx.lab.studies import chosen_runs
from studies import fair

FILES = sorted(Path(fair.__file__).parent.glob("*.py"))
NAMES = [path.stem for path in FILES if "\nPROBLEMS" in path.read_text(encoding="utf-8")]


def run(model: str, rate: float, seed: int, *validation: float | None) -> dict[str, object]:
    return {"problem": "p", "model": model, "rate": rate, "seed": seed, "validation": validation, "test": []}


def test_a_models_rate_has_the_best_mean_validation_at_the_end(tmp_path: Path) -> None:
    runs = [run("a", 0.1, 0, 0.9, 0.5), run("a", 0.1, 1, 0.9, 0.7), run("a", 0.01, 0, 0.1, 0.9)]
    runs += [run("a", 0.01, 1, 0.1, 0.4), run("b", 0.1, 0, 0.0, 1.0), run("b", 0.01, 0, 0.5, 1.0)]
    path = tmp_path / "study.json"
    path.write_text(json.dumps({"runs": runs}))
    found = chosen_runs(path, "p")
    assert {model: [(one["rate"], one["seed"]) for one in some] for model, some in found.items()} == {
        "a": [(0.01, 0), (0.01, 1)],  # 0.65 against 0.6
        "b": [(0.01, 0)],  # both are right at the end, this one sooner
    }
    with pytest.raises(ValueError, match="problem.*'q'"):
        chosen_runs(path, "q")


def test_a_study_of_losses_chooses_the_rate_with_the_lowest(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    conditions = {"best": {"p": "min"}}
    path.write_text(json.dumps({"conditions": conditions, "runs": [run("a", 0.1, 0, 2.0), run("a", 0.01, 0, 1.0)]}))
    assert chosen_runs(path, "p")["a"][0]["rate"] == 0.01


def test_a_rate_with_which_a_score_overflowed_is_not_chosen(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    runs = [run("a", 0.1, 0, 2.0, 0.5), run("a", 0.01, 0, 3.0, 1.0)]
    runs += [run("a", 0.1, 1, 1.0, None), run("a", 0.01, 1, 3.0, 1.0)]
    path.write_text(json.dumps({"conditions": {"best": {"p": "min"}}, "runs": runs}))
    assert {one["rate"] for one in chosen_runs(path, "p")["a"]} == {0.01}


def test_a_warm_up_begins_with_small_steps() -> None:
    study = importlib.import_module("studies.first_symbol")
    whole = study.PROBLEMS["T = 5"]

    def after_one(warm_up: int) -> float:
        model = whole.models["RNN"]()
        before = next(model.parameters()).detach().clone()
        moved = lambda network: {"moved": [(next(network.parameters()) - before).abs().max().item()]}  # noqa: E731
        short = fair.Problem({"RNN": lambda: model}, whole.draw, whole.loss, moved, after=(1,), warm_up=warm_up)
        return fair.train(short, "RNN", 0.5, 0)["test"][0]["moved"][0]

    assert after_one(10) == pytest.approx(after_one(0) / 10, rel=0.02)  # a step of Adam is as long as the rate


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_study_is_complete_and_of_a_commit(name: str) -> None:
    study = importlib.import_module(f"studies.{name}")
    table = json.loads(study.STORED.read_text(encoding="utf-8"))
    done = [(run["problem"], run["model"], run["rate"], run["seed"]) for run in table["runs"]]
    assert sorted(done) == sorted(fair.wanted(study.PROBLEMS))
    assert "-dirty" not in table["conditions"]["commit"]
    assert table["conditions"]["updates"] == {name: list(one.after) for name, one in study.PROBLEMS.items()}


def test_an_interrupted_study_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = importlib.import_module("studies.first_symbol")
    whole = study.PROBLEMS["T = 5"]
    short = fair.Problem({"RNN": whole.models["RNN"]}, whole.draw, whole.loss, whole.test, after=(1, 2))
    monkeypatch.setattr(fair, "SEEDS", (0,))
    path = tmp_path / "short.json"
    fair.compare(path, {"T = 5": short})
    first = path.read_text()
    table = json.loads(first)
    assert [run["rate"] for run in table["runs"]] == list(fair.RATES)
    assert {len(run["test"]) for run in table["runs"]} == {2}
    table["runs"].pop()
    path.write_text(json.dumps(table))
    fair.compare(path, {"T = 5": short})
    assert json.loads(path.read_text())["runs"] == json.loads(first)["runs"]  # the same numbers again
