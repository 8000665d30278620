"""The `rtx` command as it is typed."""

import csv
import hashlib
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import optuna
import pytest
from rich.markup import render
from typer.main import get_command

import rtx
from rtx.cli.commands import app
from rtx.cli.sweep import _print as print_sweep
from rtx.evidence.tables import rows
from rtx.models import CARDS, MODELS, TRANSLATORS, WHOLE
from rtx.tasks.build import hyperparameter_names, models_for
from rtx.tasks.registry import TASKS, task_arguments, task_by_name
from rtx.training.recipe import load_recipe, parse_setting, recipe_names
from rtx.training.settings import Settings
from rtx.training.states import Exploded


@pytest.fixture
def ledger(tmp_path) -> Callable[[dict[str, str]], str]:
    """Writes a ledger of one run that differs from one of ours in some facts; returns its folder."""
    run = next((Path(__file__).parents[2] / "results" / "nottingham").glob("gru-adam-s0-*.json"))

    def write(facts: dict[str, str]) -> str:
        (tmp_path / "nottingham").mkdir()
        (tmp_path / "nottingham" / "0.json").write_text(json.dumps(json.loads(run.read_text()) | facts))
        return str(tmp_path)

    return write


def every_command(verb, words="rtx"):
    yield words, verb
    for name, one in getattr(verb, "commands", {}).items():
        yield from every_command(one, f"{words} {name}")


def test_every_command_explains_its_arguments_and_has_an_example(command):
    for words, verb in every_command(get_command(app)):
        assert all(getattr(one, "help", None) for one in verb.params), words
        texts = [verb.help, *(one.help for one in verb.params)]
        assert [text for text in texts if render(text).plain != text.replace("[\\", "[")] == []  # brackets are a style
        _, *more = verb.help.strip().split("\n\n")
        assert [paragraph for paragraph in more if "\n" in paragraph] == []  # such a line break would stay
        assert hasattr(verb, "commands") or verb.epilog.startswith(f"Example: {words}")
    done = command("ledger", "fill", "--help")
    assert done.returncode == 0 and "A TOML file of [[runs]]," in done.stdout and "Example: " in done.stdout


def test_the_command_has_the_version_of_the_package(command):
    assert command("--version")[:2] == (0, f"rtx {rtx.__version__}\n")


def test_no_name_is_shared_by_models_data_and_training():
    """Else `--set` would have to guess whose it is."""
    settings = {field.name for field in fields(Settings)}
    for name in TASKS:
        task, data = task_by_name(name), set(task_arguments(name))
        for model in models_for(task.per):
            known = set(hyperparameter_names(model, task.per))
            assert not known & settings and not known & data and not settings & data, (name, model)


def test_list_has_names_and_the_sizes_of_models(command):
    out = command("list").stdout
    for word in ("r-transformer", "transformer", "gru", "add", "mnist", "chorales", "nottingham"):
        assert re.search(rf"\b{word}\b", out)
    assert command("list", "tasks").stdout.startswith("tasks  ")
    titles = command("list", "recipes").stdout.splitlines()
    assert [tuple(line.split(maxsplit=1)) for line in titles] == [
        (name, load_recipe(name).title) for name in recipe_names()
    ]
    out = command("list", "models").stdout
    for name in [*MODELS, *WHOLE, *TRANSLATORS]:
        assert re.search(rf"^{name} .*\n +{re.escape(CARDS[name].paper)}", out, re.MULTILINE), name
    assert re.search(r"feed-forward-attention +10,602 .* whole past\n +Raffel ", out)
    assert re.search(r"tcn +902,400 .* 121 steps\n +Bai, ", out)  # 8 convolutions of 150 x 150 x 5, gains and biases


