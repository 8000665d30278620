"""Every model written again as loops from its equations: the expected output for any sizes and any sequence.

Most functions use `rtx.nn.reference`. They read the sizes and weights from the model, and share no other code with it.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from rtx.models import (
    AWDLSTM,
    HMRNN,
    HORNN,
    MCRNN,
    RNN,
    TCN,
    CharacterTransformer,
    EncoderDecoder,
    FeedForwardAttention,
    Griffin,
    RTransformer,
    Seq2Seq,
    Transformer,
    TransformerXL,
)
from rtx.models.griffin import RecurrentBlock
from rtx.nn import FeedForward, LocalRNN, RelativeAttention, Residual, reference
from rtx.nn.convolution import CausalConv, LocalConv
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.nn.relative import LinearBiasAttention, RotaryAttention
from rtx.nn.segment_memory import SegmentMemory

SWITCHES = ("start", "phase")


def each_position(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return torch.stack([function(row) for row in x.flatten(0, 1)]).view(*x.shape[:2], -1)


def linear(p: dict[str, Tensor], name: str, v: Tensor) -> Tensor:
    return p[f"{name}.weight"] @ v + p[f"{name}.bias"]


def sublayer(layer: nn.Module, x: Tensor) -> Tensor:
    """A sublayer of a Transformer's block."""
    if isinstance(layer, LocalRNN):
        return reference.local_rnn(x, *layer.parameters(), layer.window, layer.cell)
    if isinstance(layer, FeedForward):
        return each_position(lambda u: reference.feed_forward(u, *layer.parameters()), x)
    if isinstance(layer, LocalConv):
        return torch.stack([convolution(layer, sequence) for sequence in x]).tanh()
    if isinstance(layer, RotaryAttention | LinearBiasAttention):
        return torch.stack([by_distance(layer, sequence) for sequence in x])
    inner = layer.attention if isinstance(layer, SegmentMemory) else layer
    maps = [f.weight for f in (inner.query, inner.key, inner.value, inner.output)]
    if isinstance(layer, SegmentMemory):
        weights = inner.content_bias, inner.position_bias, *maps, inner.distance.weight
        return reference.transformer_xl_attention(x, *weights, layer.segment, layer.memory)
    if isinstance(layer, RelativeAttention):
        return reference.shaw_attention(x, layer.key_table, layer.value_table, *maps, len(layer.key_table) - 1)
    return reference.multi_head_attention(x, *maps, layer.heads)


def attention(
    layer: nn.Module, x: Tensor, source: Tensor, score: Callable[..., Tensor], window: int | None = None
) -> tuple[Tensor, list[Tensor]]:
    """One query of x (T, D), one head and one visible position of the source (S, D) at a time.

    A query sees the last `window` positions up to its own, or the whole source if there is no window. Also return the
    weights for each query and head. All heads may share one head of keys and values.
    """
    K, rows, weights = layer.d_model // layer.heads, [], []
    for t, x_t in enumerate(x):
        seen, found = range(len(source)) if window is None else range(max(0, t - window + 1), t + 1), []
        for head in range(layer.heads):
            part = slice(head * K, (head + 1) * K)
            shared = part if len(layer.key.weight) == layer.d_model else slice(K)
            q, keys = layer.query.weight[part] @ x_t, [layer.key.weight[shared] @ source[s] for s in seen]
            powers = torch.stack([score(q, k, t, s, head) for s, k in zip(seen, keys, strict=True)]).exp()
            weights.append(powers / powers.sum())
            found.append(weights[-1] @ torch.stack([layer.value.weight[shared] @ source[s] for s in seen]))
        rows.append(layer.output.weight @ torch.cat(found))
    return torch.stack(rows), weights


def by_content(q: Tensor, k: Tensor, *_: int) -> Tensor:
    return q @ k / math.sqrt(len(q))


