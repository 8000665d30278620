"""A small training script of another project, which does not import rtx: predict the commonest symbol so far.

`encoder` is any module with the call of `torch.nn.TransformerEncoder`.
"""

import torch
from torch import nn

SYMBOLS, WIDTH, LENGTH = 3, 16, 12


def torchs_encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(WIDTH, nhead=2, dim_feedforward=32, dropout=0.0)
    return nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)


class Tagger(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.embedding, self.encoder, self.head = nn.Embedding(SYMBOLS, WIDTH), encoder, nn.Linear(WIDTH, SYMBOLS)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        T = len(tokens)
        causal = torch.ones(T, T).triu(1).bool()
        padding = torch.arange(T) >= lengths[:, None]
        hidden = self.encoder(self.embedding(tokens), mask=causal, src_key_padding_mask=padding, is_causal=True)
        return self.head(hidden)


def draw(batch: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tokens = torch.randint(SYMBOLS, (LENGTH, batch))
    commonest = nn.functional.one_hot(tokens, SYMBOLS).cumsum(0).argmax(-1)
    return tokens, commonest, torch.randint(LENGTH // 2, LENGTH + 1, (batch,))


def train(encoder: nn.Module, updates: int = 60) -> float:
    """Return the share of symbols that are right after so many updates."""
    model = Tagger(encoder)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(updates):
        tokens, target, lengths = draw(32)
        real = torch.arange(LENGTH)[:, None] < lengths
        loss = nn.functional.cross_entropy(model(tokens, lengths)[real], target[real])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        tokens, target, lengths = draw(500)
        real = torch.arange(LENGTH)[:, None] < lengths
        return float((model(tokens, lengths).argmax(-1) == target)[real].float().mean())
