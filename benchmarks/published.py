"""The models as published code computes them, rebuilt: the other side of every ratio.

The R-Transformer after the authors' code: every window gathered into a batch of B · T short sequences for torch's own
recurrent network, the (T, T) attention weights masked, normalised and dropped as tensors, every position of a text
decoded. Left out are modules that are never called, and a LayerNorm written in Python, with another epsilon.
Feed-forward attention in plain operations on the states of all steps.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.tasks.task import IGNORED, Batch

NETWORKS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
MASKED = -1e9  # the score of a key that a query may not see, as published


class PublishedLocalRNN(nn.Module):
    """A copy of each position's window, all of them through torch's network, the last hidden state of each."""

    def __init__(self, d_model: int, window: int, cell: str) -> None:
        super().__init__()
        self.window = window
        self.rnn = NETWORKS[cell](d_model, d_model, batch_first=True)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """The state after each position's window."""
        B, T, D = x.shape
        padded = torch.cat([x.new_zeros(B, self.window - 1, D), x], 1)
        index = torch.arange(T, device=x.device)[:, None] + torch.arange(self.window, device=x.device)
        windows = padded.index_select(1, index.flatten()).view(B * T, self.window, D)
        return self.rnn(windows)[0][:, -1].view(B, T, D)


class PublishedAttention(nn.Module):
    """Attention with its (B, H, T, T) weights as a tensor; the four projections have biases."""

    def __init__(self, d_model: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """What each position gathers from itself and those before it."""
        T = x.shape[1]
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        mask = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~mask, MASKED)
        return self.output((self.dropout(scores.softmax(-1)) @ v).transpose(1, 2).flatten(2))


class PublishedFeedForward(nn.Module):
    """Two linear layers, ReLU and dropout between them."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.expand, self.contract = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, u: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Each position by itself."""
        return self.contract(self.dropout(F.relu(self.expand(u))))


class PublishedSublayer(nn.Module):
    """A sublayer, the way around it, and the norm: before it ("pre", the code) or after the sum ("post", Eq. 8)."""

    def __init__(self, sublayer: nn.Module, d_model: int, norm: str, dropout: float) -> None:
        super().__init__()
        self.sublayer, self.norm, self.order = sublayer, nn.LayerNorm(d_model), norm
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """The sum."""
        if self.order == "pre":
            return x + self.dropout(self.sublayer(self.norm(x)))
        return self.norm(x + self.dropout(self.sublayer(x)))


class PublishedRTransformer(nn.Module):
    """The stack of blocks, with the arguments of `rtx.RTransformer`."""

    def __init__(
        self,
        d_model: int,
        layers: int,
        heads: int,
        window: int,
        cell: str = "gru",
        local_layers: int = 1,
        dropout: float = 0.0,
        norm: str = "pre",
    ) -> None:
        super().__init__()

        def block() -> nn.Sequential:
            sublayers = [
                *(PublishedLocalRNN(d_model, window, cell) for _ in range(local_layers)),
                PublishedAttention(d_model, heads, dropout),
                PublishedFeedForward(d_model, dropout),
            ]
            return nn.Sequential(*(PublishedSublayer(s, d_model, norm, dropout) for s in sublayers))

        self.d_model = d_model
        self.blocks = nn.Sequential(*(block() for _ in range(layers)))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape."""
        return self.blocks(x)


class PublishedModel(nn.Module):
    """Embedding, backbone, decoder.

    Args:
        backbone: (B, T, D) to (B, T, D).
        inputs: F, numbers per step, or for "token" the vocabulary.
        outputs: K, numbers per prediction.
        per: "sequence" decodes the last position, "step" and "token" decode all; tokens with the embedding's table.
        input_dropout: share of the embedded units set to zero.
    """

    def __init__(
        self, backbone: PublishedRTransformer, inputs: int, outputs: int, per: str, input_dropout: float = 0.0
    ) -> None:
        super().__init__()
        D, self.per, self.backbone = backbone.d_model, per, backbone
        self.embedding = nn.Embedding(inputs, D) if per == "token" else nn.Linear(inputs, D)
        self.dropout = nn.Dropout(input_dropout)
        self.decoder = nn.Linear(D, outputs)
        if per == "token":
            self.decoder.weight = self.embedding.weight

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, K), or (B, K) for "sequence"."""
        hidden = self.backbone(self.dropout(self.embedding(x)))
        return self.decoder(hidden[:, -1] if self.per == "sequence" else hidden)

    def loss(self, batch: Batch) -> Tensor:
        """Summed over what is scored, of sequences of one length: the last positions of each."""
        predictions, targets = self(batch.inputs), batch.targets
        if self.per == "step":
            return F.binary_cross_entropy_with_logits(predictions, targets, reduction="sum")
        if self.per == "token":
            scored = int((targets[0] != IGNORED).sum())
            predictions, targets = predictions[:, -scored:].flatten(0, 1), targets[:, -scored:].flatten()
        return F.cross_entropy(predictions, targets, reduction="sum")


class PlainFeedForwardAttention(nn.Module):
    """Raffel & Ellis (2015) with the states of all steps as one tensor, `max(x, .01 x)` as the rectifier."""

    def __init__(self, inputs: int = 2, outputs: int = 1, d_hidden: int = 100) -> None:
        super().__init__()
        self.hidden, self.score = nn.Linear(inputs, d_hidden), nn.Linear(d_hidden, 1)
        self.context, self.output = nn.Linear(d_hidden, d_hidden), nn.Linear(d_hidden, outputs)

    def forward(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B K"]:
        """One prediction for each sequence."""
        h = F.leaky_relu(self.hidden(x))
        scores = torch.tanh(self.score(h)).squeeze(-1)
        if lengths is not None:
            past = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
            scores = scores.masked_fill(past, -math.inf)
        c = (scores.softmax(-1)[..., None] * h).sum(1)
        return F.leaky_relu(self.output(F.leaky_relu(self.context(c))))


def take_weights(published: nn.Module, ours: nn.Module) -> None:
    """Give a published model the weights of the rtx model that is the same function; biases ours lacks become zero.

    Raises:
        ValueError: if they are not the same function.
    """
    weights = {}
    for name, weight in ours.state_dict().items():
        for old, new in (("sublayer.weight_", "sublayer.rnn.weight_"), ("sublayer.bias_", "sublayer.rnn.bias_")):
            name = name.replace(old, new)
        weights[name.replace("head.", "decoder.")] = weight
    missing, unknown = published.load_state_dict(weights, strict=False)
    biases = [f".{part}.bias" for part in ("query", "key", "value", "output")]
    if unknown or not all(name.endswith(tuple(biases)) for name in missing):
        raise ValueError(f"ours: expected the same function, got {unknown} too many and {missing} missing")
    with torch.no_grad():
        for name in missing:
            published.get_parameter(name).zero_()
