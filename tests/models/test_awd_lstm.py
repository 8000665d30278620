"""AWD-LSTM: torch's LSTM without its regularisation, and each piece of that against its definition."""

import math

import pytest
import torch

from rtx.models.awd_lstm import AWDLSTM, Cached, activation_penalty, cache_pointer
from rtx.nn.dropout import LockedDropout, drop_words


def test_without_dropout_it_is_a_stack_of_torchs_lstms():
    torch.manual_seed(0)
    model, x = AWDLSTM(5, 3, 7).double(), torch.randn(2, 6, 5, dtype=torch.float64)
    y = x
    for network, (a, b) in zip(model.networks, [(5, 7), (7, 7), (7, 5)], strict=True):
        oracle = torch.nn.LSTM(a, b, batch_first=True).double()
        oracle.load_state_dict(network.state_dict())
        y, _ = oracle(y)
    torch.testing.assert_close(model(x), y, rtol=0, atol=1e-12)


def test_parameters_are_the_papers_24_million():
    core = sum(p.numel() for p in AWDLSTM(400, 3, 1150).parameters())
    assert core == 20_211_600
    assert round((core + 10_000 * 400 + 10_000) / 1e6) == 24  # tied words and the output's bias


def test_weight_dropout_hides_the_same_weights_at_every_step_of_a_read_and_others_at_the_next():
    torch.manual_seed(0)
    model, x = AWDLSTM(6, 1, weight_dropout=0.5).double(), torch.randn(1, 8, 6, dtype=torch.float64)
    torch.manual_seed(1)
    y = model(x)
    torch.manual_seed(1)
    hidden = torch.nn.functional.dropout(model.networks[0].weight_hh_l0, 0.5)
    assert 0 < (hidden == 0).float().mean() < 1
    oracle = torch.nn.LSTM(6, 6, batch_first=True).double()
    oracle.load_state_dict(model.networks[0].state_dict() | {"weight_hh_l0": hidden})
    torch.testing.assert_close(y, oracle(x)[0], rtol=0, atol=1e-12)
    assert not torch.equal(model(x), y)
    model.eval()
    assert torch.equal(model(x), model(x))


def test_weight_dropout_leaves_the_weights_as_they_were_and_their_gradient_where_they_were_used():
    torch.manual_seed(0)
    model = AWDLSTM(6, 1, weight_dropout=0.5)
    before = model.networks[0].weight_hh_l0.clone()
    torch.manual_seed(1)
    model(torch.randn(2, 5, 6)).sum().backward()
    weight = model.networks[0].weight_hh_l0
    assert torch.equal(weight, before)
    assert 0.2 < (weight.grad == 0).float().mean() < 0.8


def test_weight_dropout_moves_no_weight_to_another_place(monkeypatch):
    """As torch's LSTM does on a GPU at its first call with another weight, and with its own again."""
    model, x, moved = AWDLSTM(6, 2, weight_dropout=0.5), torch.randn(2, 5, 6), []
    monkeypatch.setattr(torch.nn.LSTM, "flatten_parameters", lambda network: moved.append(network))
    model(x), model.eval()(x)
    assert not moved


def test_weights_that_are_given_for_a_call_are_dropped_too():
    torch.manual_seed(0)
    model, x = AWDLSTM(6, 1, weight_dropout=0.5), torch.randn(2, 5, 6)
    zeros = {name: torch.zeros_like(weight) for name, weight in model.named_parameters()}
    assert torch.func.functional_call(model, zeros, (x,)).abs().max() == 0


@pytest.mark.parametrize("which", ["dropout_input", "dropout_hidden", "dropout"])
def test_each_locked_dropout_acts_in_training_only(which):
    torch.manual_seed(0)
    model, x = AWDLSTM(6, 2, **{which: 0.5}), torch.randn(2, 7, 6)
    assert not torch.equal(model(x), model(x))
    assert torch.equal(model.eval()(x), model(x))


def test_between_the_layers_of_one_nothing_is_dropped():
    model, x = AWDLSTM(6, 1, dropout_hidden=0.5), torch.randn(2, 7, 6)
    assert torch.equal(model(x), model(x))


def test_a_locked_mask_is_one_for_all_steps_and_another_for_each_sequence():
    torch.manual_seed(0)
    y = LockedDropout(0.5)(torch.ones(64, 9, 32))
    assert torch.equal(y, y[:, :1].expand(-1, 9, -1))
    assert set(y.unique().tolist()) == {0.0, 2.0}
    assert len({tuple(row.tolist()) for row in y[:, 0]}) == 64


def test_dropped_words_are_hidden_as_a_whole():
    torch.manual_seed(0)
    rows = drop_words(torch.ones(1000, 3), 0.25, training=True)
    assert torch.equal(rows, rows[:, :1].expand(-1, 3))
    assert 0.2 < (rows[:, 0] == 0).float().mean() < 0.3
    assert torch.equal(drop_words(torch.ones(4, 3), 0.25, training=False), torch.ones(4, 3))


