"""Griffin against its equations as loops, and with attention in the stack: causal, streaming, bounded."""

import pytest
import torch

from rtx.lab.jacobian import reach
from rtx.models import Griffin
from rtx.models.griffin import GatedFeedForward, RecurrentBlock
from rtx.nn import naive_scan
from rtx.nn.local_attention import LocalAttention


def gelu(x: torch.Tensor) -> torch.Tensor:
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def rms_norm(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    return gain * x / torch.sqrt((x**2).sum(-1, keepdim=True) / x.shape[-1] + 1e-6)


def linear(p: dict[str, torch.Tensor], name: str, v: torch.Tensor) -> torch.Tensor:
    return p[f"{name}.weight"] @ v + p[f"{name}.bias"]


def naive_recurrent_block(p: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """One sequence (T, D): a step, a number and a tap at a time."""
    inner = [linear(p, "input", x_t) for x_t in x]
    taps, bias = p["convolution.direction"], p["convolution.bias"]
    convolved = []
    for t in range(len(x)):
        numbers = []
        for d in range(x.shape[1]):
            number = bias[d]
            for back in range(4):
                if t - back >= 0:
                    number = number + taps[d, 0, 3 - back] * inner[t - back][d]
            numbers.append(number)
        convolved.append(torch.stack(numbers))
    gates = [p[f"recurrence.{g}_gate.{kind}"] for g in ("recurrence", "input") for kind in ("weight", "bias")]
    states = naive_scan.rg_lru(torch.stack(convolved), p["recurrence.decay"], *gates)
    return torch.stack(
        [linear(p, "output", gelu(linear(p, "gate", x_t)) * h) for x_t, h in zip(x, states, strict=True)]
    )


def naive_griffin(p: dict[str, torch.Tensor], x: torch.Tensor, layers: int) -> torch.Tensor:
    """A stack of recurrent blocks for one sequence (T, D)."""
    for i in range(layers):
        own = {k.removeprefix(f"blocks.{i}."): v for k, v in p.items() if k.startswith(f"blocks.{i}.")}
        mixing = {k.removeprefix("mixing."): v for k, v in own.items()}
        x = x + naive_recurrent_block(mixing, rms_norm(x, own["mixing_norm.weight"]))
        rows = []
        for u in rms_norm(x, own["forward_norm.weight"]):
            hidden = gelu(linear(own, "forward_network.gate", u)) * linear(own, "forward_network.expand", u)
            rows.append(linear(own, "forward_network.contract", hidden))
        x = x + torch.stack(rows)
    return rms_norm(x, p["norm.weight"])


def small(layers: int = 4, window: int = 3, seed: int = 0, **changes: object) -> Griffin:
    """With four layers the third is attention."""
    torch.manual_seed(seed)
    model = Griffin(8, layers, 2, window, **changes).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def assert_same_with_gradients(ours: torch.nn.Module, naive, x: torch.Tensor) -> None:
    twin = {k: p.detach().clone().requires_grad_() for k, p in ours.named_parameters()}
    x_ours, x_twin = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, expected = ours(x_ours), torch.stack([naive(twin, row) for row in x_twin])
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    weight = torch.randn_like(y)
    (y * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(x_ours.grad, x_twin.grad, rtol=0, atol=1e-10)
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, twin[name].grad, rtol=0, atol=1e-10, msg=name)


def test_a_recurrent_block_equals_its_equations_with_all_gradients():
    torch.manual_seed(0)
    block = RecurrentBlock(6, 3).double()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter)
    assert_same_with_gradients(block, naive_recurrent_block, torch.randn(2, 7, 6, dtype=torch.float64))


def test_two_layers_equal_the_equations_with_all_gradients():
    x = torch.randn(2, 6, 8, dtype=torch.float64)
    assert_same_with_gradients(small(layers=2), lambda p, row: naive_griffin(p, row, 2), x)


def test_every_third_block_is_attention():
    kinds = [type(block.mixing) for block in Griffin(8, 7, 2, 3).blocks]
    assert kinds == [RecurrentBlock, RecurrentBlock, LocalAttention] * 2 + [RecurrentBlock]


def test_a_stack_with_attention_is_recurrent_blocks_around_it():
    model, x = small(), torch.randn(2, 9, 8, dtype=torch.float64)
    y = x
    for block in model.blocks:
        y = y + block.mixing(rms_norm(y, block.mixing_norm.weight))
        y = y + block.forward_network(rms_norm(y, block.forward_norm.weight))
    torch.testing.assert_close(model(x), rms_norm(y, model.norm.weight), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_a_stack_with_attention_streams(dtype, tolerance):
    torch.manual_seed(0)
    model, state, rows = Griffin(8, 6, 2, 4).to(dtype).eval(), None, []
    x = torch.randn(2, 29, 8, dtype=dtype)
    with torch.no_grad():
        for x_t in x.unbind(1):
            y, state = model.step(x_t, state)
            rows.append(y)
        torch.testing.assert_close(torch.stack(rows, 1), model(x), rtol=0, atol=tolerance)


def test_a_stack_with_attention_sees_the_whole_past_and_nothing_else():
    model = Griffin(8, 3, 2, 2).double()
    for block in model.blocks[:2]:
        torch.nn.init.constant_(block.mixing.recurrence.decay, 3.0)
    jacobian = reach(model, torch.randn(1, 12, 8, dtype=torch.float64))
    assert jacobian.triu(1).max() == 0
    assert (jacobian.tril() > 0).sum() == 12 * 13 / 2


def test_every_parameter_of_a_stack_with_attention_gets_a_gradient():
    model = small().train()
    y = model(torch.randn(2, 9, 8, dtype=torch.float64))
    (y * torch.randn_like(y)).sum().backward()
    assert all(p.grad.abs().max() > 0 for p in model.parameters())


def test_a_long_sequence_with_attention_begins_as_a_short_one():
    model, x = Griffin(8, 3, 2, 16).eval(), torch.randn(1, 10_001, 8)
    with torch.no_grad():
        y = model(x)
        torch.testing.assert_close(y[:, :50], model(x[:, :50]), rtol=0, atol=1e-5)
    assert y.isfinite().all()


def test_half_precision_and_autocast_run_with_attention():
    x = torch.randn(2, 9, 8)
    torch.manual_seed(0)
    model = Griffin(8, 3, 2, 4).eval()
    expected = model(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, state = model(x), None
        for x_t in x.unbind(1):
            last, state = model.step(x_t, state)
    torch.testing.assert_close(y.float(), expected, rtol=0, atol=0.2)
    torch.testing.assert_close(last.float(), expected[:, -1], rtol=0, atol=0.2)
    half = model.to(torch.bfloat16)(x.to(torch.bfloat16))
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), expected, rtol=0, atol=0.2)


@pytest.mark.parametrize(("D", "layers", "heads"), [(8, 2, 2), (8, 3, 2), (12, 7, 3)])
def test_parameters_are_those_one_counts(D, layers, heads):
    K, attentions = D // heads, layers // 3
    recurrent = 3 * (D * D + D) + (4 * D + D) + 2 * (D * K + D) + D
    attention = 2 * D * D + 2 * D * K
    network = 2 * (D * 3 * D + 3 * D) + 3 * D * D + D
    expected = (layers - attentions) * recurrent + attentions * attention + layers * (network + 2 * D) + D
    assert sum(p.numel() for p in Griffin(D, layers, heads, 4).parameters()) == expected


def test_gated_network_is_the_same_at_every_position():
    network, x = GatedFeedForward(6), torch.randn(2, 5, 6)
    torch.testing.assert_close(network(x)[:, 3], network(x[:, 3]))


@pytest.mark.parametrize("layers", [2, 3])
def test_dropout_is_for_training(layers):
    model, x = small(layers, dropout=0.5), torch.randn(2, 7, 8, dtype=torch.float64)
    assert torch.equal(model(x), model(x))
    assert not torch.equal(model.train()(x), model(x))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Griffin(8, 0, 2, 4), "layers: expected a whole number of at least 1, got 0"),
        (lambda: Griffin(8, 2, 2, 0), "window: expected a whole number of at least 1, got 0"),
        (lambda: Griffin(8, 2, 3, 4), "heads: expected a divisor of d_model = 8, got 3"),
        (lambda: Griffin(8, 3, 8, 4), "heads: expected heads of even width in d_model = 8, got 8"),
        (lambda: Griffin(8, 2, 2, 4, dropout=1.0), "dropout: expected a number from 0 up to, not including, 1"),
        (lambda: small(1).step(torch.randn(2, 8).double(), ((),)), "state: expected one of a convolution and a rec"),
        (
            lambda: small(3).step(torch.randn(2, 8).double(), small(2).step(torch.randn(2, 8).double())[1]),
            "state: expected one of 3 layers, got one of 2",
        ),
    ],
)
def test_bad_input_is_refused_with_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
