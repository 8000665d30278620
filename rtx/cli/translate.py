"""`rtx translate` and `rtx evaluate`."""

import sys
from collections.abc import Iterator
from itertools import islice
from json import dumps
from typing import Annotated, BinaryIO

import typer

from rtx.cli.generate import Checkpoint, Device, card_task, chosen_device
from rtx.cli.train import Json
from rtx.evidence.tables import DIRECTION

BLOCK = 32  # lines that are translated together


def translate_(
    checkpoint: Checkpoint,
    beam: Annotated[int, typer.Option(min=1, help="Width of the search; 1 is greedy.")] = 5,
    device: Device = None,
) -> None:
    """Translate or summarise standard input, line by line. The checkpoint is all that this needs."""
    from rtx.models import TRANSLATORS
    from rtx.tasks.pairs import write
    from rtx.training.checkpoint import load_checkpoint, load_texts, read_card

    network = load_checkpoint(checkpoint).float().to(chosen_device(device))
    if (name := read_card(checkpoint)["model"]) not in TRANSLATORS:
        raise ValueError(f"{checkpoint}: expected a model of {' or '.join(TRANSLATORS)}, got one of {name}")
    if len(texts := load_texts(checkpoint)) != 2:
        raise ValueError(f"{checkpoint}: expected how it reads and how it writes text, got {len(texts)} texts")
    lines, done = read_stream(sys.stdin.buffer), 0
    while read := [*islice(lines, BLOCK)]:
        for written in write(network, texts, read, beam):
            typer.echo(written)
        done += len(read)
    typer.echo(f"{done} lines written, with a beam of {beam}", err=True)


def read_stream(stream: BinaryIO) -> Iterator[str]:
    """Yield the lines of a stream in UTF-8, without the byte order mark that some programs write first."""
    for number, line in enumerate(stream, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"standard input, line {number}: expected UTF-8, got {line[error.start]:#x}") from None


def evaluate_(
    checkpoint: Checkpoint,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Score only so many examples, the first ones.")] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Score a checkpoint on a split of its task."""
    from rtx.training.checkpoint import read_card
    from rtx.training.evaluate import evaluate

    scores = evaluate(checkpoint, split, limit, chosen_device(device))
    if json:
        typer.echo(dumps(scores))
        return
    task, model = card_task(checkpoint), read_card(checkpoint)["model"]
    some = f"the first {limit} examples of the" if limit else "the"
    typer.echo(f"{model}, {some} {split} split of {task.name}; {task.metric}: {DIRECTION[task.best]}")
    for name, score in scores.items():
        typer.echo(f"{name}  {score:.4f}" if isinstance(score, float) else f"{name}  {score}")
