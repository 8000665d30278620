"""Bach or machine? A game of hidden pairs: one tune of each is by Bach, the other is by a model."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.stats import binom
from torch import Tensor

from rtx.lab.explore.bach import keys, unheard
from rtx.lab.explore.page import Page
from rtx.lab.pretrained import pretrained
from rtx.nn.mode import evaluating
from rtx.nn.sampling import seeded_generator
from rtx.tasks.build import SequenceModel
from rtx.tasks.rolls import FRAME_SECONDS, LOWEST, Roll, check_roll

PAIRS, PROMPT, FRAMES, TRIES, TEMPERATURE = 12, 16, 32, 500, 0.7
HOW = (
    f"The model read the first {PROMPT} frames of another chorale of the test split and went on, at a temperature of "
    f"{TEMPERATURE}. Each of its frames has as many notes as Bach's."
)


def bach_or_machine(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]] | None = None,
    how: str = "",
    seed: int = 0,
    frame_seconds: float = FRAME_SECONDS,
) -> Page:
    """Listen to two tunes, say which one a person wrote, and see how a guesser would do.

    Args:
        pairs: of a tune that a person wrote and one by a model, (frames, 88) of 0 and 1 each, equally long. By default
            twelve pairs by Bach and by the R-Transformer that comes with the package.
        how: how the model wrote its tunes, for the reader; by default, this is said of our own pairs alone.
        seed: of the order within the pairs, and of the model's draws.
        frame_seconds: how long a frame lasts.

    Raises:
        ValueError: if there is no pair, something is no piano roll, or two tunes are not equally long.
    """
    if pairs is None:
        how = how or HOW
        pairs = drawn_pairs(cast(SequenceModel, pretrained("bach")), seed)
    found = [(check_roll("pairs", real), check_roll("pairs", made)) for real, made in pairs]
    lengths = [(len(real), len(made)) for real, made in found]
    if not found or any(real != made for real, made in lengths):
        raise ValueError(f"pairs: expected at least one, of two tunes of the same length, got {lengths or 'none'}")
    order = np.random.default_rng(seed).permutation(len(found)) % 2  # each place as often as the other
    shown = [
        {"bach": int(place), "tunes": [keys(tune) for tune in (pair[::-1] if place else pair)]}
        for pair, place in zip(found, order, strict=True)
    ]
    chance = binom.sf(np.arange(-1, len(found)), len(found), 0.5)  # of at least so many right answers by guessing
    return Page(
        "bach_or_machine.js",
        {"pairs": shown, "chance": chance, "lowest": LOWEST, "seconds": frame_seconds},
        f"listen with your eyes closed. {how}",
        title="Bach or machine?",
        pair=0,
        answers=[],
        notes=False,
    )


def drawn_pairs(model: SequenceModel, seed: int) -> list[tuple[Roll, Roll]]:
    """For each of some chorales a passage, and what the model makes of the beginning of another one."""
    draws, end = seeded_generator(seed), PROMPT + FRAMES
    tunes = [tune for tune in unheard() if len(tune) >= end + PROMPT]  # so that no passage has an ending
    passages = [tune[PROMPT:end] for tune in tunes[:PAIRS]]
    return [
        (passage, _continued(model, torch.from_numpy(other[:PROMPT]).float(), passage.sum(1).tolist(), draws))
        for passage, other in zip(passages, tunes[PAIRS : 2 * PAIRS], strict=True)
    ]


@torch.no_grad()
def _continued(
    model: SequenceModel, prompt: Float[Tensor, "T K"], notes: Sequence[int], draws: torch.Generator
) -> Roll:
    """The frames that a model writes after a prompt, each with a given number of notes."""
    state, found = None, list[Tensor]()
    with evaluating(model):
        for frame in prompt:
            logits, state = model.step(frame[None], state)
        for count in notes:
            found.append(_frame((logits[0] / TEMPERATURE).sigmoid(), count, draws))
            logits, state = model.step(found[-1][None], state)
    return torch.stack(found).to(torch.uint8).numpy()


def _frame(p: Float[Tensor, " K"], count: int, draws: torch.Generator) -> Float[Tensor, " K"]:
    """Draw a frame of `count` notes: many frames are drawn, and the first that has so many is kept."""
    tries = torch.rand(TRIES, len(p), generator=draws) < p
    fitting = tries[tries.sum(1) == count]
    return fitting[0].float() if len(fitting) else torch.zeros_like(p).scatter(0, p.topk(count).indices, 1.0)
