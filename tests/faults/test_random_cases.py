"""Lengths, sizes, types and layouts at random: every model gives the right output.

The right output is that of the reference version in float64. In float32 the tolerance is large, because LayerNorm of
two numbers is almost a step. In half precision only shape, type and finite values are compared, and so for HM-RNN in
float32, because its boundaries are steps.
"""

import copy
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from references import REFERENCES
from torch import Tensor

from rtx.models import MODELS, WHOLE

QUICK, SOAK = 40, 10_000
TOLERANCE = {torch.float64: 1e-8, torch.float32: 2e-3}
DTYPES = [torch.float64, torch.float64, torch.float32, torch.bfloat16, torch.float16]
CELLS = st.sampled_from(["rnn", "gru", "lstm"])
NORMS = st.sampled_from(["post", "pre"])
few = st.integers(1, 3)
OPTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "r-transformer": {"window": st.integers(1, 6), "cell": CELLS, "norm": NORMS, "local_layers": st.integers(0, 2)},
    "transformer": {
        "norm": NORMS,
        "position": st.sampled_from(["sinusoidal", "learned", "relative", "none"]),
        "max_length": st.just(12),
        "max_distance": few,
    },
    "transformer-xl": {"segment": st.integers(1, 5), "memory": st.integers(0, 5), "norm": NORMS},
    "character-transformer": {"segment": st.integers(1, 5), "norm": NORMS},
    "tcn": {"kernel": st.integers(1, 4)},
    "awd-lstm": {"d_hidden": st.integers(1, 7)},
    "mc-rnn": {
        "block": st.integers(2, 5),
        "cell": CELLS,
        "d_hidden": st.integers(1, 7),
        "start": st.sampled_from(["equation", "clipped"]),
        "phase": st.sampled_from(["equation", "text"]),
    },
    "ho-rnn": {"order": few, "cell": CELLS},
    "griffin": {"window": st.integers(1, 5)},
    "feed-forward-attention": {
        "pooling": st.sampled_from(["attention", "mean"]),
        "leak": st.sampled_from(["printed", "coded"]),
        "outputs": few,
        "d_hidden": st.integers(1, 7),
    },
}
WITH_HEADS = {"r-transformer", "transformer", "transformer-xl", "character-transformer", "griffin"}
WIDTHS = ("d_model", "d_hidden")  # they differ from layer to layer, and the shapes show them
LAYOUTS = ["plain", "transposed", "strided", "expanded"]


@dataclass
class Case:
    """A model with its sizes, and a sequence."""

    name: str
    sizes: dict[str, Any]
    x: Tensor
    dtype: torch.dtype
    lengths: list[int]
    seed: int


@st.composite
def cases(draw: st.DrawFn, name: str) -> Case:
    heads, B, T = draw(few), draw(st.integers(1, 2)), draw(st.integers(1, 12))
    width = heads * draw(st.sampled_from([2, 4])) if name == "griffin" else heads * draw(few)
    sizes = {key: draw(options) for key, options in OPTIONS.get(name, {}).items()}
    deepest = 3 if name == "hm-rnn" else 2  # only there a layer in the middle is another than the first and the last
    sizes |= {"inputs": width} if name in WHOLE else {"d_model": width, "layers": draw(st.integers(1, deepest))}
    sizes |= {"heads": heads} if name in WITH_HEADS else {}
    sizes |= {"heads": 0} if name == "r-transformer" and not draw(st.integers(0, 5)) else {}
    seed, dtype = draw(st.integers(0, 2**31)), draw(st.sampled_from(DTYPES))
    x = laid_out(torch.randn(B, T, width, generator=torch.Generator().manual_seed(seed)).to(dtype), draw)
    lengths = draw(st.lists(st.integers(1, T), min_size=B, max_size=B)) if name in WHOLE else []
    return Case(name, sizes, x, dtype, lengths, seed)


def laid_out(x: Tensor, draw: st.DrawFn) -> Tensor:
    """The same numbers in another memory layout."""
    kind = draw(st.sampled_from(LAYOUTS))
    if kind == "transposed":
        return x.transpose(0, 1).contiguous().transpose(0, 1)
    if kind == "strided":
        return x.repeat_interleave(2, -1)[..., ::2]
    return x[:1].expand_as(x) if kind == "expanded" else x


def answer(case: Case) -> tuple[torch.nn.Module, Tensor]:
    torch.manual_seed(case.seed)
    model = (MODELS | WHOLE)[case.name](**case.sizes).to(case.dtype).eval()
    more = [torch.tensor(case.lengths)] if case.lengths else []
    return model, model(case.x, *more)


def check_sizes(model: torch.nn.Module, sizes: dict[str, Any]) -> None:
    """Every layer has the sizes that were asked for. The reference reads them from the layer and would not notice."""
    for layer in model.modules():
        for name, asked in sizes.items():
            held = getattr(layer, name, asked)
            if isinstance(held, int | float | str) and name not in WIDTHS:
                assert held == asked, f"{type(layer).__name__}.{name}: expected {asked!r}, got {held!r}"


@torch.no_grad()
def check(case: Case) -> None:
    model, found = answer(case)
    check_sizes(model, case.sizes)
    more = [case.lengths] if case.lengths else []
    expected = REFERENCES[case.name](copy.deepcopy(model).double(), case.x.double(), *more)
    assert found.dtype == case.dtype and found.shape == expected.shape and bool(found.isfinite().all())
    if case.dtype in TOLERANCE and (case.name != "hm-rnn" or case.dtype == torch.float64):
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=TOLERANCE[case.dtype])


def examine(name: str, number: int, again: bool) -> None:
    """Check `number` cases of a model; the same cases every time if `again`."""
    chosen = settings(max_examples=number, database=None, derandomize=again, suppress_health_check=list(HealthCheck))
    chosen(given(case=cases(name))(check))()


def test_every_model_has_a_reference() -> None:
    assert set(REFERENCES) == set(MODELS | WHOLE)


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_a_random_case_gives_the_right_output(name: str) -> None:
    examine(name, QUICK, again=True)


@pytest.mark.soak
@pytest.mark.parametrize("name", REFERENCES)
def test_ten_thousand_random_cases_give_the_right_output(name: str) -> None:
    examine(name, SOAK, again=False)
