"""The papers' claims, each with how it is judged and what would settle it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rtx.lab.errata_counted import path_bound
from rtx.lab.verdicts import Finding, as_fast, better, breaks, needs, no_worse, solves, within
from rtx.tasks import task_by_name
from rtx.tasks.toy.temporal_order import CLASSES
from rtx.training.ledger import LEDGER


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, in our words, and how it is judged."""

    text: str
    source: str
    judge: Callable[[Path], Finding]
    settled_by: str


def judged(results: str | Path = LEDGER) -> list[tuple[Claim, Finding]]:
    """Every claim with what the ledger in a folder says of it.

    Raises:
        ValueError: if a file of the ledger is damaged.
    """
    return [(claim, claim.judge(Path(results).absolute())) for claim in CLAIMS]


def order_blind() -> float:
    """The best accuracy (%) on the test split of the order task without telling XY from YX."""
    classes = [CLASSES[int(one.target)] for one in task_by_name("temporal-order").examples("test")]
    count = {name: classes.count(name) for name in CLASSES}
    return 100 * (count["XX"] + count["YY"] + max(count["XY"], count["YX"])) / len(classes)


OTHERS = ("transformer", "tcn", "rnn", "gru", "lstm")
WANG = (
    Claim(
        "R-Transformer is ahead of all others on digits read pixel by pixel.",
        "R-Transformer, Table 1",
        better("mnist", "r-transformer", OTHERS),
        "the full runs of Table 1: hours on a GPU each",
    ),
    Claim(
        "R-Transformer is ahead of all others on polyphonic music, by a large margin.",
        "R-Transformer, Table 2",
        better("nottingham", "r-transformer", OTHERS),
        "a rate chosen for each, more epochs for those whose best was their last, and the paper's own recipe",
    ),
    Claim(
        "The same on a second corpus of music, of chorales.",
        "ours; R-Transformer says “consistently”",
        better("jsb", "r-transformer", OTHERS),
        "three seeds, and R-Transformer's rate chosen from as many as the others'",
    ),
    Claim(
        "That margin is not one of patience: all models trained for as many seconds.",
        "ours; R-Transformer, §4.4, says “consistently in most of the tasks”",
        better("nottingham", "r-transformer", OTHERS, "same-seconds"),
        "three seeds, and an hour for each",
    ),
    Claim(
        "Nor is it one of size: a Transformer with as many parameters is as far behind.",
        "ours",
        better("nottingham", "r-transformer", ("transformer",), "same-parameters"),
        "three seeds of the variant same-parameters, of all models",
    ),
    Claim(
        "R-Transformer is ahead of all others on characters.",
        "R-Transformer, Table 3",
        better("ptb-char", "r-transformer", OTHERS),
        "the full runs of Table 3: hours on a GPU each",
    ),
    Claim(
        "The same when all are trained for as many seconds.",
        "ours",
        better("ptb-char", "r-transformer", OTHERS, "same-seconds"),
        "the paper's sizes, three seeds, and an hour for each",
    ),
    Claim(
        "On words, R-Transformer is far ahead of the Transformer.",
        "R-Transformer, Table 4",
        better("ptb-word", "r-transformer", ("transformer",)),
        "both rows to the end of the recipe, over the three rates",
    ),
    Claim(
        "On words, an LSTM is ahead of R-Transformer.",
        "R-Transformer, Table 4",
        better("ptb-word", "lstm", ("r-transformer",)),
        "both rows to the end: early on, R-Transformer learns faster",
    ),
    Claim(
        "On words, Transformer-XL is a little ahead of R-Transformer.",
        "R-Transformer, review version, Table 4",
        better("ptb-word", "transformer-xl", ("r-transformer",)),
        "both rows to the end",
    ),
    Claim(
        "LocalRNN captures locality that attention alone misses.",
        "R-Transformer, §3.1",
        better("locality-dial", "r-transformer", ("transformer",)),
        "three seeds; the locality dial of notebook 07 turns the share of local rules",
    ),
    Claim(
        "Recurrence in the window tells order: without positions, it is needed, on the chorales.",
        "R-Transformer, §3.3",
        better("ablations", "window-6", ("no-local-rnn", "window-1")),
        "three seeds, and a task where order decides",
    ),
    Claim(
        "The same, on Nottingham.",
        "R-Transformer, §3.3",
        needs("nottingham", "r-transformer", "local_layers=0"),
        "the paper's own recipe",
    ),
    Claim(
        "With it, no positions are needed, on the chorales.",
        "R-Transformer, §3.3",
        no_worse("ablations", "window-6", "sinusoids"),
        "three seeds, and a task where order decides",
    ),
    Claim(
        "Attention adds to what local recurrence finds, on the chorales.",
        "R-Transformer, §3.2",
        better("ablations", "window-6", ("no-attention",)),
        "three seeds",
    ),
    Claim(
        "The same, on Nottingham.",
        "R-Transformer, §3.2",
        needs("nottingham", "r-transformer", "heads=0"),
        "the paper's own recipe",
    ),
)
XU = (
    Claim(
        "Three channels translate better than one.",
        "after MC-RNN, Table 2, on Multi30k",
        better("multi30k", "mc-rnn-3", ("baseline",)),
        "three seeds at the full size, and the paper's own corpus, the recipe translation",
    ),
    Claim(
        "They translate better than states that skip (HO-RNN) or boundaries that are learned (HM-RNN).",
        "after MC-RNN, Table 2, on Multi30k",
        better("multi30k", "mc-rnn-3", ("ho-rnn", "hm-rnn")),
        "the same",
    ),
    Claim(
        "It is not the size: a wider and a deeper baseline gain nothing.",
        "after MC-RNN, Table 5, on Multi30k",
        better("multi30k", "mc-rnn-3", ("baseline-large", "baseline-deep")),
        "the same",
    ),
    Claim(
        "They gain most on long sources, of more than 60 words.",
        "MC-RNN, Figure 4",
        better("translation", "mc-rnn-3", ("baseline",), detail="BLEU, over 60 words"),
        "the recipe translation: no source of Multi30k's test split is so long",
    ),
    Claim(
        "Channels write better headlines.",
        "MC-RNN, Table 3",
        better("headlines", "mc-rnn-3", ("baseline",)),
        "the full corpus of 3.8 million pairs, which only a GPU gets through",
    ),
    Claim(
        "Channels model words better than AWD-LSTM.",
        "MC-RNN, Table 4",
        better("awd", "mc-rnn-3", ("awd-lstm",)),
        "the full size: days on a GPU",
    ),
    Claim(
        "With a cache pointer, they still do.",
        "MC-RNN, Table 4",
        better("awd", "mc-rnn-3", ("awd-lstm",), detail="perplexity with cache"),
        "the full size: days on a GPU",
    ),
    Claim(
        "Where channels run in parallel, almost the same time as a conventional recurrent network.",
        "MC-RNN, §5.3",
        as_fast("mc-rnn", "rtx / nn.LSTM"),
        "a GPU, where a step's products may run side by side",
    ),
    Claim(
        "Along every channel, l steps take at most ⌊l / (n - 1)⌋ + 1 on the shortest path.",
        "MC-RNN, §5.2",
        breaks(path_bound),
        "nothing more: one counterexample is enough",
    ),
)
RAFFEL = (
    Claim(
        "Attention adds two numbers out of 50 steps within one epoch.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "attention-50"),
        "more seeds; the paper's counts are the best of four rates, stopped by the test set",
    ),
    Claim(
        "The same with the data of the authors' code, whose tolerance is four times as wide.",
        "the authors' code",
        solves("ffa-add", "attention-50", "official"),
        "more seeds",
    ),
    Claim(
        "The same with new sequences for each epoch.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "attention-50", "fresh"),
        "more seeds; the paper's counts are the best of four rates, stopped by the test set",
    ),
    Claim(
        "The mean does it within one, too.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "mean-50"),
        "more seeds",
    ),
    Claim(
        "Attention adds two numbers out of 100 steps within one epoch.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "attention-100"),
        "more seeds; the paper's counts are the best of four rates, stopped by the test set",
    ),
    Claim(
        "The mean does it within one, too.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "mean-100"),
        "more seeds",
    ),
    Claim(
        "Attention multiplies two numbers out of 50 steps within one epoch.",
        "Feed-forward attention, Table 1",
        solves("ffa-multiply", "attention-50"),
        "more seeds",
    ),
    Claim(
        "The mean does it within two.",
        "Feed-forward attention, Table 1",
        solves("ffa-multiply", "mean-50"),
        "more seeds",
    ),
    Claim(
        "Attention multiplies two numbers out of 100 steps within two epochs.",
        "Feed-forward attention, Table 1",
        solves("ffa-multiply", "attention-100"),
        "more seeds",
    ),
    Claim(
        "The same with new sequences for each epoch, as the paper has it.",
        "Feed-forward attention, Table 1",
        solves("ffa-multiply", "attention-100", "fresh"),
        "more seeds",
    ),
    Claim(
        "The mean does it within two, too.",
        "Feed-forward attention, Table 1",
        solves("ffa-multiply", "mean-100"),
        "more seeds",
    ),
    Claim(
        "Attention adds two numbers out of 1,000 steps within one epoch.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "attention-1000"),
        "more seeds",
    ),
    Claim(
        "The mean does it within two.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "mean-1000"),
        "more seeds",
    ),
    Claim(
        "Attention multiplies two numbers out of 1,000 steps within two epochs.",
        "Feed-forward attention, Table 1",
        solves("ffa-multiply", "attention-1000"),
        "the grid of rates, and more seeds",
    ),
    Claim(
        "Attention adds two numbers out of 5,000 steps within two epochs.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "attention-5000"),
        "the grid of rates, and more seeds",
    ),
    Claim(
        "Attention adds two numbers out of 10,000 steps within three epochs.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "attention-10000"),
        "the grid of rates: about a minute an epoch on one core",
    ),
    Claim(
        "With all lengths from 50 to 10,000 in one training, attention adds 99.9 %.",
        "Feed-forward attention, §2.3",
        within("ffa-variable", "add-attention", 0.999, ">="),
        "100 epochs: 24 took 40 minutes on a core that was shared",
    ),
    Claim(
        "The mean gets no further than 77.4 % of these.",
        "Feed-forward attention, §2.3",
        within("ffa-variable", "add-mean", 0.774, "<="),
        "100 epochs: hours on one core",
    ),
    Claim(
        "Of products, attention gets 99.4 %.",
        "Feed-forward attention, §2.3",
        within("ffa-variable", "multiply-attention", 0.994, ">="),
        "100 epochs: hours on one core",
    ),
    Claim(
        "The mean gets no further than 55.5 % of these.",
        "Feed-forward attention, §2.3",
        within("ffa-variable", "multiply-mean", 0.555, "<="),
        "100 epochs: hours on one core",
    ),
    Claim(
        "It cannot tell XY from YX: of the order task, three in four at most, by the test split's own count.",
        "Feed-forward attention, §3",
        within("ffa-order", "attention", order_blind, "<="),
        "three seeds at the full size",
    ),
)
CLAIMS = (*WANG, *XU, *RAFFEL)
