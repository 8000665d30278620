"""Headlines: docstrings and Gigaword, and ROUGE."""

from collections import Counter

import pytest
from rouge_score.rouge_scorer import RougeScorer

from rtx.tasks.subwords import BEGIN, END
from rtx.tasks.summarization import LEAD, docstrings, gigaword, lead, parse_docstrings, rouge
from rtx.tasks.task import SPLITS

CODE = b'''"""A module.

Its body, which
goes on.
"""
class A:
    """A class without a body."""
    def f(self):
        """Return nothing.

        Ever.

        Really.
        """
    async def g(self):
        """A summary
        of two lines.

        Its body.
        """
def h():
    """One paragraph."""
'''


def texts(task, example) -> tuple[str, str]:
    return task.texts[0].decode(example.inputs.tolist()), task.texts[1].decode(example.target.tolist())


def test_a_docstring_is_its_body_and_its_summary_line():
    assert sorted(parse_docstrings(CODE)) == [
        ("Ever. Really.", "Return nothing."),
        ("Its body, which goes on.", "A module."),
    ]
    ((body, _),) = parse_docstrings(f'"""One.\n\n{"word " * 60}"""'.encode())
    assert len(body.split()) == 25
    assert [*parse_docstrings(b"def f(:"), *parse_docstrings(b"\0")] == []


def test_docstrings_of_the_library_are_in_one_split_only_and_the_same_every_time():
    task = docstrings()
    pairs = {split: [texts(task, e) for e in task.split(split)] for split in SPLITS}
    sizes = [len(pairs[split]) for split in SPLITS]
    assert sum(sizes) > 1500 and sizes[1] == sizes[2] == sum(sizes) // 10
    bodies = [body for split in SPLITS for body, _ in pairs[split]]
    assert len({*bodies}) > 0.99 * len(bodies)  # an unknown character may make two alike
    assert all(body and summary for split in SPLITS for body, summary in pairs[split])
    assert docstrings().sha256() == task.sha256()
    example = task.split("train")[0]
    assert example.inputs[-1] == END and example.target[0] == BEGIN and example.target[-1] == END
    assert task.texts[0] is task.texts[1] and task.inputs == task.outputs == 1500


def test_the_baseline_of_docstrings_is_the_commonest_summary_line():
    task = docstrings()
    lines = Counter(texts(task, example)[1] for example in task.split("train"))
    (commonest, times), *_ = lines.most_common(1)
    assert times > 3
    pairs = [texts(task, example) for example in task.split("test")]
    expected = rouge(pairs, [commonest] * len(pairs))["ROUGE-1"]  # which line, and how good, differs between Pythons
    assert task.baseline() == pytest.approx(expected, rel=1e-3) and 0 < expected < 12


def test_rouge_is_the_mean_f1_of_the_package():
    pairs = [("the rivers are low", "low rivers"), ("nine words stand here and they are far too many", "some words")]
    written = ["a river , low", "words"]
    found = rouge(pairs, written)
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    for name, key in {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-L": "rougeL"}.items():
        each = [
            scorer.score(reference, text)[key].fmeasure for (_, reference), text in zip(pairs, written, strict=True)
        ]
        assert found[name] == pytest.approx(100 * sum(each) / 2)
    assert next(iter(found)) == "ROUGE-1" and found["ROUGE-1"] == pytest.approx(100 * (4 / 5 + 2 / 3) / 2)
    assert found["ROUGE-L"] < found["ROUGE-1"]  # the order of words counts
    assert "rouge-score" in found["signature"] and "stemmed" in found["signature"]
    leads = rouge(pairs, [lead(source) for source, _ in pairs])
    assert leads["ROUGE-1"] == found["ROUGE-1 of the first words"]
    assert len(lead(pairs[1][0]).split()) == LEAD


def test_unknown_words_that_are_written_are_counted():
    assert rouge([("a", "b UNK")], ["b UNK UNK c"])["UNK written (%)"] == 50
    assert rouge([("a", "b")], [""])["UNK written (%)"] == 0


def test_gigaword_has_the_published_test_set_and_one_name_for_rare_words(real_data):
    task = gigaword(vocabulary=300)
    assert [len(task.split(split)) for split in SPLITS] == [10_000, 1_000, 1_951]
    assert "10,000 of 3,803,957" in task.metric and task.sha256().startswith("c91ae3c4")
    pairs = {split: [texts(task, e) for e in task.split(split)] for split in SPLITS}
    words = {split: [word for pair in pairs[split] for text in pair for word in text.split()] for split in SPLITS}
    assert all("UNK" in words[split] for split in SPLITS)
    assert "<unk>" not in words["train"]  # in the test set there are characters that training lacks
    assert sum(source == "UNK" for source, _ in pairs["test"]) == 14
    assert pairs["train"][2] == (
        "australian shares closed down #.# percent monday following a weak lead from the united states and lower "
        "commodity prices , dealers said .",
        "australian stocks close down #.# percent",
    )
    assert 18 < task.baseline() < 24


def test_long_texts_are_not_capped():
    assert rouge([("a", "b")], ["c " * 300 + "b"])["ROUGE-1"] == pytest.approx(100 * 2 / 302)
