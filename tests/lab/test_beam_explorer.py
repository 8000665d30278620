"""The beam's tree holds what a search with lists meets, and the explorer shows it."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from rtx.lab import explore
from rtx.lab.beam_tree import places, search
from rtx.lab.explore import Explorer
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


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    torch.manual_seed(0)
    made = rnnsearch(TASK.inputs, TASK.outputs, d_model=8, layers=1, bidirectional=False)
    return explore.beam(sharpened(made), TASK.texts, "8. März 1987")


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
    tree = search(model, SOURCE, width, alpha, length=6)
    extended, ranked = beam_of_lists(model, width, alpha, length=6)
    assert tree.found == ranked
    assert set(tree.live) <= extended  # the search may end early
    early = max(len(prefix) for prefix in tree.live)
    assert {prefix for prefix in extended if len(prefix) <= early} == set(tree.live)
    for prefix, score in tree.live.items():
        assert score == pytest.approx(log_probability(model, prefix), abs=1e-4)
    for prefix, score in zip(tree.found, tree.scores, strict=True):
        assert score == pytest.approx(log_probability(model, prefix) / len(prefix) ** alpha, abs=1e-4)


def test_every_node_has_its_parent_and_a_place_of_its_own(model: nn.Module) -> None:
    nodes = search(model, SOURCE, 4, 1.0, length=6).nodes()
    heights = places(nodes)
    assert nodes[0] == () and all(node[:-1] in heights for node in nodes if node)
    assert len({(len(node), heights[node]) for node in nodes}) == len(nodes)
    children = [heights[node] for node in nodes if len(node) == 1]
    assert heights[()] == pytest.approx((min(children) + max(children)) / 2)


def test_the_best_is_what_translate_finds(model: nn.Module) -> None:
    tree = search(model, SOURCE, 3, 1.0, length=6)
    found = model.translate(torch.tensor([[*SOURCE, END]]), begin=BEGIN, end=END, width=3, length=6)
    best = found.tokens[0, 0, : found.lengths[0, 0]].tolist()
    assert tree.found[0] == tuple(best) and tree.scores[0] == pytest.approx(float(found.scores[0, 0]))


def test_one_path_is_chosen_and_its_looks_are_the_models(explorer: Explorer) -> None:
    explorer.set(width=4, alpha=1.0, hypothesis=2)
    tree, looks = explorer.figure.axes
    shades = [tuple(colour[:3]) for colour in tree.collections[0].get_colors()]
    orange = max(set(shades), key=lambda shade: shade[0] - shade[2])
    words = [label.get_text() for label in looks.get_yticklabels()]
    assert shades.count(orange) == len(words)
    weights = looks.images[0].get_array()
    assert weights.shape == (len(words), len(looks.get_xticklabels()))
    assert weights.sum(1).tolist() == pytest.approx([1] * len(words), abs=1e-5)
    assert explorer.controls["hypothesis"].max == explorer.text.count("“") == 4
    explorer.set(width=2, hypothesis=2)
    assert explorer.controls["hypothesis"].max == explorer.controls["hypothesis"].value == 2


def test_wrong_arguments_are_refused() -> None:
    model = rnnsearch(TASK.inputs, TASK.outputs, d_model=8, layers=1, bidirectional=False)
    with pytest.raises(ValueError, match="source: "):
        explore.beam(model, TASK.texts, "")
    with pytest.raises(ValueError, match="texts: .*120"):
        explore.beam(rnnsearch(9, 9, d_model=8, layers=1, bidirectional=False), TASK.texts, "8. März")


def test_every_node_has_its_word_in_one_artist(explorer: Explorer) -> None:
    """One `Text` for each node would make a picture take more than a tenth of a second."""
    explorer.set(width=5, alpha=1.0, hypothesis=1)
    tree, _ = explorer.figure.axes
    lines, words = tree.collections
    assert len(words.get_paths()) == len(lines.get_segments()) == len(words.get_offsets()) > 5
    level = [(before, end) for *_, before, end in lines.get_segments()]  # a token stands above this part of its branch
    for ((left, y), (right, end)), (x, height) in zip(level, words.get_offsets(), strict=True):
        assert y == end == height and left < x < right
    assert words.get_facecolors().tolist() == lines.get_colors().tolist() and not tree.texts


def test_tokens_of_a_long_sentence_stand_beside_one_another() -> None:
    torch.manual_seed(0)
    made = rnnsearch(TASK.inputs, TASK.outputs, d_model=8, layers=1, bidirectional=False)
    explorer = explore.beam(made, TASK.texts, " ".join(["8. März 1987"] * 5))
    looks = explorer.figure.axes[1]
    explorer.figure.draw_without_rendering()
    across, down = ([one.get_window_extent() for one in axis.get_ticklabels()] for axis in (looks.xaxis, looks.yaxis))
    assert len(across) > 20 and all(left.x1 <= right.x0 for left, right in pairwise(across))
    assert len(down) > 30 and all(upper.y0 >= lower.y1 for upper, lower in pairwise(down))


def test_a_model_in_half_precision_can_be_looked_into() -> None:
    torch.manual_seed(0)
    made = rnnsearch(TASK.inputs, TASK.outputs, d_model=8, layers=1, bidirectional=False).bfloat16()
    assert "where hypothesis 1 looked" in explore.beam(made, TASK.texts, "8. März").text
