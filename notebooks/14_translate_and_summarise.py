# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Translate and summarise
#
# **How does a model turn one sequence into another of a different length, and how do we know that it is any good?**
#
# MC-RNN was tested where a source sentence becomes a target sentence: German to English, and news to headlines. Two of our
# papers meet here: MC-RNN's cells sit in an encoder and a decoder, and R-Transformer "can be easily extended" to
# this, as its authors say without doing it. We do it.
#
# - **You will** train two translators in half a minute, watch where they look, let them write without help, and search for
#   the likeliest text with a beam.
# - **You learn** what alignment is, why a model that is right when fed the truth can fail when left alone, what a length
#   penalty does, and what a BLEU says.
# - **You need** attention ([03](03_attend_to_the_past.ipynb)); [08 split into channels](08_split_into_channels.ipynb) for the
#   last section.
# - **Time:** 35 minutes to read and try; the cells run in about 40 seconds.
#
# ## Paper map
#
# Xu et al. (2019), MC-RNN, Section 4; Bahdanau, Cho & Bengio (2015) for the encoder-decoder.
#
# | in the paper | here | in `rtx` |
# | --- | --- | --- |
# | RNNSearch, the baseline (§4.1) | sections 2 and 3 | `rnnsearch`, `AdditiveAttention` |
# | beam of 5; of 10 for headlines | section 5 | `rtx.nn.search.beam_search` |
# | BLEU, Table 2; BLEU by length, Figure 4 | sections 6 and 8 | tasks `multi30k`, `iwslt14` |
# | "easily extended" (R-Transformer, §2) | section 7 | `EncoderDecoder` with a `window` |
# | headlines, ROUGE, Table 3 | section 8 | tasks `gigaword`, `docstrings` |
#
# The papers' texts must be fetched. The sentences here need no download: dates and times, as a German and an American write
# them, from Babel's locale data.

# %%
from itertools import islice
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots
from rtx.lab.learning import learn
from rtx.tasks import task_by_name

plots.style()
torch.set_num_threads(1)

# %% [markdown]
# ## 1. The task
#
# Day and month change places, commas come and go, 17 becomes 5 PM. So it is not word by word.

# %%
from rtx.tasks.translation import date_pair

task = task_by_name("dates", size=3000)
german, english = task.texts
for way in (3, 6, 9):
    print(" → ".join(date_pair(day=13_580, minute=845, way=way)))
print(f"{len(task.split('train')):,} pairs to learn from, {len(task.split('test'))} to test, and no date is in both")

# %% [markdown]
# Texts are cut into sub-words (byte-pair encoding, Sennrich et al., 2016). What is common is one token, what is rare several.
# Every target stands between a begin and an end token: the end is what the model must learn to write, to stop.
#
# ## 2. Look, then write
#
# The encoder reads the source into annotations $h_1, \dots, h_S$. Before each target token the decoder asks, with its state
# $s_{i-1}$, where to look:
#
# $$e_{ij} = v^\top \tanh(W s_{i-1} + U h_j), \qquad \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{k=1}^{S} \exp(e_{ik})}, \qquad
# c_i = \sum_{j=1}^{S} \alpha_{ij} h_j$$
#
# From $c_i$, its state and the last token it predicts the next one.
#
# **Exercise 1** (medium, 10 minutes). Sentences of a batch are padded. Scores (B, T, S) and lengths (B,) in, $\alpha$ out.

# %%
def source_weights(e, lengths):
    ...  # padding gets exactly nothing

exercises.source_weights(source_weights)

# %% [markdown]
# <details><summary>Hint</summary>
#
# `torch.arange(S) < lengths[:, None]` is (B, S), true at real positions. A score of $-\infty$ becomes a weight of 0.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def source_weights(e, lengths):
#     real = torch.arange(e.shape[-1]) < lengths[:, None]
#     return e.masked_fill(~real[:, None], -torch.inf).softmax(-1)
# ```
#
# </details>
#
# The equations, written out for one sentence, against `rtx`. Like the paper, they leave biases out; here $U$ has one:

# %%
from rtx.nn.additive_attention import AdditiveAttention

