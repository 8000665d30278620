"""Each model against oracles that share no code with it."""

import pytest
import torch

import rtx
from rtx.models import RNN, LanguageModel, RTransformer, Transformer
from rtx.nn import naive, sinusoidal_positions


def naive_block(block: torch.nn.Sequential, x: torch.Tensor, norm: str, window: int, heads: int) -> torch.Tensor:
    """Eq. 8 from the naive bricks alone."""
    local, attention, forward = block

    def sublayers():
        p = local.sublayer.state_dict().values()
        yield local, lambda u: naive.local_rnn(u, *p, window=window, cell="gru")
        q = attention.sublayer.state_dict().values()
        yield attention, lambda u: naive.multi_head_attention(u, *q, heads=heads)
        f = forward.sublayer
        weights = f.expand.weight, f.expand.bias, f.contract.weight, f.contract.bias
        yield forward, lambda u: per_position(lambda row: naive.feed_forward(row, *weights), u)

    for residual, function in sublayers():
        norm_of = lambda row, n=residual.norm: naive.layer_norm(row, n.weight, n.bias)  # noqa: E731
        if norm == "post":
            x = per_position(norm_of, x + function(x))
        else:
            x = x + function(per_position(norm_of, x))
    return x


def per_position(function, x):
    return torch.stack([function(row) for row in x.flatten(0, 1)]).view(x.shape)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_r_transformer_is_equation_8(norm):
    torch.manual_seed(0)
    model = RTransformer(6, 2, 3, 4, norm=norm).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x = expected = torch.randn(2, 7, 6, dtype=torch.float64)
    for block in model.blocks:
        expected = naive_block(block, expected, norm, window=4, heads=3)
    torch.testing.assert_close(model(x), expected, rtol=0, atol=1e-10)


def test_the_two_orders_of_the_norm_are_different_functions():
    x = torch.randn(1, 5, 8)
    torch.manual_seed(0)
    post = RTransformer(8, 1, 2, 3, norm="post")
    pre = RTransformer(8, 1, 2, 3, norm="pre")
    pre.load_state_dict(post.state_dict())
    assert (post(x) - pre(x)).abs().max() > 0.1


def test_local_layers_stack_below_the_attention():
    block = RTransformer(8, 1, 2, 3, local_layers=2).blocks[0]
    assert [type(r.sublayer).__name__ for r in block] == [
        "LocalRNN",
        "LocalRNN",
        "MultiHeadAttention",
        "FeedForward",
    ]


@pytest.mark.parametrize(
    ("ablation", "left"),
    [({"heads": 0}, ["LocalRNN", "FeedForward"]), ({"local_layers": 0}, ["MultiHeadAttention", "FeedForward"])],
)
def test_an_ablation_leaves_a_sublayer_out_of_every_block(ablation, left):
    sizes = {"heads": 2, "window": 3, "local_layers": 1} | ablation
    for block in RTransformer(8, 2, **sizes).blocks:
        assert [type(residual.sublayer).__name__ for residual in block] == left


def test_without_local_rnns_it_is_a_transformer_without_positions():
    torch.manual_seed(0)
    ours, theirs = RTransformer(8, 2, 2, 3, local_layers=0), Transformer(8, 2, 2, position="none")
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 9, 8)
    torch.testing.assert_close(ours(x), theirs(x))


@pytest.mark.parametrize("name", ["heads", "local_layers"])
@pytest.mark.parametrize("value", [-1, 1.0, True])
def test_a_count_is_a_whole_number(name, value):
    sizes = {"heads": 2, "window": 3, "local_layers": 1} | {name: value}
    with pytest.raises(ValueError, match=f"{name}: expected a whole number of at least 0, got {value}"):
        RTransformer(8, 2, **sizes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 0, "position": "sinusoidal"}, "position: 'sinusoidal' needs attention, .* got heads = 0"),
        ({"heads": 0, "position": "sines"}, "position: 'sines' is unknown, allowed are none, sinusoidal"),
        ({"local_layers": 0, "window": -3}, "window: expected a whole number of at least 1, got -3"),
        ({"local_layers": 0, "cell": "gruu"}, "cell: 'gruu' is unknown, .* did you mean 'gru'"),
    ],
)
def test_an_ablation_is_refused_what_it_would_not_even_use(change, message):
    with pytest.raises(ValueError, match=message):
        RTransformer(8, 2, **{"heads": 2, "window": 3} | change)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_transformer_equals_torchs_encoder_under_a_causal_mask(norm):
    torch.manual_seed(0)
    ours = Transformer(8, 2, 2, norm=norm).double().eval()
    x = torch.randn(2, 9, 8, dtype=torch.float64)
    expected = x + sinusoidal_positions(9, 8, x)
    for block in ours.blocks:
        expected = torch_layer(block, norm)(expected, torch.ones(9, 9).triu(1).bool())
    torch.testing.assert_close(ours(x), expected, rtol=0, atol=1e-10)


