"""When an implementation with its own backward pass, or in C++, cannot be used, and that another one is used then."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from comparison import COMPILED, assert_near, outputs_and_gradients
from operands import OPERATIONS, case
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

EACH = pytest.mark.parametrize("name", OPERATIONS)


class Subclass(torch.Tensor):
    """A tensor of another type than torch's own."""


class Unchanged(TorchDispatchMode):
    """A mode that sees all operations and changes none."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def arguments(name: str) -> tuple:
    """Return arguments for which a fast implementation is chosen: attention needs dropout for that."""
    one = case(name)
    found = one.arguments(*(x.detach() for x in one.inputs))
    return (*found[:-1], 0.3) if name == "causal_attention" else found


def inside(context: Callable[[], AbstractContextManager]) -> Callable:
    """Return a situation: a question is asked inside this context."""

    def situation(ask, x):
        with context():
            return ask(x)

    return situation


def transformed(transform: Callable) -> Callable:
    """Return a situation: a question is asked inside a function that torch transforms."""

    def situation(ask, x):
        found = []
        transform(lambda x: found.append(ask(x)) or x.sum(), x)
        return found[0]

    return situation


SITUATIONS = {
    "compile": lambda ask, x: torch.compile(ask, fullgraph=True, backend="eager")(x),
    "trace": transformed(torch.jit.trace),
    "func.grad": transformed(lambda function, x: torch.func.grad(function)(x)),
    "func.vmap": transformed(lambda function, x: torch.func.vmap(function)(x)),
    "forward mode": inside(forward_ad.dual_level),
    "fake mode": inside(FakeTensorMode),
    "subclass": lambda ask, x: ask(x.as_subclass(Subclass)),
    "another device": lambda ask, x: ask(x.to("meta")),
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.jit.trace
@EACH
def test_only_torch_is_used_where_a_custom_gradient_cannot_be(name, situation):
    x, *rest = arguments(name)
    operation = case(name).operation
    torchs = ("torch", "sdpa")
    assert operation.choose(x, *rest) not in torchs or name == "local_rnn"  # which has no other without a compiler
    assert situation(lambda x: operation.choose(x, *rest), x) in torchs


@EACH
def test_derivatives_by_torch_func_and_in_a_compiled_graph_are_those_of_autograd(name):
    one = case(name)
    x, *weights = (x.detach() for x in one.inputs)

    def run(x: torch.Tensor) -> torch.Tensor:
        return one.run(x, *weights)

    expected, tangent = torch.autograd.functional.jacobian(run, x), torch.randn_like(x)
    torch.testing.assert_close(torch.func.jacrev(run)(x), expected)
    torch.testing.assert_close(torch.func.vmap(run)(torch.stack([x, -x])), torch.stack([run(x), run(-x)]))
    _, found = torch.func.jvp(run, (x,), (tangent,))
    torch.testing.assert_close(found, (expected * tangent).sum(tuple(range(-x.ndim, 0))), rtol=1e-4, atol=1e-5)
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    leaf = x.clone().requires_grad_()
    assert_near(outputs_and_gradients(compiled(leaf), [leaf]), outputs_and_gradients(run(leaf), [leaf]), 1e-5)


def negated(x: torch.Tensor) -> torch.Tensor:
    """Return the same numbers as a view with the opposite sign: the memory has -x."""
    return torch.complex(torch.zeros_like(x), -x).conj().imag


@COMPILED
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (torch.Tensor.double, "float64"),
        (torch.Tensor.half, "float16"),
        (lambda x: x.to("meta"), "meta"),
        (negated, "view"),
        (lambda x: x.as_subclass(Subclass), "Subclass"),
    ],
    ids=["double", "half", "meta", "negated", "subclass"],
)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@EACH
def test_native_refuses_an_argument_whose_memory_it_cannot_read_as_float32(name, last, change, named):
    given, operation = list(arguments(name)), case(name).operation
    place = max(i for i, one in enumerate(given) if isinstance(one, torch.Tensor)) if last else 0
    assert operation.choose(*given) == "native"
    given[place] = change(given[place])
    assert operation.choose(*given) != "native"
    named = named if last else ""  # if it is the first one, the message may name the others instead
    with pytest.raises(ValueError, match=rf"^impl: {name} .*'native'.*{named}"):
        operation.choose(*given, impl="native")


@COMPILED
@EACH
def test_native_is_not_used_inside_a_dispatch_mode_or_autocast(name):
    given, operation = arguments(name), case(name).operation
    for context in (Unchanged(), torch.autocast("cpu", dtype=torch.bfloat16)):
        with context:
            assert operation.choose(*given) != "native"
            with pytest.raises(ValueError, match=rf"^impl: {name} .*'native'"):
                operation.choose(*given, impl="native")
