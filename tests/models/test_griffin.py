"""Griffin: which blocks have attention, and its parameters. test_references.py compares it with loops."""

import pytest
from oracles import count

from rtx.models import Griffin


@pytest.mark.parametrize(("D", "layers", "heads"), [(8, 2, 2), (8, 3, 2), (12, 7, 3)])
def test_parameters_are_those_of_the_formula(D, layers, heads):
    K, attentions = D // heads, layers // 3
    recurrent = 3 * (D * D + D) + (4 * D + D) + 2 * (D * K + D) + D
    attention = 2 * D * D + 2 * D * K
    network = 2 * (D * 3 * D + 3 * D) + 3 * D * D + D
    expected = (layers - attentions) * recurrent + attentions * attention + layers * (network + 2 * D) + D
    assert count(Griffin(D, layers, heads, 4)) == expected
