"""Texts: predict the next character or word.

Penn Treebank: Mikolov's preparation; windows as in Bai et al. (2018) and Wang et al. (2019), R-Transformer, Section
4.3. The Python reference manual: the text that the standard library ships for `help()`. Or texts of your own.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import accumulate, chain
from pathlib import Path
from types import MappingProxyType

import torch
from jaxtyping import Int
from torch import Tensor

from rtx.nn.validate import check_choice, check_count, check_positive
from rtx.tasks import data
from rtx.tasks.cache_pointer import examine_stream
from rtx.tasks.losses import bits, perplexity, token_nll, tokens_measured, unigram_nll
from rtx.tasks.subwords import Subwords
from rtx.tasks.task import IGNORED, SPLITS, Example, Examples, Split, Task, Text
from rtx.tasks.vocabulary import CUTS, END, UNKNOWN, Vocabulary, common

Paths = str | Path | Sequence[str]
Parts = Mapping[Split, Sequence[Sequence[str]]]  # split → its texts, each as its characters or its words

# unit of `own_text` → how a text is cut before it is split
UNITS = {"characters": "whole characters", "words": "words and marks", "sub-words": "characters"}
LEAST = 20  # symbols that a text must have: validation and test have a twentieth each


def own_text(
    path: Paths | None = None,
    unit: str = "characters",
    context: int = 32,
    scored: int = 96,
    least: int = 2,
    vocabulary: int = 2000,
) -> Task:
    """Texts of your own, split 90/5/5 % by position. No window crosses from one text to the next.

    Of files with the same text only the first is read, so that no copy of a training text is in the test split.

    Args:
        path: a file, a folder of .txt files, or a list of both; by default the Python reference manual.
        unit: "characters", each with its combining marks; "words", with punctuation marks and without lines that have
            no text; or "sub-words".
        context: tokens that a window reads before those that it predicts from. A stateful model needs none.
        scored: tokens that a window predicts.
        least: words that occur fewer times in the training text become <unk>.
        vocabulary: the number of different sub-words.
    """
    cut = UNITS[check_choice("unit", unit, UNITS)]
    read = [manual()] if path is None else read_own(path).values()
    texts = [*dict.fromkeys(text for text in read if text.strip())]
    sha256 = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    if unit == "words":
        texts = ["\n".join(filter(str.strip, text.split("\n"))) for text in texts]
    parts = split([CUTS[cut](text) for text in texts], str(path))
    known: Text
    if unit == "sub-words":
        known = Subwords(vocabulary, lambda: "\n".join(map("".join, parts["train"])).split("\n"), ends=True)
    else:
        least, always = (least, [UNKNOWN, END]) if unit == "words" else (1, [UNKNOWN])
        symbols = common(chain.from_iterable(parts["train"]), least, always)
        known = Vocabulary(cut, lambda: symbols, len(symbols))
    name = unit if path is None else f"{unit}:{data.own_name(path)}"
    said = {} if path else {"text": "the Python reference manual"}  # no file was given: a run says what it reads
    return _task(name, lambda: parts, known, context, scored, lambda: sha256, said)


def characters(path: Paths | None = None, context: int = 80, scored: int = 320) -> Task:
    """The characters of a text, in the windows of Bai et al.; otherwise as `own_text`."""
    return own_text(path, "characters", context, scored)


def words(path: Paths | None = None, context: int = 40, scored: int = 40, least: int = 2) -> Task:
    """The words and punctuation marks of a text, in the windows of Bai et al.; otherwise as `own_text`."""
    return own_text(path, "words", context, scored, least)


def ptb_char(form: str = "unmarked", context: int = 80, scored: int = 320) -> Task:
    """Penn Treebank, characters. Three texts have this name, and their bits per character differ.

    "unmarked" is the word files without newlines: 5,059,550/396,412/446,184 characters, the paper's counts. "eos" is
    the word files with <eos> spelt out at each line's end: 5,269,890/413,262/464,989. The published code loads it. Its
    <eos> is easy to predict. The third is Mikolov's character files, which are not here: 5,017,482/393,042/442,423.
    """
    check_choice("form", form, ("unmarked", "eos"))
    name, end = ("ptb-char", "") if form == "unmarked" else ("ptb-char-eos", END)
    return _ptb(name, "characters", 49, lambda text: text.replace("\n", end), context, scored)


def ptb_word(context: int = 40, scored: int = 40) -> Task:
    """Penn Treebank, words: 929,589/73,760/82,430 with <eos> at each line's end, a vocabulary of 10,000."""
    return _ptb("ptb-word", "words", 10_000, CUTS["words"], context, scored)


