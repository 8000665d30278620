"""`rtx generate`: a trained model continues a text on the terminal, or a tune as MIDI and sound."""

from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rtx.cli import options
from rtx.training.files import check_output, write_whole

if TYPE_CHECKING:
    from rtx.models import LanguageModel
    from rtx.tasks import SequenceModel

READ = 16  # frames of a tune that are read before it is continued


def generate(
    checkpoint: options.Checkpoint,
    prompt: Annotated[list[str] | None, typer.Option(help="A text; may be repeated. For music, a MIDI file.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="The most characters, words or frames to add.")] = 400,
    least: Annotated[int, typer.Option(min=0, help="For a text: write so many tokens before a stop counts.")] = 0,
    stop: Annotated[list[str] | None, typer.Option(help=r"For a text: end before this, such as '\n\n'.")] = None,
    forbid: Annotated[list[str] | None, typer.Option(help="For a text: never write this character or word.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Below 1, likely tokens become likelier.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="For a text: draw only from the k likeliest tokens.")] = None,
    top_p: Annotated[
        float, typer.Option(help="For a text: draw only from the likeliest tokens that together have this probability.")
    ] = 1.0,
    seed: options.Seed = 0,
    out: Annotated[list[Path] | None, typer.Option(help="For music: a .mid or .wav file; may be repeated.")] = None,
) -> None:
    """Continue a text, printed as it is made, or a tune, written as MIDI and sound."""
    from rtx.models import LanguageModel
    from rtx.tasks import SequenceModel
    from rtx.tasks.rolls import NOTES
    from rtx.training.checkpoint import load_checkpoint, read_card

    network = load_checkpoint(checkpoint).float().to(options.device())
    how: dict[str, Any] = {"temperature": temperature, "seed": seed}
    if isinstance(network, LanguageModel):
        if out:
            raise ValueError(f"out: expected none for a text, got {out[0]}; redirect the output with `> {out[0]}`")
        how |= {"top_k": top_k, "top_p": top_p, "least": least}
        how |= {"stop": list(map(_unescaped, stop or [])), "forbidden": list(map(_unescaped, forbid or []))}
        _print_texts(network, checkpoint, prompt or [""], tokens, **how)
    elif isinstance(network, SequenceModel) and network.per == "step" and network.inputs == NOTES:
        of_texts = {"stop": stop, "forbid": forbid, "least": least, "top-k": top_k, "top-p": top_p != 1 and str(top_p)}
        for name, value in of_texts.items():
            if value:
                raise ValueError(f"{name}: expected none for music, got {value}")
        if prompt and prompt[1:]:
            raise ValueError(f"prompt: expected one MIDI file for music, got {len(prompt)}")
        start = Path(prompt[0]) if prompt else None
        _write_tune(network, checkpoint, start, tokens, out or [Path("tune.mid"), Path("tune.wav")], **how)
    else:
        name = read_card(checkpoint)["task"]
        raise ValueError(f"{checkpoint}: expected a model of a text or of music, got one of {name}; see rtx evaluate")


def _print_texts(network: "LanguageModel", checkpoint: Path, prompts: list[str], tokens: int, **how: Any) -> None:
    """Print one text as it is drawn. Several are drawn together, and printed with a line of dashes between them."""
    from rtx.tasks.generate import continue_texts
    from rtx.training.checkpoint import load_texts

    (vocabulary,) = load_texts(checkpoint)
    found = continue_texts(network, vocabulary, prompts, tokens, **how)
    first = next(found)  # checks the arguments, before anything is printed
    if len(prompts) > 1:
        texts = map("".join, zip(prompts, first, *found, strict=True))
        return typer.echo("\n-----\n".join(texts))
    for piece in chain(prompts, first, chain.from_iterable(found), ("\n",)):
        typer.echo(piece, nl=False)


def _unescaped(text: str) -> str:
    """Return the text with newlines and tabs where a shell only passes on \\n and \\t."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _write_tune(
    network: "SequenceModel", checkpoint: Path, start: Path | None, frames: int, paths: list[Path], **how: Any
) -> None:
    """Continue the first frames of a MIDI file, or one frame of silence, and write the tune."""
    import torch

    from rtx.tasks import task_by_name
    from rtx.tasks.generate import continue_roll
    from rtx.tasks.rolls import FRAME_SECONDS, NOTES, read_midi, write_midi, write_wav
    from rtx.training.checkpoint import read_card

    for path in paths:
        if path.suffix not in (".mid", ".wav"):
            raise ValueError(f"out: expected a file that ends in .mid or .wav, got {path}")
        check_output("out", path, [start] if start else [])
    card = read_card(checkpoint)
    seconds = task_by_name(card["task"], **card.get("task_arguments", {})).frame_seconds or FRAME_SECONDS
    read = torch.from_numpy(read_midi(start, seconds)[:READ]).float() if start else torch.zeros(1, NOTES)
    roll = continue_roll(network, read.to(options.device()), frames, **how).cpu().numpy()
    for path in paths:
        write = write_wav if path.suffix == ".wav" else write_midi
        write(content := BytesIO(), roll, seconds)
        write_whole(path, content.getbuffer())
        typer.echo(f"wrote {path}")
