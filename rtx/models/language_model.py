"""A language model: an embedding, a backbone, and an output layer that usually shares the embedding's weights.

Press & Wolf (2017) and Inan et al. (2017), tied embeddings; Wang et al. (2019) tie them in Tables 3 and 4.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from rtx.models.backbone import Backbone, check_backbone
from rtx.nn.dropout import drop_words
from rtx.nn.sampling import sample_token, seeded_generator
from rtx.nn.streaming import State
from rtx.nn.validate import check_flag, check_fraction, check_positive, check_tokens


class LanguageModel(nn.Module):
    """Predicts the next token from all tokens before it, and generates text.

    Args:
        backbone: any `Backbone`.
        vocabulary: V, number of tokens.
        tied: whether the output layer's weight is the embedding table, as in the papers above.
        embedding_dropout: probability that a word is hidden, wherever it occurs, in a training step.
        input_dropout: probability that a number of the embedded input is set to zero.
    """

    backbone: Backbone

    def __init__(
        self,
        backbone: Backbone,
        vocabulary: int,
        tied: bool = True,
        embedding_dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        width = check_backbone("backbone", backbone)
        self.backbone, self.vocabulary = backbone, check_positive("vocabulary", vocabulary)
        self.embedding_dropout = check_fraction("embedding_dropout", embedding_dropout)
        self.dropout = nn.Dropout(check_fraction("input_dropout", input_dropout))
        self.embedding = nn.Embedding(vocabulary, width)
        self.decoder = nn.Linear(width, vocabulary)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.tied = check_flag("tied", tied)
        self.register_load_state_dict_post_hook(_tie)
        _tie(self)

    def _apply(self, *arguments: Any, **options: Any) -> nn.Module:
        super()._apply(*arguments, **options)  # on the meta device this makes two parameters of the tied one
        _tie(self)
        return self

    def forward(
        self, tokens: Int[Tensor, "B T"], where: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T V"] | Float[Tensor, "N V"]:
        """Return the logits of the token after each token.

        Args:
            tokens: (B, T).
            where: True for the tokens whose successor is wanted. Only these are decoded, row by row.
        """
        check_tokens("tokens", tokens, self.vocabulary, 2)
        hidden = self.backbone(self.embed(tokens))
        return self.decoder(hidden if where is None else hidden[where])

    def step(self, tokens: Int[Tensor, " B"], state: State | None = None) -> tuple[Float[Tensor, "B V"], State]:
        """Read one token of each stream; return the logits of the next token, and the backbone's state."""
        check_tokens("tokens", tokens, self.vocabulary, 1)
        hidden, state = self.backbone.step(self.embed(tokens), state)
        return self.decoder(hidden), state

    def read(self, tokens: Int[Tensor, "B T"], state: State | None = None) -> tuple[Float[Tensor, "B T V"], State]:
        """Read a piece of a longer text; return the logits of the next tokens, and the backbone's state."""
        check_tokens("tokens", tokens, self.vocabulary, 2)
        hidden, state = self.backbone.read(self.embed(tokens), state)
        return self.decoder(hidden), state

    def slide(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Return the logits from the backbone's `slide`."""
        check_tokens("tokens", tokens, self.vocabulary, 2)
        return self.decoder(self.backbone.slide(self.embed(tokens)))

    def embed(self, tokens: Int[Tensor, "..."]) -> Float[Tensor, "... D"]:
        """Return the vectors of the tokens, with dropout in training."""
        x = self.embedding(tokens)
        return self.dropout(drop_words(x, tokens, self.vocabulary, self.embedding_dropout, self.training))

    @torch.no_grad()
    def generate(
        self,
        prompt: Int[Tensor, "B T"],
        tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        seed: int = 0,
    ) -> Int[Tensor, "B T+{tokens}"]:
        """Return the prompt followed by new tokens. Each is drawn given all tokens before it.

        Call `eval()` first, otherwise dropout stays on. The draws are made on the CPU, so they are the same on every
        device if the logits are. All rows draw from one generator, so the text of a row depends on the number of rows.
        `rtx.tasks.generate.continue_texts` gives each row its own, and can forbid tokens.

        Args:
            prompt: (B, T), at least one token.
            tokens: N, number of new tokens.
            temperature: divides the logits. 0 takes the most likely token.
            top_k: draw from the k most likely tokens only.
            top_p: draw from the smallest set of tokens that has this share of the probability (nucleus).
            seed: of the draws.
        """
        check_tokens("prompt", prompt, self.vocabulary, 2)
        check_positive("tokens", tokens)
        generator = seeded_generator(seed)
        hidden, state = self.backbone.read(self.embed(prompt))
        logits = self.decoder(hidden[:, -1])
        found = [prompt]
        for i in range(tokens):
            found.append(sample_token(logits, temperature, top_k, top_p, generator)[:, None])
            if i + 1 < tokens:
                logits, state = self.step(found[-1].squeeze(1), state)
        return torch.cat(found, 1)


def _tie(model: LanguageModel, *_: object) -> None:
    """Share the embedding table with the output layer, also after `load_state_dict(assign=True)`."""
    if model.tied and type(model.embedding) is nn.Embedding and type(model.decoder) is nn.Linear:
        model.decoder.weight = model.embedding.weight