def naive(s, h, W, U, v):
    """(D,) and (S, D) to the context (D,): the equations above, one source position after the other."""
    e = torch.stack([v @ torch.tanh(W @ s + U.weight @ h_j + U.bias) for h_j in h])
    return sum(a * h_j for a, h_j in zip(e.exp() / e.exp().sum(), h))

_ = torch.manual_seed(0)
attention, s, h = AdditiveAttention(8), torch.randn(1, 8), torch.randn(1, 5, 8)
context, weights = attention(s, attention.encode(h, torch.ones(1, 5, dtype=torch.bool)))
mine = naive(s[0], h[0], attention.query.weight, attention.key, attention.energy.weight[0])
torch.testing.assert_close(mine, context[0])
print("the equations and rtx agree")

# %% [markdown]
# Now learn: one GRU reads, one writes, both 64 wide. Training feeds the *true* tokens so far and asks for the next one. That is
# **teacher forcing**.

# %%
def train(name, updates, **sizes):
    torch.manual_seed(0)
    model = rtx.build(task, name, **sizes)
    for _ in islice(learn(task, model, learning_rate=5e-3, batch_size=32), updates):
        pass
    return model.eval()

rnnsearch = train("rnnsearch", 260, recurrent="gru", d_model=64, layers=1, bidirectional=False)

# %% [markdown]
# ## 3. Where does it look?
#
# **Predict.** English puts the month before the day, German the day before the month. What does the map of $\alpha$ look like?
#
# <details><summary>Answer</summary>
#
# Mostly it runs down the diagonal; where the order changes it jumps. Nobody has told the model which word translates which:
# it found out because looking at the right place makes the next token likelier.
#
# </details>

# %%
from rtx.tasks.subwords import BEGIN, END

def tokens_of(source, target):
    return torch.tensor([[*german.encode(source), END]]), torch.tensor([[BEGIN, *english.encode(target)]])

def alignment(ax, model, source, target):
    x, y = tokens_of(source, target)
    with torch.no_grad():
        weights = model.align(x, y)[0]
    ax.imshow(weights, aspect="auto", cmap="Blues", vmin=0, vmax=1)
    words = [german.decode([t]) for t in x[0, :-1].tolist()] + ["end"]
    ax.set_xticks(range(len(words)), words, rotation=90, fontsize=8)
    words = [english.decode([t]) for t in y[0, 1:].tolist()] + ["end"]
    ax.set_yticks(range(len(words)), words, fontsize=8)
    return weights

# %%
source, target = date_pair(day=13_580, minute=845, way=2)
fig, ax = plt.subplots(figsize=(5, 4))
weights = alignment(ax, rnnsearch, source, target)
ax.set(xlabel="read", ylabel="written", title="mostly down the diagonal; for the month it hesitates")
plt.show()
print("from “März” on it looks more for “March” than for “8”:", bool(weights[2, 4:].sum() > weights[3, 4:].sum()))
print("each row sums to one:", bool(torch.allclose(weights.sum(1), torch.ones(len(weights)))))

# %% [markdown]
# Look closely: for “Sunday” it looks at the comma *behind* “Sonntag”. This encoder reads forwards only; its annotation of the
# comma has read the word, and says so. And for “March” it hesitates, between that comma and what stands behind the day,
# “März” and more: section 7 shows a model that jumps there and back without doubt. An alignment shows where the decoder
# finds what it needs, not which word means which.
#
# ## 4. Left alone
#
# At test time there is no true prefix. **Free running** feeds back what the model wrote, right or wrong.
#
# **Exercise 2** (medium, 15 minutes). `step(token, state)` gives the logits of the next token and the next state. Write until
# the end token or `longest` tokens. The reference is there for comparing only. The models that the check brings have five
# tokens: 0 begins and 1 ends, not `BEGIN` and `END` of our sub-words.

# %%
def greedy_translation(step, reference, longest):
    last, state, written = 0, 0, []  # 0 is the begin token, 1 the end token; the first state is 0
    ...

exercises.greedy_translation(greedy_translation)

