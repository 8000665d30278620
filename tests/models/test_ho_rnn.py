"""HO-RNN against torch's own networks; the loops over its equations are in test_references.py and tests/faults."""

import pytest
import torch
from oracles import assert_same, count

from rtx.models import CARDS, HORNN

TORCH = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}


def model_of(*args, **options) -> HORNN:
    torch.manual_seed(0)
    return HORNN(*args, **options).double()


@pytest.mark.parametrize("cell", TORCH)
def test_order_1_is_torchs_network(cell):
    model, network = model_of(4, order=1, cell=cell), TORCH[cell](4, 4, batch_first=True).double()
    network.load_state_dict(model.layers[0].state_dict())
    x = torch.randn(2, 9, 4, dtype=torch.float64, requires_grad=True)
    assert_same(model(x), network(x)[0], [x, *model.parameters()], [x, *network.parameters()])


@pytest.mark.parametrize(("layers", "printed", "exact"), [(2, 5, 4_718_592), (4, 10, 9_437_184)])
def test_the_cards_order_explains_the_printed_parameters(layers, printed, exact):
    order, stacks = CARDS["ho-rnn"].sizes["order"], 3  # the encoder's two directions, and the decoder
    more = stacks * (count(HORNN(256, layers, order)) - count(torch.nn.LSTM(256, 256, layers)))
    assert more == exact and abs(more / 1e6 - printed) < 1  # the printed numbers are differences of rounded millions


def test_parameters_start_as_torchs_do_for_any_order():
    for name, parameter in model_of(25, order=4).named_parameters():
        assert 0.19 < parameter.abs().max() <= 0.2, name  # 1 / √25
