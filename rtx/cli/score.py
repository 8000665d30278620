"""`rtx score`: how well a language model predicts texts, line by line if wanted."""

import math
from csv import writer
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rtx.cli import options
from rtx.evidence.tables import printable
from rtx.training.files import check_output, write_whole

if TYPE_CHECKING:
    from torch import Tensor

    from rtx.tasks.task import Text


class Row(NamedTuple):
    """The scores of a line, of a file (then the line is empty), or of all files."""

    file: str
    line: int | str
    tokens: int
    unknown: float
    model: float
    bigram: float


def score(
    checkpoint: options.Checkpoint,
    texts: Annotated[list[str], typer.Argument(help="Text files, or folders of .txt files.")],
    lines: Annotated[bool, typer.Option("--lines", help="Score each line, too.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write each line's and each file's score to this file.")] = None,
) -> None:
    """Score texts: bits per character, or perplexity for words and sub-words. Lower is better.

    The bigram is a model without a network: it counts which token comes after which in the training text.
    """
    import torch

    from rtx.models import LanguageModel
    from rtx.tasks.losses import bigram_nll
    from rtx.tasks.registry import task_arguments
    from rtx.tasks.text import read_own
    from rtx.training.checkpoint import load_checkpoint, load_texts, read_card
    from rtx.training.evaluate import token_nats

    read = read_own(texts)
    if csv:
        check_output("csv", csv, [*read, checkpoint])
    network, card = load_checkpoint(checkpoint).float().to(options.device()), read_card(checkpoint)
    if not isinstance(network, LanguageModel) or "context" not in task_arguments(card["task"]):
        raise ValueError(f"{checkpoint}: expected a model of a text, got one of {card['task']}; see rtx evaluate")
    (known,), train = load_texts(checkpoint), _training_text(checkpoint)
    by_bits = known.unit.endswith("characters")
    table, every = list[Row](), list["Tensor"]()
    for name, text in read.items():
        if not (cut := _lines(known, text)):
            typer.echo(f"rtx: {name} has no text to score", err=True)
            continue
        tokens = torch.tensor([token for line in cut.values() for token in line])
        unknown = torch.isin(tokens, torch.tensor(known.unwritten))
        nats = token_nats(network, card, known, tokens)
        bigram = nats * math.nan if train is None else bigram_nll(train, tokens, known.start, known.size)
        of_file = torch.stack([unknown.double(), nats.double(), bigram.double()])
        of_lines = of_file.split([len(line) for line in cut.values()], dim=1)
        table += [_row(name, number, part, by_bits) for number, part in zip(cut, of_lines, strict=True)]
        table.append(_row(name, "", of_file, by_bits))
        every.append(of_file)
    if len(every) > 1:
        table.append(_row("all", "", torch.cat(every, 1), by_bits))
    typer.echo(f"{'tokens':>9}  unknown     model    bigram  {'bits per character' if by_bits else 'perplexity'} of")
    for row in table:
        if lines or row.line == "":
            place = row.file if row.line == "" else f"{row.file}, line {row.line}"
            scores = f"{row.model:10.4g}{row.bigram:10.4g}"
            typer.echo(printable(f"{row.tokens:>9,}  {row.unknown:>6.1%} {scores}  {place}"))
    if csv:
        writer(content := StringIO(newline="")).writerows([Row._fields, *table])
        write_whole(csv, content.getvalue().encode(errors="backslashreplace"))


def _training_text(checkpoint: Path) -> "Tensor | None":
    """Return the text that a model was trained on, or None if it is no longer here."""
    import torch

    from rtx.tasks.task import IGNORED
    from rtx.training.checkpoint import read_card
    from rtx.training.evaluate import task_of

    try:
        examples = task_of(checkpoint, read_card(checkpoint)).split("train")[:]
    except (ValueError, OSError) as error:
        typer.echo(printable(f"rtx: no bigram, because the training text is gone or has changed: {error}"), err=True)
        return None
    return torch.cat([target[target != IGNORED] for _, target in examples])


def _lines(known: "Text", text: str) -> dict[int, list[int]]:
    """Return the tokens of each line by its number. Its end is a token of it, if the model knows ends of lines."""
    from rtx.tasks.text import UNITS

    try:
        ended = known.encode("\n")
    except ValueError:  # the model knows neither ends of lines nor <unk>, such as one of ptb-char
        ended = []
    end = "\n" if ended and ended[0] not in known.unwritten else ""
    lines = enumerate(text.removesuffix("\n").split("\n"), 1)
    # as in training, words are read without the lines that have no text
    cut = {number: known.encode(line + end) for number, line in lines if line.strip() or known.unit != UNITS["words"]}
    return {number: tokens for number, tokens in cut.items() if tokens} if text.strip() else {}


def _row(name: str, line: int | str, found: "Tensor", by_bits: bool) -> Row:
    unknown, *nats = found.mean(1).tolist()
    model, bigram = (each / math.log(2) if by_bits else math.exp(each) for each in nats)
    return Row(name, line, found.shape[1], round(unknown, 6), round(model, 6), round(bigram, 6))
