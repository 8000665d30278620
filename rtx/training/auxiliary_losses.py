"""Losses beside a task's own: of all layers of a deep character model, and of the activations of a recurrent model.

Al-Rfou et al. (2019), Character-Level Language Modeling with Deeper Self-Attention.
Merity, Keskar & Socher (2018), Regularizing and Optimizing LSTM Language Models, §4.
"""

from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.models import CharacterTransformer, LanguageModel
from rtx.tasks.task import Batch

EXTRA = 0.5  # weight of each target after the first


class AuxiliaryLosses(nn.Module):
    """The sum over layers and targets of a cross-entropy, which is averaged over all positions.

    Layer l of n counts during the first l / 2n of the training, and the last layer always. So in the second half of
    the training the last layer is alone. The first target is the next symbol. Each layer has its own classifiers, one
    for each target, as in the published parameter counts. The last layer uses the model's own decoder for the first
    target, and only this classifier is needed after training.

    The paper leaves some points open. Here all layers have the same weight while they count, and the extra targets
    count in every layer until the end.

    Args:
        model: a character Transformer with embedding and decoder.
        targets: number of symbols ahead that are predicted.
    """

    def __init__(self, model: LanguageModel, targets: int) -> None:
        super().__init__()
        width, self.targets, self.decoder = model.backbone.d_model, targets, model.decoder
        self.layers = len(cast(CharacterTransformer, model.backbone).blocks)
        below = [nn.Linear(width, targets * model.vocabulary) for _ in range(self.layers - 1)]
        farther = [nn.Linear(width, (targets - 1) * model.vocabulary)] if targets > 1 else []
        self.classifiers = nn.ModuleList([*below, *farther])

    def forward(
        self, hidden: list[Float[Tensor, "B T D"]], tokens: Int[Tensor, "B S"], progress: float = 1.0
    ) -> Float[Tensor, ""]:
        """Return the loss when the share `progress` of the training is done.

        `hidden` has the outputs of all layers, from bottom to top. `tokens` is the text, from the symbol that the first
        position reads to the last target of the last position: S = T + targets. A negative token is not predicted.
        """
        # (B, T, targets): position t predicts tokens t + 1 … t + targets
        wanted = tokens[:, 1:].unfold(1, self.targets, 1)
        known = (wanted >= 0).sum((0, 1)).clamp(min=1)
        weights = torch.tensor([1.0] + [EXTRA] * (self.targets - 1), device=tokens.device)
        losses = []
        n = self.layers
        counting = [at for at in range(n) if at == n - 1 or progress < (at + 1) / (2 * n)]
        for at in counting:
            logits = self._predict(at, hidden[at]).unflatten(-1, (self.targets, -1)).movedim(-1, 1)
            # a sum over many positions can exceed the largest half-precision number
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            nll = F.cross_entropy(logits, wanted.clamp(min=-1).long(), ignore_index=-1, reduction="none")
            losses.append((nll.sum((0, 1)) / known * weights).sum())
        return torch.stack(losses).sum()

    def of_batch(self, model: LanguageModel, batch: Batch, progress: float) -> Float[Tensor, ""]:
        """Return the loss of a batch of windows of a text, over all positions, also those that are only context."""
        hidden = cast(CharacterTransformer, model.backbone).hidden(model.embed(batch.inputs))
        ends = batch.lengths[:, None]
        # (B, T + targets): each window's text and the symbol after it; -1 where the text after that is not known
        tokens = F.pad(batch.inputs, (0, self.targets))
        tokens = tokens.masked_fill(torch.arange(tokens.shape[1], device=tokens.device) >= ends, -1)
        tokens = tokens.scatter(1, ends, batch.targets.gather(1, ends - 1))
        return cast(Tensor, self(hidden, tokens, progress))

    def _predict(self, at: int, h: Tensor) -> Float[Tensor, "B T predictions"]:
        """Return the predictions of layer `at` for all targets side by side."""
        own = [f(h) for f in self.classifiers[at:][:1]]
        return torch.cat([self.decoder(h), *own] if at == self.layers - 1 else own, -1)


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