QUICK = "train ffa-add attention-50 --scale quick --set"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("train notingham gru", "recipe: 'notingham' is unknown, allowed are ablations, awd, "),
        ("train nottingham r-transfomer", "did you mean 'r-transformer'?"),
        ("train nottingham gru --set d_modl=3", "did you mean 'd_model'?"),
        ("train nottingham gru --set d_model", "--set: expected key=value, got 'd_model'"),
        ("train nottingham gru --variant papr", "did you mean 'paper'?"),
        ("train nottingham gru --set d_model=-3", "d_model: expected a whole number of at least 1, got -3"),
        ("train ptb-word gru --scale quick --set tied=no", "tied: expected true or false, got 'no'"),
        ("train headlines baseline --scale quick --set bidirectional=no", "bidirectional: expected true or false"),
        ("table nottinghm", "did you mean 'nottingham'?"),
        ("table nottingham --variant adm", "variant: 'adm' is unknown, allowed are "),
        ("data check nist", "did you mean 'mnist'?"),
        (f"{QUICK} d_hidden=1{'0' * 9}", "d_hidden"),
        (f"{QUICK} d_hidden=1{'0' * 30}", "d_hidden"),
        (f"{QUICK} learning_rate=1{'0' * 400}", ""),
        (f"{QUICK} 'd_hidden=8\nepochs=1'", "d_hidden"),
        (f"{QUICK} seconds=1e300", "seconds"),
        ("sweep ffa-add attention-50 --scale quick --set seconds=1e300", "seconds"),
        ("train ptb-char rnn --scale quick --set path=/dev/zero", "/dev/zero"),
        ("sweep ptb-char rnn --scale quick --set path=/dev/zero", "/dev/zero"),
    ],
)
def test_bad_input_ends_in_one_line_and_code_2(command, line, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command(*shlex.split(line))
    assert done.returncode == 2 and named in done.stderr
    assert done.stderr.startswith("rtx: ") and done.stderr.count("\n") == 1


def test_help_and_wrong_arguments_do_not_load_torch():
    lines = ["--help", "train --help", "nonsense", "train notingham gru", "train nottingham gro", "generate none"]
    lines += ["sweep nottingham gro", "table nottinghm"]
    lines += ["table nottingham --variant x", "sweep nottingham gru --set rate=1,2", "class make new --only 99"]
    lines += ["sweep nottingham gru --set learning_rate=0.1,x"]
    wrong = ("--seed x", "--variant x", "--max-time x", "--set x", "--set layer=2", "--set epochs=x")
    lines += [f"train nottingham gru {more}" for more in wrong]
    code = f"""import sys
from rtx.cli import main
for line in {lines}:
    sys.argv = ["rtx", *line.split()]
    try:
        main()
    except SystemExit as end:
        print(end.code, "torch" in sys.modules, "numpy" in sys.modules, file=sys.__stdout__)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = [line for line in done.stdout.splitlines() if re.fullmatch(r"\d \w+ \w+", line)]
    assert found == [f"{code} False False" for code in "00" + 16 * "2"]


def test_the_folders_of_missing_data_and_the_command_that_fetches_them_are_named(command, tmp_path, monkeypatch):
    monkeypatch.setenv("RTX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RTX_DATA", str(tmp_path))
    done = command("data", "check", "nottingham")
    assert done.returncode == 1 and done.stdout == "missing  Nottingham.mat\n"
    for named in (f"{tmp_path} ", f"{tmp_path / 'cache'};", "rtx data fetch nottingham"):
        assert named in done.stderr


def test_the_package_finds_its_names_when_they_are_used():
    code = "import rtx, sys; assert 'torch' not in sys.modules and 'LSTM' not in dir(rtx) and 'TCN' in dir(rtx)"
    subprocess.run([sys.executable, "-c", code], check=True)
    for name, found in (("TCN", MODELS["tcn"]), ("nn", sys.modules["rtx.nn"])):
        assert rtx.__getattr__(name) is found
    with pytest.raises(AttributeError, match="'LSTM'"):
        rtx.__getattr__("LSTM")


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.05, 0.5, 2])
def test_two_interrupts_at_once_end_the_command_quietly(tmp_path, delay):
    """Also while torch is imported. The delay is the time since the command's own code began."""
    code = "from rtx.cli import main; print(flush=True); main()"
    words = ["train", "ffa-add", "attention-50", "--scale", "quick"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, *words], cwd=tmp_path, text=True, **pipes) as process:
        process.stdout.readline()
        time.sleep(delay)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.005)
        _, told = process.communicate(timeout=120)
    assert process.returncode in (130, -signal.SIGINT) and told.count("\n") <= 1  # shells show both as 130


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (f"train mnist gru --seed {20 * '9'}", ["'--seed'", "4294967295", 20 * "9"]),
        ("train mnist gru --seed -1", ["'--seed'", "'-1'"]),
        ("train mnist gru --epochs 0", ["'--epochs'", "'0'"]),
        ("generate none --temperature nan", ["'--temperature'", "'nan'"]),
        ("list foo", ["'kind'", "'foo'"]),
    ],
)
def test_a_value_that_an_option_refuses_is_named_with_it(command, line, named):
    done = command(*line.split())
    assert done.returncode == 2 and all(word in done.stderr for word in named) and "Value error" not in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", ("a", 1)),
        ("a=1e-3", ("a", 1e-3)),
        ("a=.1", ("a", 0.1)),
        ("a=-1.e-3", ("a", -1e-3)),
        ("a=gru", ("a", "gru")),
        ("a=true", ("a", True)),
        ("a=False", ("a", False)),
        ("a=TRUE", ("a", True)),
        ("a=x=y", ("a", "x=y")),
        ("a=3 # b", ("a", "3 # b")),
        ("a=3\nb=4", ("a", "3\nb=4")),
        ("a=[1, 2]", ("a", [1, 2])),
        ("path=007", ("path", "007")),
        ("path=1e3", ("path", "1e3")),
    ],
)
def test_settings_are_read_as_toml_or_text(text, expected):
    assert parse_setting(text) == expected


