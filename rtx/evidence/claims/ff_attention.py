"""Claims of Raffel & Ellis (2015), feed-forward attention."""

from rtx.evidence.claims.claim import Claim
from rtx.evidence.counted import order_blind
from rtx.evidence.toy_verdicts import solves, sooner
from rtx.evidence.verdicts import better, within

TABLE = "Feed-forward attention, Table 1"
FOUR_RATES = "the four rates compared with each of three seeds, where that is not done yet"
AS_CODED = "The same where the zeros behind a sequence count as steps, as in the authors' code."
HOURS = "one to three hours on one core for each of three seeds"


def as_printed_and_as_coded(text: str, recipe: str, row: str) -> tuple[Claim, Claim]:
    """A cell of Table 1, by the paper's pooling (Eq. 1, 2) and by the authors' code, which reads the padding.

    Both with the code's rectifier, and on the same sequences in each epoch.
    """
    firmer = f"{FOUR_RATES}; beyond one epoch, new sequences for each, as the variant fresh has them"
    return (
        Claim(text, TABLE, solves(recipe, row), firmer),
        Claim(AS_CODED, TABLE, solves(recipe, row, "padded"), firmer),
    )


def sooner_than_the_mean(text: str, recipe: str, length: int) -> tuple[Claim, Claim]:
    """Two cells of Table 1, where attention needs fewer epochs than the mean, by both poolings."""
    rows = (recipe, f"attention-{length}", f"mean-{length}")
    firmer = "the four rates compared with each of three seeds, and epochs until all have solved it"
    return (
        Claim(text, TABLE, sooner(*rows), firmer),
        Claim(AS_CODED, TABLE, sooner(*rows, "padded"), firmer),
    )


