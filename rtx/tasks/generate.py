"""Continue a tune or a text: the next part is drawn from what a model predicts from all before it."""

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
    """Return the piano roll with `frames` new frames after it.

    The notes of a frame are drawn independently of each other, as in the model's loss. Each frame takes one step of the
    model.

    Args:
        model: predicts the logits of the next frame at every step.
        roll: 0 and 1, what has sounded so far; at least one frame.
        frames: how many to add.
        temperature: divides the logits. Below 1 likely notes become likelier, above 1 the draws become more random.
        seed: of the draws. Models that differ in their last bits may in time draw different notes.
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
    """Yield what comes after the prompt, a character or a word at a time.

    The draws are those of `LanguageModel.generate`; each takes one step of the model.

    Args:
        model: predicts the next token.
        vocabulary: how the model reads and writes.
        prompt: the text so far; if it is empty, the model begins at the start of a text.
        tokens: how many to add.
        temperature, top_k, top_p: as in `rtx.nn.sampling.sample_token`.
        seed: of the draws.
    """
    check_positive("tokens", tokens)
    if vocabulary.size != model.vocabulary:
        raise ValueError(f"vocabulary: expected the model's {model.vocabulary} symbols, got {vocabulary.size}")
    read = vocabulary.encode(prompt) or [vocabulary.start]
    drawn = _draw(model, read, tokens, temperature, top_k, top_p, seeded_generator(seed))
    # the token before decides whether a blank is between the two
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