def test_the_penalty_is_the_size_of_what_is_kept_and_the_jumps_of_what_was():
    raw = torch.tensor([[[1.0, 2.0], [3.0, 5.0]]])
    dropped = torch.tensor([[[0.0, 4.0], [6.0, 0.0]]])
    expected = 2 * (16 + 36) / 4 + 3 * (4 + 9) / 2
    assert activation_penalty(raw, dropped, ar=2, tar=3).item() == expected
    assert activation_penalty(raw[:, :1], dropped[:, :1], ar=2, tar=3).item() == 2 * 16 / 2


def naive_pointer(hidden, words, logits, window, theta, mix):
    """Grave et al.'s Eq. 2-4, a step and a word at a time."""
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
def test_the_cache_pointer_equals_its_definition_also_in_pieces(window):
    torch.manual_seed(0)
    hidden, logits = torch.randn(2, 11, 4).double(), torch.randn(2, 11, 6).double()
    words = torch.randint(0, 6, (2, 11))
    settings = {"window": window, "theta": 0.7, "mix": 0.3}
    expected = torch.stack([naive_pointer(*row, **settings) for row in zip(hidden, words, logits, strict=True)])
    whole, past = cache_pointer(hidden, words, logits, **settings)
    torch.testing.assert_close(whole, expected, rtol=0, atol=1e-10)
    assert past.words.shape == (2, min(window, 11))
    pieces, past = [], None
    for piece in (slice(0, 1), slice(1, 6), slice(6, 11)):
        found, past = cache_pointer(hidden[:, piece], words[:, piece], logits[:, piece], past, **settings)
        pieces.append(found)
    torch.testing.assert_close(torch.cat(pieces, 1), expected, rtol=0, atol=1e-10)
    assert isinstance(past, Cached)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_half_precision_is_mixed_in_single(dtype):
    torch.manual_seed(0)
    hidden, logits, words = torch.randn(2, 40, 8).to(dtype), torch.randn(2, 40, 50).to(dtype), torch.arange(80) % 50
    found, past = cache_pointer(hidden, words.view(2, 40), logits)
    wide = torch.promote_types(dtype, torch.float32)
    assert found.dtype == past.hidden.dtype == wide
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(2, 40, dtype=wide), rtol=0, atol=1e-5)


def test_a_word_that_is_next_to_impossible_keeps_its_own_logarithm():
    logits = torch.tensor([[[200.0, 0.0], [200.0, 0.0]]])
    log_p, _ = cache_pointer(torch.ones(1, 2, 3), torch.zeros(1, 2, dtype=torch.long), logits, mix=0.5)
    torch.testing.assert_close(log_p[0, :, 1], torch.tensor([-200.0, -200.0 + math.log(0.5)]))


def test_a_word_that_followed_the_same_state_becomes_likelier():
    hidden, words = torch.ones(1, 2, 4), torch.tensor([[3, 3]])
    log_p, _ = cache_pointer(hidden, words, torch.zeros(1, 2, 5), mix=0.5)
    torch.testing.assert_close(log_p.exp()[0, 1], torch.tensor([0.1, 0.1, 0.1, 0.6, 0.1]))


def test_a_state_that_is_nan_is_not_hidden():
    hidden = torch.ones(1, 3, 4)
    hidden[0, 1] = torch.nan
    log_p, _ = cache_pointer(hidden, torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 3, 5))
    assert log_p[0, 0].isfinite().all() and log_p[0, 1:, 0].isnan().all()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"window": 0}, "window: expected a whole number of at least 1, got 0"),
        ({"mix": 1.0}, "mix: expected a number from 0 up to, not including, 1, got 1.0"),
        ({"theta": "a"}, "theta: expected a finite number of at least 0, got 'a'"),
        ({"theta": -1.0}, "theta: expected a finite number of at least 0, got -1.0"),
        ({"theta": math.inf}, "theta: expected a finite number of at least 0, got inf"),  # all would be NaN
    ],
)
def test_a_pointer_out_of_range_is_refused(argument, message):
    with pytest.raises(ValueError, match=message):
        cache_pointer(torch.ones(1, 2, 4), torch.zeros(1, 2, dtype=torch.long), torch.zeros(1, 2, 5), **argument)


@pytest.mark.parametrize("rate", ["dropout_input", "dropout_hidden", "dropout", "weight_dropout"])
def test_a_rate_out_of_range_is_refused_by_its_name(rate):
    with pytest.raises(ValueError, match=f"^{rate}: expected a number from 0 up to"):
        AWDLSTM(4, **{rate: 1.0})
