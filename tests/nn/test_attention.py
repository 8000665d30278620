"""Multi-head attention with and without explicit weights, its dropout and its masks."""

import pytest
import torch
from comparison import assert_near, outputs_and_gradients

from rtx.nn import MultiHeadAttention, attention, causal_mask
from rtx.nn.cross_attention import CrossAttention


class Explicit(MultiHeadAttention):
    """A subclass that says that its scores are its own."""

    own_scores = True


def pair(d_model: int, heads: int, dropout: float = 0.0) -> tuple[MultiHeadAttention, Explicit]:
    fused, explicit = (kind(d_model, heads, dropout).double() for kind in (MultiHeadAttention, Explicit))
    explicit.load_state_dict(fused.state_dict())
    return fused, explicit


@pytest.mark.parametrize("masked", [False, True])
def test_explicit_weights_give_the_same_outputs_and_gradients(masked):
    torch.manual_seed(0)
    mask = (torch.rand(9, 9) < 0.5) | torch.eye(9, dtype=torch.bool) if masked else None
    x, found = torch.randn(2, 9, 12, dtype=torch.float64, requires_grad=True), []
    for layer in pair(12, 3):
        found.append(outputs_and_gradients(layer(x, mask), [x, *layer.parameters()]))
    assert_near(*found, 1e-10)


@pytest.mark.parametrize("block", [1, 4])
def test_blocks_of_queries_equal_all_queries_at_once(monkeypatch, block):
    torch.manual_seed(0)
    fused, explicit = pair(12, 3)
    monkeypatch.setattr(attention, "BLOCK", block)
    q, k, v = torch.randn(3, 2, 3, 9, 4, dtype=torch.float64)
    torch.testing.assert_close(explicit.attend(q, k, v), fused.attend(q, k, v), rtol=0, atol=1e-12)


@pytest.mark.parametrize("index", [0, 1], ids=["fused", "explicit"])
def test_the_last_positions_attend_to_a_longer_context_without_a_mask(index):
    layer, x = pair(12, 3)[index], torch.randn(2, 9, 12, dtype=torch.float64)
    torch.testing.assert_close(layer(x[:, 5:], context=x), layer(x)[:, 5:])


@pytest.mark.parametrize("index", [0, 1], ids=["fused", "explicit"])
def test_dropout_keeps_the_mean_and_acts_in_training_only(index):
    torch.manual_seed(0)
    layer, x = pair(8, 2, dropout=0.5)[index], torch.randn(1, 6, 8, dtype=torch.float64)
    with torch.no_grad():
        many = layer(x.expand(3000, -1, -1))
        assert not torch.equal(many[0], many[1])
        torch.testing.assert_close(many.mean(0, keepdim=True), layer.eval()(x), rtol=0, atol=0.05)


def test_dropout_of_attention_to_a_source_keeps_the_mean_and_acts_in_training_only():
    torch.manual_seed(0)
    layer, x, source = CrossAttention(8, 2, 0.5).double(), *torch.randn(2, 1, 5, 8, dtype=torch.float64)
    encoded = layer.encode(source, torch.ones(1, 5, dtype=torch.bool))
    with torch.no_grad():
        assert not torch.equal(layer(x, encoded), layer(x, encoded))
        mean = torch.stack([layer(x, encoded) for _ in range(3000)]).mean(0)
        torch.testing.assert_close(mean, layer.eval()(x, encoded), rtol=0, atol=0.05)
        assert torch.equal(layer(x, encoded), layer(x, encoded))


def test_each_sequence_may_have_its_own_mask():
    layer, x = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    masks = causal_mask(5).repeat(2, 1, 1, 1)
    masks[1] = True
    whole = layer(x, masks[1, 0])
    torch.testing.assert_close(layer(x, masks), torch.stack([layer(x)[0], whole[1]]))


def test_a_causal_mask_is_true_where_a_query_may_attend():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(2, 3).tolist() == [[True, True, False], [True, True, True]]


def test_a_context_shorter_than_the_queries_needs_a_mask():
    attention, x = MultiHeadAttention(8, 2), torch.randn(1, 5, 8)
    with pytest.raises(ValueError, match="5.*3"):
        attention(x, None, x[:, :3])
    assert attention(x, torch.ones(5, 3, dtype=torch.bool), x[:, :3]).shape == x.shape


@pytest.mark.parametrize(
    ("sizes", "message"),
    [((-1,), "queries: .*-1"), (("5",), "queries: .*'5'"), ((2, 3.0), r"keys: .*3\.0"), ((5, 3), "keys: .*5.*got 3")],
)
def test_a_causal_mask_of_another_size_is_refused(sizes, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        causal_mask(*sizes)


@pytest.mark.parametrize(
    ("mask", "named"),
    [
        (torch.ones(5, 5), "float32"),
        *((torch.ones(n, dtype=torch.bool), str(n)) for n in [(4, 5), (2, 5, 5), (3, 1, 5, 5), (2, 3, 5, 5)]),
        (torch.ones(5, 5, dtype=torch.bool, device="meta"), "meta"),
        (torch.ones(5, 5, dtype=torch.bool).numpy(), "ndarray"),
    ],
)
@pytest.mark.parametrize("method", ["forward", "weights"])
def test_another_mask_is_refused(mask, named, method):
    named = named.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=f"^mask: .*{named}"):
        getattr(MultiHeadAttention(4, 2), method)(torch.randn(2, 5, 4), mask)
