"""What holds for every backbone. A model joins by being registered in `rtx.models.MODELS`."""

import io

import numpy as np
import pytest
import torch

from rtx.lab import reach
from rtx.models import MODELS
from rtx.nn.dropout import LockedDropout
from rtx.tasks import build


@pytest.mark.parametrize(("B", "T"), [(1, 1), (3, 1), (2, 3), (1, 17)])
def test_shape_is_kept_also_for_one_step_and_less_than_a_window(small_model, B, T):
    assert small_model()(torch.randn(B, T, 8)).shape == (B, T, 8)


def test_no_output_depends_on_the_future(small_model):
    model = small_model().double().eval()
    jacobian = reach(model, torch.randn(1, 9, 8, dtype=torch.float64))
    assert jacobian.triu(1).max() == 0
    assert (jacobian.diagonal() > 0).all()


def test_rows_of_a_batch_are_independent(small_model):
    model, x = small_model().double().eval(), torch.randn(4, 7, 8, dtype=torch.float64)
    together = model(x)
    alone = torch.cat([model(row[None]) for row in x])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-12)


def test_every_parameter_gets_a_gradient(small_model):
    model = small_model()
    y = model(torch.randn(2, 9, 8))
    (y * torch.randn_like(y)).sum().backward()
    dead = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert dead == []


def test_dropout_acts_in_training_and_only_there(small_model):
    model, x = small_model(layers=1, dropout=0.5), torch.randn(2, 9, 8)
    assert not torch.equal(model(x), model(x))
    assert torch.equal(model.eval()(x), small_model(layers=1).eval()(x))


def test_the_dropout_that_is_given_is_that_of_every_part(small_model):
    rates = {name: rate_of(part) for name, part in small_model(dropout=0.5).named_modules()}
    of_their_own = ("dropout_input", "dropout_hidden")  # arguments of AWD-LSTM and MC-RNN
    assert {rate for name, rate in rates.items() if name not in of_their_own} == {None, 0.5}, rates


def rate_of(part: torch.nn.Module) -> float | None:
    if isinstance(part, torch.nn.Dropout):
        return part.p
    if isinstance(part, torch.nn.RNNBase) and part.num_layers == 1:  # torch drops between layers only
        return None
    rate = getattr(part, "rate" if isinstance(part, LockedDropout) else "dropout", None)
    return rate if isinstance(rate, float) else None


@pytest.mark.parametrize("name", ["character-transformer", "transformer", "transformer-xl"])
def test_dropout_is_on_a_transformers_input_too(name):
    torch.manual_seed(0)
    model, x = MODELS[name](8, layers=2, heads=2), torch.randn(2, 7, 8)
    model.dropout.p = 1.0  # nothing is left of what is read
    torch.testing.assert_close(model(x), model(-x), rtol=0, atol=0)
    torch.testing.assert_close(model.step(x[:, 0])[0], model.step(-x[:, 0])[0], rtol=0, atol=0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.2)])
def test_lower_precision_agrees_with_float64(small_model, dtype, tolerance):
    x = torch.randn(2, 9, 8, dtype=torch.float64)
    expected = small_model().double()(x)
    y = small_model().to(dtype)(x.to(dtype))
    assert y.dtype == dtype
    torch.testing.assert_close(y.double(), expected, rtol=0, atol=tolerance)


def test_autocast_is_left_to_torch(small_model):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = small_model()(torch.randn(2, 9, 8))
    assert y.isfinite().all()


