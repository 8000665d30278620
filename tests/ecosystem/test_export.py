"""Every model can be exported: by `torch.export`, and as ONNX, which onnxruntime then runs on the CPU."""

import logging
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from rtx.models import (
    MODELS,
    WHOLE,
    EncoderDecoder,
    LanguageModel,
    RTransformer,
    Transformer,
    export_step,
    rnnsearch,
)
from rtx.nn.linear_recurrence import RGLRU
from rtx.tasks.build import SequenceModel, hyperparameter_names

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

SIZES = {"d_model": 8, "layers": 1, "heads": 2, "window": 3, "segment": 2, "memory": 2, "d_hidden": 8, "inputs": 8}
ANY_LENGTH = ("r-transformer", "transformer", "tcn", "feed-forward-attention")
"""Programs for sequences of any length. The others count steps or segments in Python, so one length each."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """torch logs the packages that it does not find."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def small(name: str, **changes: int) -> nn.Module:
    """Build a small model. Its sizes are NumPy's whole numbers, which torch.export would not take."""
    torch.manual_seed(0)
    known = {*hyperparameter_names(name), *(["inputs"] if name in WHOLE else [])}
    sizes = {key: np.int64(value) for key, value in (SIZES | changes).items() if key in known}
    return (MODELS | WHOLE)[name](**sizes).eval()


def exported(name: str, model: nn.Module) -> tuple[torch.export.ExportedProgram, list[torch.Tensor]]:
    """Return the program, and sequences that it takes: any number of them, and of any length where that is possible."""
    free = {0: torch.export.Dim("B", min=1, max=100)}
    if name in ANY_LENGTH:
        free[1] = torch.export.Dim("T", min=2, max=10_000)
    sequences = [torch.randn(B, T if 1 in free else 3, 8) for B, T in ((3, 5), (1, 11))]
    return torch.export.export(model, (sequences[0],), dynamic_shapes={"x": free}), sequences


AS_ONNX = ("r-transformer", "tcn", "feed-forward-attention", "transformer-xl")
"""Their programs have the operations of all models that compute their positions in parallel."""


@pytest.mark.parametrize("name", [*MODELS, *WHOLE])
@torch.no_grad()
def test_exported_and_as_onnx_it_gives_the_same_numbers(name: str) -> None:
    model = small(name, layers=3 if name == "griffin" else 1)  # its third layer is attention
    program, sequences = exported(name, model)
    run = in_onnxruntime(program) if name in AS_ONNX else None
    for x in sequences:
        expected = model(x)
        torch.testing.assert_close(program.module()(x), expected, rtol=0, atol=1e-5)
        if run is not None:
            (found,) = run(x.numpy())
            np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=1e-5)


BY_DISTANCE = [partial(Transformer, position="relative"), partial(Transformer, position="alibi")]
BY_DISTANCE += [partial(RTransformer, window=3, position="relative")]


@pytest.mark.parametrize("make", BY_DISTANCE)
@torch.no_grad()
def test_with_positions_by_distance_the_length_is_open(make: Callable[..., nn.Module]) -> None:
    model = make(d_model=8, layers=1, heads=2).eval()
    program = exported("transformer", model)[0].module()
    for T in (2, 40, 300):  # 300 positions are two blocks, except in a program
        x = torch.randn(1, T, 8)
        torch.testing.assert_close(program(x), model(x), rtol=0, atol=1e-5)


@torch.no_grad()
def test_as_onnx_a_recurrent_network_reads_any_length() -> None:
    """`torch.export` unrolls it over the steps of the example, but the way to ONNX keeps its loop."""
    model, sizes = small("lstm"), {"x": {0: "B", 1: "T"}}
    run = in_onnxruntime(model, (torch.randn(3, 5, 8),), dynamic_shapes=sizes)
    for x in (torch.randn(3, 5, 8), torch.randn(1, 11, 8)):
        np.testing.assert_allclose(run(x.numpy())[0], model(x).numpy(), rtol=0, atol=1e-5)


def in_onnxruntime(*exported: Any, **how: Any) -> Callable[..., list[np.ndarray]]:
    onnx = torch.onnx.export(*exported, dynamo=True, verbose=False, **how)
    session = onnxruntime.InferenceSession(onnx.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True)))


