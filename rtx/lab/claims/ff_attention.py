"""Claims of Raffel & Ellis (2015), feed-forward attention."""

from rtx.lab.claims.claim import Claim
from rtx.lab.verdicts import solves, within
from rtx.tasks import task_by_name
from rtx.tasks.toy.temporal_order import CLASSES

TABLE = "Feed-forward attention, Table 1"


def order_blind() -> float:
    """The best accuracy (%) on the test split of the order task without telling XY from YX."""
    classes = [CLASSES[int(one.target)] for one in task_by_name("temporal-order").examples("test")]
    count = {name: classes.count(name) for name in CLASSES}
    return 100 * (count["XX"] + count["YY"] + max(count["XY"], count["YX"])) / len(classes)


CLAIMS = (
    Claim(
        "Attention adds two numbers out of 50 steps within one epoch.",
        TABLE,
        solves("ffa-add", "attention-50"),
        "to stop by the test set, as the paper did",
    ),
    Claim(
        "The same with the data of the authors' code, whose tolerance is four times as wide.",
        "the authors' code",
        solves("ffa-add", "attention-50", "official"),
        "all four rates, and more seeds",
    ),
    Claim(
        "The same with new sequences for each epoch.",
        TABLE,
        solves("ffa-add", "attention-50", "fresh"),
        "all four rates, and more seeds",
    ),
    Claim(
        "The mean does it within one, too.",
        TABLE,
        solves("ffa-add", "mean-50"),
        "to stop by the test set, as the paper did",
    ),
    Claim(
        "Attention adds two numbers out of 100 steps within one epoch.",
        TABLE,
        solves("ffa-add", "attention-100"),
        "to stop by the test set, as the paper did",
    ),
    Claim(
        "The mean does it within one, too.",
        TABLE,
        solves("ffa-add", "mean-100"),
        "to stop by the test set, as the paper did",
    ),
    Claim(
        "Attention multiplies two numbers out of 50 steps within one epoch.",
        TABLE,
        solves("ffa-multiply", "attention-50"),
        "more seeds",
    ),
    Claim(
        "The mean does it within two.",
        TABLE,
        solves("ffa-multiply", "mean-50"),
        "more seeds",
    ),
    Claim(
        "Attention multiplies two numbers out of 100 steps within two epochs.",
        TABLE,
        solves("ffa-multiply", "attention-100"),
        "more seeds",
    ),
    Claim(
        "The same with new sequences for each epoch, as the paper has it.",
        TABLE,
        solves("ffa-multiply", "attention-100", "fresh"),
        "all four rates, and more seeds",
    ),
    Claim(
        "The mean does it within two, too.",
        TABLE,
        solves("ffa-multiply", "mean-100"),
        "more seeds",
    ),
    Claim(
        "Attention adds two numbers out of 1,000 steps within one epoch.",
        TABLE,
        solves("ffa-add", "attention-1000"),
        "all four rates, and more seeds",
    ),
    Claim(
        "The mean does it within two.",
        TABLE,
        solves("ffa-add", "mean-1000"),
        "all four rates, and more seeds",
    ),
    Claim(
        "Attention multiplies two numbers out of 500 steps within four epochs.",
        TABLE,
        solves("ffa-multiply", "attention-500"),
        "more seeds",
    ),
    Claim(
        "Attention multiplies two numbers out of 1,000 steps within two epochs.",
        TABLE,
        solves("ffa-multiply", "attention-1000"),
        "more seeds",
    ),
    Claim(
        "Attention adds two numbers out of 5,000 steps within two epochs.",
        TABLE,
        solves("ffa-add", "attention-5000"),
        "all four rates, and more seeds",
    ),
    Claim(
        "Attention adds two numbers out of 10,000 steps within three epochs.",
        TABLE,
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
