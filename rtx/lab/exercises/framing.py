"""Checks of notebook 01: inputs and targets of a text, and one loss in three units."""

import math

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _texts() -> list[tuple[Tensor]]:
    return [(torch.tensor([3, 1, 4, 1, 5, 9, 2]),), (torch.tensor([2, 7, 1, 8]),)]


def _pair(inputs: Tensor, targets: Tensor) -> Tensor:
    return torch.stack([inputs, targets])


next_tokens = Exercise(
    cases=_texts,
    solution=lambda tokens: _pair(tokens[:-1], tokens[1:]),
    bugs={
        "the target is the input itself: a model that copies is perfect": lambda tokens: _pair(tokens, tokens),
        "the target is the input itself, and a token is lost": lambda tokens: _pair(tokens[:-1], tokens[:-1]),
        "inputs and targets are swapped: that predicts the token before": lambda tokens: _pair(tokens[1:], tokens[:-1]),
        "off by one: the target is the token after the next": lambda tokens: _pair(tokens[:-2], tokens[2:]),
        "rolled: the last target is the text's first token": lambda tokens: _pair(tokens, tokens.roll(-1)),
        "the last target is made up: the text's last token has no next one": lambda tokens: _pair(
            tokens, torch.cat([tokens[1:], tokens.new_zeros(1)])
        ),
    },
    praise="each token is a question, and the next one its answer",
)

three_units = Exercise(
    cases=lambda: [(1.0,), (0.0,), (3.2,)],
    solution=lambda nats: torch.tensor([nats, nats / math.log(2), math.exp(nats)]),
    bugs={
        "a nat is more than a bit: divide by ln 2": lambda nats: torch.tensor(
            [nats, nats * math.log(2), math.exp(nats)]
        ),
        "divided by 2, not by ln 2": lambda nats: torch.tensor([nats, nats / 2, math.exp(nats)]),
        "2 to the nats: it is e to the nats, or 2 to the bits": lambda nats: torch.tensor(
            [nats, nats / math.log(2), 2**nats]
        ),
        "e to the bits: it is e to the nats, or 2 to the bits": lambda nats: torch.tensor(
            [nats, nats / math.log(2), math.exp(nats / math.log(2))]
        ),
        "the bits are missing: log2 of the loss is something else": lambda nats: torch.tensor(
            [nats, math.log2(nats) if nats else 0.0, math.exp(nats)]
        ),
    },
    praise="one loss, three units: nats, bits, and among how many it chooses",
)
