"""A vocabulary: the characters or words of a training text, numbered, and how a text is cut into them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rtx.nn.validate import check_choice, check_positive

UNKNOWN = "<unk>"
END = "<eos>"  # the end of a line among words, as in Mikolov's preparation of the Penn Treebank


def words_and_marks(text: str) -> list[str]:
    """Return words and single marks. A combining mark or a joiner of no width stays with the letter before it."""
    combining = _combining(text)
    symbol = rf"{UNKNOWN}|{END}|\w[\w{combining}]*|[^\w\s][{combining}]*"
    return re.findall(symbol, text.replace("\n", f" {END} "))


def whole_characters(text: str) -> list[str]:
    """Return characters, each with the combining marks and joiners of no width that follow it."""
    return re.findall(rf"(?s:.)[{_combining(text)}]*", text)


def _combining(text: str) -> str:
    return "\u200c\u200d" + "".join(c for c in sorted(set(text)) if unicodedata.category(c).startswith("M"))


CUTS: dict[str, Callable[[str], Sequence[str]]] = {
    "characters": lambda text: text,
    "whole characters": whole_characters,
    "words": lambda text: text.replace("\n", f" {END} ").split(),
    "words and marks": words_and_marks,
}
"""How a text is cut. "characters" are code points; "words" are for a text that is prepared to be cut at its blanks."""


@dataclass(frozen=True)
class Vocabulary:
    """Numbers for symbols, so that a text can be read and written."""

    unit: str  # one of `CUTS`
    read: Callable[[], Sequence[str]]  # returns the symbols in the order of their numbers, when they are first needed
    size: int  # the number of symbols

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The symbols, in the order of their numbers."""
        return tuple(self.read())

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Symbol → its number."""
        return {symbol: number for number, symbol in enumerate(self.symbols)}

    @property
    def unwritten(self) -> list[int]:
        """The tokens that no written text should have."""
        return [self.numbers[UNKNOWN]] if UNKNOWN in self.numbers else []

    @property
    def start(self) -> int:
        """The token that is read before a text's first: the end of a line or a blank, if the vocabulary has one."""
        return self.numbers[next(s for s in (END, "\n", " ", *self.symbols) if s in self.numbers)]

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text in NFC. A symbol without a number becomes <unk>; without <unk> it is refused."""
        return self.numbered(CUTS[self.unit](unicodedata.normalize("NFC", text)))

    def numbered(self, symbols: Iterable[str]) -> list[int]:
        """Return the tokens of a text that is already cut, as `encode` does."""
        numbers, unknown = self.numbers, self.numbers.get(UNKNOWN)
        try:
            return [numbers[symbol] if unknown is None else numbers.get(symbol, unknown) for symbol in symbols]
        except KeyError as error:
            raise ValueError(f"text: {error} is none of the {self.size} {self.unit} of the training text") from None

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens: words with blanks between them, and lines where they ended."""
        if wrong := [token for token in tokens if not 0 <= token < self.size]:
            raise ValueError(f"tokens: expected numbers from 0 to {self.size - 1}, got {wrong[0]}")
        found = [self.symbols[token] for token in tokens]
        if self.unit.endswith("characters"):  # which no blank separates
            return "".join(found)
        return re.sub(rf" ?{END} ?", "\n", " ".join(found))

    def to_json(self) -> dict[str, Any]:
        """Return all that `from_json` needs, in plain values."""
        return {"kind": "vocabulary", "unit": self.unit, "symbols": list(self.symbols)}

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> "Vocabulary":
        """Return the vocabulary that `to_json` was called on."""
        return vocabulary(table["unit"], table["symbols"])


def vocabulary(unit: str, symbols: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of these symbols."""
    return Vocabulary(check_choice("unit", unit, CUTS), lambda: symbols, len(symbols))


def common(symbols: Iterable[str], least: int = 1, always: Sequence[str] = ()) -> list[str]:
    """Return the different symbols, commonest first, then by their code points. Those in `always` are among them.

    Other symbols that occur fewer than `least` times are left out.
    """
    check_positive("least", least)
    counts = Counter(symbols)
    kept = sorted((s for s, n in counts.items() if n >= least), key=lambda s: (-counts[s], s))
    if not kept:
        raise ValueError(f"vocabulary: expected a text in which a symbol occurs {least} times, none does")
    return kept + [symbol for symbol in always if symbol not in kept]
