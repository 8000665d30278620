"""AWD-LSTM: each part of its regularisation, and the cache pointer, against their definitions."""

import io
import math

import pytest
import torch
from torch.nn import functional as F

from rtx.models import AWDLSTM, MCRNN
from rtx.nn.dropout import LockedDropout, drop_words
from rtx.tasks.cache_pointer import cache_pointer
from rtx.training.auxiliary_losses import activation_penalty


def test_weight_dropout_hides_the_same_weights_at_all_steps_of_a_call():
    torch.manual_seed(0)
    model, x = AWDLSTM(6, 1, weight_dropout=0.5).double(), torch.randn(1, 8, 6, dtype=torch.float64)
    weight = model.networks[0].weight_hh_l0
    before = weight.detach().clone()
    torch.manual_seed(1)
    y = model(x)
    torch.manual_seed(1)
    hidden = F.dropout(before, 0.5)
    oracle = torch.nn.LSTM(6, 6, batch_first=True).double()
    oracle.load_state_dict(model.networks[0].state_dict() | {"weight_hh_l0": hidden})
    torch.testing.assert_close(y, oracle(x)[0], rtol=0, atol=1e-12)
    y.sum().backward()
    assert torch.equal(weight, before)
    assert torch.equal(weight.grad == 0, hidden == 0) and 0 < (hidden == 0).float().mean() < 1
    assert not torch.equal(model(x), y)
    assert torch.equal(model.eval()(x), model(x))


def test_weight_dropout_acts_on_weights_that_are_given_for_a_call():
    torch.manual_seed(0)
    model, x = AWDLSTM(6, 1, weight_dropout=0.5), torch.randn(2, 5, 6)
    zeros = {name: torch.zeros_like(weight) for name, weight in model.named_parameters()}
    assert torch.func.functional_call(model, zeros, (x,)).abs().max() == 0


@pytest.mark.parametrize("which", ["dropout_input", "dropout_hidden", "dropout"])
@pytest.mark.parametrize("make", [AWDLSTM, MCRNN])
def test_each_dropout_acts_at_its_place_and_activations_are_those_around_the_last_one(make, which):
    torch.manual_seed(0)
    model, x = make(64, layers=2, **{"dropout_hidden": 0.0} | {which: 0.5}).double(), torch.randn(2, 5, 64).double()
    expected, inputs, activations = model.eval()(x), [], []
    for layer in model.networks if make is AWDLSTM else model.layers:
        layer.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    model.dropout.register_forward_hook(lambda _, raw, dropped: activations.append((raw[0], dropped)))
    y = model.train()(x)
    assert [bool((part == 0).any()) for part in inputs] == [which == "dropout_input", which == "dropout_hidden"]
    ((raw, dropped),) = activations
    assert torch.equal(dropped, y) and torch.equal(raw, expected) is (which == "dropout")
    assert torch.equal(raw, dropped) is (which != "dropout")
    assert torch.equal(model.eval()(x), expected)


def test_one_layer_has_no_dropout_between_layers():
    model, x = AWDLSTM(6, 1, dropout_hidden=0.5), torch.randn(2, 7, 6)
    assert torch.equal(model(x), model(x))


def test_locked_dropout_has_one_mask_for_all_steps_and_another_for_each_sequence():
    torch.manual_seed(0)
    y = LockedDropout(0.5)(torch.ones(64, 9, 32))
    assert torch.equal(y, y[:, :1].expand(-1, 9, -1))
    assert set(y.unique().tolist()) == {0.0, 2.0}
    assert len({tuple(row.tolist()) for row in y[:, 0]}) == 64


def test_the_penalty_is_the_size_after_dropout_and_the_change_before_it():
    raw = torch.tensor([[[1.0, 2.0], [3.0, 5.0]]])
    dropped = torch.tensor([[[0.0, 4.0], [6.0, 0.0]]])
    expected = 2 * (16 + 36) / 4 + 3 * (4 + 9) / 2
    assert activation_penalty(raw, dropped, ar=2, tar=3).item() == expected
    assert activation_penalty(raw[:, :1], dropped[:, :1], ar=2, tar=3).item() == 2 * 16 / 2


def pointer_as_loops(hidden, words, logits, window, theta, mix):
    """Grave et al.'s Eq. 2-4, one step and one word at a time."""
    rows = []
    for t in range(len(hidden)):
        p = logits[t].exp() / logits[t].exp().sum()
        past = range(max(0, t - window), t)
        if past:
            cache = torch.zeros_like(p)
            for i in past:
                cache[words[i]] += torch.exp(theta * hidden[t] @ hidden[i])
            p = (1 - mix) * p + mix * cache / cache.sum()
        rows.append(p.log())
    return torch.stack(rows)


@pytest.mark.parametrize("window", [1, 3, 50])
def test_the_cache_pointer_equals_its_definition_at_once_and_in_pieces(window):
    torch.manual_seed(0)
    hidden, logits = torch.randn(2, 11, 4).double(), torch.randn(2, 11, 6).double()
    words = torch.randint(0, 6, (2, 11))
    settings = {"window": window, "theta": 0.7, "mix": 0.3}
    expected = torch.stack([pointer_as_loops(*row, **settings) for row in zip(hidden, words, logits, strict=True)])
    whole, past = cache_pointer(hidden, words, logits, **settings)
    torch.testing.assert_close(whole, expected, rtol=0, atol=1e-10)
    assert past[1].shape == (2, min(window, 11))
    pieces, past = [], None
    for piece in (slice(0, 1), slice(1, 6), slice(6, 11)):
        found, past = cache_pointer(hidden[:, piece], words[:, piece], logits[:, piece], past, **settings)
        pieces.append(found)
    torch.testing.assert_close(torch.cat(pieces, 1), expected, rtol=0, atol=1e-10)
    buffer = io.BytesIO()
    torch.save(past, buffer)
    buffer.seek(0)
    assert all(map(torch.equal, torch.load(buffer, weights_only=True), past))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_cache_pointer_computes_in_single_precision_at_least(dtype):
    torch.manual_seed(0)
    hidden, logits, words = torch.randn(2, 40, 8).to(dtype), torch.randn(2, 40, 50).to(dtype), torch.arange(80) % 50
    found, past = cache_pointer(hidden, words.view(2, 40), logits)
    wide = torch.promote_types(dtype, torch.float32)
    assert found.dtype == past[0].dtype == wide
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(2, 40, dtype=wide), rtol=0, atol=1e-5)


def test_a_very_small_probability_does_not_become_zero():
    logits = torch.tensor([[[200.0, 0.0], [200.0, 0.0]]])
    log_p, _ = cache_pointer(torch.ones(1, 2, 3), torch.zeros(1, 2, dtype=torch.long), logits, mix=0.5)
    torch.testing.assert_close(log_p[0, :, 1], torch.tensor([-200.0, -200.0 + math.log(0.5)]))


def test_a_dropped_word_is_zero_as_a_whole_and_wherever_it_occurs():
    torch.manual_seed(0)
    tokens = torch.arange(1000).repeat(2)
    rows = drop_words(torch.ones(2000, 3), tokens, 1000, 0.25, training=True)
    assert torch.equal(rows, rows[:, :1].expand(-1, 3)) and torch.equal(rows[:1000], rows[1000:])
    assert 0.2 < (rows[:, 0] == 0).float().mean() < 0.3
    x = torch.ones(4, 3)
    assert drop_words(x, tokens[:4], 1000, 0.25, training=False) is x
