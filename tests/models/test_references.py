"""Every model equals its equations: outputs and all gradients are those of loops that share no code with it."""

import torch
from oracles import assert_same
from references import REFERENCES

from rtx.models import RTransformer
from rtx.nn.reference import r_transformer_block


def test_outputs_and_all_gradients_are_those_of_the_reference(small_model, small_sizes):
    name, _ = small_sizes()
    model = small_model().double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)  # biases and gains of the norms, too
    x = torch.randn(2, 9, 8, dtype=torch.float64, requires_grad=True)
    assert_same(model(x), REFERENCES[name](model, x), [x, *model.parameters()])


def test_a_block_of_the_r_transformer_is_eq_8():
    block = RTransformer(8, 1, 2, 3).double().blocks[0]
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x = torch.randn(2, 9, 8, dtype=torch.float64)
    torch.testing.assert_close(block(x), r_transformer_block(x, block.state_dict(), window=3, name="gru", heads=2))
