"""Sub-words: a text as pieces of words that byte-pair encoding found in training text.

Sennrich, Haddow & Birch (2016), Neural Machine Translation of Rare Words with Subword Units; by the package tokenizers.
"""

import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rtx.nn.validate import check_positive

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
PAD, BEGIN, END, UNKNOWN = range(len(SPECIAL))
"""Tokens that are not text: padding, begin and end of a sentence, a character that the training text does not have."""


class Subwords:
    """Reads and writes sub-words. They are learned when they are first needed: 3 seconds for Multi30k's German.

    No piece crosses a blank. Several blanks are read as one, and blanks at the ends are dropped. The same holds for
    "▁", which means a blank in the pieces. A special token in a text, such as "</s>", is read as plain characters.

    `size` counts the special tokens, too. `lines` reads the training text. `punctuation` separates punctuation marks,
    as raw text needs. If texts have lines, `ends` makes `END` the end of a line.
    """

    unit = "sub-words"
    unwritten = (PAD, BEGIN, UNKNOWN)  # the tokens that no written text should have
    start = END  # the token that is read before a text's first

    def __init__(
        self, size: int, lines: Callable[[], Iterable[str]], punctuation: bool = True, ends: bool = False
    ) -> None:
        self.size, self.lines, self.punctuation = check_positive("vocabulary", size), lines, punctuation
        self.ends = ends

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without begin and end."""
        if not self.ends:
            return self.encode_all([text])[0]
        return [token for line in self.encode_all(text.split("\n")) for token in (*line, END)][:-1]

    def numbered(self, pieces: Sequence[str]) -> list[int]:
        """Return the tokens of a text that is in pieces."""
        return self.encode("".join(pieces))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each of many texts. This is faster than one by one."""
        return [found.ids for found in self._tokenizer.encode_batch_fast(list(map(_as_read, texts)))]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without padding, begin and end. An unknown character becomes "<unk>"."""
        special = {PAD: "", BEGIN: "", END: "\n" if self.ends else ""}
        pieces = [special[token] if token in special else self._tokenizer.id_to_token(token) or "" for token in tokens]
        return "\n".join(map(_as_read, "".join(pieces).split("\n")))

    def to_json(self) -> dict[str, Any]:
        """Return all that `from_json` needs, in plain values."""
        return {"kind": "subwords", "tokenizer": json.loads(self._tokenizer.to_str()), "ends": self.ends}

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> "Subwords":
        """Return the sub-words that `to_json` was called on, without their training text."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(json.dumps(table["tokenizer"]))
        tokenizer.encode_special_tokens = True
        made = cls(tokenizer.get_vocab_size(), tuple, ends=table.get("ends", False))
        made._tokenizer = tokenizer
        return made

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        learned = Tokenizer(models.BPE(unk_token=SPECIAL[UNKNOWN]))
        apart = [pre_tokenizers.Punctuation("isolated")] if self.punctuation else []
        learned.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), *apart])
        trainer = trainers.BpeTrainer(vocab_size=self.size, special_tokens=list(SPECIAL), show_progress=False)
        learned.train_from_iterator(map(_as_read, self.lines()), trainer)
        if (found := learned.get_vocab_size()) != self.size:
            bound = "at least" if found > self.size else "at most"  # the trainer keeps every character
            raise ValueError(f"vocabulary: expected {bound} {found} sub-words of the training text, got {self.size}")
        learned.encode_special_tokens = True  # "</s>" in a text is four characters, not the end
        return learned


def one_blank(text: str) -> str:
    """Return the text with one blank where there are several, and none at its ends."""
    return " ".join(text.split())


def _as_read(text: str) -> str:
    return one_blank(unicodedata.normalize("NFC", text).replace("▁", " "))
