"""Continue a tune: frame after frame is drawn from what a model predicts from all the frames before it."""

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite, check_positive, check_sequence
from rtx.tasks.build import SequenceModel


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
    if not 0 < temperature < float("inf"):
        raise ValueError(f"temperature: expected a finite number above 0, got {temperature!r}")
    if roll.ndim != 2:
        raise ValueError(f"roll: expected one sequence (time, {model.inputs}), got {tuple(roll.shape)}")
    check_sequence("roll", roll[None], model.inputs, like=next(model.parameters()))
    check_finite("roll", roll)
    draws = torch.Generator().manual_seed(seed)  # on the CPU: the same draws whatever the model's device
    found: list[Tensor] = []
    with evaluating(model):
        state = None
        for frame in roll:
            logits, state = model.step(frame[None], state)
        for _ in range(frames):
            check_finite("logits of the model", logits)
            p = torch.sigmoid(logits[0].float() / temperature).cpu()
            found.append((torch.rand(p.shape, generator=draws) < p).to(roll))
            logits, state = model.step(found[-1][None], state)
    return torch.cat([roll, torch.stack(found)])
