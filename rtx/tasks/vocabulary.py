"""A vocabulary: the characters or words of a text's training side, numbered, and how a text is cut into them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rtx.nn.validate import check_choice, check_positive

UNKNOWN = "<unk>"
END = "<eos>"
"""What stands for a line's end among words, as in Mikolov's preparation of the Penn Treebank."""

MARKS = re.compile(rf"{UNKNOWN}|{END}|\w+|[^\w\s]")


def _lines_ended(text: str) -> str:
    return text.replace("\n", f" {END} ")


CUTS: dict[str, Callable[[str], Sequence[str]]] = {
    "characters": lambda text: text,
    "words": lambda text: _lines_ended(text).split(),
    "words and marks": lambda text: MARKS.findall(_lines_ended(text)),
}
"""How a text is cut: into its characters; at its blanks, as a prepared text is; or into words and single marks."""


@dataclass(frozen=True)
class Vocabulary:
    """Numbers for symbols, so that a text can be read and written.

    Args:
        unit: one of `CUTS`.
        read: gives the symbols in the order of their numbers; called when they are first needed.
        size: how many they are.
    """

    unit: str
    read: Callable[[], Sequence[str]]
    size: int

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The symbols, in the order of their numbers.

        Raises:
            ValueError: if they are not `size` different ones.
        """
        found = tuple(self.read())
        if len(set(found)) != self.size or len(found) != self.size:
            raise ValueError(f"vocabulary: expected {self.size} different symbols, got {len(set(found))}")
        return found

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Symbol → its number."""
        return {symbol: number for number, symbol in enumerate(self.symbols)}

    @property
    def start(self) -> int:
        """The token that is read before a text's first: what ends a line, or parts words, where there is one."""
        return self.numbers[next(s for s in (END, "\n", " ", *self.symbols) if s in self.numbers)]

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; a symbol without a number becomes <unk>.

        Raises:
            ValueError: if there is no <unk> either.
        """
        return self.numbered(CUTS[self.unit](text))

    def numbered(self, symbols: Iterable[str]) -> list[int]:
        """The tokens of a text that is cut already.

        Raises:
            ValueError: as `encode`.
        """
        numbers, unknown = self.numbers, self.numbers.get(UNKNOWN)
        if unknown is not None:
            return [numbers.get(symbol, unknown) for symbol in symbols]
        try:
            return [numbers[symbol] for symbol in symbols]
        except KeyError as error:
            raise ValueError(f"text: {error} is none of the {self.size} {self.unit} of the training side") from None

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens: words with blanks between them, lines where they ended.

        Raises:
            ValueError: if a token is not from 0 to size - 1.
        """
        wrong = [token for token in tokens if not 0 <= token < self.size]
        if wrong:
            raise ValueError(f"tokens: expected numbers from 0 to {self.size - 1}, got {wrong[0]}")
        found = [self.symbols[token] for token in tokens]
        if self.unit == "characters":
            return "".join(found)
        return re.sub(rf" ?{END} ?", "\n", " ".join(found))

    def to_json(self) -> dict[str, Any]:
        """All that `from_json` needs, in plain values."""
        return {"kind": "vocabulary", "unit": self.unit, "symbols": list(self.symbols)}

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> "Vocabulary":
        """What `to_json` was called on.

        Raises:
            ValueError: if the table is no such thing.
        """
        if not isinstance(table.get("symbols"), list) or table.get("unit") not in CUTS:
            raise ValueError(f"texts: expected the unit and symbols of a vocabulary, got {sorted(table)}")
        return vocabulary(table["unit"], table["symbols"])


def vocabulary(unit: str, symbols: Sequence[str]) -> Vocabulary:
    """The vocabulary of these symbols.

    Raises:
        ValueError: if the unit is unknown, or there is no symbol.
    """
    if not symbols:
        raise ValueError("vocabulary: expected at least one symbol, got none")
    return Vocabulary(check_choice("unit", unit, CUTS), lambda: symbols, len(symbols))


def common(symbols: Iterable[str], least: int = 1, always: Sequence[str] = ()) -> list[str]:
    """The different symbols, commonest first, those equally common by their code points.

    Args:
        symbols: of the training side.
        least: a rarer symbol is left out.
        always: symbols that are in even so, at the end if they do not occur.

    Raises:
        ValueError: if no symbol occurs `least` times.
    """
    check_positive("least", least)
    counts = Counter(symbols)
    kept = sorted((s for s, n in counts.items() if n >= least), key=lambda s: (-counts[s], s))
    if not kept:
        raise ValueError(f"vocabulary: expected a text in which a symbol occurs {least} times, none does")
    return kept + [symbol for symbol in always if symbol not in kept]