def windows(texts: Sequence[Int[Tensor, " N"]], start: int, context: int, scored: int) -> Examples:
    """Cut long texts into windows, so that each token is predicted exactly once.

    Window w of a text predicts the tokens w·s … (w+1)·s - 1, each from the one before it. It begins to read c tokens
    further back, or at the text's start. So the first tokens have less context; the published code of TCN and
    R-Transformer never scores the first c + 1 tokens of a text (of words: of each of ten columns). c is `context` (0
    for a stateful model), s is `scored`, and `start` is read before the first token.
    """
    begun = [torch.cat([text.new_tensor([start]), text]) for text in texts]
    places = [(text, first) for text in begun for first in range(0, len(text) - 1, scored)]

    def window(text: Tensor, first: int) -> Example:
        read = text[max(0, first - context) : first + scored + 1]
        target = read[1:].clone()
        target[: min(first, context)] = IGNORED
        return Example(read[:-1], target)

    return Examples(len(places), lambda indices: [window(*places[i]) for i in indices], apart=len(texts) > 1)


def split(texts: Sequence[Sequence[str]], name: str = "text") -> Parts:
    """Split texts: the first nine tenths to train, the next twentieth for validation, the last for test.

    The texts follow one another. Where a part ends inside a text, the rest of this text is in the next part.
    """
    starts = [*accumulate(map(len, texts), initial=0)]
    if (total := starts.pop()) < LEAST:
        raise ValueError(f"{name}: expected at least {LEAST} symbols, got {total}")

    def part(first: int, end: int) -> list[Sequence[str]]:
        found = (text[max(0, first - at) : max(0, end - at)] for at, text in zip(starts, texts, strict=True))
        return [piece for piece in found if len(piece)]

    first, second = total * 18 // 20, total * 19 // 20
    return {"train": part(0, first), "validation": part(first, second), "test": part(second, total)}


def read_own(path: Paths) -> dict[str, str]:
    """Return the texts of a user's files by the files' names. At least one of them is not empty."""
    texts = {str(file): data.read_text(file) for file in data.own_files(path, [".txt"])}
    if not any(text.strip() for text in texts.values()):
        raise ValueError(f"{data.own_name(path)}: expected a text, got only blanks")
    return texts


@cache
def manual() -> str:
    """The Python reference manual's topics, one after the other. They differ a little between Python versions."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


def _ptb(name: str, unit: str, size: int, cut: Callable[[str], Sequence[str]], context: int, scored: int) -> Task:
    @cache
    def parts() -> Parts:
        paths = data.fetch("ptb-word").values()  # in the order of the splits
        return {part: [cut(data.read_text(path))] for part, path in zip(SPLITS, paths, strict=True)}

    known = Vocabulary(unit, lambda: common(chain.from_iterable(parts()["train"])), size)
    return _task(name, parts, known, context, scored, partial(data.sha256, "ptb-word"))


def _task(
    name: str,
    parts: Callable[[], Parts],
    known: Text,
    context: int,
    scored: int,
    sha256: Callable[[], str],
    said: Mapping[str, str] = MappingProxyType({}),
) -> Task:
    check_positive("scored", scored)
    check_count("context", context)
    unit = known.unit.removeprefix("whole ")
    by_bits = unit == "characters"

    @cache
    def tokens(part: Split) -> list[Tensor]:
        return [torch.tensor(known.numbered(text)) for text in parts()[part]]

    @cache
    def examples(part: Split) -> Sequence[Example]:
        return windows(tokens(part), known.start, context, scored)

    def baseline() -> float:
        nats = unigram_nll(torch.cat(tokens("train")), torch.cat(tokens("test")), known.size)
        return nats / math.log(2) if by_bits else math.exp(nats)

    def about() -> dict[str, str]:
        found, unknown = {part: torch.cat(tokens(part)) for part in SPLITS}, torch.tensor(known.unwritten)
        sizes = ", ".join(f"{part} {len(all_):,}" for part, all_ in found.items())
        shares = ", ".join(f"{part} {torch.isin(all_, unknown).double().mean():.2%}" for part, all_ in found.items())
        return {**said, "data": f"{unit}: {sizes}", "vocabulary": f"{known.size:,} different {unit}; unknown: {shares}"}

    return Task(
        name=name,
        inputs=known.size,
        outputs=known.size,
        per="token",
        examples=examples,
        loss=token_nll,
        measured=tokens_measured,
        scorer=bits if by_bits else perplexity,
        metric="bits per character" if by_bits else "perplexity",
        sha256=sha256,
        baseline=baseline,
        texts=(known,),
        about=about,
        sparse=context > 0,  # without a context all tokens are scored
        examine=None if context or by_bits else partial(examine_stream, examples),
    )