def streaming(name: str) -> tuple[nn.Module, torch.Tensor]:
    """Return a small model, and 17 positions of 5 sequences, (T, B, …)."""
    if name == "tokens":
        return LanguageModel(small("r-transformer"), 7).eval(), torch.randint(7, (17, 5))
    if name == "rg-lru":
        model = small("griffin", layers=1)
        for module in model.modules():
            if isinstance(module, RGLRU):
                nn.init.constant_(module.decay, 12.0)  # 1 - a = 6e-6: as log(sigmoid), most digits would be lost
        return model, torch.randn(17, 5, 8)
    return small(name, layers=3 if name == "griffin" else 1, window=4, segment=3), torch.randn(17, 5, 8)


@pytest.mark.parametrize("name", [*MODELS, *WHOLE, "tokens", "rg-lru"])
@torch.no_grad()
def test_a_stream_of_exported_steps_has_the_numbers_of_the_model(name: str) -> None:
    """Two models run in onnxruntime. For the others torch runs the programs, which takes a fifth of the time."""
    model, inputs = streaming(name)
    first, other = map(in_onnxruntime if name in ("tokens", "rg-lru") else in_torch, export_step(model, inputs[0, :2]))
    for streams in (1, 5):
        state, after = [], None
        for x in inputs[:, :streams]:
            y, *state = other(x.numpy(), *state) if state else first(x.numpy())
            expected, after = model.step(x, after)
            np.testing.assert_allclose(y, expected.numpy(), rtol=0, atol=1e-5)


def in_torch(program: torch.export.ExportedProgram) -> Callable[..., list[object]]:
    run = program.module()

    def flat(x: np.ndarray, *state: object) -> list[object]:
        y, after = run(torch.from_numpy(x), *state)
        return [y.numpy(), tree_map_only(torch.Tensor, lambda part: part if part.ndim else int(part), after)]

    return flat


TOO_SMALL: list[tuple[str, dict[str, int]]] = [
    ("character-transformer", {"segment": 1}),
    ("transformer-xl", {"segment": 1}),
    ("transformer-xl", {"memory": 1}),  # and a segment of 2
    ("r-transformer", {"window": 1}),
    ("tcn", {"kernel": 1}),
    ("griffin", {"window": 2, "layers": 3}),
]


@pytest.mark.parametrize(("name", "sizes"), TOO_SMALL)
def test_a_size_with_which_no_two_examples_differ_is_refused(name: str, sizes: dict[str, int]) -> None:
    model = small(name, **sizes)
    with pytest.raises(ValueError, match=f"^model: .*{next(iter(sizes))}"):
        export_step(model, torch.randn(2, 8))


@pytest.mark.parametrize("x", [torch.randn(1, 8), torch.tensor(1.0)])
def test_an_example_without_two_streams_is_refused(x: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=f"^x: .*{re.escape(str(tuple(x.shape)))}"):
        export_step(small("gru"), x)


WITH_VALUES: dict[str, tuple[Callable[[], nn.Module], tuple[torch.Tensor, ...]]] = {
    "tokens": (lambda: LanguageModel(small("r-transformer"), 7), (torch.tensor([[1, 2, 3, 4], [4, 5, 6, 0]]),)),
    "pairs": (
        lambda: EncoderDecoder(7, 5, 8, 1, 2, window=3),
        (torch.tensor([[1, 2, 3, 6], [4, 5, 6, 9]]), torch.tensor([[1, 2], [3, 4]]), torch.tensor([4, 3])),
    ),
    "pairs, recurrent": (
        lambda: rnnsearch(7, 5, "gru", d_model=8),
        (torch.tensor([[1, 2, 3, 6], [4, 5, 6, 0]]), torch.tensor([[1, 2], [3, 4]]), torch.tensor([4, 3])),
    ),
    "sequences": (
        lambda: SequenceModel(small("transformer"), 3, 2, "sequence"),
        (torch.linspace(-1, 1, 30).view(2, 5, 3), torch.tensor([5, 2])),
    ),
    "pooled": (lambda: small("feed-forward-attention"), (torch.randn(2, 5, 8), torch.tensor([5, 2]))),
}
"""Models that check the values of their inputs, which a program cannot do while it is exported."""


@pytest.mark.parametrize("name", WITH_VALUES)
@torch.no_grad()
def test_exported_with_tokens_or_lengths_it_gives_the_same_numbers(name: str) -> None:
    make, inputs = WITH_VALUES[name]
    model = make().eval()
    free = tuple({0: torch.export.Dim("B", min=1, max=100)} for _ in inputs)
    program = torch.export.export(model, inputs, dynamic_shapes=free).module()
    for given in (inputs, tuple(torch.cat([part, part]) for part in inputs)):
        torch.testing.assert_close(program(*given), model(*given), rtol=0, atol=1e-5)