@pytest.mark.slow
def test_sequences_have_no_greatest_length(small_model):
    x = torch.randn(1, 10_001, 8)
    with torch.no_grad():
        y = small_model().eval()(x)
        start = small_model().eval()(x[:, :50])
    torch.testing.assert_close(y[:, :50], start, rtol=0, atol=1e-5)
    assert y.isfinite().all()


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_compiled_equals_eager(small_model, variant):
    """Each model is captured and differentiated by torch.compile; one goes through the slow C++ compiler, too."""
    backend = "inductor" if variant == "r-transformer" else "aot_eager"
    torch._dynamo.reset()
    before = torch._dynamo.utils.counters["frames"]["ok"]
    model, x = small_model(layers=1, window=2).eval(), torch.randn(2, 5, 8)
    found = []
    for call in (model, torch.compile(model, backend=backend)):
        y = call(x)
        used = [p for p in model.parameters() if p.requires_grad]
        found.append([y, *torch.autograd.grad(y.square().sum(), used, allow_unused=True, materialize_grads=True)])
    torch.testing.assert_close(found[1][0], found[0][0], rtol=0, atol=1e-5)
    torch.testing.assert_close(found[1][1:], found[0][1:], rtol=1e-4, atol=1e-5)
    assert torch._dynamo.utils.counters["frames"]["ok"] > before  # else it ran as it is


@pytest.mark.parametrize(("name", "sizes"), [
    ("r-transformer", {"heads": 2, "window": 3}), ("transformer", {"heads": 2}),
    ("character-transformer", {"heads": 2, "segment": 4}), ("tcn", {"kernel": 2}),
])  # fmt: skip
def test_a_model_of_tokens_is_captured_as_one_graph(name, sizes):
    """What is asked on the way, for tokens or for a kernel, must not break it."""
    model = build("characters", name, d_model=8, layers=1, **sizes).eval()
    torch._dynamo.reset()
    tokens = torch.randint(4, (2, 9), generator=torch.Generator().manual_seed(0))
    y = torch.compile(model, fullgraph=True, backend="eager")(tokens)
    torch.testing.assert_close(y, model(tokens), rtol=0, atol=1e-5)


def test_state_dict_round_trip(small_model):
    model, x = small_model().eval(), torch.randn(2, 9, 8)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    other = small_model().eval()
    for parameter in other.parameters():
        torch.nn.init.normal_(parameter)
    other.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(other(x), model(x))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.randn(9, 8), r"x: expected shape \(batch, time, 8\), got \(9, 8\)"),
        (torch.randn(2, 9, 7), r"x: expected shape \(batch, time, 8\), got \(2, 9, 7\)"),
        (torch.randn(2, 0, 8), r"x: expected at least one sequence of at least one step, got \(2, 0, 8\)"),
        (torch.randn(0, 9, 8), r"x: expected at least one sequence of at least one step, got \(0, 9, 8\)"),
        (torch.ones(2, 9, 8, dtype=torch.long), "x: expected floating-point numbers, got torch.int64"),
        (torch.randn(2, 9, 8, dtype=torch.float64), "x: is torch.float64, but the model is torch.float32"),
        (torch.randn(2, 9, 8, device="meta"), "x: is on meta, but the model is on cpu"),
        (torch.randn(2, 9, 8).numpy(), "x: expected a torch.Tensor, got ndarray"),
        (torch.randn(2, 9, 8).tolist(), "x: expected a torch.Tensor, got list"),
    ],
)
def test_bad_input_is_refused_with_one_clear_error(small_model, x, message):
    with pytest.raises(ValueError, match=message):
        small_model()(x)


@pytest.mark.parametrize("argument", ["d_model", "layers"])
def test_sizes_below_one_are_refused(small_model, argument):
    with pytest.raises(ValueError, match=f"{argument}: expected a whole number of at least 1, got 0"):
        small_model(**{argument: 0})


@pytest.mark.parametrize("rate", ["0.1", 1.0, None])
def test_a_dropout_that_is_no_share_is_refused(small_sizes, small_model, rate):
    if "dropout" in small_sizes(dropout=rate)[1]:
        with pytest.raises(ValueError, match="dropout: expected a number from 0 up to"):
            small_model(dropout=rate)


def test_sizes_may_be_numbers_of_numpy(small_sizes, small_model):
    sizes = small_sizes()[1]
    model = small_model(**{k: np.int64(v) if type(v) is int else v for k, v in sizes.items()}).eval()
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(model.step(x[:, 0])[0], model(x)[:, 0], rtol=0, atol=1e-5)
    torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), model(x), rtol=0, atol=1e-5)