def by_distance(layer: nn.Module, x: Tensor) -> Tensor:
    """ALiBi or rotary attention for one sequence."""

    def score(q: Tensor, k: Tensor, t: int, s: int, head: int) -> Tensor:
        if isinstance(layer, LinearBiasAttention):
            return by_content(q, k) - (t - s) * 2 ** (-8 * (head + 1) / layer.heads)
        return by_content(rotated(q, t), rotated(k, s))

    return attention(layer, x, x, score, getattr(layer, "window", len(x)))[0]


def residual(around: Residual, x: Tensor, function: Callable[[Tensor], Tensor] | None = None) -> Tensor:
    """A sublayer with its residual connection and LayerNorm. `function` replaces the sublayer's own."""
    run = function or partial(sublayer, around.sublayer)

    def norm(u: Tensor) -> Tensor:
        return each_position(lambda row: reference.layer_norm(row, around.norm.weight, around.norm.bias), u)

    return norm(x + run(x)) if around.order == "post" else x + run(norm(x))


def blocks(model: RTransformer | Transformer | TransformerXL, x: Tensor) -> Tensor:
    for block in model.blocks:
        for around in block:
            x = residual(around, x)
    return x


def r_transformer(model: RTransformer, x: Tensor) -> Tensor:
    return blocks(model, x + reference.sinusoidal_positions(*x.shape[1:]) if model.position == "sinusoidal" else x)


def transformer(model: Transformer, x: Tensor) -> Tensor:
    if model.position == "sinusoidal":
        x = x + reference.sinusoidal_positions(*x.shape[1:])
    return blocks(model, x if model.table is None else x + model.table[: x.shape[1]])


def character_transformer(model: CharacterTransformer, x: Tensor) -> Tensor:
    """Each segment by itself. Its positions are added below every block."""
    done = []
    for part in x.split(model.segment, 1):
        for positions, block in zip(model.positions, model.blocks, strict=True):
            part = part + positions[: part.shape[1]]
            for around in block:
                part = residual(around, part)
        done.append(part)
    return torch.cat(done, 1)


def run_network(network: nn.RNNBase, x: Tensor) -> Tensor:
    """torch's recurrent network: one layer, one sequence and one step at a time."""
    name = network.mode.split("_")[0].lower()  # torch's name of a plain RNN is RNN_TANH
    for level in range(network.num_layers):
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        w, u, b_w, b_u = (getattr(network, f"{kind}_l{level}") for kind in kinds)
        rows = []
        for sequence in x:
            h = c = x.new_zeros(network.hidden_size)
            for x_t in sequence:
                h, c = reference.cell(name, w @ x_t + b_w, u @ h + b_u, h, c)
                rows.append(h)
        x = torch.stack(rows).view(*x.shape[:2], -1)
    return x


def rnn(model: RNN, x: Tensor) -> Tensor:
    return run_network(model.network, x)


def awd_lstm(model: AWDLSTM, x: Tensor) -> Tensor:
    for network in model.networks:
        x = run_network(network, x)
    return x


def mc_rnn(model: MCRNN, x: Tensor) -> Tensor:
    for layer in model.layers:
        x = mc_rnn_layer(layer, x)[0]
    return x


def mc_rnn_layer(layer: MultiChannelRNN, x: Tensor) -> tuple[Tensor, Tensor]:
    """The output of one layer, and the weights of its channels."""
    options = {name: getattr(layer, name) for name in SWITCHES}
    return reference.multi_channel(x, dict(layer.named_parameters()), layer.predecessors + 1, layer.cell, **options)


def ho_rnn(model: HORNN, x: Tensor) -> Tensor:
    for layer in model.layers:
        x = higher_order(x, dict(layer.named_parameters()), layer.order, layer.cell)
    return x


def hm_rnn(model: HMRNN, x: Tensor) -> Tensor:
    return hm_rnn_with_operations(model, x)[0]


