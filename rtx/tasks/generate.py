"""Continue a tune or a text: the next part is drawn from what a model predicts from all before it."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.models import CharacterTransformer, LanguageModel
from rtx.nn.mode import evaluating
from rtx.nn.sampling import sample_token, seeded_generator
from rtx.nn.validate import check_above_zero, check_finite, check_positive, check_sequence
from rtx.tasks.build import SequenceModel
from rtx.tasks.vocabulary import Vocabulary


def continue_roll(
    model: SequenceModel, roll: Float[Tensor, "T K"], frames: int, temperature: float = 1.0, seed: int = 0
) -> Float[Tensor, "T+{frames} K"]:
    """Return the piano roll with `frames` new frames after it.

    The notes of a frame are drawn independently of each other, as in the model's loss.

    `roll` holds 0 and 1, what has sounded so far. `temperature` divides the logits: below 1 likely notes become
    likelier. Models that differ in their last bits may in time draw different notes.
    """
    check_positive("frames", frames)
    check_above_zero("temperature", temperature)
    if roll.ndim != 2:
        raise ValueError(f"roll: expected one sequence (time, {model.inputs}), got {tuple(roll.shape)}")
    check_sequence("roll", roll[None], model.inputs, like=next(model.parameters()))
    check_finite("roll", roll)
    draws = seeded_generator(seed)

    def drawn(logits: Tensor) -> Tensor:
        p = torch.sigmoid(logits.float() / temperature).cpu()
        return (torch.rand(p.shape, generator=draws) < p).to(roll)

    return torch.cat([roll, *_continued(model, roll[:, None], frames, drawn)])


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
    """Yield what comes after the prompt, a character or a word at a time. The draws are those of `model.generate`.

    A character Transformer reads the last segment anew for each draw. `model.generate` starts new segments instead,
    and so forgets the prompt at the end of the first segment.

    With an empty prompt, the model begins at the start of a text. `temperature`, `top_k` and `top_p` are as in
    `rtx.nn.sampling.sample_token`.
    """
    check_positive("tokens", tokens)
    if vocabulary.size != model.vocabulary:
        raise ValueError(f"vocabulary: expected the model's {model.vocabulary} symbols, got {vocabulary.size}")
    read = vocabulary.encode(prompt) or [vocabulary.start]
    draws = seeded_generator(seed)
    draw = partial(sample_token, temperature=temperature, top_k=top_k, top_p=top_p, generator=draws)
    start = torch.tensor(read, device=model.embedding.weight.device)[:, None]
    drawn = map(int, _continued(model, start, tokens, draw))
    # the token before decides whether a blank is between the two
    both = pairwise(chain(read[-1:], drawn))
    return (vocabulary.decode(two)[len(vocabulary.decode(two[:1])) :] for two in both)


@torch.no_grad()
def _continued(
    model: SequenceModel | LanguageModel, start: Tensor, steps: int, draw: Callable[[Tensor], Tensor]
) -> Iterator[Tensor]:
    """Yield `steps` draws, each from the logits after all before it; the model reads one position at a time."""
    with evaluating(model):
        state, step = None, _step_of(model)
        for position in start:
            logits, state = step(position, state)
        for left in range(steps, 0, -1):
            check_finite("logits of the model", logits)
            found = draw(logits)
            yield found
            if left > 1:
                logits, state = step(found, state)


def _step_of(model: SequenceModel | LanguageModel) -> Callable[[Tensor, Any], tuple[Tensor, Any]]:
    """Return how a model reads one position. A character Transformer reads its last segment anew, as in `slide`."""
    backbone = model.backbone
    if not isinstance(backbone, CharacterTransformer):
        return model.step

    def step(position: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
        seen = position[:, None] if before is None else torch.cat([before, position[:, None]], 1)
        seen = seen[:, -backbone.segment :]
        return model(seen)[:, -1], seen

    return step
