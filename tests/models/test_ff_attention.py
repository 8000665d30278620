"""Feed-forward attention against its equations, and what has no effect on it: padding and order."""

import itertools
import re

import pytest
import torch
from oracles import assert_same
from references import feed_forward_attention

from rtx.models import FeedForwardAttention
from rtx.nn.streaming import select

SWITCHES = list(itertools.product(("attention", "mean"), ("printed", "coded")))
LENGTHS = torch.tensor([7, 3, 1])


def small(pooling: str = "attention", leak: str = "printed", seed: int = 0) -> FeedForwardAttention:
    """Return a model in float64 with two outputs, whose biases are not zero."""
    torch.manual_seed(seed)
    model = FeedForwardAttention(3, 2, 5, pooling, leak).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


def sequences(seed: int = 1) -> torch.Tensor:
    return torch.randn(3, 7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("pooling", "leak"), SWITCHES)
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_equations_with_all_gradients(pooling, leak, seed):
    model, x = small(pooling, leak, seed), sequences().requires_grad_()
    expected = feed_forward_attention(model, x, LENGTHS.tolist())
    assert_same(model(x, LENGTHS), expected, [x, *model.parameters()])


def test_weights_start_normal_with_variance_one_over_fan_in_and_biases_at_zero():
    torch.manual_seed(0)
    model = FeedForwardAttention(inputs=400, outputs=300, d_hidden=200)
    for layer, fan_in in ((model.hidden, 400), (model.context, 200), (model.output, 200)):
        assert layer.weight.std().item() == pytest.approx(fan_in**-0.5, rel=0.02)
        assert layer.weight.abs().max() > 3 * fan_in**-0.5  # beyond any uniform draw of that variance
    assert all(not p.any() for name, p in model.named_parameters() if name.endswith("bias"))


@pytest.mark.parametrize(("pooling", "leak"), SWITCHES)
def test_a_stream_gives_the_output_of_every_prefix(pooling, leak):
    model, x, state = small(pooling, leak), sequences(), None
    for t in range(x.shape[1]):
        y, state = model.step(x[:, t], state)
        torch.testing.assert_close(y, model(x[:, : t + 1]), rtol=0, atol=1e-10)


def test_a_step_does_not_change_its_state_and_rows_can_be_reordered():
    model, x = small(), sequences()
    _, state = model.step(x[:, 0])
    before = [part.clone() for part in state]
    once, again = model.step(x[:, 1], state)[0], model.step(x[:, 1], state)[0]
    assert torch.equal(once, again)
    assert all(torch.equal(a, b) for a, b in zip(before, state, strict=True))
    rows = torch.tensor([2, 0])
    y, _ = model.step(x[rows, 1], select(state, rows))
    torch.testing.assert_close(y, model(x[rows, :2]), rtol=0, atol=1e-10)


def test_a_long_stream_in_half_precision_sums_in_single_precision():
    """In bfloat16, 256 + 1 = 256."""
    model = small().to(torch.bfloat16)
    with torch.no_grad():
        state = None
        for _ in range(600):
            _, state = model.step(torch.ones(1, 3, dtype=torch.bfloat16), state)
        total = state[1].item()
        _, one = model.step(torch.ones(1, 3, dtype=torch.bfloat16))
    assert total == pytest.approx(600 * one[1].item(), rel=1e-3)


@pytest.mark.parametrize("pooling", ["attention", "mean"])
def test_the_order_has_no_effect(pooling):
    """Of the four classes of two-symbol temporal order, it can separate three: at most 75 % are right."""
    model, x = small(pooling), sequences()
    torch.testing.assert_close(model(x), model(x[:, torch.randperm(7)]), rtol=0, atol=1e-12)
    a, b, noise = torch.eye(3, dtype=torch.float64)
    outputs = [model(torch.stack([noise, *pair, noise])[None]) for pair in ((a, a), (b, b), (a, b), (b, a))]
    distances = [(one - other).abs().max().item() > 1e-6 for one, other in itertools.combinations(outputs, 2)]
    assert distances == [True] * 5 + [False]


def test_attention_over_time_sums_to_one_over_the_real_steps():
    model, x = small(), sequences()
    weights = model.weights(x, LENGTHS)
    torch.testing.assert_close(weights.sum(1), torch.ones(3).double(), rtol=0, atol=1e-12)
    assert weights[1, 3:].eq(0).all() and weights[2].tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert weights[0].std() > 0.01
    torch.testing.assert_close(small("mean").weights(x, LENGTHS)[1, :3], torch.full((3,), 1 / 3).double())


def test_introspect_returns_the_states_and_weights_of_the_output():
    model, x = small(leak="coded"), sequences()
    shown = model.introspect(x, LENGTHS)
    context = (shown["weights"][..., None] * shown["states"]).sum(1)
    y = model.context(context)
    y = model.output(y.maximum(0.01 * y))
    torch.testing.assert_close(y.maximum(0.01 * y), model(x, LENGTHS), rtol=0, atol=1e-12)


def test_lower_precision_and_autocast_agree_with_float64():
    model, x = small(), sequences()
    expected = model(x, LENGTHS)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 0.2)):
        y = small().to(dtype)(x.to(dtype), LENGTHS)
        assert y.dtype == dtype
        torch.testing.assert_close(y.double(), expected, rtol=0, atol=tolerance)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model = model.float()
        torch.testing.assert_close(model(x.float(), LENGTHS).double(), expected, rtol=0, atol=0.2)
        assert model.step(x[:, 0].float())[0].isfinite().all()


@pytest.mark.parametrize("lengths", [[7, 3], [0, 3, 7], [8, 3, 7], [1.0, 3.0, 7.0], [True, True, True]])
def test_bad_lengths_are_refused(lengths):
    with pytest.raises(ValueError, match=f"^lengths: .*{re.escape(str(lengths))}"):
        small()(sequences(), torch.tensor(lengths))
    with pytest.raises(ValueError, match="^lengths: .*list"):
        small()(sequences(), lengths)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: small()(torch.randn(2, 7, 4)), r"^x: .*\(2, 7, 4\)"),
        (lambda: small()(sequences().float()), "^x: .*torch.float32.*torch.float64"),
        (lambda: small().step(torch.randn(2, 7, 3)), r"^x: .*\(2, 7, 3\)"),
        (lambda: small().step(sequences()[:2, 0], small().step(sequences()[:, 0])[1]), r"^state: .*\(3, 5\)"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
