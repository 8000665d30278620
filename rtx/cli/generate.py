"""`rtx generate`: a trained model continues a text on the terminal, or a tune as MIDI and sound."""

from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rtx.checks import LARGEST_SEED, check_choice
from rtx.training.files import check_new_file, write_whole

if TYPE_CHECKING:
    import torch

    from rtx.models import LanguageModel
    from rtx.tasks import SequenceModel, Task

READ = 16  # frames of a tune that are read before it is continued
Checkpoint = Annotated[Path, typer.Argument(help="best.safetensors of a run.", exists=True, dir_okay=False)]
Device = Annotated[str | None, typer.Option(help="cpu or cuda. Default: cuda, if there is such a device.")]


def generate(
    checkpoint: Checkpoint,
    prompt: Annotated[
        list[str] | None, typer.Option(help="A text; may be repeated. For music, a MIDI file or a test tune's number.")
    ] = None,
    tokens: Annotated[int, typer.Option(min=1, help="The most characters, words or frames to add.")] = 400,
    least: Annotated[int, typer.Option(min=0, help="For a text: nothing stops it within so many tokens.")] = 0,
    stop: Annotated[list[str] | None, typer.Option(help=r"For a text: end before this, such as '\n\n'.")] = None,
    forbid: Annotated[list[str] | None, typer.Option(help="For a text: never write this character or word.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Below 1, likely tokens become likelier.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="For a text: draw only from the k likeliest tokens.")] = None,
    top_p: Annotated[float, typer.Option(help="For a text: draw only from the likeliest, with this share.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="The seed of the draws.")] = 0,
    device: Device = None,
    out: Annotated[list[Path] | None, typer.Option(help="For music: a .mid or .wav file; may be repeated.")] = None,
) -> None:
    """Continue a text, printed as it is made, or a tune, written as MIDI and sound."""
    from rtx.models import LanguageModel
    from rtx.tasks import SequenceModel
    from rtx.tasks.rolls import NOTES
    from rtx.training.checkpoint import load_checkpoint

    network = load_checkpoint(checkpoint).float().to(chosen_device(device))
    if isinstance(network, LanguageModel):
        if out:
            raise ValueError(f"out: expected none for a text, got {out[0]}; redirect the output with `> {out[0]}`")
        how: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed, "least": least}
        how |= {"stop": list(map(_unescaped, stop or [])), "forbidden": list(map(_unescaped, forbid or []))}
        _print_texts(network, checkpoint, prompt or [""], tokens, **how)
    elif isinstance(network, SequenceModel) and network.per == "step" and network.inputs == NOTES:
        if stop or forbid or least or top_k is not None or top_p != 1 or (prompt and prompt[1:]):
            raise ValueError("stop, forbid, least, top_k, top_p: expected none for music, and at most one prompt")
        paths = out or [Path("tune.mid"), Path("tune.wav")]
        for path in paths:
            if path.suffix not in (".mid", ".wav"):
                raise ValueError(f"out: expected a file that ends in .mid or .wav, got {path}")
            check_new_file("out", path)
        _write_tune(network, card_task(checkpoint), paths, prompt[0] if prompt else "", tokens, temperature, seed)
    else:
        name = card_task(checkpoint).name
        raise ValueError(f"{checkpoint}: expected a model of a text or of music, got one of {name}; see rtx evaluate")
    typer.echo(f"drawn with --seed {seed}; another seed gives another one", err=True)


def _print_texts(network: "LanguageModel", checkpoint: Path, prompts: list[str], tokens: int, **how: Any) -> None:
    """Print one text as it is drawn. Several are drawn together, and printed with a line of dashes between them."""
    from rtx.tasks.generate import continue_texts
    from rtx.training.checkpoint import load_texts

    (vocabulary,) = load_texts(checkpoint) or card_task(checkpoint).texts
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
    network: "SequenceModel", task: "Task", paths: list[Path], prompt: str, frames: int, temperature: float, seed: int
) -> None:
    from rtx.tasks.generate import continue_roll
    from rtx.tasks.rolls import FRAME_SECONDS, write_midi, write_wav

    frame_seconds = task.frame_seconds or FRAME_SECONDS
    start = _start(task, prompt, frame_seconds).to(next(network.parameters()).device)
    roll = continue_roll(network, start, frames, temperature, seed).cpu().numpy()
    for path in paths:
        write = write_wav if path.suffix == ".wav" else write_midi
        write(written := BytesIO(), roll, frame_seconds)
        write_whole(path, written.getbuffer())
        typer.echo(f"wrote {path}")
    made = f"the model made the last {frames * frame_seconds:.0f}"
    typer.echo(f"{len(roll) * frame_seconds:.0f} seconds of music; {made} seconds", err=True)


def chosen_device(name: str | None) -> "torch.device":
    """Return the device of that name. Without a name, return a CUDA device if there is one."""
    import torch

    allowed = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    return torch.device(allowed[-1] if name is None else check_choice("device", name, allowed))


def _start(task: "Task", prompt: str, frame_seconds: float) -> "torch.Tensor":
    """Return the first frames of a MIDI file or of a tune of the test split; without a prompt one frame of silence."""
    import torch

    from rtx.tasks.rolls import NOTES, read_midi

    if not prompt:
        return torch.zeros(1, NOTES)
    if Path(prompt).suffix in (".mid", ".midi"):
        return torch.from_numpy(read_midi(Path(prompt), frame_seconds)[:READ]).float()
    tunes = task.split("test")
    if not prompt.isdecimal() or int(prompt) >= len(tunes):
        allowed = f"a .mid file or the number of a test tune, 0 to {len(tunes) - 1}"
        raise ValueError(f"prompt: expected {allowed}, got {prompt!r}")
    return tunes[int(prompt)].inputs[:READ]


def card_task(checkpoint: Path) -> "Task":
    """Return the task that a checkpoint was trained on."""
    from rtx.tasks import task_by_name
    from rtx.training.checkpoint import read_card

    card = read_card(checkpoint)
    return task_by_name(str(card["task"]), **card.get("task_arguments", {}))
