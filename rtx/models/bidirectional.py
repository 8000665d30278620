"""Two backbones that read a sequence in both directions, for tags that depend on what comes after a position.

Schuster & Paliwal (1997), Bidirectional Recurrent Neural Networks; here for any backbone.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rtx.models.backbone import Backbone, check_backbone
from rtx.nn.padding import real_positions, reverse
from rtx.nn.validate import check_lengths, check_sequence


class Bidirectional(nn.Module):
    """One backbone reads a sequence forwards, another one backwards. A linear layer joins their outputs.

    With a TCN of receptive field R, output t depends on the R - 1 positions before it and the R - 1 positions after
    it. With an R-Transformer it depends on all positions. This is not a `Backbone`: it cannot generate, and a language
    model refuses it.

    Args:
        forwards: a backbone of width D.
        backwards: a second one of this width, with its own weights.
    """

    def __init__(self, forwards: Backbone, backwards: Backbone) -> None:
        super().__init__()
        self.d_model = check_backbone("forwards", forwards)
        check_backbone("backwards", backwards, self.d_model)
        self.forwards, self.backwards = forwards, backwards
        self.join = nn.Linear(2 * self.d_model, self.d_model)

    def forward(self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B T D"]:
        """Return an output for each position.

        Args:
            x: the sequences, padded at the end.
            lengths: number of real positions of each sequence; by default T. The outputs after them are zero.
        """
        check_sequence("x", x, self.d_model, like=self.join.weight)
        lengths = torch.full(x.shape[:1], x.shape[1]) if lengths is None else lengths
        check_lengths("lengths", lengths, *x.shape[:2])
        lengths = lengths.to(x.device)
        hidden = ~real_positions(lengths, x.shape[1])[..., None]
        x = x.masked_fill(hidden, 0.0)
        both = self.forwards(x), reverse(self.backwards(reverse(x, lengths)), lengths)
        return self.join(torch.cat(both, -1)).masked_fill(hidden, 0.0)
