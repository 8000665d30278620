"""Headlines: a piece of news by its first sentence, or a docstring by its body.

Gigaword: Rush, Chopra & Weston (2015), as in MC-RNN (Xu et al., 2019), Section 4.2. ROUGE: Lin (2004), by the package
rouge-score.
"""

import ast
import platform
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from statistics import fmean

import numpy as np

from rtx.tasks import data
from rtx.tasks.pairs import Pair, pair_task, read_pairs
from rtx.tasks.subwords import one_blank
from rtx.tasks.task import SPLITS, Scores, Split, Task

UNKNOWN = "UNK"  # a rare word in Gigaword's test files
ROUGE = {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-L": "rougeL"}
LEAD = 8  # words: the median length of Gigaword's headlines
BODY = 25  # words that are read of a docstring's body
LONGEST = 40  # tokens that a headline may have
LEFT_OUT = frozenset({"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo"})


def gigaword(vocabulary: int = 8_000, beam: int = 10) -> Task:
    """Gigaword, first sentence to headline: lower case, digits are #, rare words are unknown.

    Training uses the first 10,000 of 3,803,957 pairs, validation the first 1,000 of 189,651. The 1,951 pairs of the
    test set are complete. A rare word is `<unk>` in the files of training and validation and UNK in those of the test.
    Here it is UNK in all. ROUGE counts it like any other word, as ROUGE's own script does. "UNK written (%)" is its
    share of the words that a model writes. Sources and headlines share `vocabulary` sub-words; the paper's 30,000 are
    words, from all pairs. Its beam is 10 wide.
    """

    def read() -> dict[Split, list[Pair]]:
        paths = [*data.fetch("gigaword").values()]  # sentences and headlines, in the order of the splits
        pairs = [read_pairs(*both) for both in zip(paths[::2], paths[1::2], strict=True)]
        named = [[(a.replace("<unk>", UNKNOWN), b.replace("<unk>", UNKNOWN)) for a, b in part] for part in pairs]
        return dict(zip(SPLITS, named, strict=True))

    return pair_task(
        "gigaword",
        read,
        rouge,
        vocabulary,
        shared=True,
        tokenised=True,
        first_guess=lead,
        beam=beam,
        longest=LONGEST,
        data_set="gigaword",
        note=" (training on 10,000 of 3,803,957 pairs)",
    )


def docstrings(vocabulary: int = 1_500, beam: int = 5) -> Task:
    """Docstrings of the running Python's standard library: the first 25 words of the body to the summary line.

    They differ a little between Python versions. Each body is in one pair only. The order is random, but the same for
    everyone with that version: 10 % of the pairs test, and 10 % validate. What the first call parses is cached.

    The baseline is the commonest summary line. A small model learns more than that from two thousand pairs, but not
    enough to beat the body's first words, whose score is given too.
    """

    @cache
    def read() -> dict[Split, list[Pair]]:
        key = f"docstrings-v1-python-{platform.python_version()}"  # v1: raise it when parsing changes
        stored = data.cached_arrays(key, _library_docstrings)["text"].tobytes().decode()
        lines = [line.split("\t") for line in stored.split("\n")]
        pairs = [(lines[i][0], lines[i][1]) for i in np.random.default_rng(0).permutation(len(lines))]
        tenth = len(pairs) // 10
        return {"test": pairs[:tenth], "validation": pairs[tenth : 2 * tenth], "train": pairs[2 * tenth :]}

    @cache
    def commonest() -> str:
        return Counter(summary for _, summary in read()["train"]).most_common(1)[0][0]

    return pair_task("docstrings", read, rouge, vocabulary, True, False, lambda _: commonest(), beam, LONGEST)


def rouge(pairs: Sequence[Pair], written: Sequence[str]) -> Scores:
    """Return ROUGE-1, -2 and -L, each the mean of the texts' F1, in percent.

    Words are stemmed, and whole texts count. Earlier work used recall, which needs a cap on the length; F1 does not.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(ROUGE.values()), use_stemmer=True)
    each = [scorer.score(reference, text) for (_, reference), text in zip(pairs, written, strict=True)]
    leads = [scorer.score(reference, lead(source))["rouge1"] for source, reference in pairs]
    words = [word for text in written for word in text.split()]
    scores: Scores = {name: 100 * fmean(s[key].fmeasure for s in each) for name, key in ROUGE.items()}
    return scores | {
        "ROUGE-1 of the first words": 100 * fmean(s.fmeasure for s in leads),
        "UNK written (%)": 100 * words.count(UNKNOWN) / max(1, len(words)),
        "signature": f"rouge-score {version('rouge-score')}, F1, stemmed, not capped",
    }


def lead(source: str) -> str:
    """Return the first words of a source, as many as headlines have."""
    return " ".join(source.split()[:LEAD])


def parse_docstrings(code: bytes) -> Iterator[Pair]:
    """Yield body and summary line of each docstring of a Python file that has both. The body is cut after 25 words.

    A blank line must separate the two, so a summary of several lines does not count.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):  # some files of the library are wrong on purpose
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            summary, _, body = (ast.get_docstring(node) or "").partition("\n\n")
            if "\n" not in summary.strip() and summary.split() and body.split():
                yield " ".join(body.split()[:BODY]), one_blank(summary)


def _library_docstrings() -> data.Arrays:
    folder = Path(sysconfig.get_path("stdlib"))
    files = (path for path in sorted(folder.rglob("*.py")) if not LEFT_OUT & {*path.relative_to(folder).parts})
    pairs: dict[str, str] = {}
    for path in files:
        for body, summary in parse_docstrings(path.read_bytes()):
            pairs.setdefault(body, summary)
    lines = "\n".join(f"{body}\t{summary}" for body, summary in sorted(pairs.items()))
    return {"text": np.frombuffer(lines.encode(), np.uint8)}
