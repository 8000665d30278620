"""Every model once more, from its equations as loops: what is right, for any sizes and any sequence."""

import math
from collections.abc import Callable, Iterator

import torch
from test_griffin import gelu, linear, naive_recurrent_block, rms_norm
from torch import Tensor, nn

from rtx.models import AWDLSTM, HMRNN, HORNN, MCRNN, RNN, TCN, CharacterTransformer, Griffin, Transformer
from rtx.nn import FeedForward, LocalRNN, RelativeAttention, Residual, naive, naive_recurrent
from rtx.nn.local_attention import LocalAttention
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.nn.naive_attention import shaw_attention, transformer_xl_attention, weighted
from rtx.nn.naive_pooling import feed_forward_attention
from rtx.nn.segment_memory import SegmentMemory

SWITCHES = ("start", "phase", "cell_state", "mapping")


def each_position(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return torch.stack([function(row) for row in x.flatten(0, 1)]).view(*x.shape[:2], -1)


def sublayer(layer: nn.Module, x: Tensor) -> Tensor:
    """A sublayer of a block, by its naive twin."""
    if isinstance(layer, LocalRNN):
        return naive.local_rnn(x, *layer.parameters(), window=layer.window, cell=layer.cell)
    if isinstance(layer, FeedForward):
        return each_position(lambda u: naive.feed_forward(u, *layer.parameters()), x)
    attention = layer.attention if isinstance(layer, SegmentMemory) else layer
    maps = [f.weight for f in (attention.query, attention.key, attention.value, attention.output)]
    if isinstance(layer, SegmentMemory):
        biases = attention.content_bias, attention.position_bias
        return transformer_xl_attention(x, *biases, *maps, attention.distance.weight, layer.segment, layer.memory)
    if isinstance(layer, RelativeAttention):
        return shaw_attention(x, layer.key_table, layer.value_table, *maps, clip=layer.back)
    return naive.multi_head_attention(x, *maps, heads=layer.heads)


def residual(around: Residual, x: Tensor) -> Tensor:
    def norm(u: Tensor) -> Tensor:
        return each_position(lambda row: naive.layer_norm(row, around.norm.weight, around.norm.bias), u)

    return norm(x + sublayer(around.sublayer, x)) if around.order == "post" else x + sublayer(around.sublayer, norm(x))


def blocks(model: nn.Module, x: Tensor) -> Tensor:
    for block in model.blocks:
        for around in block:
            x = residual(around, x)
    return x


def transformer(model: Transformer, x: Tensor) -> Tensor:
    if model.position == "sinusoidal":
        x = x + naive.sinusoidal_positions(*x.shape[1:])
    return blocks(model, x if model.table is None else x + model.table[: x.shape[1]])


def characters(model: CharacterTransformer, x: Tensor) -> Tensor:
    """Each segment by itself, its positions added before every block."""
    done = []
    for part in x.split(model.segment, 1):
        for positions, block in zip(model.positions, model.blocks, strict=True):
            part = part + positions[: part.shape[1]]
            for around in block:
                part = residual(around, part)
        done.append(part)
    return torch.cat(done, 1)


def recurrent(network: nn.RNNBase, x: Tensor) -> Tensor:
    """torch's network, one sequence, layer and step at a time."""
    for level in range(network.num_layers):
        weights = [getattr(network, f"{kind}_l{level}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        rows = []
        for sequence in x:
            h = c = x.new_zeros(network.hidden_size)
            for x_t in sequence:
                if isinstance(network, nn.LSTM):
                    h, c = naive.lstm(x_t, (h, c), *weights)
                else:
                    h = (naive.gru if isinstance(network, nn.GRU) else naive.rnn)(x_t, h, *weights)
                rows.append(h)
        x = torch.stack(rows).view(*x.shape[:2], -1)
    return x


def rnn(model: RNN, x: Tensor) -> Tensor:
    return recurrent(model.network, x)


def awd_lstm(model: AWDLSTM, x: Tensor) -> Tensor:
    for network in model.networks:
        x = recurrent(network, x)
    return x


def mc_rnn(model: MCRNN, x: Tensor) -> Tensor:
    for layer in model.layers:
        assert isinstance(layer, MultiChannelRNN)
        options = {name: getattr(layer, name) for name in SWITCHES}
        weights = dict(layer.named_parameters())
        x, _ = naive_recurrent.multi_channel(x, weights, layer.predecessors + 1, layer.cell, **options)
    return x


def ho_rnn(model: HORNN, x: Tensor) -> Tensor:
    for layer in model.layers:
        options = layer.order, layer.pooling, layer.cell, layer.forgetting
        x = naive_recurrent.higher_order(x, dict(layer.named_parameters()), *options)
    return x


def hm_rnn(model: HMRNN, x: Tensor) -> Tensor:
    levels = [dict(level.named_parameters()) for level in model.levels]
    return naive_recurrent.hierarchical(x, levels, model.output_gates.weight, model.output.weight, model.slope)[0]


def convolved(layer: nn.Module, sequence: Tensor) -> Tensor:
    """A causal convolution of one sequence (T, D), tap by tap; its weight is gain × direction / norm."""
    rows = []
    for t in range(len(sequence)):
        total = layer.bias
        for tap in range(layer.kernel):
            s = t - (layer.kernel - 1 - tap) * layer.dilation
            if s >= 0:
                norms = torch.stack([w.square().sum().sqrt() for w in layer.direction])
                weight = layer.gain.flatten()[:, None] * layer.direction[:, :, tap] / norms[:, None]
                total = total + weight @ sequence[s]
        rows.append(total)
    return torch.stack(rows)


def tcn(model: TCN, x: Tensor) -> Tensor:
    done = []
    for sequence in x:
        for block in model.blocks:
            y = convolved(block.second, convolved(block.first, sequence).clamp(min=0)).clamp(min=0)
            sequence = (y + sequence).clamp(min=0)
        done.append(sequence)
    return torch.stack(done)


def turned(v: Tensor, t: int) -> Tensor:
    """One vector at position t: each pair of numbers turned by its angle."""
    turned = []
    for i in range(0, len(v), 2):
        angle = t * 10_000 ** (-i / len(v))
        cos, sin = math.cos(angle), math.sin(angle)
        turned += [v[i] * cos - v[i + 1] * sin, v[i] * sin + v[i + 1] * cos]
    return torch.stack(turned)


def local_attention(layer: LocalAttention, sequence: Tensor) -> Tensor:
    """One sequence (T, D): a query, a head and a key in view at a time."""
    rows, K = [], layer.d_model // layer.heads
    for t, x_t in enumerate(sequence):
        seen, found = range(max(0, t - layer.window + 1), t + 1), []
        for head in range(layer.heads):
            q = turned(layer.query.weight[head * K : (head + 1) * K] @ x_t, t)
            keys = [turned(layer.key.weight @ sequence[s], s) for s in seen]
            found.append(
                weighted([q @ k / math.sqrt(K) for k in keys], [layer.value.weight @ sequence[s] for s in seen])
            )
        rows.append(layer.output.weight @ torch.cat(found))
    return torch.stack(rows)


def griffin(model: Griffin, x: Tensor) -> Tensor:
    done = []
    for h in x:
        for block in model.blocks:
            p, u = dict(block.named_parameters()), rms_norm(h, block.mixing_norm.weight)
            mixing = {k.removeprefix("mixing."): v for k, v in p.items()}
            local = isinstance(block.mixing, LocalAttention)
            h = h + (local_attention(block.mixing, u) if local else naive_recurrent_block(mixing, u))
            network = {k.removeprefix("forward_network."): v for k, v in p.items()}
            h = h + torch.stack(list(_gated(network, rms_norm(h, block.forward_norm.weight))))
        done.append(rms_norm(h, model.norm.weight))
    return torch.stack(done)


def _gated(p: dict[str, Tensor], x: Tensor) -> Iterator[Tensor]:
    for u in x:
        yield linear(p, "contract", gelu(linear(p, "gate", u)) * linear(p, "expand", u))


def pooled(model: nn.Module, x: Tensor, lengths: list[int]) -> Tensor:
    """Feed-forward attention of each sequence without its padding."""
    weights = dict(model.named_parameters())
    rows = zip(x, lengths, strict=True)
    return torch.stack([feed_forward_attention(row[:n], weights, model.pooling, model.leak) for row, n in rows])


TWINS: dict[str, Callable[..., Tensor]] = {
    "r-transformer": blocks,
    "transformer": transformer,
    "transformer-xl": blocks,
    "character-transformer": characters,
    "tcn": tcn,
    "rnn": rnn,
    "gru": rnn,
    "lstm": rnn,
    "awd-lstm": awd_lstm,
    "mc-rnn": mc_rnn,
    "ho-rnn": ho_rnn,
    "hm-rnn": hm_rnn,
    "griffin": griffin,
    "feed-forward-attention": pooled,
}
