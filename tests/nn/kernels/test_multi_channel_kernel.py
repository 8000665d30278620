"""MC-RNN's fused channels: the same as the plain loop and the equations in outputs, states and gradients."""

import itertools

import pytest
import torch

from rtx.nn.kernels import multi_channel as kernel
from rtx.nn.kernels.dispatch import implementation
from rtx.nn.kernels.multi_channel import channels
from rtx.nn.kernels.native import build
from rtx.nn.kernels.native import channels as native
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.nn.naive_recurrent import multi_channel
from rtx.nn.state import detach, select

CANNOT = build.obstacle()
COMPILED = pytest.mark.skipif(CANNOT is not None, reason=f"no kernels in C++: {CANNOT}")
WAYS = list(itertools.product(("equation", "clipped"), ("equation", "text"), ("mean", "previous")))


def layer_of(block: int = 4, width: int = 5, **options) -> MultiChannelRNN:
    torch.manual_seed(0)
    return MultiChannelRNN(3, width, block, mapping_start="uniform", **options).double()


def run(impl: str, layer: MultiChannelRNN, x: torch.Tensor, state: tuple | None = None) -> tuple:
    """All states, and h and c of the state behind them."""
    with implementation(impl, "multi_channel"):
        states, (h, c, _) = layer._run(x, state, 0.0)
    return states, h, c


def gradients(outputs: tuple, of: list[torch.Tensor], again: bool = False) -> tuple[torch.Tensor, ...]:
    loss = sum((y * torch.arange(y.numel(), dtype=y.dtype).view(y.shape).cos()).sum() for y in outputs)
    return torch.autograd.grad(loss, of, retain_graph=True, create_graph=again, materialize_grads=True)


def past(layer: MultiChannelRNN, read: int = 5) -> tuple:
    """A state after so many steps, whose parts are leaves."""
    P = layer.predecessors
    generator = torch.Generator().manual_seed(2)
    shape = (2, P, P, layer.weight_hh_l0.shape[1])
    rings = [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for _ in range(2)]
    return *rings, read