def test_what_a_run_computes_by_stands_in_its_command_and_reaches_the_training(command, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("rtx.evidence.record.train", lambda *given, **named: calls.append((*given[1:], named)))
    monkeypatch.setattr("rtx.evidence.report.Report.end", lambda *_: None)
    words = ["train", "ffa-add", "attention-50", "--variant", "fresh", "--scale", "quick", "--seed", "3"]
    words += ["--epochs", "2", "--set", "d_hidden=8"]
    how = ["--precision", "bf16-mixed", "--compile"]
    elsewhere = ["--resume", "--max-time", "00:01:00", "--runs", f"{tmp_path}/a", "--results", f"{tmp_path}/b"]
    done = command(*words, *how, *elsewhere)
    ((*given, named),) = calls
    typed = shlex.join(["rtx", *words, *how])
    assert done.returncode == 0 and given == [3, 2, True, typed, tmp_path / "a", tmp_path / "b"]
    made_by = {"precision": "bf16-mixed", "compiled": True}
    assert named.pop("tell").bar is False
    assert named == made_by | {"max_seconds": 60, "enable_progress_bar": False}
    assert command(*words[:3], *elsewhere[-4:]).returncode == 0
    assert calls[1][3] == "rtx train ffa-add attention-50 --seed 0"


@pytest.mark.parametrize("line", ["table nottingham", "table all --csv", "ledger check", "ledger check --results none"])
def test_a_ledger_without_any_run_is_no_success_and_is_named(command, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    done = command(*line.split())
    assert done.returncode == 1 and ("not run" in done.stdout) == line.startswith("table")
    assert str(tmp_path / ("none" if "none" in line else "results")) in done.stdout + done.stderr


def test_a_table_has_one_line_for_each_model_the_metric_and_the_best_score_in_bold(command):
    _, _, _, head, _, *lines = command("table", "nottingham", "--markdown").stdout.splitlines()
    assert "NLL per frame (nats), lower is better" in head
    assert [line.split(" | ")[0] for line in lines] == [f"| {name}" for name in load_recipe("nottingham").models]
    trained = [line for line in lines if "not run" not in line]
    scores = [float(line.split(" | ")[2].strip("*").split()[0]) for line in trained]
    assert [line for line in lines if "**" in line] == [trained[scores.index(min(scores))]]
    assert "window=" not in "".join(lines)  # a setting that others did not have


def test_a_csv_has_every_line_of_every_table(command):
    head, *lines = csv.reader(command("table", "all", "--csv").stdout.splitlines())
    assert head[:4] == ["recipe", "model", "paper", "ours"] and {len(line) for line in lines} == {len(head)}
    assert len([line for line in lines if line[0] == "nottingham"]) == len(rows(load_recipe("nottingham")))


def test_all_tables_have_their_titles(command, ledger):
    done = command("table", "all", "--markdown", "--results", ledger({}))
    for recipe in map(load_recipe, recipe_names()):
        assert f"\n## {recipe.title} ({recipe.source})\n\n| model |" in done.stdout


def test_brackets_are_no_markup_and_control_characters_of_a_foreign_ledger_are_escaped(command, ledger):
    folder = ledger({"variant": "adam+path=[old]/[/]", "commit": "\x1b[31m"})
    assert "+path=[old]/[/]" in command("table", "nottingham", "--results", folder).stdout
    done = command("ledger", "check", "--results", folder)
    assert "\x1b" not in done.stderr and r"\x1b[" in done.stderr


def test_a_sweep_prints_the_best_run_first_and_why_others_failed(capsys):
    study = optuna.create_study()
    for value in (5e35, 0.25):
        trial = study.ask()
        trial.suggest_categorical("rate", [0.1])
        trial.set_user_attr("epoch", 3)
        study.tell(trial, value)
    trial = study.ask()
    trial.suggest_categorical("path", ["[old]/a.txt"])
    trial.set_user_attr("error", "loss: became nan in [/]")
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    print_sweep(study)
    best, other, failed = capsys.readouterr().out.splitlines()
    assert best.split() == ["0.25", "epoch", "3", "rate=0.1"] and other.split()[0] == "5e+35"
    assert "[old]/a.txt" in failed and "loss: became nan in [/]" in failed


def test_a_table_fits_a_narrow_terminal(command):
    out = command("table", "nottingham", "--every", width=80).stdout
    assert re.search(r"^r-transformer +2\.37 +\d\.\d{3}.* 1,418,968 *$", out, re.MULTILINE)  # to its last digit
    assert "+window=" in out and "…" not in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("words", [("train",), ("sweep", "--test", "--set", "learning_rate=1e-3")], ids=" ".join)
@pytest.mark.parametrize("name", ["runs", "results"])
def test_a_folder_that_cannot_be_written_is_refused_before_training(command, tmp_path, words, name):
    (tmp_path / "file").touch()
    places = {"--runs": tmp_path / "runs", "--results": tmp_path / "results"} | {f"--{name}": tmp_path / "file" / name}
    verb, *more = words
    more += [str(word) for place in places.items() for word in place]
    done = command(verb, "ffa-add", "attention-50", "--scale", "quick", *more)
    assert done.returncode == 2 and done.stderr.startswith(f"rtx: {name}: ") and done.stderr.count("\n") == 1
    assert f"{tmp_path}/file/{name}" in done.stderr and not [*tmp_path.rglob("*.ckpt")]


def test_a_text_may_be_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "1_000").write_text("the cat sat on the mat. " * 20)
    key, path = parse_setting("path=~/1_000")
    assert key == "path" and task_by_name("characters", path=path).sha256()
    monkeypatch.chdir(tmp_path)
    assert task_by_name("characters", path=parse_setting("path=1_000")[1]).sha256()  # a name and no number


@pytest.mark.parametrize(
    ("error", "code"),
    [(Exploded("loss"), 1), (OSError("disk"), 1), (MemoryError("array"), 1), (ValueError("seed"), 2)],
)
def test_a_run_that_failed_ends_with_1_and_wrong_usage_with_2(command, tmp_path, monkeypatch, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("rtx.evidence.record.train", fail)
    monkeypatch.chdir(tmp_path)
    done = command("train", "ffa-add", "attention-50", "--scale", "quick")
    assert (done.returncode, done.stderr) == (code, f"rtx: {error}\n")


@pytest.mark.slow
def test_a_sweep_without_a_run_that_ended_tests_nothing_and_says_so(command, tmp_path):
    values = ["--set", "learning_rate=1e30", "--set", "limit=200", "--epochs", "1"]
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    done = command("sweep", "ffa-add", "attention-50", "--scale", "quick", *values, *places, "--test")
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("rtx: no run")
    assert [*(tmp_path / "results").rglob("*")] == []


@pytest.mark.slow
def test_train_writes_its_folders_in_the_home_and_one_file_with_its_command(command, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    sizes = ["--scale", "quick", "--epochs", "1", "--set", "limit=20"]
    done = command("train", "ffa-add", "attention-50", *sizes, "--runs=~/runs", "--results=~/results")
    assert done.returncode == 0, done.stderr
    assert [*tmp_path.iterdir()] == [tmp_path / "home"]
    assert {path.name for path in (tmp_path / "home").iterdir()} == {"runs", "results"}
    (path,) = (tmp_path / "home" / "results" / "ffa-add").iterdir()
    found = json.loads(path.read_text())
    assert "~/results" not in done.stdout and path.name in done.stdout
    checkpoint = tmp_path / "home" / "runs" / "ffa-add" / "attention-50-quick-sloped+limit=20-s0" / "best.safetensors"
    assert checkpoint.exists() and f"rtx evaluate {checkpoint}" in done.stdout
    for word in ("add", "10,602", "higher is better", "baseline", "Table 1", "test "):
        assert word in done.stdout
    told = command(
        "train", "ffa-add", "attention-50", *sizes, "--json", "--seed", "1", "--runs=~/runs", "--results=~/results"
    )
    start, *_, end = map(json.loads, told.stdout.splitlines())
    assert (start["event"], end["event"], start["paper"], len(end["others"])) == ("start", "end", 1.0, 1)
    assert end["baseline"] == start["baseline"] and Path(end["result"]).exists()
    assert found["command"] == "rtx train ffa-add attention-50 --scale quick --seed 0 --epochs 1 --set limit=20"
    assert found["budget"].startswith("1 of ")
    file = Path(__file__).parents[2] / "rtx" / "training" / "recipes" / "ffa-add.toml"
    assert found["recipe_file"]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
