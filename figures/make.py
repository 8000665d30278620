"""Draw the figures of README, docs and lessons from the models and the ledger: the same inputs give the same bytes.

make figures
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import torch
from drawing import new_figure, png
from matplotlib.figure import Figure
from papers import PAPERS
from speed import speed_cpu
from thumbnails import write as thumbnails

from rtx.evidence.ledger import read_results
from rtx.evidence.selection import counts, is_full, under_one_budget
from rtx.evidence.tables import cells
from rtx.lab import receptive_field
from rtx.lab.plots import COLOURS, receptive_field_map, style
from rtx.models import MODELS
from rtx.nn.validate import check_choice
from rtx.tasks.build import hyperparameter_names
from rtx.training.recipe import load_recipe

FOLDER = Path(__file__).parent
LEDGER = FOLDER.parent / "results"


def every_reach() -> Figure:
    """What each position of every untrained model depends on, three layers each, so that Griffin has its attention."""
    sizes = {"d_model": 16, "layers": 3, "heads": 2, "window": 4, "segment": 8, "memory": 8}
    x = torch.randn(1, 24, 16, generator=torch.Generator().manual_seed(0))
    columns = 5
    rows = -(-len(MODELS) // columns)
    figure, axes = new_figure(11, 2.3 * rows + 0.3, columns, rows)
    for i, (ax, (name, make)) in enumerate(zip(axes, MODELS.items(), strict=False)):
        torch.manual_seed(0)
        strength = receptive_field(make(**{k: v for k, v in sizes.items() if k in hyperparameter_names(name)}), x)
        image = receptive_field_map(ax, strength / strength.max(), name)
        ax.set(xticks=(1, 12, 24), yticks=(1, 12, 24))
        ax.set_xlabel("input" if i + columns >= len(MODELS) else "")
        ax.set_ylabel("output" if i % columns == 0 else "")
    for ax in axes[len(MODELS) :]:
        ax.set_visible(False)
    figure.colorbar(image, ax=axes, label="|∂y_t / ∂x_s|, strongest = 1", shrink=0.8)
    return figure


def nottingham() -> Figure:
    """The paper's Table 2 beside the ledger's finished runs of each model."""
    recipe = load_recipe("nottingham")
    full = {
        model: [runs for runs in groups if is_full(runs[0]) and counts(runs[0], recipe.default_variant)]
        for model, groups in cells(recipe, LEDGER).items()
    }
    ours = under_one_budget(full, [m for m in recipe.models if recipe.paper(m) is not None], min)
    models = [m for m in recipe.models if m in ours]
    fewest = min(len(runs) for runs in ours.values())
    figure, (ax,) = new_figure(7.2, 0.9 + 0.5 * len(models))
    for row, model in enumerate(models):
        paper, tests = recipe.paper(model), [run.test for run in ours[model]]
        test = mean(tests)
        ax.plot([paper, test], [row, row], color="0.8", zorder=1)
        ax.scatter(paper, row, color="white", edgecolor=COLOURS[0], s=60, zorder=2, label="paper" if not row else None)
        ax.scatter(test, row, color=COLOURS[1], s=60, zorder=3, label="this project" if not row else None)
        ax.scatter(tests, [row] * len(tests), color="black", s=6, zorder=4, label="its seeds" if not row else None)
        ax.annotate(f"{test:.2f}", (test, row), (0, 8), textcoords="offset points", ha="center", fontsize=9)
    ax.set_yticks(range(len(models)), models)
    ax.set(
        xlabel="test NLL per frame (nats), lower is better",
        title=f"Nottingham: means of {fewest} seeds or more",
        ylim=(len(models) - 0.4, -0.6),
    )
    ax.legend(frameon=False, fontsize=9)
    return figure


def nottingham_control() -> Figure:
    """Our runs of Table 2, a dot for each seed, and of a Transformer with relative positions."""
    runs = [run for run in read_results("nottingham", LEDGER) if is_full(run)]
    rows = {
        "R-Transformer, no positions": ("r-transformer", "adam"),
        "Transformer, sinusoids": ("transformer", "adam"),
        "TCN": ("tcn", "adam+learning_rate=0.001"),
        "RNN": ("rnn", "adam"),
        "GRU": ("gru", "adam"),
        "LSTM": ("lstm", "adam+learning_rate=0.002"),
        "Transformer, relative": ("transformer", "adam+max_distance=64+position=relative"),
        "Transformer, relative, 60 epochs": ("transformer", "strong+position=relative"),
        "R-Transformer, relative, 60 epochs": ("r-transformer", "strong+position=relative"),
    }
    figure, (ax,) = new_figure(7.2, 2.9)
    for place, wanted in enumerate(rows.values()):
        tests = [run.test for run in runs if (run.model, run.variant) == wanted]
        colour = COLOURS[{0: 0, len(rows) - 3: 1, len(rows) - 2: 1, len(rows) - 1: 0}.get(place, 7)]
        ax.plot(tests, [place] * len(tests), "o", color=colour, alpha=0.7)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(
        xlabel="test loss, nats per frame (less is better)",
        title="Nottingham: with relative positions, both losses are low",
        ylim=(len(rows) - 0.5, -0.5),
    )
    return figure


def word_curves() -> Figure:
    """Full-size runs on Penn Treebank words: validation by epoch, our test score and the paper's."""
    recipe = load_recipe("ptb-word")
    curves = json.loads((FOLDER.parent / "studies" / "word_curves.json").read_text(encoding="utf-8"))
    runs = [run for run in read_results("ptb-word", LEDGER) if is_full(run)]
    figure, (ax,) = new_figure(7.2, 3.6)
    for model, colour in (("transformer", COLOURS[1]), ("r-transformer", COLOURS[0])):
        curve = curves[f"{model}-adam-s0"]
        (test,) = (run.test for run in runs if (run.model, run.variant, run.seed) == (model, "adam", 0))
        ax.plot(range(1, len(curve) + 1), curve, color=colour, label=f"{model}, validation")
        ax.plot(len(curve) + 0.6, test, "o", color=colour, label=f"{model}, test {test:.1f}")
        ax.axhline(recipe.paper(model), color=colour, ls=":", label=f"{model}, test in the paper {recipe.paper(model)}")
    ax.set(
        yscale="log",
        xlabel="epoch",
        ylabel="perplexity (less is better)",
        title="Penn Treebank words at full size, one seed each",
        xticks=range(0, 21, 5),
        yticks=(100, 200, 300, 400, 500),
        yticklabels=(100, 200, 300, 400, 500),
    )
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=9)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "every_reach": every_reach,
    "nottingham": nottingham,
    "nottingham_control": nottingham_control,
    "speed_cpu": speed_cpu,
    "word_curves": word_curves,
    **PAPERS,
}


def main(wanted: list[str]) -> None:
    """Write these figures, or all, as PNG beside this file; "thumbnails" are those of the notebooks.

    Raises:
        ValueError: if there is none of a name.
    """
    style()
    torch.set_num_threads(1)
    for name in wanted or [*FIGURES, "thumbnails"]:
        if name == "thumbnails":
            thumbnails()
            continue
        (FOLDER / f"{name}.png").write_bytes(png(FIGURES[check_choice("figure", name, [*FIGURES, "thumbnails"])]()))


if __name__ == "__main__":
    main(sys.argv[1:])
