"""Activation regularisation: a penalty on the activations of recurrent models in training.

Merity, Keskar & Socher (2018), Regularizing and Optimizing LSTM Language Models, §4.
"""

from jaxtyping import Float
from torch import Tensor


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
