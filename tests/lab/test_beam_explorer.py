"""The beam's tree holds what a search with lists meets, and the explorer shows it."""

import pytest
import torch
from torch import nn

from rtx.lab import explore
from rtx.lab.explore.beam import search
from rtx.models import EncoderDecoder, rnnsearch
from rtx.tasks import task_by_name
from rtx.tasks.subwords import BEGIN, END

SOURCE = [5, 7, 4, 9]
VOCABULARY = 7
TASK = task_by_name("dates", size=300, vocabulary=120)


def sharpened(model: nn.Module) -> nn.Module:
    """An untrained model that has opinions."""
    with torch.no_grad():
        model.output.weight.mul_(8)  # type: ignore[operator, union-attr]
    return model.eval()


@pytest.fixture(params=["rnnsearch", "encoder-decoder"])
def model(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(4)
    if request.param == "rnnsearch":
        return sharpened(rnnsearch(12, VOCABULARY, d_model=8, layers=1, bidirectional=False))
    return sharpened(EncoderDecoder(12, VOCABULARY, d_model=8, layers=1, heads=2, window=2))


def log_probability(model: nn.Module, prefix: tuple[int, ...]) -> float:
    """Of a prefix, by reading the whole of it at once."""
    with torch.no_grad():
        logits = model(torch.tensor([[*SOURCE, END]]), torch.tensor([[BEGIN, *prefix]]))[0]
    p = logits.log_softmax(-1)
    return sum(float(p[i, token]) for i, token in enumerate(prefix))


def beam_of_lists(model: nn.Module, width: int, alpha: float, length: int):
    """Every prefix that is extended, and the complete ones, the best first; it never stops early."""
    live, complete, extended = [()], [], {()}
    for _ in range(length):
        longer = [(*prefix, token) for prefix in live for token in range(VOCABULARY)]
        longer = sorted(longer, key=lambda prefix: -log_probability(model, prefix))[:width]
        complete += [prefix for prefix in longer if prefix[-1] == END or len(prefix) == length]
        live = [prefix for prefix in longer if prefix[-1] != END and len(prefix) < length]
        extended |= set(live)
    ranked = sorted(complete, key=lambda prefix: -log_probability(model, prefix) / len(prefix) ** alpha)
    return extended, ranked[:width]


@pytest.mark.parametrize(("width", "alpha"), [(1, 1.0), (2, 0.0), (3, 1.0), (4, 0.5)])
def test_the_tree_is_that_of_a_beam_of_lists(model: nn.Module, width: int, alpha: float) -> None:
    live, found = search(model, SOURCE, width, alpha, length=6)
    extended, ranked = beam_of_lists(model, width, alpha, length=6)
    assert list(found) == ranked
    assert live <= extended  # the search may end early
    early = max(len(prefix) for prefix in live)
    assert {prefix for prefix in extended if len(prefix) <= early} == live
    for prefix, score in found.items():
        assert score == pytest.approx(log_probability(model, prefix) / len(prefix) ** alpha, abs=1e-4)


def of_dates() -> nn.Module:
    torch.manual_seed(0)
    return sharpened(rnnsearch(TASK.inputs, TASK.outputs, d_model=8, layers=1, bidirectional=False))


def test_the_page_has_every_tree_with_its_hypotheses_and_their_looks() -> None:
    page = explore.beam(of_dates(), TASK.texts, "8. März 1987")
    for width in range(1, 6):
        tree = page.data["trees"][f"{width} 1"]
        assert len(tree["found"]) == width and tree["nodes"][0][1] == -1
        for found in tree["found"]:
            node, depth = tree["nodes"][found["node"]], 0
            while node[1] >= 0:
                node, depth = tree["nodes"][node[1]], depth + 1
            looks = page.data["looks"][found["look"]]
            assert len(looks) == depth and all(len(row) == len(page.data["source"]) for row in looks)
            assert all(abs(sum(row) - 1) < 0.05 for row in looks)


def test_an_empty_source_is_refused() -> None:
    with pytest.raises(ValueError, match="source: "):
        explore.beam(of_dates(), TASK.texts, "")


def test_a_model_in_half_precision_can_be_looked_into() -> None:
    assert explore.beam(of_dates().bfloat16(), TASK.texts, "8. März").data["looks"]
