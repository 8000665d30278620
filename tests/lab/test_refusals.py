"""What an explorer or `xray` cannot show is refused: one ValueError names the argument and what was given."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from test_xray import Applies
from torch import nn

import rtx
from rtx import MCRNN, RNN, LanguageModel, RTransformer, Transformer
from rtx.lab import explore, xray
from rtx.lab.contest import matched
from rtx.nn import LocalRNN, MultiHeadAttention
from rtx.tasks import task_by_name
from rtx.tasks.task import Example
from rtx.tasks.vocabulary import UNKNOWN, vocabulary

X, ROLL = torch.randn(1, 5, 4, generator=torch.Generator().manual_seed(0)), np.eye(9, 88)
MUSIC, SMALL = rtx.build("chorales", "gru", d_model=4), {"gru": {"model": "gru", "d_model": 16, "layers": 1}}
WORDS, SENTENCE = vocabulary("words", [UNKNOWN, "few", "and", "far", "between", "."]), "few and far"
SAME = nn.Identity()


def broken(model: nn.Module) -> nn.Module:
    """Return a model that diverged."""
    nn.init.constant_(model.head.bias, torch.nan)  # type: ignore[union-attr, arg-type]
    return model


def digits(*lengths: int) -> list[Example]:
    return [Example(torch.zeros(length, 1), torch.tensor(1)) for length in lengths]


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: explore.attention(RNN(4, 1), X), "model: "),
    (lambda: explore.attention(Transformer(4, 1, 2), X.expand(2, -1, -1)), "x: .*, got 2"),
    (lambda: explore.attention(Transformer(4, 1, 2), X, [*"abcd"]), "labels: .* 5 .*, got 4"),
    (lambda: explore.attention(Transformer(4, 1, 2), X, None, [*"abcd"]), "queries: .* 5 .*, got 4"),
    (lambda: explore.bach(ROLL[:, :80], MUSIC), r"roll: .*\(9, 80\)"),
    (lambda: explore.bach(ROLL[:1], MUSIC), "roll: "),
    (lambda: explore.bach(ROLL / 2, MUSIC), "roll: .* 0.5"),
    (lambda: explore.bach(ROLL, broken(rtx.build("chorales", "gru", d_model=4))), "logits of the model: .* NaN"),
    (lambda: explore.bach_or_machine([]), "pairs: .*none"),
    (lambda: explore.bach_or_machine([(ROLL, ROLL[:8])]), r"pairs: .*\(9, 8\)"),
    (lambda: explore.channels(LanguageModel(MCRNN(4), 6), None, SENTENCE), "vocabulary: "),
    (lambda: explore.channels(MCRNN(4), WORDS, SENTENCE), "model: .* MCRNN"),
    (lambda: explore.channels(LanguageModel(RNN(4), 6), WORDS, SENTENCE), "model: "),
    (lambda: explore.channels(LanguageModel(MCRNN(4, phase="text"), 6), WORDS, SENTENCE), "model: .* 'text'"),
    (lambda: explore.channels(LanguageModel(MCRNN(4), 7), WORDS, SENTENCE), "vocabulary: .* 7 .* got 6"),
    (lambda: explore.channels(LanguageModel(MCRNN(4), 2), vocabulary("words", "ab"), "a b"), "vocabulary: .*<unk>"),
    (lambda: explore.digits(SAME, []), "examples: "),
    (lambda: explore.digits(SAME, digits(15)), r"\(15, 1\)"),
    (lambda: explore.digits(SAME, digits(64, 64, 16)), r"\(16, 1\)"),
    (lambda: explore.positions(MultiHeadAttention(4, 2)), "layer: .* MultiHead"),
    (lambda: explore.positions(x=torch.randn(1, 65, 32)), r"x: .*\(1, 65, 32\)"),
    (lambda: explore.positions(x=torch.randn(1, 5, 31)), "x: "),
    (lambda: explore.toy(length=51), "length: .*51"),
    (lambda: explore.toy().set(length=51), "length: .*51"),
    (lambda: explore.race("digits", {}), "entrants: "),
    (lambda: explore.race("digits", SMALL, seeds=0), "seeds: .*0"),
    (lambda: explore.race("digits", SMALL, turns=0), "turns: .*0"),
    (lambda: explore.race("digits", SMALL, "x"), "equal: .*x"),
    (lambda: matched(task_by_name("digits"), {"model": "gru"}, 100), "entrants: .*d_model"),
    (lambda: explore.training("digit"), "task: .*digit"),
    (lambda: explore.training("digits", "mc-rnn"), "model: .*mc-rnn"),
    (lambda: explore.training("digits", "gru", window=3), "state: .*window"),
    (lambda: explore.training("digits", "gru").set(window=3), "state: .*window"),
    (lambda: explore.window(X), r"x: .*\(1, 5, 4\)"),
    (lambda: explore.window(X[0] / 0), "x: "),
    (lambda: explore.window(X[0], LocalRNN(3, 3)), "x: .* 3.* 4"),
    (lambda: explore.window(X[0].double(), LocalRNN(4, 3)), "x: .*float64.*float32"),
    (lambda: explore.window(torch.zeros(41, 5)), r"x: .*\(41, 5\)"),
    (lambda: xray(Applies(lambda x: [x]), X), "model: .* list"),
    (lambda: xray(RTransformer, X), "model: .* type"),
    (lambda: xray(SAME, X.expand(2, -1, -1)), r"x: .*\(2, 5, 4\)"),
    (lambda: xray(SAME, X.long()), "x: .*int64"),
    (lambda: xray(SAME, X[:, :0]), "x: "),
    (lambda: xray(Applies(lambda x: x.cumsum(1).sqrt()), -torch.ones(1, 5, 3)), r"derivatives .*\(0, 0\)"),
    (lambda: xray(nn.Flatten(), X), r"model: .*\(1, 20\)"),
    (lambda: explore.xray(nn.Linear(4, 4)), "x: .*d_model"),
    (lambda: explore.xray(torch.relu, X), "module: "),
    (lambda: explore.xray(nn.Linear(4, 4), X[0]), r"x: .*\(5, 4\)"),
    (lambda: explore.xray(nn.Linear(4, 120), X), "module: .* 512 .* 600"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_cannot_be_shown_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
