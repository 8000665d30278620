"""Griffin: which blocks have attention, and its parameters. test_references.py compares it with loops."""

import pytest
from oracles import count

from rtx.models import Griffin
from rtx.models.griffin import RecurrentBlock
from rtx.nn.local_attention import LocalAttention


def test_every_third_block_is_attention():
    kinds = [type(block.mixing) for block in Griffin(8, 7, 2, 3).blocks]
    assert kinds == [RecurrentBlock, RecurrentBlock, LocalAttention] * 2 + [RecurrentBlock]


@pytest.mark.parametrize(("D", "layers", "heads"), [(8, 2, 2), (8, 3, 2), (12, 7, 3)])
def test_parameters_are_those_of_the_formula(D, layers, heads):
    K, attentions = D // heads, layers // 3
    recurrent = 3 * (D * D + D) + (4 * D + D) + 2 * (D * K + D) + D
    attention = 2 * D * D + 2 * D * K
    network = 2 * (D * 3 * D + 3 * D) + 3 * D * D + D
    expected = (layers - attentions) * recurrent + attentions * attention + layers * (network + 2 * D) + D
    assert count(Griffin(D, layers, heads, 4)) == expected
