"""`rtx score`: how well a language model predicts texts, line by line if wanted."""

import csv
import math
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rtx.cli.generate import Checkpoint, Device, chosen_device
from rtx.evidence.tables import printable
from rtx.training.files import check_new_file, write_whole

if TYPE_CHECKING:
    from torch import Tensor

    from rtx.tasks.task import Text

HEAD = ("file", "line", "tokens", "unknown", "model", "bigram")


def score(
    checkpoint: Checkpoint,
    texts: Annotated[list[str], typer.Argument(help="Text files, or folders of .txt files.")],
    lines: Annotated[bool, typer.Option("--lines", help="Score each line, too.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write each line's and each file's score to this file.")] = None,
    device: Device = None,
) -> None:
    """Score texts: bits per character, or perplexity for words and sub-words. Lower is better.

    The bigram is a model without a network: it counts which token comes after which in the training text.
    """
    import torch

    from rtx.models import LanguageModel
    from rtx.tasks.losses import bigram_nll
    from rtx.tasks.text import read_own
    from rtx.training.checkpoint import load_checkpoint, read_card
    from rtx.training.evaluate import token_nats

    if csv:
        check_new_file("csv", csv)
    network, card = load_checkpoint(checkpoint).float().to(chosen_device(device)), read_card(checkpoint)
    if not isinstance(network, LanguageModel):
        raise ValueError(f"{checkpoint}: expected a model of a text, got one of {card['task']}; see rtx evaluate")
    known, train = _trained_on(checkpoint)
    rows: list[tuple[str, int | str, Tensor]] = []
    found: list[Tensor] = []
    for name, text in read_own(texts).items():
        if not (cut := _lines(known, text)):
            typer.echo(f"{name}: left out, because it has no text", err=True)
            continue
        tokens = torch.tensor([token for _, line in cut for token in line])
        unknown = torch.isin(tokens, torch.tensor(known.unwritten))
        nats = token_nats(network, card, known, tokens)
        bigram = nats * math.nan if train is None else bigram_nll(train, tokens, known.start, known.size)
        found.append(torch.stack([unknown.double(), nats.double(), bigram.double()]))
        of_lines = found[-1].split([len(line) for _, line in cut], dim=1)
        rows += [(name, number, part) for (number, _), part in zip(cut, of_lines, strict=True)]
        rows.append((name, "", found[-1]))
    if len(found) > 1:
        rows.append(("all", "", torch.cat(found, 1)))
    by_bits = known.unit.endswith("characters")
    table = [_row(*row, by_bits) for row in rows]
    typer.echo(f"{'bits per character' if by_bits else 'perplexity'}, lower is better", err=True)
    _print([row for row in table if lines or row["line"] == ""])
    if csv:
        write_whole(csv, _as_csv(table))


def _trained_on(checkpoint: Path) -> "tuple[Text, Tensor | None]":
    """Return how the model reads a text, and its training text, which is None if it is no longer here."""
    import torch

    from rtx.tasks.task import IGNORED
    from rtx.training.checkpoint import load_texts, read_card
    from rtx.training.evaluate import task_of

    texts = load_texts(checkpoint)
    try:
        task = task_of(checkpoint, read_card(checkpoint))
        train = torch.cat([target[target != IGNORED] for _, target in task.split("train")[:]])
        return (texts or task.texts)[0], train
    except (ValueError, OSError) as error:
        if not texts:
            raise
        typer.echo(printable(f"rtx: no bigram, because the training text is not here: {error}"), err=True)
        return texts[0], None


def _lines(known: "Text", text: str) -> list[tuple[int, list[int]]]:
    """Return the number and the tokens of each line. Its end is a token of it, if the model knows ends of lines."""
    end = "\n" if known.encode("\n") and known.encode("\n")[0] not in known.unwritten else ""
    cut = [(number, known.encode(line + end)) for number, line in enumerate(text.removesuffix("\n").split("\n"), 1)]
    return [(number, tokens) for number, tokens in cut if tokens] if text.strip() else []


def _row(name: str, line: int | str, found: "Tensor", by_bits: bool) -> dict[str, Any]:
    unknown, nats, bigram = found.mean(1).tolist()
    of = (lambda x: x / math.log(2)) if by_bits else math.exp
    said = (name, line, found.shape[1], round(unknown, 6), round(of(nats), 6), round(of(bigram), 6))
    return dict(zip(HEAD, said, strict=True))


def _print(table: list[dict[str, Any]]) -> None:
    typer.echo(f"{'tokens':>9}  unknown     model    bigram  file")
    for row in table:
        scores = "".join(f"{row[name]:10.4g}".replace("nan", "  -") for name in ("model", "bigram"))
        place = row["file"] if row["line"] == "" else f"{row['file']}, line {row['line']}"
        typer.echo(printable(f"{row['tokens']:>9,}  {row['unknown']:>6.1%} {scores}  {place}"))


def _as_csv(table: list[dict[str, Any]]) -> bytes:
    writer = csv.DictWriter(text := StringIO(newline=""), HEAD)
    writer.writeheader()
    writer.writerows({key: "" if value != value else value for key, value in row.items()} for row in table)
    return text.getvalue().encode()
