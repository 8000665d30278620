"""What holds for every backbone. A model in `rtx.models.MODELS` is tested here without further work."""

from itertools import product

import numpy as np
import pytest
import torch
from oracles import skip_without_lstm_under_autocast

from rtx.lab import receptive_field
from rtx.models import MODELS, Backbone
from rtx.nn.dropout import LockedDropout
from rtx.tasks import build


def test_every_model_is_a_backbone(small_model):
    model = small_model()
    assert isinstance(model, Backbone)
    assert model.d_model == 8 and type(model.stateful) is type(model.separate_segments) is bool
    assert set(model.auxiliary_losses) <= {"layers", "activations"}


def test_no_output_depends_on_the_future(small_model):
    model = small_model().double().eval()
    jacobian = receptive_field(model, torch.randn(1, 6, 8, dtype=torch.float64))
    assert jacobian.triu(1).max() == 0
    assert (jacobian.diagonal() > 0).all()


def test_every_parameter_gets_a_gradient(small_model):
    model = small_model()
    y = model(torch.randn(2, 9, 8))
    (y * torch.randn_like(y)).sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 0] == []


def test_dropout_acts_in_training_and_only_there(small_model):
    model, x = small_model(layers=1, dropout=0.5), torch.randn(2, 9, 8)
    assert not torch.equal(model(x), model(x))
    assert torch.equal(model.eval()(x), small_model(layers=1).eval()(x))


def test_every_part_has_the_dropout_that_the_model_was_given(small_model):
    rates = {name: rate_of(part) for name, part in small_model(dropout=0.5).named_modules()}
    others = ("dropout_input", "dropout_hidden")  # further arguments of AWD-LSTM and MC-RNN
    assert {rate for name, rate in rates.items() if name not in others} == {None, 0.5}, rates


def rate_of(part: torch.nn.Module) -> float | None:
    if isinstance(part, torch.nn.RNNBase) and part.num_layers == 1:  # torch has dropout between layers only
        return None
    rate = getattr(part, "p" if isinstance(part, torch.nn.Dropout | LockedDropout) else "dropout", None)
    return rate if isinstance(rate, float) else None


@pytest.mark.parametrize("name", ["character-transformer", "transformer", "transformer-xl"])
def test_a_transformer_has_dropout_on_its_input_too(name):
    torch.manual_seed(0)
    model, x = MODELS[name](8, layers=2, heads=2), torch.randn(2, 7, 8)
    model.dropout.p = 1.0  # then the input has no effect
    assert torch.equal(model(x), model(-x)) and torch.equal(model.step(x[:, 0])[0], model.step(-x[:, 0])[0])


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.2)])
def test_lower_precision_agrees_with_float64(small_model, dtype, tolerance):
    x = torch.randn(2, 9, 8, dtype=torch.float64)
    y = small_model().to(dtype)(x.to(dtype))
    assert y.dtype == dtype
    torch.testing.assert_close(y.double(), small_model().double()(x), rtol=0, atol=tolerance)


