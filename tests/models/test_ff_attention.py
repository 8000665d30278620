"""Feed-forward attention against its naive twin; what it ignores (padding, order) and what it costs."""

import itertools

import pytest
import torch

from rtx.models import FeedForwardAttention
from rtx.nn.naive_pooling import feed_forward_attention
from rtx.nn.state import select

SWITCHES = list(itertools.product(("attention", "mean"), ("printed", "coded")))
LENGTHS = torch.tensor([7, 3, 1])


def small(pooling: str = "attention", leak: str = "printed", seed: int = 0) -> FeedForwardAttention:
    """A double one whose biases are not zero, with two outputs; seeds differ in all numbers."""
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
    twin = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    x_twin = x.detach().clone().requires_grad_()
    y = model(x, LENGTHS)
    expected = torch.stack(
        [feed_forward_attention(row[:n], twin, pooling, leak) for row, n in zip(x_twin, LENGTHS, strict=True)]
    )
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    weight = torch.randn_like(y)
    (y * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(x.grad, x_twin.grad, rtol=0, atol=1e-10)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, twin[name].grad, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("pooling", "parameters"), [("attention", 10_602), ("mean", 10_501)])
def test_has_the_papers_number_of_parameters(pooling, parameters):
    assert sum(p.numel() for p in FeedForwardAttention(pooling=pooling).parameters()) == parameters


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


def test_a_step_does_not_change_the_state_it_was_given():
    model, x = small(), sequences()
    _, state = model.step(x[:, 0])
    before = [part.clone() for part in state]
    once, again = model.step(x[:, 1], state)[0], model.step(x[:, 1], state)[0]
    assert torch.equal(once, again)
    assert all(torch.equal(a, b) for a, b in zip(before, state, strict=True))


def test_a_state_can_be_reordered_along_the_batch():
    model, x = small(), sequences()
    _, state = model.step(x[:, 0])
    rows = torch.tensor([2, 0])
    y, _ = model.step(x[rows, 1], select(state, rows))
    torch.testing.assert_close(y, model(x[rows, :2]), rtol=0, atol=1e-10)


def test_a_stream_in_half_precision_still_moves_after_thousands_of_steps():
    """Sums in bfloat16 would stand still from 256 on: 256 + 1 = 256."""
    model = small().to(torch.bfloat16)
    with torch.no_grad():
        state = None
        for _ in range(600):
            _, state = model.step(torch.ones(1, 3, dtype=torch.bfloat16), state)
        total = state[1].item()
        _, one = model.step(torch.ones(1, 3, dtype=torch.bfloat16))
    assert total == pytest.approx(600 * one[1].item(), rel=1e-3)


@pytest.mark.parametrize(("pooling", "leak"), SWITCHES)
@pytest.mark.parametrize("padding", [1e6, float("nan"), float("inf")])
def test_padding_has_no_effect_whatever_it_holds(pooling, leak, padding):
    model, x = small(pooling, leak), sequences()
    expected = [model(row[None, :n])[0] for row, n in zip(x, LENGTHS, strict=True)]
    for row, n in zip(x, LENGTHS, strict=True):
        row[n:] = padding
    x.requires_grad_()
    y = model(x, LENGTHS)
    torch.testing.assert_close(y, torch.stack(expected), rtol=0, atol=1e-12)
    y.sum().backward()
    assert all(p.grad.isfinite().all() for p in [x, *model.parameters()])


@pytest.mark.parametrize("pooling", ["attention", "mean"])
def test_order_does_not_matter_so_xy_and_yx_are_the_same_to_it(pooling):
    """Two-symbol temporal order has four classes; two of them cannot be told apart, so at most 75 %."""
    model, x = small(pooling), sequences()
    torch.testing.assert_close(model(x), model(x[:, torch.randperm(7)]), rtol=0, atol=1e-12)
    a, b, noise = torch.eye(3, dtype=torch.float64)
    outputs = [model(torch.stack([noise, *pair, noise])[None]) for pair in ((a, a), (b, b), (a, b), (b, a))]
    distances = [(one - other).abs().max().item() > 1e-6 for one, other in itertools.combinations(outputs, 2)]
    assert distances == [True] * 5 + [False]


