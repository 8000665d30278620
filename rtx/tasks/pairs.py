"""What translation and headlines share: pairs of sentences, the perplexity of the second, and texts a model writes.

A source is its sub-words and the end token. A target is between the begin and the end token.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from rtx.nn.validate import check_positive
from rtx.tasks import data
from rtx.tasks.losses import perplexity, token_nll
from rtx.tasks.subwords import BEGIN, END, PAD, Subwords, one_blank
from rtx.tasks.task import SPLITS, Batch, Example, Scores, Split, Sum, Task, Text, mean_of

Pair = tuple[str, str]  # a source sentence and its target sentence
AT_ONCE = 32  # sentences in a batch of a search
STEP = 8  # sentences are searched together if their numbers of tokens round up to the same multiple of it


def pair_task(
    name: str,
    read: Callable[[], Mapping[Split, Sequence[Pair]]],
    scores: Callable[[Sequence[Pair], Sequence[str]], Scores],
    vocabulary: int,
    shared: bool = False,
    tokenised: bool = False,
    first_guess: Callable[[str], str] = str,
    beam: int = 5,
    longest: int | None = None,
    data_set: str | None = None,
    note: str = "",
) -> Task:
    """Return a task: predict the next token of a target sentence, given the source and the target so far.

    `read` returns split → its pairs. `scores` takes pairs and a text written for each source; the first of its scores
    is the test score. The `vocabulary` sub-words of each side, or of both if they are `shared`, are learned from the
    training pairs. `tokenised` text has separate punctuation marks. `first_guess` answers a source without a model, for
    the baseline. `beam` and `longest` are as in `write`. Without a `data_set` of datasets.toml, the checksum is that of
    the pairs. A `note` on the data is added to the metric's name.
    """
    read = cache(read)

    def learned(*sides: int) -> Subwords:
        return Subwords(vocabulary, lambda: [pair[i] for pair in read()["train"] for i in sides], not tokenised)

    texts = 2 * (learned(0, 1),) if shared else (learned(0), learned(1))
    _check_beam(beam, vocabulary)

    @cache
    def examples(split: Split) -> Sequence[Example]:
        pairs = read()[split]
        sources = texts[0].encode_all([source for source, _ in pairs])
        targets = texts[1].encode_all([target for _, target in pairs])
        both = zip(sources, targets, strict=True)
        return [Example(torch.tensor([*a, END]), torch.tensor([BEGIN, *b, END])) for a, b in both]

    def examine(model: nn.Module, split: Split, limit: int | None) -> Scores:
        pairs = read()[split][:limit]
        return scores(pairs, write(model, texts, [source for source, _ in pairs], beam, longest))

    def baseline() -> float:
        pairs = read()["test"]
        return float(next(iter(scores(pairs, [first_guess(source) for source, _ in pairs]).values())))

    def sha256() -> str:
        if data_set:
            return data.sha256(data_set)
        lines = (f"{split}\t{source}\t{target}\n" for split in SPLITS for source, target in read()[split])
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    return Task(
        name=name,
        inputs=vocabulary,
        outputs=vocabulary,
        per="pair",
        examples=examples,
        loss=target_nll,
        measured=mean_of(target_nll),
        scorer=perplexity,
        metric=f"perplexity per token{note}",
        sha256=sha256,
        baseline=baseline,
        examine=examine,
        texts=texts,
    )


def target_nll(predictions: Tensor, batch: Batch) -> Sum:
    """-log p of each token after the begin token in nats, of (B, T - 1, V) logits, summed."""
    return token_nll(predictions, batch._replace(targets=batch.targets[:, 1:]))


@torch.no_grad()
def write(
    model: nn.Module, texts: Sequence[Text], sources: Sequence[str], beam: int = 5, longest: int | None = None
) -> list[str]:
    """Return what a model writes for each source: the best text of a beam search, by its mean log-probability.

    Sources of about the same length are searched together; the result for one does not depend on the others. A source
    without tokens gets an empty text. Call `eval()` first.

    The model is one of `rtx.models.TRANSLATORS`, and `texts` are those of its task. A `beam` of 1 is greedy. A text may
    have `longest` tokens, by default 2 S + 10. S is the number of the source's tokens, rounded up to a multiple of 8.
    """
    reader, writer = texts
    _check_beam(beam, writer.size)
    groups = defaultdict(list)
    tokens = [reader.encode(source) for source in sources]
    for i in sorted(range(len(tokens)), key=lambda i: len(tokens[i])):
        groups[math.ceil(len(tokens[i]) / STEP) * STEP].append(i)
    groups.pop(0, None)
    written = [""] * len(sources)
    for S, group in groups.items():
        for start in range(0, len(group), AT_ONCE):
            rows = group[start : start + AT_ONCE]
            found = _search(model, [tokens[i] for i in rows], beam, 2 * S + 10 if longest is None else longest)
            for i, best in zip(rows, found, strict=True):
                written[i] = writer.decode(best)
    return written


def _check_beam(beam: int, vocabulary: int) -> None:
    if check_positive("beam", beam) > vocabulary:
        raise ValueError(f"beam: expected at most the {vocabulary} tokens, got {beam}")


def _search(model: nn.Module, sources: Sequence[list[int]], beam: int, longest: int) -> list[list[int]]:
    where = next(model.parameters()).device
    rows = [torch.tensor([*source, END], device=where) for source in sources]
    lengths = torch.tensor([len(row) for row in rows], device=where)
    batch = pad_sequence(rows, batch_first=True, padding_value=PAD)
    found = model.translate(batch, lengths, begin=BEGIN, end=END, length=longest, width=beam)  # type: ignore[operator]
    best = zip(found.tokens[:, 0].tolist(), found.lengths[:, 0].tolist(), strict=True)
    return [tokens[:length] for tokens, length in best]


def read_pairs(source: Path, target: Path) -> list[Pair]:
    """Return the lines of two files. The translation of a line is in the same line of the other file."""
    # str.splitlines would also split at rare characters within a line
    lines = (data.read_text(path).removesuffix("\n").split("\n") for path in (source, target))
    return [(one_blank(a), one_blank(b)) for a, b in zip(*lines, strict=True)]
