"""Activation regularisation: a penalty on the activations of recurrent models in training.

Merity, Keskar & Socher (2018), Regularizing and Optimizing LSTM Language Models, §4.
"""

from collections.abc import Callable
from typing import cast

from jaxtyping import Float
from torch import Tensor, nn

from rtx.models import Backbone


def activation_penalty(
    raw: Float[Tensor, "B T D"], dropped: Float[Tensor, "B T D"], ar: float = 2.0, tar: float = 1.0
) -> Float[Tensor, ""]:
    """Return the activation regularisation: a penalty for large outputs and for outputs that jump between steps.

    It uses means of squares, as the authors' code does. The paper writes norms.

    Args:
        raw: the last layer's output before dropout.
        dropped: the same after dropout.
        ar: α, weight of the size of `dropped`.
        tar: β, weight of the change of `raw` from one step to the next.
    """
    penalty = ar * dropped.square().mean()
    return penalty + tar * (raw[:, 1:] - raw[:, :-1]).square().mean() if raw.shape[1] > 1 else penalty


def watch_activations(backbone: Backbone, take: Callable[[Tensor, Tensor], object]) -> None:
    """Call `take(raw, dropped)` with the activations of each training step, for `activation_penalty`.

    Args:
        backbone: offers the loss "activations", as AWD-LSTM and MC-RNN do; `check_model` asks for it.
        take: receives the last layer's output before and after dropout.
    """

    def hook(dropout: nn.Module, raw: tuple[Tensor, ...], dropped: Tensor) -> None:
        if dropout.training:
            take(raw[0], dropped)

    cast(nn.Module, cast(nn.Module, backbone).dropout).register_forward_hook(hook)
