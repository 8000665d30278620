"""`rtx translate` and `rtx evaluate`."""

import sys
from io import TextIOWrapper
from itertools import islice
from json import dumps
from typing import Annotated

import typer

from rtx.cli import options

BLOCK = 32  # lines that are translated together


def translate_(
    checkpoint: options.Checkpoint, beam: Annotated[int, typer.Option(min=1, help="Width of the search.")] = 5
) -> None:
    """Translate or summarise standard input, line by line. The checkpoint is all that this needs.

    What the model writes has at most 2 S + 10 tokens. The test of the headline tasks uses another limit.

    S is the number of tokens of the input line, rounded up to a multiple of 8.
    """
    from rtx.models import TRANSLATORS
    from rtx.tasks.pairs import write
    from rtx.training.checkpoint import load_checkpoint, load_texts, read_card

    network = load_checkpoint(checkpoint).float().to(options.device())
    if (name := read_card(checkpoint)["model"]) not in TRANSLATORS:
        raise ValueError(f"{checkpoint}: expected a model of {' or '.join(TRANSLATORS)}, got one of {name}")
    texts = load_texts(checkpoint)
    lines = TextIOWrapper(sys.stdin.buffer, "utf-8-sig", newline="\n")  # some programs write a byte order mark first
    while read := [line.removesuffix("\n") for line in islice(lines, BLOCK)]:
        for written in write(network, texts, read, beam):
            typer.echo(written)


def evaluate_(
    checkpoint: options.Checkpoint,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "test",
    json: options.Json = False,
) -> None:
    """Score a checkpoint on a split of its task."""
    from rtx.training.evaluate import evaluate

    scores = evaluate(checkpoint, split, device=options.device())
    if json:
        typer.echo(dumps(scores))
        return
    for name, score in scores.items():
        typer.echo(f"{name}  {score:.4f}" if isinstance(score, float) else f"{name}  {score}")
