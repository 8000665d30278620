"""Additive attention: a small network says how well a decoder's state matches each position of the source.

Bahdanau, Cho & Bengio (2015), Neural Machine Translation by Jointly Learning to Align and Translate, §3.1, Eq. 5-6, and
its appendix, where the network is given.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from rtx.nn.state import State, check_state
from rtx.nn.validate import check_positive, check_sequence, check_step


class AdditiveAttention(nn.Module):
    """The mean of the source's annotations, weighted by how well each matches the query.

    The paper leaves its biases out of the equations. Here U has one; another beside it, or one on the energy, which
    the softmax would cancel, would change nothing.

    Args:
        d_model: D, width of the query, of the annotations, and between the two layers.

    Raises:
        ValueError: if the size is below 1.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = check_positive("d_model", d_model)
        self.query = nn.Linear(d_model, d_model, bias=False)  # W
        self.key = nn.Linear(d_model, d_model)  # U
        self.energy = nn.Linear(d_model, 1, bias=False)  # v

    def remember(self, annotations: Float[Tensor, "B S D"], real: Bool[Tensor, "B S"]) -> State:
        """What every step reads: the annotations, their keys U h, and which of them are real; each needs one.

        U h does not depend on the query, so it is computed once for a sentence, as the paper's appendix says.

        Raises:
            ValueError: if `annotations` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("annotations", annotations, self.d_model, like=self.key.weight)
        return annotations, self.key(annotations), real

    def forward(
        self, query: Float[Tensor, "B D"], remembered: State
    ) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B S"]]:
        """The context for one query of each sentence, and its weights: they sum to 1 and are 0 on padding.

        Raises:
            ValueError: if `query` is not (B, D), or `remembered` is another batch's.
        """
        check_step("query", query, self.d_model, like=self.key.weight)
        B, D = query.shape
        check_state(remembered, (B, None, D), (B, None, D), (B, None))
        annotations, keys, real = remembered
        # e_ij = v^T tanh(W s_{i-1} + U h_j)
        energies = self.energy(torch.tanh(self.query(query)[:, None] + keys)).squeeze(-1)
        # Eq. (6)
        weights = energies.masked_fill(~real, -math.inf).softmax(-1)
        # Eq. (5): c_i = Σ_j α_ij h_j
        context = torch.einsum("bs,bsd->bd", weights.to(annotations.dtype), annotations)
        return context, weights

    def inside(self, query: Float[Tensor, "B D"], remembered: State) -> dict[str, Tensor]:
        """What `forward` computes with, by name: "weights", (B, S)."""
        return {"weights": self(query, remembered)[1]}