def test_autocast_agrees_with_float32_at_once_and_step_by_step(small_model):
    model, x, state = small_model().eval(), torch.randn(2, 9, 8), None
    skip_without_lstm_under_autocast(model)
    expected = model(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
        for x_t in x.unbind(1):
            last, state = model.step(x_t, state)
    torch.testing.assert_close(y.float(), expected, rtol=0, atol=0.2)
    torch.testing.assert_close(last.float(), expected[:, -1], rtol=0, atol=0.2)


@pytest.mark.slow
@torch.no_grad()
def test_a_sequence_may_have_any_length(small_model):
    model, x = small_model().eval(), torch.randn(1, 501, 8)
    y = model(x)
    torch.testing.assert_close(y[:, :50], model(x[:, :50]), rtol=0, atol=1e-5)
    assert y.isfinite().all()


COMPILED = ("r-transformer", "transformer-relative", "transformer-xl", "tcn", "gru", "hm-rnn-3", "griffin-attention")
"""One of each kind of model: a compilation takes seconds."""


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("variant", [*COMPILED, "mc-rnn-gru-clipped"])
def test_compiled_equals_eager(small_model, variant):
    """torch.compile captures and differentiates a model. One goes through the slow C++ compiler, too."""
    backend = "inductor" if variant == "r-transformer" else "aot_eager"
    torch._dynamo.reset()
    before = torch._dynamo.utils.counters["frames"]["ok"]
    model, x = small_model(layers=1, window=2).eval(), torch.randn(2, 3, 8)
    found = []
    for call in (model, torch.compile(model, backend=backend)):
        y = call(x)
        of = list(model.parameters())
        found.append([y, *torch.autograd.grad(y.square().sum(), of, allow_unused=True, materialize_grads=True)])
    torch.testing.assert_close(found[1][0], found[0][0], rtol=0, atol=1e-5)
    torch.testing.assert_close(found[1][1:], found[0][1:], rtol=1e-4, atol=1e-5)
    assert torch._dynamo.utils.counters["frames"]["ok"] > before  # otherwise nothing was compiled


@pytest.mark.parametrize(("name", "sizes"), [
    ("r-transformer", {"heads": 2, "window": 3}), ("transformer", {"heads": 2}),
    ("character-transformer", {"heads": 2, "segment": 4}), ("tcn", {"kernel": 2}),
])  # fmt: skip
def test_a_model_of_tokens_is_captured_as_one_graph(name, sizes):
    """Neither the checks of arguments nor the choice of an implementation breaks the graph."""
    model = build("characters", name, d_model=8, layers=1, **sizes).eval()
    torch._dynamo.reset()
    tokens = torch.randint(4, (2, 9), generator=torch.Generator().manual_seed(0))
    y = torch.compile(model, fullgraph=True, backend="eager")(tokens)
    torch.testing.assert_close(y, model(tokens), rtol=0, atol=1e-5)


WRONG = [
    (torch.randn(9, 8), r"^x: .*\(9, 8\)"),
    (torch.randn(2, 9, 7), r"^x: .*8.*\(2, 9, 7\)"),
    (torch.randn(2, 0, 8), r"^x: .*\(2, 0, 8\)"),
    (torch.randn(0, 9, 8), r"^x: .*\(0, 9, 8\)"),
    (torch.ones(2, 9, 8, dtype=torch.long), "^x: .*torch.int64"),
    (torch.randn(2, 9, 8, dtype=torch.float64), "^x: .*torch.float64.*torch.float32"),
    (torch.randn(2, 9, 8, device="meta"), "^x: .*meta.*cpu"),
    (torch.randn(2, 9, 8).numpy(), "^x: .*ndarray"),
    (torch.randn(2, 9, 8).tolist(), "^x: .*list"),
]


def test_bad_input_is_refused(small_model):
    model = small_model()
    for (x, message), method in product(WRONG, (model, model.read)):
        with pytest.raises(ValueError, match=message):
            method(x)


def test_a_size_that_is_no_whole_number_above_0_is_refused(small_model):
    for argument, value in product(("d_model", "layers"), (0, -1, 1.5, True, "2", None)):
        with pytest.raises(ValueError, match=f"^{argument}: .*{value!r}"):
            small_model(**{argument: value})


def test_a_dropout_outside_0_to_1_is_refused(small_model):
    for rate in ("0.1", 1.0, -0.1, float("nan"), None):
        with pytest.raises(ValueError, match=f"^dropout: .*{rate!r}"):
            small_model(dropout=rate)


def test_sizes_may_be_numbers_of_numpy(small_sizes, small_model):
    sizes = small_sizes()[1]
    model = small_model(**{k: np.int64(v) if type(v) is int else v for k, v in sizes.items()}).eval()
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(model.step(x[:, 0])[0], model(x)[:, 0], rtol=0, atol=1e-5)
