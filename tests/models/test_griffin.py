"""Griffin: which blocks have attention, and its parameters. test_references.py compares it with loops."""

from rtx.models import Griffin
from rtx.models.griffin import RecurrentBlock
from rtx.nn.local_attention import LocalAttention


def test_every_third_block_is_attention():
    kinds = [type(block.mixing) for block in Griffin(8, 7, 2, 3).blocks]
    assert kinds == [RecurrentBlock, RecurrentBlock, LocalAttention] * 2 + [RecurrentBlock]
