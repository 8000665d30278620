"""Additive attention: a small network computes how well a decoder's state matches each position of the source.

Bahdanau, Cho & Bengio (2015), Neural Machine Translation by Jointly Learning to Align and Translate, §3.1, Eq. 5-6, and
its appendix, which gives the network.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from rtx.nn.masks import masked_softmax
from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_positive


class AdditiveAttention(nn.Module):
    """The mean of the source's annotations, weighted by how well each one matches the query.

    The paper's equations leave the biases out. Here U has one. A second one beside it would change nothing, and the
    softmax would cancel one on the energy.

    Args:
        d_model: D, width of the query, of the annotations, and between the two layers.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = check_positive("d_model", d_model)
        self.query = nn.Linear(d_model, d_model, bias=False)  # W
        self.key = nn.Linear(d_model, d_model)  # U
        self.energy = nn.Linear(d_model, 1, bias=False)  # v

    def encode(self, annotations: Float[Tensor, "B S D"], real: Bool[Tensor, "B S"]) -> State:
        """Return the annotations, their keys U h, and `real`: True where a position is not padding.

        The keys do not depend on the query, so they are computed once for a sentence, as the appendix suggests.
        """
        annotations = annotations.masked_fill(~real[..., None], 0.0)  # see `rtx.nn.masks`
        return annotations, self.key(annotations), real

    def forward(self, query: Float[Tensor, "B D"], encoded: State) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B S"]]:
        """Return the context for one query of each sentence, and its weights. They sum to 1 and are 0 on padding."""
        B, D = query.shape
        check_state(encoded, (B, None, D), (B, None, D), (B, None))
        annotations, keys, real = encoded
        # e_ij = v^T tanh(W s_{i-1} + U h_j)
        energies = self.energy(torch.tanh(self.query(query)[:, None] + keys)).squeeze(-1)
        # Eq. (6)
        weights = masked_softmax(energies, real)
        # Eq. (5): c_i = Σ_j α_ij h_j
        return torch.einsum("bs,bsd->bd", weights.to(annotations.dtype), annotations), weights

    def introspect(self, query: Float[Tensor, "B D"], encoded: State) -> dict[str, Tensor]:
        """Return "weights", (B, S)."""
        return {"weights": self(query, encoded)[1]}
