"""How weights begin."""

import math

import torch
from torch import nn


def uniform_parameter(fan_in: int, *shape: int) -> nn.Parameter:
    """A parameter of this shape, uniform in ± 1/√fan-in: so torch's recurrent networks begin, and its convolutions."""
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
