"""Texts: the next character or word is predicted.

Penn Treebank: Mikolov's preparation; windows as in Bai et al. (2018) and Wang et al. (2019), R-Transformer, Section
4.3. The Python reference manual: the text that the standard library ships for `help()`. Or a file of one's own.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor

from rtx.nn.validate import check_choice
from rtx.tasks import data
from rtx.tasks.cache_pointer import examine_stream
from rtx.tasks.task import Example, Split, Task
from rtx.tasks.vocabulary import CUTS, END, UNKNOWN, Vocabulary, common, vocabulary
from rtx.tasks.windows import bits, perplexity, token_nll, tokens_measured, unigram_nll, windows

Parts = Mapping[Split, Sequence[str]]
"""Split → its characters, as one str, or its words."""

FILES: dict[Split, str] = {"train": "train", "validation": "valid", "test": "test"}
LEAST = 20  # tokens that a text must have: its validation and test sides are a twentieth each

FORMS = {"unmarked": 49, "mikolov": 50, "eos": 49}
"""The three texts that papers call "PTB characters", and how many different symbols each has."""


def characters(path: str | Path | None = None, context: int = 80, scored: int = 320) -> Task:
    """The characters of a text, split 90/5/5 % by position.

    Args:
        path: a text file in UTF-8; the Python reference manual if not given.
        context: characters that each window reads before those that it predicts from; 0 for a model that carries its
            state.
        scored: characters that each window predicts.

    Raises:
        ValueError: if the file is no UTF-8, empty or too short, or a number is out of range.
        OSError: if it cannot be read.
    """
    text = manual() if path is None else read_file(path)
    parts = split(text, str(path))
    symbols = common(parts["train"], always=[UNKNOWN])
    return _task(
        _name("characters", path), lambda: parts, vocabulary("characters", symbols), context, scored, _sha256(text)
    )


def words(path: str | Path | None = None, context: int = 40, scored: int = 40, least: int = 2) -> Task:
    """The words and marks of a text, and the ends of its lines; split 90/5/5 % by position.

    Args:
        path: a text file in UTF-8; the Python reference manual if not given.
        context: words that each window reads before those that it predicts from.
        scored: words that each window predicts.
        least: words rarer than this on the training side are <unk>.

    Raises:
        ValueError: as `characters`, or if no word is that common.
        OSError: if the file cannot be read.
    """
    text = manual() if path is None else read_file(path)
    lines = "\n".join(line for line in text.splitlines() if line.strip())
    parts = split(CUTS["words and marks"](lines), str(path))
    symbols = common(parts["train"], least, always=[UNKNOWN, END])
    return _task(
        _name("words", path), lambda: parts, vocabulary("words and marks", symbols), context, scored, _sha256(text)
    )


def ptb_char(form: str = "unmarked", context: int = 80, scored: int = 320) -> Task:
    """Penn Treebank, characters. Bits per character differ between the three texts of that name.

    Args:
        form: "unmarked", the word files without their newlines: 5,059,550/396,412/446,184 characters, the counts that
            the paper gives; "mikolov", his own character files, 5,017,482/393,042/442,423 with newlines; "eos", the
            word files with <eos> spelt out at each line's end, 5,269,890/413,262/464,989: what the published code
            loads, whose sure characters lower the bits.
        context: characters that each window reads before those that it predicts from.
        scored: characters that each window predicts.

    Raises:
        ValueError: if an argument is out of range.
    """
    size = FORMS[check_choice("form", form, FORMS)]
    name, files = ("ptb-char", "ptb.char") if form == "mikolov" else ("ptb-word", "ptb")

    def tidy(text: str) -> str:
        if form == "mikolov":
            return text.replace(" ", "").replace("_", " ")  # one blank after each symbol
        return text.replace("\n", "" if form == "unmarked" else END)

    parts = cache(lambda: {part: tidy(text) for part, text in _ptb(name, files).items()})
    known = Vocabulary("characters", lambda: common(parts()["train"]), size)
    label = "ptb-char" if form == "unmarked" else f"ptb-char-{form}"
    return _task(label, parts, known, context, scored, partial(data.sha256, name))


def ptb_word(context: int = 40, scored: int = 40) -> Task:
    """Penn Treebank, words: 929,589/73,760/82,430 with <eos> at each line's end, a vocabulary of 10,000.

    Args:
        context: words that each window reads before those that it predicts from.
        scored: words that each window predicts.

    Raises:
        ValueError: if a number is out of range.
    """
    parts = cache(lambda: {part: CUTS["words"](text) for part, text in _ptb("ptb-word", "ptb").items()})
    known = Vocabulary("words", lambda: common(parts()["train"]), 10_000)
    return _task("ptb-word", parts, known, context, scored, partial(data.sha256, "ptb-word"))


def split(symbols: Sequence[str], name: str = "text") -> Parts:
    """A text's first nine tenths to train, the next twentieth for validation, the last for test.

    Raises:
        ValueError: if it has fewer than 20 symbols.
    """
    if len(symbols) < LEAST:
        raise ValueError(f"{name}: expected at least {LEAST} symbols, got {len(symbols)}")
    first, second = len(symbols) * 18 // 20, len(symbols) * 19 // 20
    return {"train": symbols[:first], "validation": symbols[first:second], "test": symbols[second:]}


def read_file(path: str | Path) -> str:
    """The text of a file, its lines ended by "\\n".

    Raises:
        ValueError: if it is empty, or not UTF-8; which line and byte are named. If `path` is none.
        OSError: if it cannot be read.
    """
    if not isinstance(path, str | Path):  # as a name of digits alone is, behind --set
        raise ValueError(f"path: expected a file's name, got {path!r}; with ./ before it, it is one")
    content = Path(path).read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}: expected text in UTF-8, got byte 0x{content[error.start]:02x} in line {line}, byte "
            f"{error.start + 1} of the file ({error.reason}); save it as UTF-8"
        ) from None
    if not text.strip():
        raise ValueError(f"{path}: expected a text, the file is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")


@cache
def manual() -> str:
    """The Python reference manual's topics, one after the other; it differs a little from version to version."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


def _name(kind: str, path: str | Path | None) -> str:
    return kind if path is None else f"{kind}:{Path(path).name}"


def _sha256(text: str) -> Callable[[], str]:
    return lambda: hashlib.sha256(text.encode()).hexdigest()


def _ptb(name: str, files: str) -> dict[Split, str]:
    paths = data.fetch(name)
    return {part: _unpacked(paths[f"{files}.{file}.txt"]) for part, file in FILES.items()}


def _unpacked(path: Path) -> str:
    try:
        return data.unpacked(path).decode("ascii")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected a text in ASCII ({error})") from error


def _task(
    name: str,
    parts: Callable[[], Parts],
    known: Vocabulary,
    context: int,
    scored: int,
    sha256: Callable[[], str],
) -> Task:
    windows(torch.zeros(1, dtype=torch.long), 0, context, scored)  # refuses bad numbers now, not when data are read

    @cache
    def tokens(part: Split) -> Tensor:
        return torch.tensor(known.numbered(parts()[part]))

    def examples(part: Split) -> Sequence[Example]:
        return windows(tokens(part), known.start, context, scored)

    by_bits = known.unit == "characters"

    def baseline() -> float:
        nats = unigram_nll(tokens("train"), tokens("test"), known.size)
        return nats / math.log(2) if by_bits else math.exp(nats)

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
        best="min",
        sha256=sha256,
        baseline=baseline,
        texts=(known,),
        sparse=context > 0,  # without a context all are scored
        examine=None if context or by_bits else partial(examine_stream, examples),
    )
