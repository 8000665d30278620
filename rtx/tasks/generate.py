"""Continue a tune or a text: what comes next is drawn from what a model predicts from all before it."""

from collections.abc import Iterator
from itertools import chain, pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.models import LanguageModel
from rtx.nn.mode import evaluating
from rtx.nn.sampling import sample_token, seeded_generator
from rtx.nn.validate import check_above_zero, check_finite, check_positive, check_sequence
from rtx.tasks.build import SequenceModel
from rtx.tasks.vocabulary import Vocabulary


@torch.no_grad()
def continue_roll(
    model: SequenceModel, roll: Float[Tensor, "T K"], frames: int, temperature: float = 1.0, seed: int = 0
) -> Float[Tensor, "T+{frames} K"]:
    """The piano roll with `frames` new frames behind it.

    The notes of a frame are drawn independently of each other, as the model's loss takes them to be. The tune is a
    stream: each frame takes one step of the model.

    Args:
        model: predicts the logits of the next frame at every step.
        roll: 0 and 1, what has sounded so far; one frame at least.
        frames: how many to add.
        temperature: divides the logits: below 1 likely notes become likelier, above 1 everything goes.
        seed: of the draws. Models that differ in their last bits may in time draw different notes.

    Raises:
        ValueError: if `roll` is not a (time, notes) sequence for this model, an argument is out of range, or the
            model's logits are not finite.
    """
    check_positive("frames", frames)
    check_above_zero("temperature", temperature)
    if roll.ndim != 2:
        raise ValueError(f"roll: expected one sequence (time, {model.inputs}), got {tuple(roll.shape)}")
    check_sequence("roll", roll[None], model.inputs, like=next(model.parameters()))
    check_finite("roll", roll)
    draws = seeded_generator(seed)
    found: list[Tensor] = []
    with evaluating(model):
        state = None
        for frame in roll:
            logits, state = model.step(frame[None], state)
        for left in range(frames, 0, -1):
            check_finite("logits of the model", logits)
            p = torch.sigmoid(logits[0].float() / temperature).cpu()
            found.append((torch.rand(p.shape, generator=draws) < p).to(roll))
            if left > 1:
                logits, state = model.step(found[-1][None], state)
    return torch.cat([roll, torch.stack(found)])


def continue_text(
    model: LanguageModel,
    vocabulary: Vocabulary,
    prompt: str,
    tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
) -> Iterator[str]:
    """What comes after the prompt, piece by piece as it is drawn: a character or a word each.

    The same draws as `LanguageModel.generate`, one step of the stream each.

    Args:
        model: predicts the next token.
        vocabulary: how it reads and writes.
        prompt: the text so far; the model begins where a text begins if it is empty.
        tokens: how many to add.
        temperature, top_k, top_p: as in `rtx.nn.sampling.sample_token`.
        seed: of the draws.

    Raises:
        ValueError: if the vocabulary is another model's, lacks a symbol of the prompt, or an argument is out of range.
    """
    check_positive("tokens", tokens)
    if vocabulary.size != model.vocabulary:
        raise ValueError(f"vocabulary: expected the model's {model.vocabulary} symbols, got {vocabulary.size}")
    read = vocabulary.encode(prompt) or [vocabulary.start]
    drawn = _draw(model, read, tokens, temperature, top_k, top_p, seeded_generator(seed))
    # the token before says whether a blank parts the two
    both = pairwise(chain(read[-1:], drawn))
    return (vocabulary.decode(two)[len(vocabulary.decode(two[:1])) :] for two in both)


@torch.no_grad()
def _draw(
    model: LanguageModel,
    read: list[int],
    tokens: int,
    temperature: float,
    top_k: int | None,
    top_p: float,
    draws: torch.Generator,
) -> Iterator[int]:
    device = model.embedding.weight.device
    with evaluating(model):
        state = None
        for token in torch.tensor(read, device=device)[:, None]:
            logits, state = model.step(token, state)
        for left in range(tokens, 0, -1):
            check_finite("logits of the model", logits)
            found = sample_token(logits, temperature, top_k, top_p, draws)
            yield int(found)
            if left > 1:
                logits, state = model.step(found, state)
