"""The encoder-decoder Transformer against torch's and against loops. test_seq2seq.py has what holds for all."""

import math

import pytest
import torch
from oracles import assert_same, torch_state
from references import encoder_decoder

from rtx.models import EncoderDecoder
from rtx.nn import LocalRNN, MultiHeadAttention, sinusoidal_positions
from rtx.nn.cross_attention import CrossAttention

LENGTHS = torch.tensor([5, 2, 1])
SOURCE = torch.tensor([[2, 3, 8, 0, 4], [5, 6, 0, 0, 0], [7, 0, 0, 0, 0]])
TARGET = torch.tensor([[0, 2, 3, 4], [0, 6, 5, 1], [0, 3, 3, 1]])


def torchs(model: EncoderDecoder, norm: str) -> torch.nn.Transformer:
    """Return torch's Transformer with our weights."""
    theirs = torch.nn.Transformer(8, 2, 2, 2, 32, 0.0, norm_first=norm == "pre", batch_first=True).double()
    if norm == "post":
        theirs.encoder.norm = theirs.decoder.norm = None  # the paper has none at the end
    weights: dict[str, torch.Tensor] = {}
    for name in ("encoder", "decoder"):
        for i, block in enumerate(getattr(model, name)):
            layer = torch_state(block.attention, block.feed_forward, block.cross)
            weights |= {f"{name}.layers.{i}.{key}": value for key, value in layer.items()}
        weights |= {f"{name}.norm.{key}": value for key, value in getattr(model, f"{name}_norm").state_dict().items()}
    theirs.load_state_dict(weights)
    return theirs


def embedded(table: torch.nn.Embedding, tokens: torch.Tensor) -> torch.Tensor:
    return table(tokens) * math.sqrt(8) + sinusoidal_positions(tokens.shape[1], 8, table.weight)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_without_a_window_it_is_torchs_transformer_with_gradients_and_alignment(norm):
    torch.manual_seed(0)
    model = EncoderDecoder(9, 7, 8, 2, 2, norm=norm).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    theirs, padding, seen = torchs(model, norm), torch.arange(5) >= LENGTHS[:, None], []

    def weights_of(attention, args, kwargs):
        given = kwargs | {"need_weights": True}
        seen.append(torch.nn.MultiheadAttention.forward(attention, *args, **given)[1])

    theirs.decoder.layers[-1].multihead_attn.register_forward_pre_hook(weights_of, with_kwargs=True)
    hidden = theirs(
        embedded(model.source_embedding, SOURCE),
        embedded(model.target_embedding, TARGET),
        tgt_mask=torch.ones(4, 4).triu(1).bool(),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    tables = [model.source_embedding.weight, model.target_embedding.weight]
    assert_same(model(SOURCE, TARGET, LENGTHS), model.output(hidden), tables)
    torch.testing.assert_close(model.align(SOURCE, TARGET, LENGTHS), seen[0], rtol=0, atol=1e-10)  # the mean head


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("window", [None, 3])
def test_logits_and_all_gradients_are_those_of_the_reference(window, norm):
    torch.manual_seed(0)
    model = EncoderDecoder(9, 7, 8, 2, 2, window, norm=norm).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    rows = zip(SOURCE.tolist(), TARGET.tolist(), LENGTHS.tolist(), strict=True)
    expected = torch.stack([encoder_decoder(model, source[:n], target) for source, target, n in rows])
    assert_same(model(SOURCE, TARGET, LENGTHS), expected, model.parameters())


def test_dropout_is_on_the_embeddings_with_their_positions():
    torch.manual_seed(0)
    model = EncoderDecoder(9, 7, 8, 1, 2)
    model.dropout.p = 1.0  # then the input has no effect
    logits = model(SOURCE, TARGET, LENGTHS)
    torch.testing.assert_close(logits, logits[:1, :1].expand_as(logits))
    assert (model.eval()(SOURCE, TARGET, LENGTHS) - logits).abs().max() > 0.1


def test_every_part_has_the_dropout_that_the_model_was_given():
    model = EncoderDecoder(9, 7, 8, 2, 2, window=3, dropout=0.5)
    rates = [part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)]
    attentions = [part.dropout for part in model.modules() if isinstance(part, MultiHeadAttention | CrossAttention)]
    assert len(attentions) == 6 and set(rates) == set(attentions) == {0.5}


def test_embeddings_start_with_length_1():
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


def test_a_window_gives_each_block_of_both_stacks_a_local_rnn():
    parts = EncoderDecoder(9, 7, 8, 2, 2, window=3, cell="lstm").modules()
    assert [(part.window, part.cell) for part in parts if isinstance(part, LocalRNN)] == [(3, "lstm")] * 4