def inputs(T: int) -> torch.Tensor:
    return torch.randn(2, T, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()


@pytest.mark.parametrize(("start", "phase", "cell_state"), WAYS)
@pytest.mark.parametrize(("block", "T", "read"), [(2, 4, 5), (3, 1, 1), (4, 2, 0), (4, 11, 4), (5, 3, 2)])
def test_equals_the_plain_loop_with_all_gradients_also_of_the_state(block, T, read, start, phase, cell_state):
    layer, x = layer_of(block, start=start, phase=phase, cell_state=cell_state), inputs(T)
    state = past(layer, read)
    of = [x, *state[:2], *(p for name, p in layer.named_parameters() if "attention" not in name)]
    found, expected = run("fused", layer, x, state), run("torch", layer, x, state)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    for used in (slice(3), slice(1), slice(1, 2), slice(2, 3)):  # of all outputs, and of each alone
        for ours, theirs in zip(gradients(found[used], of), gradients(expected[used], of), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("start", "phase", "cell_state"), WAYS)
def test_equals_the_loops_of_the_equations(start, phase, cell_state):
    way = {"start": start, "phase": phase, "cell_state": cell_state}
    layer, x = layer_of(**way), inputs(7)
    expected, _ = multi_channel(x, dict(layer.named_parameters()), 4, "lstm", mapping="shared", **way)
    with implementation("fused", "multi_channel"):
        found, _ = layer(x)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    of = [x, *layer.parameters()]
    for ours, theirs in zip(gradients((found,), of), gradients((expected,), of), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@COMPILED
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("width", "cell_state"), [(5, "mean"), (16, "previous"), (37, "mean")])
@pytest.mark.parametrize(("block", "T", "read"), [(2, 3, 1), (4, 7, 4)])
def test_in_cpp_equals_the_plain_loop_in_float64(block, T, read, width, cell_state, threads, monkeypatch):
    """Rows that end inside sixteen numbers, too, and several threads."""
    monkeypatch.setattr(native, "SMALL", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    layer, x = layer_of(block, width, cell_state=cell_state), inputs(T)
    state, names = past(layer, read), [name for name, _ in layer.named_parameters() if "attention" not in name]

    def found(impl: str, dtype: torch.dtype) -> list[torch.Tensor]:
        layer.to(dtype)
        own = [part.detach().to(dtype).requires_grad_() for part in (x, *state[:2])]
        outputs = run(impl, layer, own[0], (*own[1:], read))
        return [*outputs, *gradients(outputs, [*own, *(layer.get_parameter(name) for name in names)])]

    for ours, theirs in zip(found("native", torch.float32), found("torch", torch.float64), strict=True):
        assert ours.dtype == torch.float32
        scale = max(1.0, theirs.abs().max().item())
        torch.testing.assert_close(ours.double() / scale, theirs / scale, rtol=1e-5, atol=1e-5)


@COMPILED
def test_what_is_no_number_stays_none_in_cpp():
    layer, x = layer_of().float(), inputs(6).detach().float()
    x[0, 3, 1] = torch.nan
    states, *_ = run("native", layer, x)
    assert states[0, 3:].isnan().all() and states[0, :3].isfinite().all() and states[1].isfinite().all()


@COMPILED
def test_cpp_is_for_float32_alone():
    with pytest.raises(ValueError, match="impl: multi_channel cannot be 'native' here: it is written for float32"):
        run("native", layer_of(), inputs(5))


def test_the_backward_pass_by_hand_is_the_one_that_runs(monkeypatch):
    """Asked for gradients without gradients of their own, it does not go by the plain loop."""
    layer, x = layer_of(), inputs(6)
    state = past(layer)
    of = [x, *state[:2], *(p for name, p in layer.named_parameters() if "attention" not in name)]
    monkeypatch.setattr(kernel, "gradients_again", lambda *_: pytest.fail("by the plain loop"))
    first = gradients(run("fused", layer, x, state), of)
    for ours, theirs in zip(first, gradients(run("torch", layer, x, state), of), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_gradients_have_gradients():
    """Also where the input was made from a weight, which must not count twice."""
    layer, x = layer_of(), inputs(4)
    of, second = [x, *(p for name, p in layer.named_parameters() if "attention" not in name)], []
    for impl in ("fused", "torch"):
        first = gradients(run(impl, layer, x * layer.weight_hh_l0.sum(), past(layer)), of, again=True)
        squares = torch.cat([g.flatten() for g in first]).square()
        second.append([*first, *gradients((squares,), of)])
    for ours, theirs in zip(*second, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_piece_after_another_is_the_whole_with_its_gradients(cut):
    layer, x = layer_of(), inputs(9)
    whole, *_ = run("fused", layer, x)
    first, h, c = run("fused", layer, x[:, :cut])
    second, *_ = run("fused", layer, x[:, cut:], (h, c, cut))
    of = [x, layer.weight_hh_l0, layer.weight_block]
    pieces = torch.cat([first, second], 1)
    torch.testing.assert_close(pieces, whole, rtol=0, atol=1e-10)
    for ours, theirs in zip(gradients((pieces,), of), gradients((whole,), of), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_a_state_goes_on_in_two_ways_that_do_not_disturb_each_other():
    layer, x = layer_of(), inputs(9).detach()
    other = x.flip(1)
    with torch.no_grad(), implementation("fused", "multi_channel"):
        _, fork = layer(x[:, :4])
        one, _ = layer(x[:, 4:], fork)
        two, _ = layer(other[:, 4:], select(detach(fork), torch.tensor([1, 0])))
        again, _ = layer(x[:, 4:], fork)
        crossed = torch.cat([x[[1, 0], :4], other[:, 4:]], 1)
        assert torch.equal(one, again)
        torch.testing.assert_close(one, layer(x)[0][:, 4:], rtol=0, atol=1e-12)
        torch.testing.assert_close(two, layer(crossed)[0][:, 4:], rtol=0, atol=1e-12)


def test_weights_are_dropped_as_by_the_plain_loop():
    layer, x, found = layer_of(weight_dropout=0.5), inputs(6), []
    for impl in ("fused", "torch"):
        torch.manual_seed(3)
        with implementation(impl, "multi_channel"):
            y, _ = layer(x)
        found.append((y, *gradients((y,), [layer.weight_block, layer.weight_hh_l0])))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_what_it_keeps_for_the_backward_pass_is_linear_in_time_and_less_than_the_plain_loop_keeps():
    def kept(impl: str, T: int) -> int:
        layer, storages = MultiChannelRNN(8, 16), {}

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            alive = run(impl, layer, torch.randn(4, T, 8))
        assert alive
        return sum(storages.values())

    sizes = [kept("fused", T) for T in (20, 40, 60)]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0]
    assert sizes[1] < kept("torch", 40)


def test_transforms_of_torch_go_by_the_plain_loop():
    layer, x = layer_of(), inputs(4)
    expected = torch.autograd.functional.jacobian(lambda x: layer(x)[0], x)
    torch.testing.assert_close(torch.func.jacrev(lambda x: layer(x)[0])(x.detach()), expected)


def test_autocast_changes_the_dtype_and_little_else():
    layer, x = layer_of().float(), inputs(6).float()
    expected = layer(x)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states, h, c = run("fused", layer, x)
        assert {one.dtype for one in (states, h, c)} == {one.dtype for one in run("torch", layer, x)}
        y, _ = layer(x)
        grads = gradients((y.float(),), [x, layer.weight_block])
    torch.testing.assert_close(y.float(), expected, rtol=0, atol=0.02)
    for ours, theirs in zip(grads, gradients((expected,), [x, layer.weight_block]), strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0.1)


@pytest.mark.parametrize(
    "options", [{"cell": "gru"}, {"cell": "rnn"}, {"mapping": "per-gate"}, {"cell_state": "mapped"}]
)
def test_a_switch_that_it_lacks_leads_to_the_plain_loop(options):
    layer, x = layer_of(**options), inputs(5)
    with pytest.raises(ValueError, match="impl: multi_channel cannot be 'fused' here: it is written for"):
        run("fused", layer, x)
    assert layer(x)[0].shape == (2, 5, 5)


def test_one_step_alone_takes_the_plain_loop_and_more_the_fused_one_or_cpp(monkeypatch):
    chosen = []
    monkeypatch.setattr(channels, "_tell", lambda name, why: chosen.append(name) or name)
    layer = layer_of()
    layer(inputs(1)), layer(inputs(2)), layer.float()(inputs(2).float())
    assert chosen == ["torch", "fused", "fused" if CANNOT else "native"]
