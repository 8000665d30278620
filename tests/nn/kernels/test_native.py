"""The kernels in C++ against the loops and torch in float64, with all gradients; what they refuse."""

import itertools
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.nn.kernels import local_rnn as local_rnn_kernel
from rtx.nn.kernels.attention import causal_attention
from rtx.nn.kernels.dropout import dropout, relu_dropout
from rtx.nn.kernels.local_rnn import local_rnn
from rtx.nn.kernels.native import build
from rtx.nn.kernels.native import cells as native_cells
from rtx.nn.kernels.native import dropout as native_dropout
from rtx.nn.kernels.native.attention import explicit_attention
from rtx.nn.kernels.native.masks import alive, dropped
from rtx.nn.kernels.pooling import pooling
from rtx.nn.kernels.pooling_plain import LEAKS

pytestmark = pytest.mark.skipif(build.obstacle() is not None, reason=f"no kernels in C++: {build.obstacle()}")

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def drawn(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.randn(shape).requires_grad_() for shape in shapes]


def outputs_and_gradients(y: torch.Tensor, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)
    return [y, *torch.autograd.grad((y * weight).sum(), inputs, materialize_grads=True)]


def in_double(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return [x.detach().double().requires_grad_() for x in inputs]


def assert_all_close(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for one, wanted in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        scale = max(1.0, wanted.abs().max().item())
        torch.testing.assert_close(one.double() / scale, wanted / scale, **CLOSE)


def last_seed() -> int:
    """The seed that a kernel draws after `torch.manual_seed(3)`."""
    torch.manual_seed(3)
    return int(torch.randint(2**62, ()))


@settings(max_examples=40)
@given(
    wide=st.booleans(),
    cell=st.sampled_from(sorted(GATES)),
    B=st.integers(1, 3),
    T=st.sampled_from([1, 2, 15, 16, 17, 33]),
    D=st.integers(1, 9),
    window=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_local_rnn_equals_the_loops(wide, cell, B, T, D, window, seed):
    torch.manual_seed(seed)
    G = GATES[cell] * D
    inputs = drawn((B, T, D), (G, D), (G, D), (G,), (G,))
    twins = in_double(inputs)
    expected = outputs_and_gradients(local_rnn(*twins, window, cell, impl="naive"), twins)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_rnn_kernel, "WIDE", D + (not wide))
        found = outputs_and_gradients(local_rnn(*inputs, window, cell, impl="native"), inputs)
    assert_all_close(found, expected)


@pytest.mark.parametrize("cell", sorted(GATES))
def test_gates_that_are_driven_to_their_ends_stay_exact(cell):
    torch.manual_seed(0)
    inputs = [x.detach().mul(60).requires_grad_() for x in drawn((1, 20, 3), *[(GATES[cell] * 3, 3)] * 2)]
    inputs += drawn((GATES[cell] * 3,), (GATES[cell] * 3,))
    twins = in_double(inputs)
    found, expected = (local_rnn(*x, 3, cell, impl=how) for x, how in ((inputs, "native"), (twins, "torch")))
    torch.testing.assert_close(found.double(), expected, **CLOSE)


@settings(max_examples=40)
@given(
    B=st.integers(1, 2),
    H=st.integers(1, 3),
    T=st.sampled_from([1, 2, 7, 8, 9, 16, 31, 32, 33, 70]),
    K=st.sampled_from([1, 3, 15, 16, 17, 40]),
    rate=st.sampled_from([0.0, 0.05, 0.5]),
    seed=st.integers(0, 99),
)
def test_attention_equals_explicit_weights_under_its_masks(B, H, T, K, rate, seed):
    torch.manual_seed(seed)
    inputs = drawn(*[(B, H, T, K)] * 3)
    twins = in_double(inputs)
    mask_seed = last_seed() if rate else 0
    expected = outputs_and_gradients(explicit_attention(*twins, dropped(rate), mask_seed), twins)
    torch.manual_seed(3)
    assert_all_close(outputs_and_gradients(causal_attention(*inputs, rate, impl="native"), inputs), expected)


def test_explicit_attention_without_dropout_is_torchs():
    torch.manual_seed(0)
    inputs = in_double(drawn(*[(2, 3, 37, 5)] * 3))
    torch.testing.assert_close(explicit_attention(*inputs, 0, 0), causal_attention(*inputs, 0.0, impl="torch"))


def test_attention_reads_strided_heads_and_gives_them_side_by_side():
    torch.manual_seed(0)
    wide = torch.randn(2, 37, 3, 8, 2).requires_grad_()  # heads apart, and every other number only

    def run(x, impl):
        q = x[..., 0].transpose(1, 2)
        return causal_attention(q, q.flip(2), q * 2, 0.0, impl=impl)

    found = outputs_and_gradients(run(wide, "native"), [wide])
    twin = wide.detach().double().requires_grad_()
    assert_all_close(found, outputs_and_gradients(run(twin, "torch"), [twin]))
    assert found[0].transpose(1, 2).is_contiguous()


def test_great_scores_and_values_of_the_future_do_no_harm():
    torch.manual_seed(0)
    q, k, v = (40 * x.detach() for x in drawn(*[(1, 2, 70, 4)] * 3))
    found = causal_attention(q, k, v, 0.0, impl="native")
    expected = causal_attention(q.double(), k.double(), v.double(), 0.0, impl="torch")
    torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=0.05)
    v[:, :, 33:] = 1e35
    k[:, :, 33:] = 1e5
    assert torch.equal(causal_attention(q, k, v, 0.0, impl="native")[:, :, :33], found[:, :, :33])


LENGTHS = torch.tensor([130, 1, 64, 65, 99])


@pytest.mark.parametrize(("scored", "leak"), list(itertools.product((True, False), LEAKS)))
@pytest.mark.parametrize(("F", "D"), [(1, 1), (2, 37), (5, 16)])
def test_pooling_equals_torch_and_reads_no_padding(scored, leak, F, D):
    torch.manual_seed(0)
    x, *weights = drawn((5, 130, F), (D, F), (D,), (1, D), (1,))
    padding = torch.arange(130) >= LENGTHS[:, None]
    inputs = [x.detach().masked_fill(padding[..., None], torch.nan).requires_grad_(), *weights[: 4 if scored else 2]]
    twins = in_double(inputs)
    rest = [] if scored else [None, None]
    expected = outputs_and_gradients(pooling(twins[0], LENGTHS, *twins[1:], *rest, leak, impl="torch"), twins)
    found = outputs_and_gradients(pooling(inputs[0], LENGTHS, *inputs[1:], *rest, leak, impl="native"), inputs)
    assert_all_close(found, expected)
    assert not found[1][padding].any()


@pytest.mark.parametrize(("leak", "corner"), [("printed", 0.01), ("coded", 0.0)])
def test_at_the_leaks_corner_the_gradient_is_torchs(leak, corner):
    x, weight, score, shift = drawn((5, 130, 3), (6, 3), (1, 6), (1,))
    bias = torch.full((6,), corner).requires_grad_()
    inputs = [x, weight.detach().zero_().requires_grad_(), bias, score, shift]
    found, expected = (
        outputs_and_gradients(pooling(x, LENGTHS, *inputs[1:], leak, impl=how), inputs) for how in ("native", "torch")
    )
    assert_all_close(found, [one.double() for one in expected])


@pytest.mark.parametrize("shape", [(7, 50, 37), (1,), (3, 64), (0, 5), ()])
def test_dropout_hides_what_its_masks_say_and_keeps_nothing(shape):
    x = torch.randn(shape).requires_grad_()
    columns = shape[-1] if shape else 1
    living = alive(last_seed(), x.numel() // max(1, columns), columns, dropped(0.3)).view(shape)
    torch.manual_seed(3)
    y = dropout(x, 0.3, impl="native")
    (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    torch.testing.assert_close(y, x * living / (1 - dropped(0.3) / 2**16))
    torch.testing.assert_close(gradient, living / (1 - dropped(0.3) / 2**16))
    assert y.grad_fn is not None and not y.grad_fn.saved_tensors


def test_masks_are_drawn_anew_for_each_row_and_column_at_the_rate():
    living = alive(12345, 400, 1000, dropped(0.2)).float()
    assert living.mean().item() == pytest.approx(0.8, abs=0.002)
    assert living.mean(0).std().item() == pytest.approx((0.16 / 400) ** 0.5, rel=0.15)
    assert living.mean(1).std().item() == pytest.approx((0.16 / 1000) ** 0.5, rel=0.15)
    centred = living - living.mean()
    for rows, columns in ((1, 0), (0, 1), (0, 16), (0, 32), (3, 5)):
        beside = centred[rows:, columns:] * centred[: 400 - rows, : 1000 - columns]
        assert abs(beside.mean().item() / 0.16) < 0.01


def twice(run, inputs, impl):
    """The gradients of what all gradients' squares sum to."""
    found = torch.autograd.grad(run(inputs, impl).square().sum(), inputs, create_graph=True)
    return list(torch.autograd.grad(sum(one.square().sum() for one in found), inputs))


@pytest.mark.parametrize("name", ["local_rnn", "attention", "pooling"])
def test_gradients_of_gradients_are_torchs(name):
    torch.manual_seed(0)
    if name == "local_rnn":
        inputs = drawn((2, 5, 3), (9, 3), (9, 3), (9,), (9,))
        run = lambda x, impl: local_rnn(*x, 3, "gru", impl=impl)  # noqa: E731
    elif name == "attention":
        inputs = drawn(*[(1, 2, 9, 3)] * 3)
        run = lambda x, impl: explicit_attention(*x, 0, 0) if impl == "torch" else causal_attention(*x, impl=impl)  # noqa: E731
    else:
        inputs = drawn((5, 130, 3), (6, 3), (6,), (1, 6), (1,))
        run = lambda x, impl: pooling(x[0], LENGTHS, *x[1:], "coded", impl=impl)  # noqa: E731

    assert_all_close(twice(run, inputs, "native"), twice(run, in_double(inputs), "torch"))


def test_threads_share_the_work_and_change_no_bit(monkeypatch):
    for module in (native_cells, native_dropout):
        monkeypatch.setattr(module, "SMALL", 1)
    torch.manual_seed(0)
    q = torch.randn(3, 5, 50, 16).requires_grad_()
    x, *weights = drawn((4, 600, 32), (96, 32), (96, 32), (96,), (96,))
    features = torch.randn(7, 300, 2)

    def run():
        torch.manual_seed(1)
        attended = outputs_and_gradients(causal_attention(q, q, q, 0.1, impl="native"), [q])
        states = outputs_and_gradients(local_rnn(x, *weights, 3, "gru", impl="native"), [x])
        lengths = torch.full((7,), 300)
        context = pooling(features, lengths, weights[0][:, :2], weights[2], None, None, "coded", impl="native")
        rectified = outputs_and_gradients(relu_dropout(x, 0.5, impl="native"), [x])
        return [*attended, *states, context, *rectified, dropout(x.expand(3, -1, -1, -1), 0.5, impl="native")]

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = run()
        torch.set_num_threads(3)
        together = run()
    finally:
        torch.set_num_threads(before)
    assert all(map(torch.equal, alone, together))


def test_other_precisions_take_another_way_and_say_why():
    q = torch.randn(1, 1, 9, 4)
    assert causal_attention.choose(q, q, q, 0.1) == "native"
    assert causal_attention.choose(q.double(), q.double(), q.double(), 0.1) == "fused"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert causal_attention.choose(q, q, q, 0.1) == "fused"
        with pytest.raises(ValueError, match=r"it is written for float32, and autocast is torch.bfloat16"):
            causal_attention(q, q, q, 0.1, impl="native")
    with pytest.raises(ValueError, match=r"cannot be 'native' here: it is written for float32, and x is torch.float64"):
        causal_attention(q.double(), q.double(), q.double(), 0.1, impl="native")


@pytest.mark.parametrize(("cell", "gates"), GATES.items())
def test_what_is_no_number_is_none_in_every_window_that_holds_it(cell, gates):
    x, *weights = drawn((2, 40, 8), *[(gates * 8, 8)] * 2, *[(gates * 8,)] * 2)
    with torch.no_grad():
        x[1, 20, 3] = torch.nan
        found = local_rnn(x, *weights, 3, cell, impl="native").isnan().any(-1)
    assert found.nonzero().tolist() == [[1, 20], [1, 21], [1, 22]]


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_key_that_is_no_number_reaches_all_who_may_look_at_it(dropout):
    q, k, v = drawn(*[(1, 2, 40, 8)] * 3)
    with torch.no_grad():
        k[0, 1, 20, 3] = torch.nan
        found = causal_attention(q, k, v, dropout, impl="native").isnan().all(-1)[0]
    assert not found[0].any() and found[1].tolist() == [t >= 20 for t in range(40)]


def test_a_feature_that_is_no_number_reaches_the_context():
    x, weight, bias, score, shift = drawn((2, 130, 3), (6, 3), (6,), (1, 6), (1,))
    with torch.no_grad():
        x[1, 70, 0] = torch.nan
        for leak in ("printed", "coded"):
            context = pooling(x, torch.tensor([130, 130]), weight, bias, score, shift, leak, impl="native")
            assert context.isnan().any(-1).tolist() == [False, True]


@pytest.mark.parametrize(
    "laid_out", [lambda b: b.new_zeros(len(b), 2).select(1, 0).copy_(b), lambda b: b[:1].expand(24)]
)
def test_a_bias_may_lie_in_memory_as_it_likes(laid_out):
    x, w_ih, w_hh, b_ih, b_hh = (one.detach() for one in drawn((2, 9, 8), (24, 8), (24, 8), (24,), (24,)))
    b_hh = laid_out(b_hh)
    found, expected = (local_rnn(x, w_ih, w_hh, b_ih, b_hh, 3, "gru", impl=impl) for impl in ("native", "torch"))
    torch.testing.assert_close(found, expected, **CLOSE)


def test_gradients_of_gradients_find_arguments_that_lie_otherwise():
    q, k, v = (x.detach().mT.requires_grad_() for x in drawn(*[(1, 2, 3, 9)] * 3))
    run = lambda x, impl: explicit_attention(*x, 0, 0) if impl == "torch" else causal_attention(*x, impl=impl)  # noqa: E731
    assert_all_close(twice(run, [q, k, v], "native"), twice(run, in_double([q, k, v]), "torch"))
    x, weight, bias, score, shift = drawn((5, 130, 3), (6, 3), (6,), (6, 2), (1,))
    score = score.detach()[:, :1].mT.requires_grad_()
    run = lambda x, impl: pooling(x[0], LENGTHS, *x[1:], "coded", impl=impl)  # noqa: E731
    inputs = [x, weight, bias, score, shift]
    assert_all_close(twice(run, inputs, "native"), twice(run, in_double(inputs), "torch"))


def test_what_hooks_have_kept_otherwise_gives_the_same_gradients():
    inputs = drawn(*[(2, 3, 9, 8)] * 3)
    kept = torch.autograd.graph.saved_tensors_hooks(
        lambda x: x.detach().clone(memory_format=torch.contiguous_format), lambda x: x
    )
    expected = outputs_and_gradients(causal_attention(*inputs, impl="native"), inputs)
    with kept:
        out = causal_attention(*inputs, impl="native")
    assert all(map(torch.equal, outputs_and_gradients(out, inputs), expected))


def test_a_view_with_the_other_sign_is_not_read_as_it_lies():
    x = torch.randn(3, 40, dtype=torch.complex64).conj().imag
    assert x.is_neg()
    with pytest.raises(ValueError, match="x is a view of it with the other sign"):
        dropout(x, 0.3, impl="native")
    assert dropout.choose(x, 0.3) == "fused"


def as_the_other_sign(x: torch.Tensor) -> torch.Tensor:
    """The same numbers, as the imaginary part of a conjugate: memory has their negatives."""
    return torch.complex(torch.zeros_like(x), -x).conj().imag


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (torch.Tensor.double, "it is written for float32, and one argument is torch.float64"),
        (torch.Tensor.half, "it is written for float32, and one argument is torch.float16"),
        (lambda x: x.to("meta"), "it is made for the CPU, and one argument is on meta"),
        (as_the_other_sign, "it reads memory as it lies, and one argument is a view of it with the other sign"),
    ],
    ids=["double", "half", "meta", "sign"],
)
def test_no_argument_is_read_as_what_it_is_not(change: Callable[[torch.Tensor], torch.Tensor], said: str) -> None:
    """C++ would take its bytes for float32, and write a half's place twice over."""
    q, k, v = (torch.randn(1, 2, 5, 4) for _ in range(3))
    x, weight, bias, score, shift = (torch.randn(size) for size in ((2, 7, 4), (3, 4), (3,), (1, 3), (1,)))
    lengths, w, b = torch.tensor([7, 3]), torch.randn(12, 4), torch.randn(12)
    for choose, arguments, place in (
        (causal_attention.choose, (q, k, v, 0.5), 1),
        (causal_attention.choose, (q, k, v, 0.5), 2),
        (pooling.choose, (x, lengths, weight, bias, score, shift, "printed"), 4),
        (local_rnn.choose, (x, w, w, b, b, 3, "gru"), 4),
    ):
        given = [*arguments[:place], change(arguments[place]), *arguments[place + 1 :]]
        assert choose(*arguments, impl="native") == "native"
        with pytest.raises(ValueError, match=said):
            choose(*given, impl="native")
