"""The encoder-decoder Transformer against torch's, and what a window changes. What it shares is in test_seq2seq.py."""

import math

import pytest
import torch

from rtx.models import EncoderDecoder
from rtx.nn import LocalRNN, MultiHeadAttention, sinusoidal_positions

LENGTHS = torch.tensor([5, 2, 1])
SOURCE = torch.tensor([[2, 3, 8, 0, 4], [5, 6, 0, 0, 0], [7, 0, 0, 0, 0]])
TARGET = torch.tensor([[0, 2, 3, 4], [0, 6, 5, 1], [0, 3, 3, 1]])


def copied(name: str, attention: torch.nn.Module, to: dict) -> None:
    zero = torch.zeros(8).double()
    to[f"{name}.in_proj_weight"] = torch.cat([attention.query.weight, attention.key.weight, attention.value.weight])
    to[f"{name}.out_proj.weight"] = attention.output.weight
    # our projections have no biases
    to[f"{name}.in_proj_bias"], to[f"{name}.out_proj.bias"] = zero.repeat(3), zero


def torchs(model: EncoderDecoder, norm: str) -> torch.nn.Transformer:
    """torch's Transformer with our weights."""
    theirs = torch.nn.Transformer(8, 2, 2, 2, 32, 0.0, norm_first=norm == "pre", batch_first=True).double()
    if norm == "post":
        theirs.encoder.norm = theirs.decoder.norm = None  # torch's own addition to the paper
    weights: dict[str, torch.Tensor] = {}
    for stack in ("encoder", "decoder"):
        for i, block in enumerate(getattr(model, stack)):
            around = [block.attention, *([block.cross] if block.cross else []), block.feed_forward]
            layer = f"{stack}.layers.{i}"
            copied(f"{layer}.self_attn", block.attention.sublayer, weights)
            if block.cross:
                copied(f"{layer}.multihead_attn", block.cross.sublayer, weights)
            for theirs_name, ours in (("linear1", "expand"), ("linear2", "contract")):
                for kind, tensor in getattr(block.feed_forward.sublayer, ours).state_dict().items():
                    weights[f"{layer}.{theirs_name}.{kind}"] = tensor
            for n, residual in enumerate(around, 1):
                for kind, tensor in residual.norm.state_dict().items():
                    weights[f"{layer}.norm{n}.{kind}"] = tensor
        for kind, tensor in getattr(model, f"{stack}_norm").state_dict().items():
            weights[f"{stack}.norm.{kind}"] = tensor
    theirs.load_state_dict(weights)
    return theirs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_without_a_window_it_is_torchs_transformer_with_gradients(norm):
    torch.manual_seed(0)
    model = EncoderDecoder(9, 7, 8, 2, 2, norm=norm).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    oracle = torchs(model, norm)
    embed = lambda table, x: table(x) * math.sqrt(8) + sinusoidal_positions(x.shape[1], 8, table.weight)  # noqa: E731
    padding = torch.arange(5) >= LENGTHS[:, None]
    hidden = oracle(
        embed(model.source_embedding, SOURCE),
        embed(model.target_embedding, TARGET),
        tgt_mask=torch.ones(4, 4).triu(1).bool(),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    logits, expected = model(SOURCE, TARGET, LENGTHS), model.output(hidden)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)
    tables, probe = [model.source_embedding.weight, model.target_embedding.weight], torch.randn_like(logits)
    ours = torch.autograd.grad((logits * probe).sum(), tables)
    theirs = torch.autograd.grad((expected * probe).sum(), tables)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_alignment_is_the_mean_head_of_the_last_block():
    torch.manual_seed(0)
    model = EncoderDecoder(9, 7, 8, 2, 2).double().eval()
    oracle, seen = torchs(model, "post"), []
    attention = oracle.decoder.layers[-1].multihead_attn
    hook = lambda m, args, kwargs: seen.append(  # noqa: E731
        torch.nn.MultiheadAttention.forward(m, *args, **kwargs | {"need_weights": True})[1]
    )
    attention.register_forward_pre_hook(hook, with_kwargs=True)
    embed = lambda table, x: table(x) * math.sqrt(8) + sinusoidal_positions(x.shape[1], 8, table.weight)  # noqa: E731
    oracle(
        embed(model.source_embedding, SOURCE),
        embed(model.target_embedding, TARGET),
        tgt_mask=torch.ones(4, 4).triu(1).bool(),
    )
    torch.testing.assert_close(model.align(SOURCE, TARGET), seen[0], rtol=0, atol=1e-10)


