"""HO-RNN against loops from its equations and torch's own networks."""

import pytest
import torch

from rtx.models import HORNN
from rtx.models.cards import CARDS
from rtx.models.ho_rnn import POOLINGS
from rtx.nn import naive_recurrent as naive

TORCH = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}


def model_of(*args, **options) -> HORNN:
    torch.manual_seed(0)
    return HORNN(*args, **options).double()


def twin(model: HORNN, x: torch.Tensor) -> torch.Tensor:
    for layer in model.layers:
        weights = dict(layer.named_parameters())
        x = naive.higher_order(x, weights, layer.order, layer.pooling, layer.cell, layer.forgetting)
    return x


def gradients(y: torch.Tensor, *of: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad((y * torch.arange(y.numel(), dtype=y.dtype).view(y.shape).cos()).sum(), of)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("cell", TORCH)
def test_a_stack_is_the_equations(cell, pooling):
    model = model_of(3, layers=2, order=3, pooling=pooling, cell=cell)
    x = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    y, expected = model(x), twin(model, x)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    of = (x, *model.parameters())
    for ours, theirs in zip(gradients(y, *of), gradients(expected, *of), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"pooling": "max"}, {"pooling": "fofe", "forgetting": 1.0}])
@pytest.mark.parametrize("cell", TORCH)
def test_order_1_is_torchs_network(cell, options):
    model, network = model_of(4, order=1, cell=cell, **options), TORCH[cell](4, 4, batch_first=True).double()
    network.load_state_dict(model.layers[0].state_dict())
    x = torch.randn(2, 9, 4, dtype=torch.float64, requires_grad=True)
    y, (expected, _) = model(x), network(x)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    ours, theirs = gradients(y, x, *model.parameters()), gradients(expected, x, *network.parameters())
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_state_reads_exactly_the_last_n(pooling):
    """Each of the N states it was given moves the next one; the oldest is then forgotten."""
    model, x = model_of(16, order=3, pooling=pooling, cell="rnn"), torch.randn(1, 16, dtype=torch.float64)
    past = torch.randn(1, 3, 16, dtype=torch.float64, requires_grad=True)
    y, ((after,),) = model.step(x, ((past,),))
    moved = torch.autograd.grad(y.sum(), past)[0].abs().sum(-1)[0]
    assert (moved > 0).tolist() == [True, True, True]
    assert torch.equal(after[:, 0], y) and torch.equal(after[:, 1:], past[:, :2])


def test_the_poolings_differ():
    x = torch.randn(1, 6, 4, dtype=torch.float64)
    base = model_of(4, pooling="gated")
    found = []
    for pooling in POOLINGS:
        model = model_of(4, pooling=pooling)
        model.load_state_dict(base.state_dict(), strict=pooling == "gated")
        found.append(model(x))
    for i, one in enumerate(found):
        for other in found[:i]:
            torch.testing.assert_close(one[:, 0], other[:, 0])  # nothing to pool yet
            assert (one - other).abs().max() > 1e-3


def test_gates_half_open_halve_the_sum():
    gated, plain = model_of(4, pooling="gated", cell="rnn"), model_of(4, cell="rnn")
    weights = gated.state_dict() | {f"layers.0.gate_{of}": torch.zeros(()) for of in ("input", "state")}
    gated.load_state_dict({k: v.expand_as(gated.state_dict()[k]) for k, v in weights.items()})
    mine = {k: v for k, v in gated.state_dict().items() if "gate" not in k}
    mine["layers.0.weight_hh_l0"] = mine["layers.0.weight_hh_l0"] / 2
    plain.load_state_dict(mine)
    x = torch.randn(2, 8, 4, dtype=torch.float64)
    torch.testing.assert_close(gated(x), plain(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("layers", "printed", "exact"), [(2, 5, 4_718_592), (4, 10, 9_437_184)])
def test_the_cards_order_explains_the_printed_parameters(layers, printed, exact):
    def count(network):
        return sum(p.numel() for p in network.parameters())

    order, stacks = CARDS["ho-rnn"].sizes["order"], 3  # the encoder's two directions, and the decoder
    more = stacks * (count(HORNN(256, layers, order)) - count(torch.nn.LSTM(256, 256, layers)))
    assert more == exact and abs(more / 1e6 - printed) < 1  # the printed are differences of rounded millions


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("order", 0, "order: expected a whole number of at least 1, got 0"),
        ("pooling", "mean", "pooling: 'mean' is unknown, allowed are sum, max, fofe, gated"),
        ("cell", "tanh", "cell: 'tanh' is unknown"),
        ("forgetting", 0.0, "forgetting: expected a number above 0, up to 1, got 0.0"),
        ("forgetting", "abc", "forgetting: expected a number above 0, up to 1, got 'abc'"),
        ("dropout", 1.0, "dropout: expected a number from 0"),
    ],
)
def test_bad_arguments_are_refused(argument, value, message):
    with pytest.raises(ValueError, match=message):
        HORNN(4, **{argument: value})


def test_parameters_start_as_torchs_do_whatever_the_order():
    for name, parameter in model_of(25, order=4, pooling="gated").named_parameters():
        assert 0.19 < parameter.abs().max() <= 0.2, name  # 1 / √25


def test_a_state_of_another_order_or_cell_is_refused():
    x = torch.randn(2, 4)
    for other in ({"order": 2}, {"cell": "gru"}, {"layers": 1}):
        _, state = HORNN(4, **{"layers": 2} | other).step(x)
        with pytest.raises(ValueError, match="state: expected"):
            HORNN(4, layers=2).step(x, state)
