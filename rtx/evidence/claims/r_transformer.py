"""Claims of Wang et al. (2019), R-Transformer, and what is ours of the same kind."""

from rtx.evidence.claims.claim import Claim
from rtx.evidence.verdicts import better, needs, no_worse

RECURRENT = ("rnn", "gru", "lstm")
OTHERS = ("transformer", "tcn", *RECURRENT)
WITH_MEMORY = (*OTHERS, "transformer-xl")
BESIDE_LSTM = tuple(row for row in WITH_MEMORY if row != "lstm")
CLAIMS = (
    Claim(
        "R-Transformer is ahead of all others on digits read pixel by pixel.",
        "R-Transformer, Table 1",
        better("mnist", "r-transformer", OTHERS),
        "three seeds of the full runs of Table 1, on a GPU",
    ),
    Claim(
        "Where dependencies are as long as there, a Transformer is ahead of recurrent networks.",
        "R-Transformer, §4.1 and §4.4",
        better("mnist", "transformer", RECURRENT),
        "the same",
    ),
    Claim(
        "R-Transformer is ahead of all others on polyphonic music.",
        "R-Transformer, Table 2",
        better("nottingham", "r-transformer", OTHERS),
        "a rate chosen for each, recurrent networks of its size, more epochs for those whose best was the last",
    ),
    Claim(
        "A TCN is ahead of the Transformer there.",
        "R-Transformer, §4.2",
        better("nottingham", "tcn", ("transformer",)),
        "a rate chosen for the Transformer, and more epochs: their best was their last",
    ),
    Claim(
        "So is an LSTM.",
        "R-Transformer, §4.2",
        better("nottingham", "lstm", ("transformer",)),
        "an LSTM of the size that Bai et al. print, ours is smaller; for the Transformer the best of several rates",
    ),
    Claim(
        "On a second corpus of music, of chorales, R-Transformer is ahead of TCN and Transformer.",
        "ours; R-Transformer, §4.4, says “consistently in most of the tasks”",
        better("jsb", "r-transformer", ("tcn", "transformer")),
        "rates beyond the highest of the six, the TCN's best; more epochs for the Transformer",
    ),
    Claim(
        "It is ahead of recurrent networks there, too.",
        "ours",
        better("jsb", "r-transformer", RECURRENT),
        "many more seeds: by eight of each, R-Transformer and the LSTM differ by less than either's spread",
    ),
    Claim(
        "On a third, of piano pieces, it is ahead of all others.",
        "ours; R-Transformer, §4.4, of TCN and Transformer: “consistently in most of the tasks”",
        better("piano", "r-transformer", OTHERS),
        "more epochs: each run's best was among its last three; rates beyond the highest of the six, the GRU's best",
    ),
    Claim(
        "R-Transformer is ahead by as many seconds of training, too.",
        "ours",
        better("nottingham", "r-transformer", OTHERS, "same-seconds"),
        "an hour for each",
    ),
    Claim(
        "It is not the size alone: a Transformer with as many parameters is behind, too.",
        "ours",
        better("nottingham", "r-transformer", ("transformer",), "same-parameters"),
        "a rate chosen for the Transformer, and more epochs: its best was its last",
    ),
    Claim(
        "All others with as many parameters are behind there.",
        "ours; R-Transformer compares unequal sizes",
        better("nottingham", "r-transformer", OTHERS, "same-parameters"),
        "a rate chosen for each, and more epochs for those whose best was the last",
    ),
    Claim(
        "By the recipe of the authors' code, too, R-Transformer is ahead of all others.",
        "ours; R-Transformer, §4.2 and its code",
        better("nottingham", "r-transformer", OTHERS, "official"),
        "all 100 epochs of that recipe, three seeds",
    ),
    Claim(
        "R-Transformer is ahead of all others on characters.",
        "R-Transformer, Table 3",
        better("ptb-char", "r-transformer", OTHERS),
        "three seeds of the full runs of Table 3, on a GPU",
    ),
    Claim(
        "The same when all are trained for as many seconds.",
        "ours",
        better("ptb-char", "r-transformer", WITH_MEMORY, "same-seconds"),
        "the paper's sizes, and an hour for each",
    ),
    Claim(
        "On words, R-Transformer is ahead of the Transformer.",
        "R-Transformer, Table 4",
        better("ptb-word", "r-transformer", ("transformer",)),
        "three seeds of both rows to the end of the recipe, over the three rates",
    ),
    Claim(
        "It is ahead of TCN, GRU and RNN there, too.",
        "R-Transformer, Table 4",
        better("ptb-word", "r-transformer", ("tcn", "gru", "rnn")),
        "three seeds of all four rows to the end of the recipe, over the three rates",
    ),
    Claim(
        "On words, an LSTM is ahead of R-Transformer.",
        "R-Transformer, Table 4",
        better("ptb-word", "lstm", ("r-transformer",)),
        "three seeds of both rows to the end: early on, R-Transformer learns faster",
    ),
    Claim(
        "On words, Transformer-XL is ahead of R-Transformer.",
        "R-Transformer, review version, §4.3 and Table 4",
        better("ptb-word", "transformer-xl", ("r-transformer",), own={"transformer-xl": "paper-xl"}),
        "three seeds of both rows to the end",
    ),
    Claim(
        "On words, R-Transformer is ahead of all others by as many seconds of training.",
        "ours",
        better("ptb-word", "r-transformer", WITH_MEMORY, "same-seconds"),
        "the paper's sizes, three seeds, and an hour for each",
    ),
    Claim(
        "And with as many parameters.",
        "ours; R-Transformer compares unequal sizes",
        better("ptb-word", "r-transformer", WITH_MEMORY, "same-parameters"),
        "three seeds to the end of the recipe, over the three rates",
    ),
    Claim(
        "Extended to translation, it is ahead of a Transformer.",
        "ours, on Multi30k; R-Transformer, §2, says “easily extended”",
        better("multi30k", "r-transformer", ("transformer",)),
        "three seeds, each at the rate that validation chooses",
    ),
    Claim(
        "So it is on a second corpus of translations.",
        "ours, on a part of IWSLT14",
        better("translation", "r-transformer", ("transformer",)),
        "three seeds, each at the rate that validation chooses",
    ),
    Claim(
        "LocalRNN captures locality that attention alone misses.",
        "R-Transformer, §3.1 and §3.3",
        better("locality-dial", "r-transformer", ("transformer",), detail="local"),
        "three seeds at the full size; the locality dial of notebook 07 turns the share of local rules",
    ),
    Claim(
        "Recurrence in the window tells order: with neither it nor positions the model does worse, on the chorales.",
        "R-Transformer, §3.3",
        better("ablations", "window-6", ("no-local-rnn", "window-1")),
        "a task where order decides",
    ),
    Claim(
        "The same, on Nottingham.",
        "R-Transformer, §3.3",
        needs("nottingham", "r-transformer", "local_layers=0", "window=1"),
        "the paper's own recipe",
    ),
    Claim(
        "With it, no positions are needed, on the chorales.",
        "R-Transformer, §3.3",
        no_worse("ablations", "window-6", "sinusoids"),
        "a task where order decides",
    ),
    Claim(
        "Attention adds to what local recurrence finds, on the chorales.",
        "R-Transformer, §3.2",
        better("ablations", "window-6", ("no-attention",)),
        "longer pieces than chorales: see Nottingham",
    ),
    Claim(
        "The same, on Nottingham.",
        "R-Transformer, §3.2",
        needs("nottingham", "r-transformer", "heads=0"),
        "the paper's own recipe",
    ),
    Claim(
        "On digits, too, a TCN is ahead of the Transformer, and of recurrent networks.",
        "R-Transformer, §4.1",
        better("mnist", "tcn", ("transformer", *RECURRENT)),
        "three seeds of the full runs of Table 1, on a GPU",
    ),
    Claim(
        "On music, R-Transformer is ahead of TCN and Transformer by a large margin, by over half a nat (printed: .7).",
        "R-Transformer, §4.2",
        better("nottingham", "r-transformer", ("tcn", "transformer"), margin=0.5),
        "a rate chosen for R-Transformer and Transformer, more epochs for those whose best was the last",
    ),
    Claim(
        "On music, a TCN is ahead of recurrent networks.",
        "R-Transformer, Table 2",
        better("nottingham", "tcn", RECURRENT),
        "a rate chosen for each, recurrent networks of the size that Bai et al. print, and more epochs",
    ),
    Claim(
        "On characters, a Transformer is ahead of recurrent networks, if only a little.",
        "R-Transformer, review version, §4.3 and Table 3; the version on arXiv says so of the plain RNN alone",
        better("ptb-char", "transformer", RECURRENT),
        "three seeds of the full runs of Table 3, on a GPU",
    ),
    Claim(
        "On characters, a Transformer is behind a TCN.",
        "R-Transformer, §4.3 and Table 3",
        better("ptb-char", "tcn", ("transformer",)),
        "the same",
    ),
    Claim(
        "On characters, a TCN is ahead of recurrent networks, too.",
        "R-Transformer, §4.3 and Table 3",
        better("ptb-char", "tcn", RECURRENT),
        "the same",
    ),
    Claim(
        "On words, too, a TCN is ahead of the Transformer, and of GRU and RNN.",
        "R-Transformer, §4.3 and Table 4: “similar trends”",
        better("ptb-word", "tcn", ("transformer", "gru", "rnn")),
        "three seeds of all four rows to the end of the recipe, over the three rates",
    ),
    Claim(
        "There a Transformer is behind even a plain RNN.",
        "R-Transformer, Table 4",
        better("ptb-word", "rnn", ("transformer",)),
        "the same",
    ),
    Claim(
        "On words, an LSTM is ahead of all others.",
        "R-Transformer, §4.3 and Table 4",
        better("ptb-word", "lstm", ("r-transformer", *BESIDE_LSTM), own={"transformer-xl": "paper-xl"}),
        "three seeds of all rows to the end of the recipe, each at the best of its rates",
    ),
    Claim(
        "A Transformer relies on its positions: without them it does worse, on Nottingham.",
        "R-Transformer, abstract and §5",
        needs("nottingham", "transformer", "position=none"),
        "three seeds without positions",
    ),
    Claim(
        "R-Transformer remembers as long as a Transformer.",
        "after R-Transformer, §3.3, on copy memory",
        no_worse("copy-memory", "r-transformer", "transformer"),
        "three seeds at the full size: after three epochs at the small one, one Transformer of three has learnt it",
    ),
    Claim(
        "It remembers longer than recurrent networks.",
        "after R-Transformer, §6, on copy memory",
        better("copy-memory", "r-transformer", RECURRENT),
        "three seeds at the full size",
    ),
)