CLAIMS = (
    *as_printed_and_as_coded("Attention adds two numbers out of 50 steps within one epoch.", "ffa-add", "attention-50"),
    Claim(
        "The same with the numbers of the authors' code, whose tolerance is four times as wide.",
        "the authors' code",
        solves("ffa-add", "attention-50", "official"),
        FOUR_RATES,
    ),
    Claim(
        "The same with new sequences for each epoch.",
        TABLE,
        solves("ffa-add", "attention-50", "fresh"),
        FOUR_RATES,
    ),
    *as_printed_and_as_coded("The mean adds them within one, too.", "ffa-add", "mean-50"),
    *as_printed_and_as_coded(
        "Attention adds two numbers out of 100 steps within one epoch.", "ffa-add", "attention-100"
    ),
    *as_printed_and_as_coded("The mean adds them within one, too.", "ffa-add", "mean-100"),
    *as_printed_and_as_coded(
        "Attention adds two numbers out of 500 steps within one epoch.", "ffa-add", "attention-500"
    ),
    *as_printed_and_as_coded("The mean adds them within one, too.", "ffa-add", "mean-500"),
    *as_printed_and_as_coded(
        "Attention adds two numbers out of 1,000 steps within one epoch.", "ffa-add", "attention-1000"
    ),
    *as_printed_and_as_coded("The mean adds them within two.", "ffa-add", "mean-1000"),
    *as_printed_and_as_coded(
        "Attention adds two numbers out of 5,000 steps within two epochs.", "ffa-add", "attention-5000"
    ),
    *as_printed_and_as_coded(
        "Attention adds two numbers out of 10,000 steps within three epochs.", "ffa-add", "attention-10000"
    ),
    *as_printed_and_as_coded("The mean adds two numbers out of 5,000 steps within eight.", "ffa-add", "mean-5000"),
    *as_printed_and_as_coded("The mean adds two numbers out of 10,000 steps within 17.", "ffa-add", "mean-10000"),
    *as_printed_and_as_coded(
        "Attention multiplies two numbers out of 50 steps within one epoch.", "ffa-multiply", "attention-50"
    ),
    *as_printed_and_as_coded("The mean multiplies them within two.", "ffa-multiply", "mean-50"),
    *as_printed_and_as_coded(
        "Attention multiplies two numbers out of 100 steps within two epochs.", "ffa-multiply", "attention-100"
    ),
    Claim(
        "The same with new sequences for each epoch, as in the authors' code.",
        TABLE,
        solves("ffa-multiply", "attention-100", "fresh"),
        FOUR_RATES,
    ),
    *as_printed_and_as_coded("The mean multiplies them within two, too.", "ffa-multiply", "mean-100"),
    *as_printed_and_as_coded(
        "Attention multiplies two numbers out of 500 steps within four epochs.", "ffa-multiply", "attention-500"
    ),
    *as_printed_and_as_coded("The mean multiplies them within eight.", "ffa-multiply", "mean-500"),
    *as_printed_and_as_coded(
        "Attention multiplies two numbers out of 1,000 steps within two epochs.", "ffa-multiply", "attention-1000"
    ),
    *as_printed_and_as_coded("The mean multiplies them within 33.", "ffa-multiply", "mean-1000"),
    *as_printed_and_as_coded(
        "Attention multiplies two numbers out of 5,000 steps within 15 epochs.", "ffa-multiply", "attention-5000"
    ),
    *as_printed_and_as_coded(
        "Attention multiplies two numbers out of 10,000 steps within six epochs.", "ffa-multiply", "attention-10000"
    ),
    Claim(
        "Of products out of 5,000 steps the mean gets no more than 89.8 %.",
        TABLE,
        within("ffa-multiply", "mean-5000", 0.898, "<="),
        f"100 epochs: {HOURS}",
    ),
    Claim(
        "Of products out of 10,000 steps it gets no more than 80.8 %.",
        TABLE,
        within("ffa-multiply", "mean-10000", 0.808, "<="),
        f"100 epochs: {HOURS}",
    ),
    Claim(
        "With all lengths from 50 to 10,000 in one training, attention adds 99.9 %.",
        "Feed-forward attention, §2.3",
        within("ffa-variable", "add-attention", 0.999, ">="),
        "100 epochs: 24 took 22 to 40 minutes on a core that was shared; three seeds",
    ),
    Claim(
        "The mean gets no further than 77.4 % of these.",
        "Feed-forward attention, §2.3",
        within("ffa-variable", "add-mean", 0.774, "<="),
        f"100 epochs: {HOURS}",
    ),
    Claim(
        "Of products, attention gets 99.4 %.",
        "Feed-forward attention, §2.3",
        within("ffa-variable", "multiply-attention", 0.994, ">="),
        f"100 epochs: {HOURS}",
    ),
    Claim(
        "The mean gets no further than 55.5 % of these.",
        "Feed-forward attention, §2.3",
        within("ffa-variable", "multiply-mean", 0.555, "<="),
        f"100 epochs: {HOURS}",
    ),
    Claim(
        "Attention has a clear benefit over the mean: with all lengths in one training, it adds more.",
        "Feed-forward attention, §2.3",
        better("ffa-variable", "add-attention", ("add-mean",)),
        f"100 epochs: {HOURS}",
    ),
    Claim(
        "It multiplies more, too.",
        "Feed-forward attention, §2.3",
        better("ffa-variable", "multiply-attention", ("multiply-mean",)),
        f"100 epochs: {HOURS}",
    ),
    Claim(
        "It cannot tell XY from YX: of the order task, three in four at most, by the test split's own count.",
        "Feed-forward attention, §3",
        within("ffa-order", "attention", order_blind, "<="),
        "nothing more: a weighted mean of states knows no order",
    ),
    Claim(
        "Attention has a clear benefit over the mean at one length, too: of products out of 5,000 steps it gets more.",
        "Feed-forward attention, §2.2 and Table 1",
        better("ffa-multiply", "attention-5000", ("mean-5000",)),
        f"100 epochs: {HOURS}",
    ),
    Claim(
        "So it does of products out of 10,000 steps.",
        "Feed-forward attention, §2.2 and Table 1",
        better("ffa-multiply", "attention-10000", ("mean-10000",)),
        f"100 epochs: {HOURS}",
    ),
    *sooner_than_the_mean(
        "Attention adds two numbers out of 1,000 steps in fewer epochs than the mean.", "ffa-add", 1000
    ),
    *sooner_than_the_mean("Out of 5,000 it does, too.", "ffa-add", 5000),
    *sooner_than_the_mean("Out of 10,000 it does, too.", "ffa-add", 10000),
    *sooner_than_the_mean(
        "Attention multiplies two numbers out of 50 steps in fewer epochs than the mean.", "ffa-multiply", 50
    ),
    *sooner_than_the_mean("Out of 500 it does, too.", "ffa-multiply", 500),
    *sooner_than_the_mean("Out of 1,000 it does, too.", "ffa-multiply", 1000),
)
