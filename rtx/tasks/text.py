"""Texts: predict the next character or word.

Penn Treebank: Mikolov's preparation; windows as in Bai et al. (2018) and Wang et al. (2019), R-Transformer, Section
4.3. The Python reference manual: the text that the standard library ships for `help()`. Or a file of your own.
"""

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from rtx.nn.validate import check_choice, check_count, check_positive
from rtx.tasks import data
from rtx.tasks.cache_pointer import examine_stream
from rtx.tasks.losses import bits, perplexity, token_nll, tokens_measured, unigram_nll
from rtx.tasks.task import IGNORED, Example, Examples, Split, Task
from rtx.tasks.vocabulary import CUTS, END, UNKNOWN, Vocabulary, common, vocabulary

Parts = Mapping[Split, Sequence[str]]
"""Split → its characters, as one str, or its words."""

FILES: dict[Split, str] = {"train": "train", "validation": "valid", "test": "test"}
LEAST = 20  # symbols that a text must have: validation and test have a twentieth each

FORMS = {
    "unmarked": (49, str.maketrans({"\n": ""})),
    "mikolov": (50, str.maketrans({" ": "", "_": " "})),  # his files have one blank after each symbol
    "eos": (49, str.maketrans({"\n": END})),
}
"""The three texts that papers call "PTB characters": how many different symbols each has, and what is replaced."""


def characters(path: str | Path | None = None, context: int = 80, scored: int = 320) -> Task:
    """The characters of a text, split 90/5/5 % by position.

    `path` is a text file in UTF-8, or in UTF-16 with a byte-order mark; by default the Python reference manual. Each
    window predicts `scored` characters, and reads `context` characters before those that it predicts from. A stateful
    model needs no context.
    """
    return _own("characters", "characters", path, 1, [UNKNOWN], context, scored)


def words(path: str | Path | None = None, context: int = 40, scored: int = 40, least: int = 2) -> Task:
    """The words and punctuation marks of a text, and the ends of its lines, as `characters` has characters.

    Words that occur fewer than `least` times on the training side become <unk>.
    """
    return _own("words", "words and marks", path, least, [UNKNOWN, END], context, scored)


def ptb_char(form: str = "unmarked", context: int = 80, scored: int = 320) -> Task:
    """Penn Treebank, characters. Three texts have this name, and their bits per character differ.

    "unmarked" is the word files without newlines: 5,059,550/396,412/446,184 characters, the paper's counts. "mikolov"
    is his own character files with newlines: 5,017,482/393,042/442,423. "eos" is the word files with <eos> spelt out at
    each line's end: 5,269,890/413,262/464,989. The published code loads this one. Its <eos> is easy to predict, which
    lowers the bits.
    """
    size, changed = FORMS[check_choice("form", form, FORMS)]
    name, files = ("ptb-char", "ptb.char") if form == "mikolov" else ("ptb-word", "ptb")
    parts = cache(lambda: {part: text.translate(changed) for part, text in _ptb(name, files).items()})
    known = Vocabulary("characters", lambda: common(parts()["train"]), size)
    label = "ptb-char" if form == "unmarked" else f"ptb-char-{form}"
    return _task(label, parts, known, context, scored, partial(data.sha256, name))


def ptb_word(context: int = 40, scored: int = 40) -> Task:
    """Penn Treebank, words: 929,589/73,760/82,430 with <eos> at each line's end, a vocabulary of 10,000."""
    parts = cache(lambda: {part: CUTS["words"](text) for part, text in _ptb("ptb-word", "ptb").items()})
    known = Vocabulary("words", lambda: common(parts()["train"]), 10_000)
    return _task("ptb-word", parts, known, context, scored, partial(data.sha256, "ptb-word"))


def windows(tokens: Int[Tensor, " N"], start: int, context: int, scored: int) -> Examples:
    """Cut a long text into windows, so that each token is predicted exactly once.

    Window w predicts the tokens w·s … (w+1)·s - 1, each from the one before it. It begins to read c tokens further
    back, or at the text's start. So the first tokens have less context; the published code of TCN and R-Transformer
    never scores the first c + 1 tokens of a text (of words: of each of ten columns). c is `context` (0 for a stateful
    model), s is `scored`, and `start` is read before the first token.
    """
    check_positive("scored", scored), check_count("context", context)
    before = torch.cat([tokens.new_tensor([start]), tokens[:-1]])

    def window(index: int) -> Example:
        first = index * scored
        begin, end = max(0, first - context), min(first + scored, len(tokens))
        target = tokens[begin:end].clone()
        target[: first - begin] = IGNORED
        return Example(before[begin:end], target)

    return Examples(math.ceil(len(tokens) / scored), lambda indices: [window(i) for i in indices])


def split(symbols: Sequence[str], name: str = "text") -> Parts:
    """Split a text: the first nine tenths to train, the next twentieth for validation, the last for test."""
    if len(symbols) < LEAST:
        raise ValueError(f"{name}: expected at least {LEAST} symbols, got {len(symbols)}")
    first, second = len(symbols) * 18 // 20, len(symbols) * 19 // 20
    return {"train": symbols[:first], "validation": symbols[first:second], "test": symbols[second:]}


def read_own(path: str | Path) -> str:
    """Return the text of a user's file."""
    file = Path(os.path.expanduser(str(path)))  # a shell leaves the ~ of path=~/x
    if not file.is_file():  # reading a device may never end
        raise FileNotFoundError(f"path: expected a file, found none at {path}")
    text = data.read_text(file)
    if not text.strip():
        raise ValueError(f"{path}: expected a text, the file is empty")
    return text


@cache
def manual() -> str:
    """The Python reference manual's topics, one after the other. They differ a little between Python versions."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


def _ptb(name: str, files: str) -> dict[Split, str]:
    paths = data.fetch(name)
    return {part: data.read_text(paths[f"{files}.{file}.txt"]) for part, file in FILES.items()}


def _own(
    kind: str, unit: str, path: str | Path | None, least: int, always: list[str], context: int, scored: int
) -> Task:
    """The task of a text of one's own, or of the manual."""
    text = manual() if path is None else read_own(path)
    lines = "\n".join(line for line in text.split("\n") if line.strip())
    parts = split(text if unit == "characters" else CUTS[unit](lines), str(path))
    name = kind if path is None else f"{kind}:{Path(str(path)).name}"
    known = vocabulary(unit, common(parts["train"], least, always))
    return _task(name, lambda: parts, known, context, scored, lambda: hashlib.sha256(text.encode()).hexdigest())


def _task(
    name: str, parts: Callable[[], Parts], known: Vocabulary, context: int, scored: int, sha256: Callable[[], str]
) -> Task:
    windows(torch.zeros(1, dtype=torch.long), 0, context, scored)  # refuses wrong numbers before any data are read

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
        sparse=context > 0,  # without a context all tokens are scored
        examine=None if context or by_bits else partial(examine_stream, examples),
    )