def test_a_window_puts_a_local_rnn_below_each_self_attention_of_both_stacks():
    model = EncoderDecoder(9, 7, 8, 2, 2, window=3, cell="lstm")
    names = [[type(r.sublayer).__name__ for r in block.children()] for block in [*model.encoder, *model.decoder]]
    assert names[:2] == [["LocalRNN", "MultiHeadAttention", "FeedForward"]] * 2
    assert names[2:] == [["LocalRNN", "MultiHeadAttention", "CrossAttention", "FeedForward"]] * 2
    assert {(m.window, m.cell) for m in model.modules() if isinstance(m, LocalRNN)} == {(3, "lstm")}


def test_a_window_takes_the_place_of_positions():
    """A constant source is the same everywhere to windows that have left its beginning; to sinusoids it is not."""
    torch.manual_seed(0)
    source, target = torch.full((1, 12), 4), TARGET[:1, :1]
    flat = EncoderDecoder(9, 7, 8, 1, 2, window=3).eval().align(source, target)[0, 0]
    wavy = EncoderDecoder(9, 7, 8, 1, 2).eval().align(source, target)[0, 0]
    torch.testing.assert_close(flat[2:], flat[2].expand(10))
    assert (wavy[2:] - wavy[2]).abs().max() > 1e-3


def test_dropout_is_on_the_embeddings_with_their_positions():
    torch.manual_seed(0)
    model = EncoderDecoder(9, 7, 8, 1, 2)
    model.dropout.p = 1.0  # nothing is left of what is read
    logits = model(SOURCE, TARGET, LENGTHS)
    torch.testing.assert_close(logits, logits[:1, :1].expand_as(logits))
    assert (model.eval()(SOURCE, TARGET, LENGTHS) - logits).abs().max() > 0.1


def test_the_dropout_that_is_given_is_that_of_every_part():
    model = EncoderDecoder(9, 7, 8, 2, 2, window=3, dropout=0.5)
    rates = {part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)}
    assert rates == {0.5} == {part.dropout for part in model.modules() if isinstance(part, MultiHeadAttention)}


def test_embeddings_begin_as_long_as_one():
    torch.manual_seed(0)
    model = EncoderDecoder(50, 50, 64, 1, 2)
    for table in (model.source_embedding, model.target_embedding):
        assert table.weight.norm(dim=1).mean().item() == pytest.approx(1, abs=0.05)


def test_the_source_is_projected_once_for_a_whole_stream():
    model, calls = EncoderDecoder(9, 7, 8, 2, 2, window=3).eval(), []
    for block in model.decoder:
        block.cross.sublayer.key.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        state = model.start(SOURCE, LENGTHS)
        for tokens in TARGET.unbind(1):
            _, state = model.step(tokens, state)
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 0}, "layers: expected a whole number of at least 1, got 0"),
        ({"heads": 3}, "heads: expected a divisor of d_model = 8"),
        ({"window": 0}, "window: expected a whole number of at least 1, got 0"),
        ({"window": 3, "cell": "gruu"}, "cell: 'gruu' is unknown, .*did you mean 'gru'"),
        ({"cell": "gruu"}, "cell: 'gruu' is unknown, .*did you mean 'gru'"),  # even where there is no LocalRNN
        ({"norm": "before"}, "norm: 'before' is unknown, allowed are post, pre"),
        ({"dropout": 1.0}, "dropout: expected a number from 0 up to"),
        ({"target_vocabulary": 0}, "target_vocabulary: expected a whole number of at least 1, got 0"),
        ({"d_model": 0}, "d_model: expected a whole number of at least 1, got 0"),
    ],
)
def test_impossible_sizes_are_refused(change, message):
    sizes = {"source_vocabulary": 9, "target_vocabulary": 7, "d_model": 8, "layers": 2, "heads": 2}
    with pytest.raises(ValueError, match=message):
        EncoderDecoder(**sizes | change)
