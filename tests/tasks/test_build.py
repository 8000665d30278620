"""`rtx.build`: which model it makes for which task, and what it refuses."""

import pytest
import torch

import rtx
from rtx.models import FeedForwardAttention
from rtx.tasks import SequenceModel
from rtx.tasks.build import hyperparameter_names


def test_a_backbone_is_between_an_embedding_and_a_head():
    model = rtx.build("nottingham", "gru", d_model=6)
    assert isinstance(model, SequenceModel)
    assert (model.embedding.in_features, model.embedding.out_features, model.head.out_features) == (88, 6, 88)
    assert model(torch.rand(2, 5, 88)).shape == (2, 5, 88)
    assert rtx.build("digits", "gru", d_model=6)(torch.rand(2, 64, 1)).shape == (2, 10)


@pytest.mark.parametrize("task", ["add", "multiply"])
def test_a_whole_model_reads_sequences_itself(task):
    model = rtx.build(task, "feed-forward-attention")
    assert isinstance(model, FeedForwardAttention)
    assert model(torch.rand(3, 7, 2), torch.tensor([7, 1, 2])).shape == (3, 1)


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        (("add", "feed-forward-atention"), {}, "model: .* did you mean 'feed-forward-attention'"),
        (("ad", "gru"), {}, "task: 'ad' is unknown, .*did you mean 'add'"),
        ((None, "gru"), {}, "task: None is unknown, allowed are add, "),
        ((rtx.TASKS["add"], "gru"), {}, "task: <function .* is unknown, allowed are add, "),
        (("add", ["gru"]), {}, "model: .* is unknown, .*did you mean 'gru'"),
        (("add", "gru"), {}, "hyper-parameters of gru: missing d_model"),
        (("add", "gru"), {"d_modle": 4}, "hyper-parameter of gru: 'd_modle' is unknown, .*did you mean 'd_model'"),
        (("add", "feed-forward-attention"), {"inputs": 3}, "feed-forward-attention: 'inputs' is unknown"),
        (("nottingham", "feed-forward-attention"), {}, "^model: feed-forward-attention .* nottingham"),  # one per step
        (("add", "feed-forward-attention"), {"pooling": "max"}, "pooling: 'max' is unknown"),
        (
            (rtx.TASKS["text"](unit="sub-words", vocabulary=10**9), "gru"),
            {"d_model": 8},
            "^model: .*vocabulary = 10{9},",
        ),
    ],
)
def test_unknown_missing_and_bad_arguments_are_refused(arguments, keywords, message):
    with pytest.raises(ValueError, match=message):
        rtx.build(*arguments, **keywords)


@pytest.mark.parametrize("task", ["add", "nottingham"])
@pytest.mark.parametrize("name", ["transformer", "r-transformer", "tcn"])
def test_padding_is_not_read_and_gets_no_gradient(task, name):
    torch.manual_seed(0)
    sizes = {"d_model": 8, "layers": 2, "heads": 2, "window": 3}
    model = rtx.build(task, name, **{k: v for k, v in sizes.items() if k in hyperparameter_names(name)}).double()
    x, lengths = torch.randn(2, 6, model.inputs, dtype=torch.float64), torch.tensor([6, 4])
    alone = x[1:, :4].clone().requires_grad_()
    x[1, 4:] = torch.nan
    y, expected = model(x.requires_grad_(), lengths)[1], model(alone)[0]
    y = y[:4] if model.per == "step" else y
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    found, there = torch.autograd.grad(y.sum(), x)[0][1], torch.autograd.grad(expected.sum(), alone)[0][0]
    torch.testing.assert_close(found[:4], there, rtol=0, atol=1e-12)
    assert not found[4:].any()


def test_lengths_that_do_not_fit_are_refused_whatever_is_predicted():
    for task, inputs in (("add", 2), ("nottingham", 88)):
        with pytest.raises(ValueError, match=r"lengths: expected 2 whole numbers from 1 to 5, .* got \[6, 1\]"):
            rtx.build(task, "gru", d_model=4)(torch.randn(2, 5, inputs), torch.tensor([6, 1]))
