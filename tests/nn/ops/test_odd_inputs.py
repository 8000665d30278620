"""Sizes 0 and 1, wrong sizes, numbers at the edge, other dtypes and views: fast versions do what torch does.

Where a fast version reads memory directly, this list is also worth a run under AddressSanitizer:
`CXX="g++ -fsanitize=address -g"`, with `LD_PRELOAD` set to the path of libasan and `ASAN_OPTIONS=detect_leaks=0`.
"""

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from comparison import COMPILED
from operands import GATES
from torch import Tensor

from rtx.nn.ops.attention import causal_attention
from rtx.nn.ops.dispatch import Operation
from rtx.nn.ops.local_rnn import local_rnn
from rtx.nn.ops.pooling import pooling

Inputs = dict[str, object]
NUMBERS = [math.nan, math.inf, -math.inf, 1e38, -1e38, 1e-40, 0.0]


def local_rnn_case(B: int = 2, T: int = 5, D: int = 3, window: int = 3, cell: str = "gru", gates: str = "") -> Inputs:
    G = GATES[gates or cell] * D
    shapes = {"x": (B, T, D), "w_ih": (G, D), "w_hh": (G, D), "b_ih": (G,), "b_hh": (G,)}
    return {name: torch.randn(shape) for name, shape in shapes.items()} | {"window": window, "cell": cell}


def attention_case(B: int = 1, H: int = 2, T: int = 9, K: int = 3) -> Inputs:
    return {name: torch.randn(B, H, T, K) for name in "qkv"} | {"dropout": 0.0}


def pooling_case(B: int = 3, T: int = 7, F: int = 2, D: int = 4, lengths: tuple[int, ...] = (7, 1, 3)) -> Inputs:
    shapes = {"x": (B, T, F), "weight": (D, F), "bias": (D,), "score": (1, D), "shift": (1,)}
    tensors = {name: torch.randn(shape) for name, shape in shapes.items()}
    return {"x": tensors.pop("x"), "lengths": torch.tensor(lengths, dtype=torch.long)} | tensors | {"leak": "printed"}


CASES: dict[str, tuple[Operation, Callable[..., Inputs]]] = {
    "local_rnn": (local_rnn, local_rnn_case),
    "causal_attention": (causal_attention, attention_case),
    "pooling": (pooling, pooling_case),
}


def odd(name: str) -> Iterator[tuple[str, Inputs]]:
    """Yield odd arguments of an operation, each with what is odd about them."""
    torch.manual_seed(0)
    make = CASES[name][1]
    for size in make.__annotations__:
        if size in ("B", "H", "T", "D", "F", "K"):
            for n in (0, 1):
                more = {"lengths": (1, 0, 1) if size == "T" and n else (0,) * n if size == "B" else (0, 0, 0)}
                yield f"{size} = {n}", make(**{size: n}, **(more if name == "pooling" and size in "BT" else {}))
    given = make()
    for key, one in given.items():
        if not isinstance(one, Tensor):
            continue
        for axis in range(one.ndim):
            yield f"{key} too short on axis {axis}", given | {key: one.narrow(axis, 0, one.shape[axis] - 1)}
            yield f"{key} too long on axis {axis}", given | {key: torch.cat([one, one], axis)}
        yield f"{key} with one more axis", given | {key: one[None]}
        yield f"{key} with one axis less", given | {key: one[0]}
        yield f"{key} as a view", given | {key: torch.stack([one, one], -1)[..., 0]}
        for dtype in (torch.float64, torch.float16, torch.int32, torch.complex64):
            yield f"{key} as {dtype}", given | {key: one.to(dtype)}
        for value in NUMBERS if one.is_floating_point() else []:
            one = one.clone()
            one.flatten()[-1] = value
            yield f"{key} with {value}", given | {key: one}
        if one.is_floating_point():
            yield f"{key} all 1e38", given | {key: torch.full_like(one, 1e38)}
    if name == "local_rnn":
        pairs = [(a, b) for a in GATES for b in GATES if a != b]
        yield from ((f"the weights of {b} as {a}", make(cell=a, gates=b, D=D)) for a, b in pairs for D in (3, 4))
        yield from ((f"window {window}", make(window=window)) for window in (0, -1, 1, 50))
    if name == "pooling":
        yield from ((f"lengths {n}", make(lengths=(n, 1, 7))) for n in (-1, 8, 2**40))
    if name == "causal_attention":
        large = torch.full((1, 2, 9, 3), 1e30)
        yield "rows of -inf", given | {"q": large, "k": -large}


