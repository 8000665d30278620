"""Models saved by the first version can be loaded.

first_version.json has the names and shapes of the state dicts of commit 90c64ad, in their order.
"""

import json
from pathlib import Path

import pytest
import torch

from rtx.models import RNN, EncoderDecoder, FeedForwardAttention, LanguageModel, RTransformer, rnnsearch
from rtx.tasks.build import SequenceModel

SAVED = json.loads(Path(__file__).with_name("first_version.json").read_text())


OTHERS = {
    "feed-forward-attention": FeedForwardAttention,
    "feed-forward-attention-mean": lambda: FeedForwardAttention(pooling="mean", leak="printed"),
    "rnnsearch": lambda: rnnsearch(9, 7, "lstm", d_model=8, layers=2),
    "rnnsearch-one-way": lambda: rnnsearch(9, 7, "mc-rnn", bidirectional=False, d_model=8),
    "encoder-decoder": lambda: EncoderDecoder(9, 7, 8, 2, 2),
    "encoder-decoder-window-pre": lambda: EncoderDecoder(9, 7, 8, 2, 2, 3, norm="pre"),
    "language-model": lambda: LanguageModel(RTransformer(8, 1, 2, 3), 9),
    "language-model-untied": lambda: LanguageModel(RNN(8), 9, tied=False),
    "sequence-model": lambda: SequenceModel(RNN(8), 3, 2, "step"),
}


def assert_loads(model: torch.nn.Module, name: str) -> None:
    saved = {key: torch.randn(shape) for key, shape in SAVED[name].items()}
    assert list(model.state_dict()) == list(saved)  # an optimiser's state has no names, so the order counts too
    model.load_state_dict(saved)


@pytest.mark.parametrize("variant", sorted(SAVED.keys() - OTHERS.keys()), indirect=True)
def test_a_state_dict_of_the_first_version_loads(small_model, variant):
    assert_loads(small_model(), variant)


@pytest.mark.parametrize("name", OTHERS)
def test_a_state_dict_of_the_first_version_loads_also_around_a_backbone(name):
    assert_loads(OTHERS[name](), name)