def torch_layer(block: torch.nn.Sequential, norm: str) -> torch.nn.Module:
    """torch's layer with our weights; its projections have biases, ours (Eq. 4, 6) have none: zero."""
    attention, forward = block
    layer = torch.nn.TransformerEncoderLayer(8, 2, 32, 0.0, batch_first=True, norm_first=norm == "pre").double()
    a, f = attention.sublayer, forward.sublayer
    zero = torch.zeros(8).double()
    layer.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([a.query.weight, a.key.weight, a.value.weight]),
            "self_attn.in_proj_bias": zero.repeat(3),
            "self_attn.out_proj.weight": a.output.weight,
            "self_attn.out_proj.bias": zero,
            "linear1.weight": f.expand.weight,
            "linear1.bias": f.expand.bias,
            "linear2.weight": f.contract.weight,
            "linear2.bias": f.contract.bias,
            "norm1.weight": attention.norm.weight,
            "norm1.bias": attention.norm.bias,
            "norm2.weight": forward.norm.weight,
            "norm2.bias": forward.norm.bias,
        }
    )
    return layer.eval()


def test_without_positions_one_layer_cannot_tell_the_order_of_the_past():
    torch.manual_seed(0)
    x = torch.randn(1, 8, 8)
    shuffled = torch.cat([x[:, :-1].flip(1), x[:, -1:]], 1)
    blind, sighted = Transformer(8, 1, 2, position="none"), Transformer(8, 1, 2)
    torch.testing.assert_close(blind(x)[:, -1], blind(shuffled)[:, -1])
    assert (sighted(x)[:, -1] - sighted(shuffled)[:, -1]).abs().max() > 1e-3


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_rnn_equals_one_window_as_long_as_the_sequence(cell):
    torch.manual_seed(0)
    model = RNN(5, cell=cell).double()
    x = torch.randn(2, 6, 5, dtype=torch.float64)
    h = c = torch.zeros(5, dtype=torch.float64)
    weights = list(model.network.state_dict().values())
    rows = []
    for sequence in x:
        h = c = torch.zeros(5, dtype=torch.float64)
        for x_t in sequence:
            if cell == "lstm":
                h, c = naive.lstm(x_t, (h, c), *weights)
            else:
                h = getattr(naive, cell)(x_t, h, *weights)
            rows.append(h)
    torch.testing.assert_close(model(x), torch.stack(rows).view(2, 6, 5), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("task", "sizes", "published"),
    [
        ("mnist", {"d_model": 32, "layers": 8, "heads": 2, "window": 7, "local_layers": 2}, 204_000),
        ("nottingham", {"d_model": 160, "layers": 3, "heads": 4, "window": 6}, 1_420_000),
    ],
)
def test_parameters_are_those_of_the_published_code_that_live(task, sizes, published):
    """The published code's projections have biases, Eq. 4 and 6 have none: 4 D a block fewer here."""
    ours = sum(p.numel() for p in rtx.build(task, "r-transformer", **sizes).parameters())
    biases = sizes["layers"] * 4 * sizes["d_model"]
    assert abs(ours + biases - published) < 0.005 * published


CHARACTERS = {"d_model": 512, "layers": 3, "heads": 8, "window": 7}
WORDS = {"d_model": 128, "layers": 3, "heads": 4, "window": 9, "cell": "lstm"}


@pytest.mark.parametrize(
    ("backbone", "sizes", "vocabulary", "published"),
    [
        (RTransformer, CHARACTERS, 49, 14_200_000),
        (RTransformer, WORDS, 10_000, 2_300_000),
        (RNN, {"d_model": 700, "layers": 3, "cell": "lstm"}, 10_000, 18_800_000),
    ],
)
def test_parameters_of_language_models_are_those_of_the_published_codes(backbone, sizes, vocabulary, published):
    with torch.device("meta"):
        ours = sum(p.numel() for p in LanguageModel(backbone(**sizes), vocabulary).parameters())
    assert abs(ours - published) < 0.01 * published
