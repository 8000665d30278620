"""Losses that make a deep character model trainable: at every layer, at every position, for several symbols ahead.

Al-Rfou et al. (2019), Character-Level Language Modeling with Deeper Self-Attention.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.validate import check_choice, check_positive, check_sequence, check_tokens, is_number


class AuxiliaryLosses(nn.Module):
    """Every layer predicts, at every position, more than one symbol: the losses a deep character model is trained by.

    The sum over layers and targets of a cross-entropy that is averaged over positions. Layer l of n counts while less
    than l / 2n of the training is done, the last one always; so in the second half it is alone. The first target is
    the next symbol; those after it weigh half. Each layer has its own classifiers, one per target, as the published
    parameter counts have it; only the last layer's first one is needed after training. Ours: layers weigh alike while
    they count, and the extra targets count in every layer and to the end.

    Args:
        d_model: D, width of the layers.
        layers: n.
        vocabulary: V, symbols.
        targets: how many symbols ahead are predicted.
        extra: weight of the targets after the first.
        positions: "all" predicts at every position, "last" at the sequence's last only: the paper's model without
            this loss.
        intermediate: whether layers below the last predict at all.
        decoder: what predicts the next symbol from the last layer; one of its own if not given.

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(
        self,
        d_model: int,
        layers: int,
        vocabulary: int,
        targets: int = 2,
        extra: float = 0.5,
        positions: str = "all",
        intermediate: bool = True,
        decoder: nn.Linear | None = None,
    ) -> None:
        super().__init__()
        if not (is_number(extra) and 0 <= extra < float("inf")):
            raise ValueError(f"extra: expected a finite number of at least 0, got {extra!r}")
        self.d_model, self.layers = check_positive("d_model", d_model), check_positive("layers", layers)
        self.vocabulary, self.targets = check_positive("vocabulary", vocabulary), check_positive("targets", targets)
        self.extra, self.positions = extra, check_choice("positions", positions, ("all", "last"))
        self.first = 0 if intermediate else layers - 1  # the lowest layer with classifiers
        self.decoder = decoder or nn.Linear(d_model, vocabulary)
        below = [nn.Linear(d_model, targets * vocabulary) for _ in range(self.first, layers - 1)]
        farther = [nn.Linear(d_model, (targets - 1) * vocabulary)] if targets > 1 else []
        self.classifiers = nn.ModuleList([*below, *farther])

    def logits(self, y: Float[Tensor, "B T D"]) -> Float[Tensor, "B T V"]:
        """The model's own prediction of the next symbol, from its last layer's output."""
        return self.decoder(y)

    def counting(self, progress: float) -> list[int]:
        """The layers, from 0, whose predictions count when `progress` of the training, 0 … 1, is done.

        Raises:
            ValueError: if `progress` is not in 0 … 1.
        """
        if not (is_number(progress) and 0 <= progress <= 1):
            raise ValueError(f"progress: expected a number from 0 to 1, got {progress!r}")
        n = self.layers
        return [at for at in range(self.first, n) if at == n - 1 or progress < (at + 1) / (2 * n)]

    def forward(
        self, hidden: list[Float[Tensor, "B T D"]], tokens: Int[Tensor, "B S"], progress: float = 1.0
    ) -> Float[Tensor, ""]:
        """The loss.

        Args:
            hidden: the output of every layer, bottom to top.
            tokens: the text, from the symbol that the first position reads to the last target of the last position:
                S = T + targets. A negative one is unknown, and not predicted.
            progress: share of the training that is done, 0 … 1.

        Raises:
            ValueError: if layers, shapes, tokens or `progress` do not fit.
        """
        counting = self.counting(progress)
        self._check(hidden, tokens)
        # (B, T, targets): position t predicts tokens t + 1 … t + targets
        wanted = tokens[:, 1:].unfold(1, self.targets, 1)
        weights = torch.tensor([1.0] + [self.extra] * (self.targets - 1), device=tokens.device)
        # DDP waits for a gradient of every parameter, those of layers too that no longer count
        losses = [0.0 * p.sum() for p in self.classifiers.parameters()]
        for at in counting:
            h, goal = (hidden[at], wanted) if self.positions == "all" else (hidden[at][:, -1:], wanted[:, -1:])
            logits = self._predict(at, h).unflatten(-1, (self.targets, self.vocabulary))
            # a sum over many positions goes beyond the largest number of half precision
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            known, goal = goal >= 0, goal.clamp(min=0).long()
            nll = F.cross_entropy(logits.flatten(0, 2), goal.flatten(), reduction="none").view(goal.shape)
            mean = (nll * known).sum((0, 1)) / known.sum((0, 1)).clamp(min=1)
            losses.append((mean * weights).sum())
        return torch.stack(losses).sum()

    def _predict(self, at: int, h: Tensor) -> Tensor:
        """(B, T, targets · V): what layer `at` says of each target."""
        own = [f(h) for f in self.classifiers[at - self.first :][:1]]
        return torch.cat([self.decoder(h), *own] if at == self.layers - 1 else own, -1)

    def _check(self, hidden: list[Tensor], tokens: Tensor) -> None:
        if len(hidden) != self.layers:
            raise ValueError(f"hidden: expected the outputs of {self.layers} layers, got {len(hidden)}")
        for h in hidden:
            check_sequence("hidden", h, self.d_model)
        check_tokens("tokens", tokens.clamp(min=0), self.vocabulary, 2)
        B, T, _ = hidden[-1].shape
        if tokens.shape != (B, T + self.targets):
            raise ValueError(
                f"tokens: expected ({B}, {T} + {self.targets}), the text and the targets behind it, "
                f"got {tuple(tokens.shape)}"
            )
