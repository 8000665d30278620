"""Two backbones in both directions: which positions an output depends on, padding, and a tagger that needs both."""

import pytest
import torch
from torch import nn

from rtx.lab import xray
from rtx.models import RNN, TCN, Bidirectional, LanguageModel, RTransformer

T = 12
BACKBONES = {
    "tcn": (lambda: TCN(8, 2, kernel=2), 7),  # 1 + 2 (k - 1) (2^L - 1) positions
    "r-transformer": (lambda: RTransformer(8, 1, 2, window=3), T),
    "r-transformer without attention": (lambda: RTransformer(8, 2, heads=0, window=3), 5),
}


@pytest.mark.parametrize("name", BACKBONES)
def test_an_output_depends_on_as_many_positions_after_it_as_before_it(name: str) -> None:
    torch.manual_seed(0)
    make, field = BACKBONES[name]
    found = xray(Bidirectional(make(), make()).double(), torch.randn(1, T, 8).double())
    t = torch.arange(T)
    expected = (t[:, None] - t).abs() < field
    assert torch.equal((found.derivatives > 0) | found.changed, expected)  # a ReLU may hide a derivative


@pytest.mark.parametrize("name", BACKBONES)
def test_a_padded_sequence_has_the_outputs_that_it_has_alone(name: str) -> None:
    torch.manual_seed(0)
    make, _ = BACKBONES[name]
    model, x, lengths = Bidirectional(make(), make()).double().eval(), torch.randn(3, 7, 8).double(), [7, 4, 1]
    for row, length in enumerate(lengths):
        x[row, length:] = torch.nan
    y = model(x, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        torch.testing.assert_close(y[row, :length], model(x[row : row + 1, :length])[0], rtol=0, atol=1e-12)
        assert not y[row, length:].any()


def test_what_does_not_fit_is_refused() -> None:
    model = Bidirectional(RNN(8), RNN(8))
    for wrong, name in [
        (lambda: Bidirectional(RNN(8), RNN(6)), "^backwards"),
        (lambda: Bidirectional(nn.GRU(8, 8), RNN(8)), "^forwards"),
        (lambda: LanguageModel(model, 5), "^backbone"),  # it would see what it has to predict
        (lambda: model(torch.randn(2, 5, 8), torch.tensor([5, 6])), "^lengths"),
        (lambda: model(torch.randn(2, 5, 7)), "^x"),
        (lambda: model(torch.randn(5, 8)), "^x"),
    ]:
        with pytest.raises(ValueError, match=name):
            wrong()
