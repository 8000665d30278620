"""The encoder-decoder Transformer against loops. test_seq2seq.py has what holds for all."""

import pytest
import torch
from oracles import LENGTHS, SOURCE, TARGET, assert_same
from references import encoder_decoder
from torch.nn.functional import pad

from rtx.models import EncoderDecoder
from rtx.nn import LocalRNN, MultiHeadAttention
from rtx.nn.cross_attention import CrossAttention


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("window", [None, 3])
def test_logits_their_gradients_and_the_alignment_are_those_of_the_reference(window, norm):
    torch.manual_seed(0)
    model = EncoderDecoder(9, 7, 8, 2, 2, window, norm=norm).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    rows = zip(SOURCE.tolist(), TARGET.tolist(), LENGTHS.tolist(), strict=True)
    expected = [encoder_decoder(model, source[:n], target) for source, target, n in rows]
    logits, weights = (
        torch.stack([one for one, _ in expected]),
        [pad(one, (0, 5 - one.shape[1])) for _, one in expected],
    )
    assert_same(model(SOURCE, TARGET, LENGTHS), logits, model.parameters())
    torch.testing.assert_close(model.align(SOURCE, TARGET, LENGTHS), torch.stack(weights), rtol=0, atol=1e-10)


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
