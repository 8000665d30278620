"""Claims of Xu et al. (2019), MC-RNN."""

from rtx.lab.claims.claim import Claim
from rtx.lab.errata_counted import path_bound
from rtx.lab.verdicts import as_fast, better, breaks, no_worse

CLAIMS = (
    Claim(
        "Three channels translate better than one.",
        "after MC-RNN, Table 2, on Multi30k",
        better("multi30k", "mc-rnn-3", ("baseline",)),
        "three seeds at the full size, where models learn to the end; the paper's corpus, the recipe translation",
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
        no_worse("multi30k", "baseline", "baseline-large", "baseline-deep"),
        "the same",
    ),
    Claim(
        "Attention alone translates better than recurrent networks with attention.",
        "after Vaswani et al. (2017), §6.1, on Multi30k",
        better("multi30k", "transformer", ("baseline", "mc-rnn-3", "hm-rnn", "ho-rnn")),
        "the same",
    ),
    Claim(
        "They gain most on long sources, of more than 61 words.",
        "MC-RNN, Figure 4",
        better("translation", "mc-rnn-3", ("baseline",), detail="BLEU, over 61 words"),
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
        "the full size, on a GPU",
    ),
    Claim(
        "With a cache pointer, they still do.",
        "MC-RNN, §4.3",
        better("awd", "mc-rnn-3", ("awd-lstm",), detail="perplexity with cache"),
        "the full size, on a GPU",
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
