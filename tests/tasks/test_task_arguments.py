"""Every task refuses a wrong argument by its name, and gives its value."""

import pytest

from rtx.tasks import TASKS, task_by_name
from rtx.tasks.loader import loader

SEED = 2**32 - 1
WRONG = [
    ("add", {"length": 19}, "length: .* 20.* got 19"),
    ("add", {"length": 50.0}, "length: .* got 50.0"),
    ("multiply", {"longest": 49}, "longest: .* 50, got 49"),
    ("add", {"size": 0}, "size: .* got 0"),
    ("multiply", {"seed": -1}, f"seed: .* {SEED}, got -1"),
    ("add", {"seed": 2**32}, f"seed: .* {SEED}, got {2**32}"),
    ("add", {"read_padding": "no"}, "read_padding: .* got 'no'"),
    ("add", {"convention": "papre"}, "convention: 'papre' .* 'paper'"),
    ("copy-memory", {"length": 0}, "length: .* got 0"),
    ("copy-memory", {"length": 20, "longest": 19}, "longest: .* 20, got 19"),
    ("copy-memory", {"size": 1.5}, "size: .* got 1.5"),
    ("copy-memory", {"letters": 0}, "letters: .* got 0"),
    ("temporal-order", {"length": 9}, "length: .* 10.* got 9"),
    ("temporal-order", {"seed": True}, "seed: .* got True"),
    ("look-up", {"pairs": 1}, "pairs: .* got 1"),
    ("look-up", {"pairs": 11}, "pairs: .* got 11"),
    ("locality-dial", {"local": 1.1}, "local: .* got 1.1"),
    ("locality-dial", {"local": "abc"}, "local: .* got 'abc'"),
    ("locality-dial", {"long": float("nan")}, "long: .* got nan"),
    ("locality-dial", {"symbols": 1}, "symbols: .* 2, got 1"),
    ("locality-dial", {"length": 2}, "length: .* 3, got 2"),
    ("mnist", {"side": 0}, "side: .* got 0"),
    ("mnist", {"side": 28.0}, "side: .* got 28.0"),
    ("mnist", {"side": 56}, "side: .* got 56"),
    ("mnist", {"permuted": "no"}, "permuted: .* got 'no'"),
    ("digits", {"permuted": 1}, "permuted: .* got 1"),
    ("iwslt14-mixer", {"beam": 2.5}, "beam: .* got 2.5"),
    ("multi30k", {"vocabulary": 0}, "vocabulary: .* got 0"),
    ("dates", {"size": 40_000}, "size: .* 35524.* got 40000"),
    ("dates", {"seed": None}, "seed: .* got None"),
    ("dates", {"beam": 251}, "beam: .* 250 .* got 251"),
    ("words", {"context": -1}, "context: .* 0, got -1"),
    ("words", {"scored": 0}, "scored: .* 1, got 0"),
    ("words", {"paht": "x"}, "argument of words: 'paht' .* 'path'"),
    ("ptb-char", {"form": "tcn"}, "form: 'tcn' .* unmarked, eos"),
    ("notingham", {}, "task: 'notingham' .* 'nottingham'"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), WRONG)
def test_a_wrong_argument_is_named_with_its_value(name, arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        task_by_name(name, **arguments)


@pytest.mark.parametrize("name", TASKS)
def test_a_wrong_split_suggests_the_nearest(name):
    with pytest.raises(ValueError, match="^split: 'valid' .* 'validation'"):
        task_by_name(name).split("valid")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "fresh"}, "order or batching: 'fresh' .* digits .* 1439"),
        ({"order": "freshly"}, "order: 'freshly' .* 'fresh'"),
        ({"batch_size": 0}, "batch_size: .* got 0"),
        ({"limit": 0}, "limit: .* got 0"),
    ],
)
def test_a_wrong_argument_of_the_loader_is_named(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        loader(task_by_name("digits"), "train", **({"batch_size": 8} | arguments))
