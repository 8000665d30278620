"""What all sequence models have in common: the protocol `Backbone`, defaults for its methods, and a model's card."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rtx.nn.search import Hypotheses, beam_search
from rtx.nn.streaming import State
from rtx.nn.validate import check_sequence, check_step


@runtime_checkable
class Backbone(Protocol):
    """A causal model from (B, T, D) to (B, T, D): output t depends on the positions 1 … t.

    Attributes:
        d_model: D.
        stateful: whether training may carry the state from one piece of a text to the next. The size of such a state is
            bounded. (So are those of a TCN and of Griffin, but their papers train on windows.)
        separate_segments: whether the model cuts a text into segments and sees nothing beyond the start of its segment.
            Then `slide` gives every position a whole segment.
        auxiliary_losses: which losses the model offers beside the task's: "layers" (see `CharacterTransformer.hidden`),
            "activations" (see `rtx.training.auxiliary_losses`).
    """

    d_model: int
    stateful: bool
    separate_segments: bool
    auxiliary_losses: tuple[str, ...]

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Return the outputs for `x`. If a state is given, `x` continues the sequence that led to this state."""
        ...

    def __call__(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Call `forward`."""
        ...

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Return the outputs as `forward` does, and the state after them."""
        ...

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """Read one position of a stream; return its output and the next state."""
        ...

    def slide(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Return the outputs of `forward`, or of a sliding segment if the model has separate segments."""
        ...


class CausalModel(nn.Module):
    """Defaults for a `Backbone`. A model of your own inherits from it and defines `d_model` and `read`.

    `forward` and `step` follow from `read`. A model that is faster without a state also defines `forward`.
    """

    d_model: int
    stateful = False
    separate_segments = False
    auxiliary_losses: tuple[str, ...] = ()

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Return the outputs for `x`. If a state is given, `x` continues the sequence that led to this state."""
        return self.read(x, state)[0]

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Return the outputs as `forward` does, and the state after them."""
        raise NotImplementedError(f"{type(self).__name__}: define `read` to read a stream")

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """Read one position of a stream; return its output and the next state."""
        self.check_one(x)
        y, state = self.read(x[:, None], state)
        return y.squeeze(1), state

    def slide(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Return the outputs of `forward`. A model with separate segments overrides this."""
        return self(x)

    def start_epoch(self, epoch: int) -> None:
        """Prepare for an epoch of training, counted from 0. By default nothing changes."""

    def check_input(self, x: Tensor) -> None:
        """Raise a ValueError if `x` is not a sequence (B, T, D) for this model."""
        check_sequence("x", x, self.d_model, like=next(self.parameters(), None))

    def check_one(self, x: Tensor) -> None:
        """Raise a ValueError if `x` is not one step (B, D) for this model."""
        check_step("x", x, self.d_model, like=next(self.parameters(), None))


class Translator(nn.Module):
    """A model from a source to a target sentence, with a `start` and a `step` that returns the next token's logits."""

    target_vocabulary: int
    start: Callable[..., State]
    step: Callable[..., tuple[Tensor, State]]

    @torch.no_grad()
    def translate(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"] | None = None, **how: Any
    ) -> Hypotheses:
        """Search for the target with a beam. Call `eval()` first, otherwise dropout stays on.

        `how` are `begin`, `end`, `length`, and optionally `width` and `alpha`, as for `rtx.nn.search.beam_search`.
        """
        state = self.start(source, source_lengths)
        return beam_search(self.step, state, len(source), self.target_vocabulary, device=source.device, **how)


def check_backbone(name: str, module: object, width: int | None = None) -> int:
    """Return the width D of a backbone.

    Args:
        name: of the argument.
        module: must be a backbone.
        width: D, if the module must have the same width as another one.
    """
    if not isinstance(module, Backbone):
        allowed = "a backbone, such as RTransformer or a subclass of rtx.models.CausalModel with a d_model"
        raise ValueError(f"{name}: expected {allowed}, got {type(module).__name__}")
    if width is not None and module.d_model != width:
        raise ValueError(f"{name}: expected d_model = {width}, as of the other one, got {module.d_model}")
    return module.d_model


class Card(NamedTuple):
    """A model's data sheet.

    Args:
        name: in recipes and on the command line.
        make: builds the model from its hyper-parameters.
        paper: authors and year.
        table: where the sizes come from.
        sizes: the hyper-parameters that the paper used there.
        receptive_field: from the hyper-parameters to the number of positions that the last output depends on, itself
            included. None stands for the whole past, and for a translator also the whole source. A test measures it.
    """

    name: str
    make: Callable[..., Any]
    paper: str
    table: str
    sizes: dict[str, Any]
    receptive_field: Callable[..., int | None] = lambda **hyperparameters: None
