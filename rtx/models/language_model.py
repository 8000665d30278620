"""A language model: a backbone between a table of embeddings and, most often, the same table again.

Press & Wolf (2017) and Inan et al. (2017), tied embeddings; Wang et al. (2019), Tables 3 and 4, tie them.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.dropout import drop_words
from rtx.nn.kernels.graphs import following
from rtx.nn.sampling import draws_from, sample_token
from rtx.nn.state import State
from rtx.nn.validate import (
    check_backbone,
    check_finite,
    check_flag,
    check_fraction,
    check_positive,
    check_tensor,
    check_tokens,
)


class LanguageModel(nn.Module):
    """Predicts the next token from all before it; streams, and so generates.

    Args:
        backbone: maps (B, T, D) to (B, T, D), causally; has `d_model` and `step`.
        vocabulary: V, number of tokens.
        tied: the output layer's weight is the embedding table, as in the papers named above.
        embedding_dropout: share of the words hidden, wherever they occur, in a training step.
        input_dropout: share of the embedded units set to zero.

    Raises:
        ValueError: if an argument is out of its range, or the backbone is none.
    """

    def __init__(
        self,
        backbone: nn.Module,
        vocabulary: int,
        tied: bool = True,
        embedding_dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.backbone, self.vocabulary = backbone, check_positive("vocabulary", vocabulary)
        self.embedding_dropout = check_fraction("embedding_dropout", embedding_dropout)
        self.dropout = nn.Dropout(check_fraction("input_dropout", input_dropout))
        width = check_backbone("backbone", backbone)
        self.embedding = nn.Embedding(vocabulary, width)
        self.decoder = nn.Linear(width, vocabulary)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.tied = check_flag("tied", tied)
        self.register_load_state_dict_post_hook(_tie)
        _tie(self)

    def _apply(self, *arguments: Any, **options: Any) -> nn.Module:
        super()._apply(*arguments, **options)  # on the meta device each name becomes a parameter of its own
        _tie(self)
        return self

    def forward(
        self, tokens: Int[Tensor, "B T"], where: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T V"] | Float[Tensor, "N V"]:
        """The logits of the token after each token.

        Args:
            tokens: (B, T).
            where: after which tokens it is asked for; then only these are decoded, in the order of rows and columns.

        Raises:
            ValueError: if `tokens` is not (B, T) of whole numbers from 0 to V - 1, or is empty; if `where` does not
                fit.
        """
        check_tokens("tokens", tokens, self.vocabulary, 2)
        if where is not None:
            check_tensor("where", where)
            if where.dtype != torch.bool or where.shape != tokens.shape:
                raise ValueError(
                    f"where: expected bool of shape {tuple(tokens.shape)}, got {where.dtype} {tuple(where.shape)}"
                )
        hidden = self.backbone(self.embed(tokens))
        return self.decoder(hidden if where is None else hidden[where])

    def step(self, tokens: Int[Tensor, " B"], state: State | None = None) -> tuple[Float[Tensor, "B V"], State]:
        """One token of each stream: the logits of the next, and the backbone's state.

        Raises:
            ValueError: if `tokens` is not (B,) of tokens, or `state` is another model's or batch's.
        """
        check_tokens("tokens", tokens, self.vocabulary, 1)
        hidden, state = self.backbone.step(self.embed(tokens), state)  # type: ignore[operator]
        return self.decoder(hidden), state

    def read(self, tokens: Int[Tensor, "B T"], state: State | None = None) -> tuple[Float[Tensor, "B T V"], State]:
        """A piece of a longer text, for a backbone that carries a state from piece to piece.

        Raises:
            ValueError: as `forward`, or if the backbone cannot, or `state` is another model's or batch's.
        """
        check_tokens("tokens", tokens, self.vocabulary, 2)
        if not hasattr(self.backbone, "read"):
            raise ValueError(f"backbone: {type(self.backbone).__name__} reads no pieces; step through the text instead")
        hidden, state = self.backbone.read(self.embed(tokens), state)  # type: ignore[operator]
        return self.decoder(hidden), state

    def embed(self, tokens: Int[Tensor, "..."]) -> Float[Tensor, "... D"]:
        """The tokens' vectors, with dropout in training."""
        table = drop_words(self.embedding.weight, self.embedding_dropout, self.training)
        return self.dropout(F.embedding(tokens, table))

    @torch.no_grad()
    def generate(
        self,
        prompt: Int[Tensor, "B T"],
        tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        seed: int = 0,
        in_place: bool | None = None,
    ) -> Int[Tensor, "B T+{tokens}"]:
        """The prompt with new tokens behind it, each drawn given all before it, one step of the stream each.

        The model is used in the mode it is in: call `eval()` first, or dropout stays on. The draws are made on the
        CPU, so they are the same on every device as long as the logits are.

        Args:
            prompt: (B, T), at least one token.
            tokens: N, how many to add.
            temperature: divides the logits; 0 takes the likeliest token.
            top_k: draw from the k likeliest only.
            top_p: draw from the smallest set of tokens that holds this share of the probability (nucleus).
            seed: of the draws.
            in_place: whether the state stays where it is, with room for all tokens; see
                `rtx.nn.kernels.graphs.following`. If not given, on a CUDA device, where the step then is a CUDA graph.

        Raises:
            ValueError: if an argument is out of range, or the logits are not finite; if `in_place` is True and the
                model's state cannot stay.
        """
        check_tokens("prompt", prompt, self.vocabulary, 2)
        check_positive("tokens", tokens)
        if in_place is not None:
            check_flag("in_place", in_place)
        draws = draws_from(seed)
        state: State | None = None
        for column in prompt.unbind(1):
            logits, state = self.step(column, state)
        assert state is not None
        advance = following(self.step, state, column, tokens, in_place)
        found = [prompt]
        for i in range(tokens):
            check_finite("logits", logits)
            found.append(sample_token(logits, temperature, top_k, top_p, draws)[:, None])
            if i + 1 < tokens:
                logits = advance(found[-1].squeeze(1))
        return torch.cat(found, 1)


def _tie(model: LanguageModel, *_: object) -> None:
    """Make the two tables one, again where `load_state_dict(assign=True)` has made them two."""
    if model.tied:
        model.decoder.weight = model.embedding.weight