def hm_rnn_with_operations(model: HMRNN, x: Tensor) -> tuple[Tensor, list[list[list[str]]]]:
    levels = [dict(level.named_parameters()) for level in model.levels]
    return hierarchical(x, levels, model.output_gates.weight, model.output.weight, model.slope)


def convolution(layer: CausalConv, sequence: Tensor) -> Tensor:
    """A causal convolution of one sequence (T, D), one tap at a time; its weight is gain × direction / norm."""
    norms = layer.direction.square().sum((1, 2)).sqrt()
    scale = torch.ones_like(norms) if layer.gain is None else layer.gain.flatten() / norms
    rows = []
    for t in range(len(sequence)):
        total = layer.bias
        for tap in range(layer.kernel):
            s = t - (layer.kernel - 1 - tap) * layer.dilation
            if s >= 0:  # each group of outputs reads its own inputs
                weight = torch.block_diag(*layer.direction[:, :, tap].chunk(layer.groups))
                total = total + scale * (weight @ sequence[s])
        rows.append(total)
    return torch.stack(rows)


def tcn(model: TCN, x: Tensor) -> Tensor:
    done = []
    for sequence in x:
        for block in model.blocks:
            y = convolution(block.second, convolution(block.first, sequence).clamp(min=0)).clamp(min=0)
            sequence = (y + sequence).clamp(min=0)
        done.append(sequence)
    return torch.stack(done)