def outcome(run: Callable[..., object], *arguments: object, impl: str) -> object:
    """Return the result, or None if the arguments are refused."""
    try:
        return run(*arguments, impl=impl)
    except (ValueError, RuntimeError, IndexError, TypeError):
        return None


def taken(name: str, impl: str) -> Iterator[tuple[str, Inputs]]:
    """Yield the odd arguments that an implementation takes."""
    for what, given in odd(name):
        if outcome(CASES[name][0].choose, *given.values(), impl=impl):
            yield what, given


@COMPILED
@pytest.mark.parametrize(
    ("name", "impl"),
    [(name, impl) for name in CASES for impl in ("native", "blocks") if impl in CASES[name][0].implementations],
)
def test_odd_inputs_give_what_torch_gives_or_are_left_to_torch(name, impl):
    operation, seen = CASES[name][0], list(taken(name, impl))
    assert len(seen) > 30
    for what, given in seen:
        found, expected = (outcome(operation, *given.values(), impl=one) for one in (impl, "torch"))
        assert isinstance(found, Tensor) and isinstance(expected, Tensor) and found.shape == expected.shape, what
        if "all 1e38" in what:  # sums of such numbers depend on their order
            continue
        finite = found.isfinite() & expected.isfinite()
        torch.testing.assert_close(found[finite], expected[finite], rtol=1e-3, atol=1e-4, msg=what)
        # Attention hides what torch's own function shows. One infinite weight spoils all of a fast pooling's units.
        hidden, loud = name == "causal_attention", name == "pooling"
        assert finite.all() or hidden or not (found.isfinite() & ~expected.isfinite()).any(), what
        assert finite.all() or loud or not (~found.isfinite() & expected.isfinite()).any(), what


@COMPILED
@pytest.mark.parametrize("name", CASES)
def test_gradients_of_odd_sizes_and_views_are_those_of_torch(name):
    operation, numbers = CASES[name][0], ("nan", "inf", "e+38", "1e38", "1e-40")
    for what, given in taken(name, "native"):
        if any(number in what for number in numbers):
            continue
        found = []
        for impl in ("native", "torch"):
            new = {k: v.detach().clone() if isinstance(v, Tensor) else v for k, v in given.items()}
            learnt = [x.requires_grad_() for x in new.values() if isinstance(x, Tensor) and x.is_floating_point()]
            found.append(torch.autograd.grad(operation(*new.values(), impl=impl).sum(), learnt, materialize_grads=True))
        torch.testing.assert_close(*found, rtol=1e-3, atol=1e-4, msg=what)


@COMPILED
@pytest.mark.parametrize("impl", ["native", "blocks"])
def test_a_large_offset_of_all_scores_changes_neither_outputs_nor_gradients(impl):
    """The logarithm of a row's sum would be lost beside a score of 1e12: the sum must be kept on its own."""
    torch.manual_seed(0)
    q, k, v = torch.zeros(1, 2, 100, 16), torch.randn(1, 2, 100, 16), torch.randn(1, 2, 100, 16)
    q[..., 0], results = 1, []
    for offset in (0.0, 4e12):
        k[..., 0] = offset
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        y = causal_attention(*inputs, 0.0, impl=impl)
        weight = torch.linspace(-1, 1, y.numel()).view_as(y)
        results.append([y, *torch.autograd.grad((y * weight).sum(), inputs[1:])])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
