"""Translation from German to English: captions (Multi30k), talks (IWSLT 2014), and dates that need no download.

MC-RNN (Xu et al., 2019), Section 4.1, translates IWSLT 2014. Multi30k: Elliott et al. (2016), task 1. BLEU: Papineni et
al. (2002), by sacrebleu (Post, 2018).
"""

import datetime
import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise, product

import numpy as np

from rtx.checks import check_seed
from rtx.nn.validate import check_positive
from rtx.tasks import data
from rtx.tasks.pairs import Pair, pair_task, read_pairs
from rtx.tasks.subwords import one_blank
from rtx.tasks.task import SPLITS, Scores, Split, Task

# where the groups of source lengths end, in words; the paper's text names 40 and 61, of the groups in Figure 4
LENGTHS = (0, 20, 40, 61)
FIRST_DAY, DAYS = datetime.date(1950, 1, 1), 36_524  # to 30 December 2049, so the last two digits name the year
HELD_OUT = 500  # pairs for validation, and for test
SKELETON = "yMMMEd"  # a style between full and medium, with the weekday in short
# a style or skeleton of the date and a style of the time of day, or none: names of Unicode's locale data (CLDR)
WAYS = tuple(product(("full", "long", "medium", "short", SKELETON), ("", "medium", "short")))


def iwslt14(vocabulary: int = 25_000, beam: int = 5) -> Task:
    """IWSLT 2014, German to English: tokenised by Moses, lower case.

    Training uses a subset, 49,774 of fairseq's 160,239 pairs, because these files do not have the whole training set.
    The 6,969 pairs of validation are those of MIXER (Ranzato et al., 2016), whom the paper follows. The 6,750 pairs of
    the test set are complete. BLEU is computed on the tokens of the files, with their escapes (sacrebleu,
    tokenize="none"). Published numbers are computed so too, but after training on all pairs. The paper has "about 25k"
    sub-words and a beam of 5. Separate vocabularies are our choice.
    """
    return pair_task(
        "iwslt14-mixer",
        partial(_files, "iwslt14", ("train.subset", "mixer.valid", "test")),
        partial(bleu, tokenize="none"),
        vocabulary,
        tokenised=True,
        beam=beam,
        data_set="iwslt14",
        note=" (training on 49,774 of 160,239 pairs)",
    )


def multi30k(vocabulary: int = 8_000, beam: int = 5) -> Task:
    """Multi30k, German to English: 29,000/1,014/1,000 captions of photographs, raw text, case kept.

    The test set is that of 2016, as in most papers. Each language has `vocabulary` sub-words.
    """
    read = partial(_files, "multi30k", ("train", "val", "test_2016_flickr"), ".gz")
    return pair_task("multi30k", read, bleu, vocabulary, beam=beam, data_set="multi30k")


def dates(size: int = 5_000, vocabulary: int = 250, beam: int = 5, seed: int = 0) -> Task:
    """Dates and times, German to English, each in one of 15 styles of Babel's locale data. Nothing to download.

    A date is in one pair only, so no date of validation or test is in training. There are `size` training pairs, at
    most 35,524; validation and test have 500 more each. Each language has `vocabulary` sub-words. The styles differ a
    little between versions of Babel.
    """
    check_seed("seed", seed)
    if check_positive("size", size) > DAYS - 2 * HELD_OUT:
        raise ValueError(f"size: expected at most {DAYS - 2 * HELD_OUT}, as each date is in one pair, got {size}")

    def read() -> dict[Split, list[Pair]]:
        rng = np.random.default_rng(seed)
        drawn = np.stack([rng.permutation(DAYS), rng.integers(24 * 60, size=DAYS), rng.integers(len(WAYS), size=DAYS)])
        pairs = [date_pair(*one) for one in drawn.T[: size + 2 * HELD_OUT].tolist()]
        validation, test = pairs[:HELD_OUT], pairs[HELD_OUT : 2 * HELD_OUT]  # the same ones, whatever the size
        return {"validation": validation, "test": test, "train": pairs[2 * HELD_OUT :]}

    return pair_task("dates", read, bleu, vocabulary, beam=beam)


def date_pair(day: int, minute: int, way: int) -> Pair:
    """Return a date and perhaps a time of day, in German and in English.

    `day` counts from 1 January 1950, `minute` is a minute of the day, and `way` is an index into `WAYS`.
    """
    when = datetime.datetime.combine(FIRST_DAY, datetime.time(), datetime.UTC)
    when += datetime.timedelta(days=day, minutes=minute)
    return _written(when, way, "de"), _written(when, way, "en")


def _written(when: datetime.datetime, way: int, language: str) -> str:
    from babel.dates import format_date, format_skeleton, format_time, get_datetime_format

    style, time_style = WAYS[way]
    date = format_skeleton(style, when, locale=language) if style == SKELETON else format_date(when, style, language)
    if not time_style:
        return one_blank(date)
    time = format_time(when, time_style, locale=language)
    together = str(get_datetime_format("medium", locale=language)).replace("'", "")
    return one_blank(together.replace("{0}", time).replace("{1}", date))


def bleu(pairs: Sequence[Pair], written: Sequence[str], tokenize: str = "13a") -> Scores:
    """Return BLEU of all pairs and of those with a source of each length, with case, and sacrebleu's signature.

    `tokenize` is "13a" for raw text and "none" for tokenised text.
    """
    from sacrebleu.metrics import BLEU

    metric = BLEU(tokenize=tokenize, force=True)  # force: no warning that tokenised text is tokenised
    lengths = [len(source.split()) for source, _ in pairs]
    groups = {"BLEU": list(range(len(pairs)))}
    for low, high in pairwise((*LENGTHS, math.inf)):
        name = f"BLEU, {low + 1} to {high} words" if high < math.inf else f"BLEU, over {low} words"
        groups[name] = [i for i, length in enumerate(lengths) if low < length <= high]
    scores: Scores = {
        name: metric.corpus_score([written[i] for i in rows], [[pairs[i][1] for i in rows]]).score
        for name, rows in groups.items()
        if rows
    }
    return scores | {"signature": str(metric.get_signature())}


def _files(data_set: str, names: Sequence[str], end: str = "") -> dict[Split, list[Pair]]:
    paths = data.fetch(data_set)
    of_splits = [(paths[f"{name}.de{end}"], paths[f"{name}.en{end}"]) for name in names]
    return {split: read_pairs(*both) for split, both in zip(SPLITS, of_splits, strict=True)}