# %% [markdown]
# <details><summary>Hint</summary>
#
# What is fed in the next round is what was chosen in this one. The end token belongs to what is written.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def greedy_translation(step, reference, longest):
#     last, state, written = 0, 0, []
#     while len(written) < longest and last != 1:
#         logits, state = step(last, state)
#         last = int(logits.argmax())
#         written.append(last)
#     return written
# ```
#
# </details>
#
# **Predict.** With the true prefix fed, some share of all tokens is right. Left alone, will it be the same? And the share of
# sentences that are right as a whole?
#
# <details><summary>Answer</summary>
#
# Tokens: lower, for after one mistake the model reads a text that it has never met in training, and may go on to another
# date. Whole sentences: exactly the same! As long as no token was wrong, both ways feed the same prefix.
#
# </details>

# %%
from rtx.tasks.loader import loader

batch = next(iter(loader(task, "test", 200)))
truth = batch.targets[:, 1:]
with torch.no_grad():
    forced = rnnsearch(batch.inputs, batch.targets[:, :-1].clamp(min=0), batch.lengths).argmax(-1)
    found = rnnsearch.translate(batch.inputs, batch.lengths, begin=BEGIN, end=END, length=truth.shape[1], width=1)
free = torch.nn.functional.pad(found.tokens[:, 0], (0, truth.shape[1]), value=END)[:, : truth.shape[1]]
real = truth != -100
right = {name: (said == truth) & real for name, said in (("told the true prefix", forced), ("left alone", free))}
whole = [(mine | ~real).all(1) for mine in right.values()]
print("the same sentences are right as a whole:", bool((whole[0] == whole[1]).all()))
print("left alone, fewer tokens are right:", bool(right["left alone"].sum() < right["told the true prefix"].sum()))

# %% [markdown]
# So a loss, or a perplexity, is measured with a teacher at hand. What a reader gets is measured without. That is why
# translations are scored by what was *written*.

# %%
fig, ax = plt.subplots(figsize=(5.6, 2.7))
for (name, mine), colour in zip(right.items(), plots.COLOURS):
    ax.plot(range(1, 11), (mine.sum(0) / real.sum(0))[:10], "o-", color=colour, label=name)
ax.set(xlabel="token of the target", ylabel="share right", ylim=(0, 1.05), title="left alone, mistakes are carried on")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## 5. Search
#
# The likeliest token now need not begin the likeliest text. A **beam** of width $K$ keeps the $K$ likeliest prefixes at each
# step. Width 1 is greedy. Longer texts multiply more probabilities below 1, so hypotheses are compared by
# $\log p / \text{length}^\alpha$: $\alpha = 0$ favours short ones, $\alpha = 1$ compares the means of their tokens.
#
# **Predict.** Two sub-word hypotheses: $\log p = -1.2$ with 2 tokens, $\log p = -2.1$ with 5. Which one wins at
# $\alpha = 0$, which at $\alpha = 1$?
#
# <details><summary>Answer</summary>
#
# The short one at 0. At 1 it has -0.60 a token, the long one -0.42: the long one wins.
#
# </details>
#
# A whole date leaves the model no choice of length: nearly all that it considers has the same number of tokens. So the explorer
# searches for “März” alone. Which day, what year or time, is left open, and short texts compete with long ones.

# %%
explore.beam(rnnsearch, task.texts, "März")

# %% [markdown]
# **Try.** Widen the beam from 1. Does the best hypothesis change, or only the others? At a width of 3, move alpha from 0 to 1.5:
# how long is the best one? Give the explorer a whole date, `source`: where in the tree does the model hesitate, and is it where
# the alignment is spread out?

# %%
def log_probability(model, source, text):
    x, y = tokens_of(source, text)
    with torch.no_grad():
        p = model(x, y).log_softmax(-1)[0]
    return p.gather(1, torch.tensor([*y[0, 1:].tolist(), END])[:, None]).sum().item()

from rtx.tasks.pairs import write

sources = [date_pair(day, 845, 3)[0] for day in range(13_600, 13_640)]
narrow, wide = (write(rnnsearch, task.texts, sources, beam=width) for width in (1, 5))
gained = [log_probability(rnnsearch, s, b) - log_probability(rnnsearch, s, a) for s, a, b in zip(sources, narrow, wide)]
print("a beam of 5 finds texts at least as likely, on average:", sum(gained) > -1e-4)

