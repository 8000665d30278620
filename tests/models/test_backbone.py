"""A model of one's own: a subclass of `CausalModel` with few methods works wherever a backbone is expected."""

import pytest
import torch
from oracles import stream
from torch import Tensor, nn

from rtx.models import RNN, Backbone, CausalEncoder, CausalModel, LanguageModel, Seq2Seq
from rtx.nn.streaming import State
from rtx.tasks.build import SequenceModel


class Mine(CausalModel):
    """The sum of all inputs so far, through a linear layer."""

    stateful = True

    def __init__(self) -> None:
        super().__init__()
        self.d_model, self.map = 8, nn.Linear(8, 8)

    def read(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        self.check_input(x)
        total = x.cumsum(1) + (0 if state is None else state[0][:, None])
        return self.map(total), (total[:, -1],)


@pytest.fixture
def make():
    torch.manual_seed(0)
    return Mine


def test_it_is_a_backbone_whose_other_methods_follow(make):
    model, x = make(), torch.randn(2, 9, 8)
    assert isinstance(model, Backbone)
    y = model(x)
    first, state = model.read(x[:, :4])
    torch.testing.assert_close(torch.cat([first, model(x[:, 4:], state)], 1), y)
    torch.testing.assert_close(stream(model, x)[0], y)
    assert torch.equal(model.slide(x), y)
    model.start_epoch(3)
    for bad in (x[..., :7], x.double(), x.numpy()):
        with pytest.raises(ValueError, match="^x: "):
            model.read(bad)


def test_it_works_in_a_language_model(make):
    model, tokens = LanguageModel(make(), 11).double().eval(), torch.randint(11, (2, 7))
    logits = model(tokens)
    assert torch.equal(model.slide(tokens), logits)
    for found, _ in (stream(model, tokens), model.read(tokens)):
        torch.testing.assert_close(found, logits, rtol=0, atol=1e-12)
    text = model.generate(tokens, 3, temperature=0)
    assert torch.equal(text[:, 7:], model(text[:, :-1])[:, 6:].argmax(-1))


def test_it_works_in_a_sequence_model(make):
    model, x = SequenceModel(make(), 3, 2, "step"), torch.randn(2, 7, 3)
    torch.testing.assert_close(stream(model, x)[0], model(x))
    assert SequenceModel(model.backbone, 3, 2, "sequence")(x, torch.tensor([7, 3])).shape == (2, 2)


def test_it_works_in_place_of_torchs_encoder(make):
    model, x = make(), torch.randn(2, 7, 8)
    torch.testing.assert_close(CausalEncoder(model, batch_first=True)(x, is_causal=True), model(x))


def test_it_works_in_rnnsearch(make):
    model = Seq2Seq(9, 7, make(), make(), make()).double().eval()
    source, target = torch.randint(9, (2, 5)), torch.randint(7, (2, 4))
    state, rows = model.start(source), []
    for tokens in target.unbind(1):
        logits, state = model.step(tokens, state)
        rows.append(logits)
    torch.testing.assert_close(torch.stack(rows, 1), model(source, target), rtol=0, atol=1e-12)
    assert model.translate(source, begin=0, end=1, length=3, width=2).tokens.shape[:2] == (2, 2)


class WithoutWidth(CausalModel):
    """Lacks `d_model`."""


@pytest.mark.parametrize("other", [nn.Linear(8, 8), nn.GRU(8, 8), WithoutWidth(), RNN, "rnn", None])
def test_what_is_no_backbone_is_refused(other):
    name = type(other).__name__
    for argument, build in [
        ("backbone", lambda: LanguageModel(other, 5)),
        ("backbone", lambda: SequenceModel(other, 3, 2, "step")),
        ("backbone", lambda: CausalEncoder(other)),
        ("encoder", lambda: Seq2Seq(9, 7, other, RNN(8))),
        ("decoder", lambda: Seq2Seq(9, 7, RNN(8), other)),
        *([("backward", lambda: Seq2Seq(9, 7, RNN(8), RNN(8), other))] if other is not None else []),
    ]:
        with pytest.raises(ValueError, match=f"^{argument}: .*{name}"):
            build()
