"""Explorer of the block: its norm before or after, its sublayers with one left out, one block on the other.

Wang et al. (2019), R-Transformer, Eq. 8.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice

import ipywidgets as widgets
import torch
from jaxtyping import Float
from torch import Tensor, nn

from rtx.lab.explore.explorer import Explorer
from rtx.lab.explore.reach import one_sequence, reach_at_once, sentence, share_map, show_shares
from rtx.lab.plots import freeze, new_figure
from rtx.lab.seeded import seeded
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, Residual

DEEPEST = 8  # blocks; as many as the paper's deepest model has


def block(
    x: Float[Tensor, "1 T D"] | None = None, sublayers: Mapping[str, Callable[[], nn.Module]] | None = None
) -> Explorer:
    """Who sees whom, and how large activations are, with controls `norm`, `sublayers` and `depth` (L).

    Args:
        x: one sequence, at best a short one; by default 12 steps of noise, 8 wide.
        sublayers: name → a function that makes one, (B, T, D) to (B, T, D), bottom to top; by default those of
            R-Transformer with a GRU and a window of 3. All of them are shown, or all but one.

    Raises:
        ValueError: if `x` is not one finite (1, T, D) float sequence of at most 2,048 numbers, or there are fewer
            than two sublayers.
    """
    x = torch.randn(1, 12, 8, generator=torch.Generator().manual_seed(0)) if x is None else one_sequence(x)
    makers = dict(_bricks(x.shape[-1]) if sublayers is None else sublayers)
    if len(makers) < 2:
        raise ValueError(f"sublayers: expected at least two, so that one can be left out, got {list(makers)}")
    picture = _Picture(x.shape[1])

    @cache
    def blocks(norm: str, left_out: str) -> nn.Sequential:
        kept = [make for name, make in makers.items() if left_out != f"no {name}"]
        with seeded(0):
            return stack(kept, x.shape[-1], DEEPEST, norm).to(x)

    @cache
    def look(norm: str, left_out: str, depth: int) -> tuple[Tensor, list[float]]:
        model = nn.Sequential(*islice(blocks(norm, left_out), depth))
        return reach_at_once(model, x), sizes(model, x)

    def update(norm: str, sublayers: str, depth: int) -> str:
        moved, size = look(norm, sublayers, depth)
        picture.show(moved, size, f"{norm}-norm, {sublayers}, L = {depth}")
        return f"Activations leave block {depth} with size {size[-1]:.2f}. {sentence(moved)}"

    caption = "leave the LocalRNN out, then the attention instead, and add depth; compare the sizes under post and pre"
    return Explorer(
        picture.figure,
        update,
        caption,
        norm=widgets.Dropdown(options=["post", "pre"], description="norm", layout=widgets.Layout(width="140px")),
        sublayers=widgets.Dropdown(
            options=["all sublayers", *(f"no {name}" for name in makers)], description="sublayers"
        ),
        depth=widgets.IntSlider(2, 1, DEEPEST, description="blocks L"),
    )


def stack(sublayers: list[Callable[[], nn.Module]], d_model: int, layers: int, norm: str) -> nn.Sequential:
    """`layers` blocks of the same sublayers, each with its residual and norm: Eq. 8 for any choice of sublayers."""
    return nn.Sequential(
        *(nn.Sequential(*(Residual(make(), d_model, norm) for make in sublayers)) for _ in range(layers))
    )


def sizes(blocks: nn.Sequential, x: Tensor) -> list[float]:
    """The root mean square of the numbers in `x` and in what leaves each block."""
    found = [x]
    with torch.no_grad():
        for one in blocks:
            found.append(one(found[-1]))
    return [float(h.square().mean().sqrt()) for h in found]


def _bricks(width: int) -> dict[str, Callable[[], nn.Module]]:
    heads = 1 if width % 2 else 2
    return {
        "LocalRNN": lambda: LocalRNN(width, window=3),
        "attention": lambda: MultiHeadAttention(width, heads),
        "feed-forward": lambda: FeedForward(width),
    }


class _Picture:
    """Left, which input moves which output; right, the size of activations up the stack."""

    def __init__(self, length: int) -> None:
        self.figure, (self.map, self.sizes) = new_figure(9, 3.9, columns=2)
        self.figure.set_layout_engine("constrained", wspace=0.08)
        self.image = share_map(self.map, torch.ones(length, length))
        (self.line,) = self.sizes.plot([], [], marker="o")
        self.sizes.set(xlim=(-0.3, DEEPEST + 0.3), ylim=(0, 2), xticks=range(DEEPEST + 1))
        self.sizes.locator_params(axis="y", nbins=5)
        self.sizes.set(xlabel="block (0: the input)", ylabel="root mean square", title="size of activations")
        freeze(self.figure)

    def show(self, moved: Float[Tensor, "T T"], size: list[float], title: str) -> None:
        show_shares(self.image, moved)
        self.map.set_title(title, y=1)
        self.line.set_data(range(len(size)), size)
        self.sizes.set_ylim(0, max(2.0, 1.1 * max(size)))  # one scale for all but large inputs