# %% [markdown]
# ## 6. BLEU
#
# How near is a text to a reference? BLEU (Papineni et al., 2002) takes the shares $p_n$ of its 1- to 4-word pieces that stand in
# the reference, and punishes texts that are too short:
#
# $$\text{BLEU} = 100 \cdot \min\left(1, e^{1 - r/c}\right) \cdot \left(p_1 p_2 p_3 p_4\right)^{1/4}$$
#
# with $c$ words written and $r$ in the reference. It depends on casing and on how words are cut, so a BLEU without its
# signature compares with nothing. MC-RNN's paper gives none.

# %%
from rtx.tasks.translation import bleu

pair = [("", "Thursday, March 5, 1987 at noon")]
for text in ("Thursday, March 5, 1987 at noon", "thursday, march 5, 1987 at noon", "Thursday, March 5"):
    for tokenize in ("13a", "none"):
        score = bleu(pair, [text], tokenize)["BLEU"]
        print(f"{text:33} tokens by {tokenize:4}  BLEU {score:5.1f}")
signature = bleu(pair, [pair[0][1]])["signature"]
print(signature.rsplit("|", 1)[0])

# %% [markdown]
# The same text, two numbers: to `none`, “Thursday,” with its comma is one word, so three words are left, and no piece of four.
# MC-RNN's Figure 4 splits BLEU by the length of the source; so shall we, below.
#
# ## 7. The R-Transformer translates
#
# `encoder-decoder` is the Transformer of Vaswani et al.; given a `window`, LocalRNNs take the place of its positions, in
# encoder and decoder. The decoder's cross-attention looks at the source.
#
# **Predict.** After 130 updates, half as many as the GRUs had: worse, alike or better?
#
# <details><summary>Answer</summary>
#
# Better, on this tiny task, and clearly so for sources of two, four and five words.
#
# </details>

# %%
r_transformer = train("encoder-decoder", 130, d_model=64, layers=2, heads=4, window=5, norm="pre")
models = {"RNNSearch, 260 updates": rnnsearch, "R-Transformer, 130 updates": r_transformer}
scored = {name: task.examine(model, "test", 200) for name, model in models.items()}
bleus = [found["BLEU"] for found in scored.values()]
print("RNNSearch has learnt something:", bleus[0] > 20)
print("the R-Transformer is ahead:", bleus[1] > bleus[0])

# %%
test = [(german.decode(x.tolist()), english.decode(y.tolist())) for x, y in task.split("test")[:200]]
groups = {words: [p for p in test if len(p[0].split()) == words] for words in range(1, 6)}
fig, (ax, map_) = plt.subplots(1, 2, figsize=(9, 3.4))
for (name, model), colour in zip(models.items(), plots.COLOURS):
    by_length = [bleu(p, write(model, task.texts, [s for s, _ in p]))["BLEU"] for p in groups.values()]
    ax.plot(list(groups), by_length, "o-", color=colour, label=name)
ax.set(xlabel="words of the source", ylabel="BLEU", ylim=(0, 105), title="the R-Transformer is ahead at most lengths")
ax.legend(frameon=False, loc="lower right")
_ = alignment(map_, r_transformer, source, target)
map_.set(title="where it looks: last block, mean of heads")
plt.show()

# %%
from copy import deepcopy
from rtx.lab.race import race

learners = [learn(task, deepcopy(model), 5e-3, 32) for model in models.values()]
times = list(race({name: (lambda steps=steps: next(steps)) for name, steps in zip(models, learners)}, rounds=5).values())
print(f"an update of the R-Transformer takes {times[1] / times[0]:.1f} × as long as one of RNNSearch")

# %% [markdown]
# So the one that had half the updates, which take longer, is ahead, by one seed. "Easily extended" holds. Whether it is good
# beyond dates, dates cannot tell: their longest source has five words.
#
# ## 8. The real thing
#
# Multi30k are 29,000 captions of photographs. The rows below are MC-RNN's on that data, which the paper did not use: so they
# have no paper's number. They are read from the files in `results/` and from nowhere else.