def test_printed_and_coded_leak_are_different_functions_below_their_corner():
    printed, coded = small(leak="printed"), small(leak="coded")
    for model in (printed, coded):
        torch.nn.init.constant_(model.output.bias, -10)
    x = sequences()
    assert torch.equal(printed(x), torch.full((3, 2), 0.01, dtype=torch.float64))  # the floor
    assert (coded(x) < 0).all()  # a slope
    printed(x).sum().backward(), coded(x).sum().backward()
    assert all(not p.grad.any() for p in printed.parameters())
    assert all(p.grad.any() for p in coded.parameters())


def test_attention_over_time_sums_to_one_over_the_real_steps():
    model, x = small(), sequences()
    weights = model.weights(x, LENGTHS)
    torch.testing.assert_close(weights.sum(1), torch.ones(3).double(), rtol=0, atol=1e-12)
    assert weights[1, 3:].eq(0).all() and weights[2].tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert weights[0].std() > 0.01
    torch.testing.assert_close(small("mean").weights(x, LENGTHS)[1, :3], torch.full((3,), 1 / 3).double())


def test_inside_holds_what_makes_the_output():
    model, x = small(), sequences()
    inside = model.inside(x, LENGTHS)
    context = (inside["attention"][..., None] * inside["states"]).sum(1)
    rest = torch.nn.Sequential(model.context, Printed(), model.output, Printed())
    torch.testing.assert_close(rest(context), model(x, LENGTHS), rtol=0, atol=1e-12)


class Printed(torch.nn.Module):
    def forward(self, x):
        return torch.maximum(x, torch.full_like(x, 0.01))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision_agrees_with_float64(dtype):
    model, x = small(), sequences()
    expected = model(x, LENGTHS)
    y = small().to(dtype)(x.to(dtype), LENGTHS)
    assert y.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float32 else 0.2
    torch.testing.assert_close(y.double(), expected, rtol=0, atol=tolerance)


def test_runs_under_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model = FeedForwardAttention()
        whole = model(torch.rand(2, 5, 2), torch.tensor([2, 5]))
        y, _ = model.step(torch.rand(2, 2))
    assert whole.isfinite().all() and y.isfinite().all()


@pytest.mark.parametrize("lengths", [[7, 3], [0, 3, 7], [8, 3, 7], [1.0, 3.0, 7.0], [True, True, True]])
def test_bad_lengths_are_refused(lengths):
    with pytest.raises(ValueError, match="lengths: expected 3 whole numbers from 1 to 7, one for each sequence, got"):
        small()(sequences(), torch.tensor(lengths))


def test_lengths_in_a_list_are_refused():
    with pytest.raises(ValueError, match=r"lengths: expected a torch.Tensor, got list"):
        small()(sequences(), [7, 3, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FeedForwardAttention(inputs=0), "inputs: expected a whole number of at least 1, got 0"),
        (lambda: FeedForwardAttention(d_hidden=0), "d_hidden: expected a whole number of at least 1, got 0"),
        (lambda: FeedForwardAttention(pooling="max"), "pooling: 'max' is unknown, allowed are attention, mean"),
        (lambda: FeedForwardAttention(leak="print"), "leak: 'print' is unknown, .*did you mean 'printed'"),
        (lambda: small()(torch.randn(2, 7, 4)), r"x: expected shape \(batch, time, 3\), got \(2, 7, 4\)"),
        (lambda: small().step(torch.randn(2, 7, 3)), r"x: expected one step of at least one stream, \(batch, 3\)"),
        (
            lambda: small().step(sequences()[:2, 0], small().step(sequences()[:, 0])[1]),
            r"state: expected tensors of shapes \(2, 5\), \(2, 1\) .*, got \(3, 5\), \(3, 1\)",
        ),
    ],
)
def test_bad_input_is_refused_with_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
