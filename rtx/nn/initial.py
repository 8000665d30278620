"""Weight initialisation."""

import math

import torch
from torch import nn


def uniform_parameter(fan_in: int, *shape: int) -> nn.Parameter:
    """Return a parameter drawn uniformly from ± 1/√fan_in, as in torch's recurrent layers and convolutions."""
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
