"""Claims of Xu et al. (2019), MC-RNN."""

from rtx.evidence.claims.claim import Claim
from rtx.evidence.counted import beyond_path_bound
from rtx.evidence.verdicts import as_fast, better, breaks, no_worse

IWSLT = "the recipe translation at the full size, three seeds, on a GPU; the paper's pairs, of which ours are a third"
FULL_AWD = "three seeds at the full size, on a GPU"
GIGAWORD = "three seeds on the full corpus of 3.8 million pairs, which only a GPU gets through"

CLAIMS = (
    Claim(
        "Three channels translate better than one, than skipping states (HO-RNN) and than learned boundaries (HM-RNN).",
        "MC-RNN, Table 2",
        better("translation", "mc-rnn-3", ("baseline", "ho-rnn", "hm-rnn")),
        IWSLT,
    ),
    Claim(
        "Three channels translate better than two or four.",
        "MC-RNN, Table 2",
        better("translation", "mc-rnn-3", ("mc-rnn-2", "mc-rnn-4")),
        IWSLT,
    ),
    Claim(
        "They translate better than one channel that is wider, or deeper, and so of as many parameters.",
        "MC-RNN, Table 5",
        better("translation", "mc-rnn-3", ("baseline-large", "baseline-deep")),
        IWSLT,
    ),
    Claim(
        "It is not the size: a wider and a deeper baseline gain nothing.",
        "MC-RNN, Table 5",
        no_worse("translation", "baseline", "baseline-large", "baseline-deep"),
        IWSLT,
    ),
    Claim(
        "Three channels translate better than one.",
        "after MC-RNN, Table 2, on Multi30k",
        better("multi30k", "mc-rnn-3", ("baseline",)),
        "three seeds at the full size, where models learn to the end, and a rate chosen for each",
    ),
    Claim(
        "They translate better than states that skip (HO-RNN) or boundaries that are learned (HM-RNN).",
        "after MC-RNN, Table 2, on Multi30k",
        better("multi30k", "mc-rnn-3", ("ho-rnn", "hm-rnn")),
        "the same",
    ),
    Claim(
        "They translate better than two channels or four.",
        "after MC-RNN, Table 2, on Multi30k",
        better("multi30k", "mc-rnn-3", ("mc-rnn-2", "mc-rnn-4")),
        "the same",
    ),
    Claim(
        "They translate better than one channel that is wider, or deeper, and so of as many parameters.",
        "after MC-RNN, Table 5, on Multi30k",
        better("multi30k", "mc-rnn-3", ("baseline-large", "baseline-deep")),
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
        "Three channels translate sources of over 61 words better than one, by over 4 BLEU.",
        "MC-RNN, Figure 4",
        better("translation", "mc-rnn-3", ("baseline",), detail="BLEU, over 61 words", margin=4.0),
        f"{IWSLT}; no source of Multi30k's test split is so long",
    ),
    Claim(
        "Three channels write better headlines than one, than HO-RNN and than HM-RNN.",
        "MC-RNN, Table 3",
        better("headlines", "mc-rnn-3", ("baseline", "ho-rnn", "hm-rnn")),
        "three seeds on the full corpus of 3.8 million pairs, which only a GPU gets through: after 10,000 all are far "
        "behind a source's first words",
    ),
    Claim(
        "Three channels model words better than AWD-LSTM.",
        "MC-RNN, Table 4",
        better("awd", "mc-rnn-3", ("awd-lstm",)),
        FULL_AWD,
    ),
    Claim(
        "With a cache pointer, they still do.",
        "MC-RNN, §4.3",
        better("awd", "mc-rnn-3", ("awd-lstm",), detail="perplexity with cache"),
        f"{FULL_AWD}; and AWD-LSTM finetuned, as the paper's is there and ours is not",
    ),
    Claim(
        "Where channels run in parallel, almost the same time as a conventional recurrent network.",
        "MC-RNN, §5.3",
        as_fast("mc-rnn", "rtx / nn.LSTM"),
        "a GPU, where a step's products may run side by side",
    ),
    Claim(
        "Along the best channel, l steps take at most ⌊l / (n - 1)⌋ + 1 on the shortest path.",
        "MC-RNN, §5.2, which does not say along which",
        breaks(lambda: beyond_path_bound(min)),
        "nothing more: ⌈l / (n - 1)⌉ is never above it",
    ),
    Claim(
        "Along every channel they do.",
        "the same",
        breaks(lambda: beyond_path_bound(max)),
        "nothing more: one counterexample is enough",
    ),
    Claim(
        "Two channels, too, translate better than one, than HO-RNN and than HM-RNN.",
        "MC-RNN, Table 2",
        better("translation", "mc-rnn-2", ("baseline", "ho-rnn", "hm-rnn")),
        IWSLT,
    ),
    Claim(
        "So do four.",
        "MC-RNN, Table 2",
        better("translation", "mc-rnn-4", ("baseline", "ho-rnn", "hm-rnn")),
        IWSLT,
    ),
    Claim(
        "Three channels write better headlines than two or four.",
        "MC-RNN, §4.2 and Table 3",
        better("headlines", "mc-rnn-3", ("mc-rnn-2", "mc-rnn-4")),
        GIGAWORD,
    ),
    Claim(
        "Two channels, too, write better headlines than one.",
        "MC-RNN, §4.2 and Table 3",
        better("headlines", "mc-rnn-2", ("baseline",)),
        GIGAWORD,
    ),
    Claim(
        "So do four.",
        "MC-RNN, §4.2 and Table 3",
        better("headlines", "mc-rnn-4", ("baseline",)),
        GIGAWORD,
    ),
    Claim(
        "By ROUGE-2, too, three channels write better headlines than one, than HO-RNN and than HM-RNN.",
        "MC-RNN, §4.2",
        better("headlines", "mc-rnn-3", ("baseline", "ho-rnn", "hm-rnn"), detail="ROUGE-2"),
        GIGAWORD,
    ),
    Claim(
        "By ROUGE-L, too.",
        "MC-RNN, §4.2",
        better("headlines", "mc-rnn-3", ("baseline", "ho-rnn", "hm-rnn"), detail="ROUGE-L"),
        GIGAWORD,
    ),
)