# %%
from pathlib import Path
from IPython.display import HTML
from rtx.evidence import tables
from rtx.training import recipe

HTML(tables.to_html(tables.rows(recipe.load_recipe("multi30k"), Path("../results"))))

# %% [markdown]
# Mind the scale: half the paper's width and eight epochs, and every run of a recurrent row but one was still learning in the
# last. Three seeds of each row, and but for two rows one rate: so this ranks how fast models learn, roughly. Most
# rows' seeds lie up to 2.8 apart, of MC-RNN-2 8.9 and of MC-RNN-3 9.2, as the third seed learnt far more slowly. The wider
# baseline is ahead of every other recurrent row, the deeper one is slower; the two Transformers, not in the paper, are far
# faster than all. Is one rate fair? With seed 0, four times the rate takes the baseline from 24.5 to 26.9, less than its
# seeds differ by. It takes MC-RNN-3 from 21.5 ± 5.1 to 24.4 ± 1.9, three seeds each, as the third no longer falls behind;
# both stay far behind the Transformers. What models can learn, with the
# paper's width, epochs and sentences, the table does not rank.
#
# - `rtx train multi30k mc-rnn-3` trains a row, `--scale quick` does it on the dates of this notebook. `rtx translate
#   best.safetensors --beam 5 < german.txt` uses what came out.
# - **The paper's Table 2** is on IWSLT14: baseline 31.03, MC-RNN-3 32.23, with 25 and 29 million parameters. A wider baseline
#   (Table 5) has 30.93, so it is not the size alone. `rtx train translation mc-rnn-3` runs it on the part of the pairs
#   that our data hold. With 16,000 of these (`--scale cpu`, 12 epochs, one seed) all recurrent rows have 3.0 to 4.0 and are still
#   learning: MC-RNN-3 3.8, the baseline 4.0, at four times the rate 4.1, with a quarter of the batch, and so four times the
#   updates, 4.5. A Transformer has 12.1, R-Transformer, a tenth larger, 14.0.
# - **Headlines** (Table 3) are scored by ROUGE, an F1 of what the text shares with the reference: words (ROUGE-1), pairs of
#   words (ROUGE-2), their longest common subsequence (ROUGE-L). `rtx train headlines mc-rnn-3 --scale quick` learns to write the summary line
#   of a docstring from its body, with Python's own library for data. On 10,000 pairs of Gigaword (`--scale cpu`, 15 epochs,
#   three seeds) the baseline has a ROUGE-1 of 4.8, MC-RNN-3 4.8: neither has learnt the task, as a source's first words alone
#   have 21.3. The paper, with 3.8 million pairs, has 34.65 and 36.55.
# - A validation perplexity chooses the epoch; BLEU is looked at once.
#
# ## Recap
#
# - Attention over the source is an alignment that nobody taught.
# - Training has a teacher, translating has none. Whole sentences are right in both or in neither; tokens are not.
# - A beam finds likelier texts; likelier need not be better, and lengths need a rule.
# - BLEU needs a signature; by length it says more.
#
# ## Quiz
#
# 1. A colleague reports 98 % token accuracy at test time, computed by one call of `model(source, target)`. What is it?
#    <details><summary>Answer</summary>Accuracy under teacher forcing. Nobody has the target when translating.</details>
# 2. With a beam of 50 and $\alpha = 0$ translations become very short. Why?
#    <details><summary>Answer</summary>Each further token lowers the log-probability. A wide beam finds the short texts that a
#    narrow one never met.</details>
# 3. Two papers: BLEU 31.0 on lower-cased tokens, 29.8 by sacrebleu's 13a. Which system is better?
#    <details><summary>Answer</summary>Nobody can tell: casing and tokens alone move a BLEU, as section 6 shows.</details>
# 4. Why does a source's padding need a mask, when its embeddings could be zero?
#    <details><summary>Answer</summary>A zero vector still has a score, and so a weight: it would dilute all others, the more the
#    longer the *other* sentences in the batch are.</details>
#
# **Back:** [Model language](13_model_language.ipynb) · **Index:** [README](../README.md) · **On:**
# [Weigh the evidence](15_weigh_the_evidence.ipynb)