def gelu(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def rms_norm(x: Tensor, gain: Tensor) -> Tensor:
    return gain * x / torch.sqrt((x**2).sum(-1, keepdim=True) / x.shape[-1] + 1e-6)


def rotated(v: Tensor, t: int) -> Tensor:
    """One vector at position t: each pair of numbers is rotated by its angle."""
    done = []
    for i in range(0, len(v), 2):
        angle = t * 10_000 ** (-i / len(v))
        cos, sin = math.cos(angle), math.sin(angle)
        done += [v[i] * cos - v[i + 1] * sin, v[i] * sin + v[i + 1] * cos]
    return torch.stack(done)


def recurrent_block(block: RecurrentBlock, sequence: Tensor) -> Tensor:
    """Griffin's recurrent block on one sequence (T, D), one step at a time."""
    p = dict(block.named_parameters())
    convolved = convolution(block.convolution, torch.stack([linear(p, "input", x_t) for x_t in sequence]))
    gates = [p[f"recurrence.{gate}_gate.{kind}"] for gate in ("recurrence", "input") for kind in ("weight", "bias")]
    states = reference.rg_lru(convolved, p["recurrence.decay"], *gates)
    rows = zip(sequence, states, strict=True)
    return torch.stack([linear(p, "output", gelu(linear(p, "gate", x_t)) * h) for x_t, h in rows])


def griffin(model: Griffin, x: Tensor) -> Tensor:
    done = []
    for h in x:
        for block in model.blocks:
            mix = recurrent_block if isinstance(block.mixing, RecurrentBlock) else by_distance
            h = h + mix(block.mixing, rms_norm(h, block.mixing_norm.weight))
            network = dict(block.forward_network.named_parameters())
            hidden = [
                gelu(linear(network, "gate", u)) * linear(network, "expand", u)
                for u in rms_norm(h, block.forward_norm.weight)
            ]
            h = h + torch.stack([linear(network, "contract", v) for v in hidden])
        done.append(rms_norm(h, model.norm.weight))
    return torch.stack(done)


def feed_forward_attention(model: FeedForwardAttention, x: Tensor, lengths: list[int]) -> Tensor:
    """Each sequence without its padding."""
    weights = dict(model.named_parameters())
    rows = zip(x, lengths, strict=True)
    return torch.stack(
        [reference.feed_forward_attention(row[:n], weights, model.pooling, model.leak) for row, n in rows]
    )


REFERENCES: dict[str, Callable[..., Tensor]] = {
    "r-transformer": r_transformer,
    "transformer": transformer,
    "transformer-xl": blocks,
    "character-transformer": character_transformer,
    "tcn": tcn,
    "rnn": rnn,
    "gru": rnn,
    "lstm": rnn,
    "awd-lstm": awd_lstm,
    "mc-rnn": mc_rnn,
    "ho-rnn": ho_rnn,
    "hm-rnn": hm_rnn,
    "griffin": griffin,
    "feed-forward-attention": feed_forward_attention,
}


def encoder_decoder(model: EncoderDecoder, source: list[int], target: list[int]) -> tuple[Tensor, Tensor]:
    """For one sentence without padding: the logits (T, V), and the weights (T, S) of the last block's mean head."""
    weights: list[Tensor] = []

    def embedded(table: nn.Embedding, tokens: list[int]) -> Tensor:
        x = torch.stack([table.weight[token] for token in tokens])[None] * math.sqrt(model.d_model)
        return x if model.window else x + reference.sinusoidal_positions(len(tokens), model.d_model)

    def normed(last: nn.Module, x: Tensor) -> Tensor:
        weights = [*last.parameters()]
        return each_position(lambda row: reference.layer_norm(row, *weights), x) if weights else x

    def look(layer: nn.Module, u: Tensor, at: Tensor) -> Tensor:
        found, weights[:] = attention(layer, u[0], at[0], by_content)
        return found[None]

    x, y = embedded(model.source_embedding, source), embedded(model.target_embedding, target)
    for block in model.encoder:
        x = residual(block.local, x) if block.local else x
        x = residual(block.attention, x, lambda u, layer=block.attention.sublayer: look(layer, u, u))
        x = residual(block.feed_forward, x)
    x = normed(model.encoder_norm, x)
    for block in model.decoder:
        y = residual(block.local, y) if block.local else y
        y = residual(block.attention, y)
        y = residual(block.cross, y, lambda u, layer=block.cross.sublayer: look(layer, u, x))
        y = residual(block.feed_forward, y)
    looks = torch.stack(weights).view(len(target), -1, len(source)).mean(1)
    return normed(model.decoder_norm, y)[0] @ model.output.weight.T + model.output.bias, looks


def rnnsearch(model: Seq2Seq, source: list[int], target: list[int]) -> tuple[Tensor, Tensor]:
    """RNNSearch with one-layer GRUs on one sentence, without padding: logits (T, V) and weights (T, S)."""
    p = dict(model.named_parameters())

    def step(name: str, x: Tensor, h: Tensor) -> Tensor:
        w, u, b_w, b_u = (weight for key, weight in p.items() if key.startswith(f"{name}.network."))
        return reference.cell("gru", w @ x + b_w, u @ h + b_u, h, h)[0]

    def run(name: str, xs: list[Tensor]) -> list[Tensor]:
        states = [torch.zeros_like(xs[0])]
        for x in xs:
            states.append(step(name, x, states[-1]))
        return states[1:]

    embedded = [p["source_embedding.weight"][token] for token in source]
    annotations = run("encoder", embedded)
    read = annotations[-1]
    if model.backward_encoder is not None:
        backwards = run("backward_encoder", embedded[::-1])[::-1]
        read = backwards[0]
        annotations = [linear(p, "join", torch.cat(pair)) for pair in zip(annotations, backwards, strict=True)]
    query, s = torch.tanh(linear(p, "first_query", read)), torch.zeros_like(read)
    logits, weights = [], []
    for token in target:
        y = p["target_embedding.weight"][token]
        mapped = [p["attention.query.weight"] @ query + linear(p, "attention.key", h) for h in annotations]
        powers = torch.stack([p["attention.energy.weight"][0] @ torch.tanh(m) for m in mapped]).exp()
        weights.append(powers / powers.sum())
        c = (weights[-1][:, None] * torch.stack(annotations)).sum(0)
        query = s = step("decoder", linear(p, "decoder_input", torch.cat([y, c])), s)
        logits.append(linear(p, "output", torch.tanh(linear(p, "hidden", torch.cat([s, c, y])))))
    return torch.stack(logits), torch.stack(weights)


# HO-RNN: Soltani & Jiang (2016)


def higher_order(x: Tensor, p: dict[str, Tensor], order: int, name: str) -> Tensor:
    """One HO-RNN layer, one step and one earlier state at a time."""
    B, T, D = x.shape
    w = p["weight_hh_l0"]
    rows = []
    for sequence in x:
        h, c = [x.new_zeros(D)] * order, x.new_zeros(D)  # h_{t-1} is the last
        for x_t in sequence:
            products = [w[:, (n - 1) * D : n * D] @ h[-n] for n in range(1, order + 1)]
            from_input, from_past = p["weight_ih_l0"] @ x_t + p["bias_ih_l0"], sum(products) + p["bias_hh_l0"]
            h_t, c = reference.cell(name, from_input, from_past, h[-1], c)
            h = [*h, h_t]
            rows.append(h_t)
    return torch.stack(rows).view(B, T, D)


# HM-RNN: Chung, Ahn & Bengio (2017), Eq. 2-9 and 11-12


def level(
    p: dict[str, Tensor],
    below: Tensor,
    z_below: Tensor,
    h: Tensor,
    c: Tensor,
    z: Tensor,
    above: Tensor | None,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor, str]:
    """One layer for one step: h, c and z after it, and its operation. z (1,) is 0 or 1; `above` is its h_{t-1}."""
    D = len(h)
    s = p["recurrent"] @ h + z_below * (p["bottom_up"] @ below) + p["bias"]  # Eq. (5), (7)
    if above is not None:
        s = s + z * (p["top_down"] @ above)  # Eq. (6)
    i, f, g, o = s[:D].sigmoid(), s[D : 2 * D].sigmoid(), s[2 * D : 3 * D].tanh(), s[3 * D : 4 * D].sigmoid()
    # Eq. (2): one of the three cases counts, but a gradient reaches all three through the boundaries
    update, copy, flush = (1 - z) * z_below, (1 - z) * (1 - z_below), z
    c = update * (f * c + i * g) + copy * c + flush * (i * g)
    h = copy * h + (1 - copy) * (o * c.tanh())  # Eq. (3)
    done = "flush" if z == 1 else "update" if z_below == 1 else "copy"
    return h, c, z if above is None else boundary(s[4 * D :], slope), done


def boundary(s: Tensor, slope: float) -> Tensor:
    """A step, Eq. (9), with the gradient of the hard sigmoid: a/2 where it is not flat, and 0 where it is."""
    soft = ((slope * s + 1) / 2).clamp(0, 1)
    return (soft.detach() > 0.5).to(s) + (soft - soft.detach())


def hierarchical(
    x: Tensor, levels: list[dict[str, Tensor]], w_gates: Tensor, w_output: Tensor, slope: float = 1.0
) -> tuple[Tensor, list[list[list[str]]]]:
    """HM-RNN: its output, and each layer's operation by sequence and step."""
    (B, T, D), L = x.shape, len(levels)
    rows: list[Tensor] = []
    names: list[list[list[str]]] = []
    for sequence in x:
        h, c, z = ([x.new_zeros(size)] * L for size in (D, D, 1))
        names.append([])
        for x_t in sequence:
            below, z_below, above = x_t, x.new_ones(1), [*h[1:], None]
            done = [""] * L
            for i in range(L):
                h[i], c[i], z[i], done[i] = level(levels[i], below, z_below, h[i], c[i], z[i], above[i], slope)
                below, z_below = h[i], z[i]
            gates = [torch.sigmoid(w @ torch.cat(h)) for w in w_gates]  # Eq. (11)
            parts = [gates[i] * (w_output[:, i * D : (i + 1) * D] @ h[i]) for i in range(L)]
            rows.append(torch.clamp(torch.stack(parts).sum(0), min=0))  # Eq. (12)
            names[-1].append(done)
    return torch.stack(rows).view(B, T, D), names
