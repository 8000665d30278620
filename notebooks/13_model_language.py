# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Model language: what does "1.24 bits per character" mean?
#
# Type a sentence. Three small models of equal size predict the next letter. A letter is blue if the prediction would change
# were it another one.

# %%
from rtx.lab import explore

explore.sentence()

# %% [markdown]
# **Try.** Open a bracket or a quotation and write on. Which of the models still knows, ten letters later, that it is open?
#
# How good is such a prediction, and what must a model beat to deserve a number at all?
#
# A language model gives the next symbol of a text a probability. That is all: no grammar, no topic, one number for what
# came. This notebook measures that number, counts its way to a surprisingly strong opponent, trains three models on equal
# time, and lets one of them write.
#
# - **You will** turn losses into bits and perplexities, build a model out of counts, see what windows cost, and cut the
#   tail of a distribution.
# - **You learn** why a number without its text and its baseline says little, and why three papers' "PTB characters" differ.
# - **You need** softmax and cross-entropy. [06 carry memory](06_carry_memory.ipynb) helps for section 5.
# - **Time:** 35 minutes to read and try; the cells run in about 40 seconds.
#
# ## Paper map
#
# Wang et al. (2019), *R-Transformer*, Section 4.3.
#
# | in the paper | here | in `rtx` |
# | --- | --- | --- |
# | characters, Table 3 (bits per character) | sections 1 to 5 | task `ptb-char`, recipe `ptb-char` |
# | words, Table 4 (perplexity) | sections 7 and 8 | task `ptb-word`, recipe `ptb-word` |
# | windows: 80 read and 320 scored; 40 and 40 for words (its code) | section 5 | `rtx.tasks.text.windows` |
# | tied embeddings, dropout | section 7 | `LanguageModel` |
#
# The Penn Treebank must be fetched (`rtx data fetch ptb-char`). Here we read a text that every Python has on board: its own
# reference manual, as `help()` shows it. Numbers on it compare with each other, not with the paper's. The manual grows from
# version to version; numbers in this prose are those of Python 3.11.

# %%
from itertools import islice
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, plots
from rtx.tasks import task_by_name
from rtx.tasks.text import windows

plots.style()
torch.set_num_threads(1)

# %% [markdown]
# ## 1. A text as windows
#
# The text is cut by position: nine tenths train, a twentieth validates, the last twentieth tests. Each window reads some
# characters as context and predicts the ones after; each character of a split is predicted exactly once.

# %%
task = task_by_name("characters", context=16, scored=64)
known = task.texts[0]
line = torch.tensor(known.encode("Every window reads a few characters and predicts the next ones."))
for inputs, targets in windows(line, known.start, context=8, scored=16):
    print("reads", repr(known.decode(inputs.tolist())).ljust(28), "scored", repr(known.decode(targets[targets >= 0].tolist())))
print("about a hundred symbols, one of them for any that training never showed:", 90 < known.size < 120)

# %% [markdown]
# ## 2. Bits
#
# If a model gave the symbols that came the probabilities $p_1, \dots, p_N$, it has
#
# $$\text{bits per character} = -\frac{1}{N} \sum_{t=1}^{N} \log_2 p_t, \qquad \text{perplexity} = 2^{\text{bits}}.$$
#
# Bits are the length of the text after the best compression that the model allows. The perplexity is the number of equally
# likely symbols that would be as hard to guess from. Losses come in nats, with the natural logarithm.
#
# **Predict.** A model knows nothing, and gives all of 100 symbols the same probability. How many bits? What perplexity?
#
# <details><summary>Answer</summary>
#
# $\log_2 100 \approx 6.64$ bits, and a perplexity of 100, whatever the text says.
#
# </details>
#
# **Exercise 1** (easy, 5 minutes). From logits (N, V) and targets (N,) to bits per character. Context has the target -100
# and is not scored; `cross_entropy` knows that.

# %%
from torch.nn.functional import cross_entropy

def bits_per_character(logits, targets):
    ...

exercises.bits_per_character(bits_per_character)

# %% [markdown]
# <details><summary>Hint</summary>
#
# $\log_2 p = \ln p / \ln 2$.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# import math
#
# def bits_per_character(logits, targets):
#     return cross_entropy(logits, targets, ignore_index=-100) / math.log(2)
# ```
#
# </details>
#
# ## 3. Baselines by counting
#
# The **unigram** model counts how often each symbol stands in the training part, and looks at nothing. The **bigram** model
# looks at one symbol: $p(b \mid a)$ is the share of $b$ among the symbols that followed $a$. One is added to every count,
# or a pair that training never saw would cost infinitely many bits.
#
# **Exercise 2** (medium, 10 minutes). Two tensors of symbol numbers and V in, the bigram's bits per character on `test` out.

# %%
def bigram_bits(train, test, V):
    ...  # a (V, V) table of counts, plus one; then the mean of -log2 p

exercises.bigram_bits(bigram_bits)

# %% [markdown]
# <details><summary>Hint</summary>
#
# `torch.bincount(train[:-1] * V + train[1:], minlength=V * V).view(V, V)` counts all pairs at once.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def bigram_bits(train, test, V):
#     counts = torch.bincount(train[:-1] * V + train[1:], minlength=V * V).view(V, V) + 1.0
#     p = counts / counts.sum(1, keepdim=True)
#     return -p[test[:-1], test[1:]].log2().mean()
# ```
#
# </details>
#
# Longer memories are counted in the same way, but with 0.1 added to each count: of so many possible contexts most were
# hardly seen, and a whole one would drown what was. **Predict.** The unigram has 4.6 bits. How many have counts of pairs, of
# three, of four in a row? Will five be better still?
#
# <details><summary>Answer</summary>
#
# 3.3, 2.4 and 2.1 bits; five in a row have 2.2 again. More context helps until contexts become so rare that most counts
# are zero.
#
# </details>

# %%
from collections import Counter
from math import log2
from rtx.tasks.text import manual, split

def count_bits(train, test, n, symbols, added=0.1):
    """Bits per symbol of counts of n symbols in a row."""
    seen = Counter(train[i : i + n] for i in range(len(train) - n + 1))
    before = Counter(train[i : i + n - 1] for i in range(len(train) - n + 1))
    pieces = [test[i : i + n] for i in range(len(test) - n + 1)]
    return -sum(log2((seen[p] + added) / (before[p[:-1]] + added * symbols)) for p in pieces) / len(pieces)

text = split(manual())
counted = [count_bits(text["train"], text["test"], n, known.size) for n in range(1, 7)]
print("the first one is the task's own baseline:", abs(counted[0] - task.baseline()) < 0.001)
print("more context saves bits up to four in a row, and no further:", counted.index(min(counted)) == 3)

# %%
fig, ax = plt.subplots(figsize=(5.4, 2.8))
ax.plot(range(1, 7), counted, "o-", color=plots.COLOURS[0])
for n, bits in enumerate(counted, 1):
    ax.annotate(f"{bits:.2f}", (n, bits), (3, 7), textcoords="offset points")
ax.set(xlabel="symbols in a row", ylabel="bits per character", xlim=(0.8, 6.5), ylim=(0, 5.5), title="counting saves bits up to four in a row")
plt.show()

# %% [markdown]
# A table of counts is a language model. Its context is short, and it cannot tell that `lambda` and `yield` are alike. Any
# network has to beat it on its own text: without that number beside it, "2.1 bits" tells nothing.
#
# ## 4. Three texts of one name
#
# Papers report "Penn Treebank, bits per character" on three different texts:
#
# | `rtx` | text | characters in training |
# | --- | --- | --- |
# | `ptb-char` | the word files, line ends removed: the counts that the paper prints | 5,059,550 |
# | `ptb-char-mikolov` | Mikolov's own character files, line ends kept | 5,017,482 |
# | `ptb-char-eos` | what the published code loads: each line end spelt as the five characters `<eos>` | 5,269,890 |
#
# (Counted from the files; `rtx.tasks.text` has all splits.) The same can be done to our text.
#
# **Predict.** In which of the three forms does a counting model need fewest bits per character? And in which the fewest in all?
#
# <details><summary>Answer</summary>
#
# Per character the one that spells line ends out: after `<`, the characters `eos>` are nearly sure and cost next to nothing,
# but they *count*. In all it costs most: nothing was understood better. The text without line ends costs least in all, as
# there is least to tell. On the Penn Treebank, too, about one character in thirty is such a sure one: (5,269,890 - 5,059,550) / 5 = 42,068 lines, four of five characters each.
#
# </details>

# %%
forms = {"unmarked": "", "newlines": "\n", "eos": "<eos>"}
each, whole = [], []
for end in forms.values():
    train, test = (text[part].replace("\n", end) for part in ("train", "test"))
    each.append(count_bits(train, test, 4, known.size))
    whole.append(each[-1] * len(test) / 1000)
fig, axes = plt.subplots(1, 2, figsize=(7.4, 2.4), sharey=True)
for ax, values, x in zip(axes, (each, whole), ("bits per character", "thousand bits for the whole test text")):
    ax.bar_label(ax.barh(list(forms), values, color=plots.COLOURS[0], height=0.6), fmt=" %.2f")
    ax.set(xlabel=x, xlim=(0, 1.2 * max(values)))
fig.suptitle("spelt out, line ends lower the mean and raise the sum", x=0.01, ha="left", fontsize=11)
plt.show()
print("fewest per character:", list(forms)[each.index(min(each))], "  in all:", list(forms)[whole.index(min(whole))])

# %% [markdown]
# So a number in bits per character must say *which* characters. The paper prints the counts of the first text; its code
# loads the third.
#
# ## 5. Windows, or a carried state
#
# Let an LSTM learn first: 500 updates of 16 windows.

# %%
from rtx.lab.learning import learn

_ = torch.manual_seed(0)
lstm = rtx.build(task, "lstm", d_model=96, layers=1)
for _ in islice(learn(task, lstm, learning_rate=0.01, batch_size=16), 500):
    pass
_ = lstm.eval()

# %% [markdown]
# A window starts from a zero state: its first characters are guessed with hardly any context. Reading *on* from where the
# last window ended costs the same work and has no such start. We score the test text in pieces of 64, both ways.
#
# **Predict.** At which places in a window do the two differ, and by how much?
#
# <details><summary>Answer</summary>
#
# At the first half dozen, where the window has seen next to nothing. The very first is guessed from a single character,
# which training hardly ever asked for: it costs about twice what it costs with a state.
#
# </details>

# %%
from math import log

tokens = torch.tensor(known.encode(text["test"]))
pieces = tokens[: 64 * 360 + 1]
x, y = pieces[:-1].view(-1, 64), pieces[1:].view(-1, 64)
with torch.no_grad():
    alone = lstm(x)
    carried, _ = lstm.read(pieces[None, :-1])
bits = {name: cross_entropy(z.reshape(-1, known.size), y.flatten(), reduction="none").view(-1, 64).mean(0) / log(2)
        for name, z in (("windows, no context", alone), ("carried state", carried))}
fresh, carry = bits.values()
print("the first character costs 1.5 times as much as with a state:", bool(fresh[0] > 1.5 * carry[0]))
print("carrying saves bits on the whole:", bool(carry.mean() < fresh.mean()))

# %%
fig, ax = plt.subplots(figsize=(6.6, 2.9))
for (name, line), colour in zip(bits.items(), plots.COLOURS):
    ax.plot(range(1, 65), line, color=colour, label=name)
ax.axhline(counted[3], color="0.4", linestyle=":", label="counts of four, section 3")
ax.set(xlabel="place in the window", ylabel="bits per character", ylim=(0, None), title="the start of a window is dear")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# A model that carries its state, or reads context that it does not score, gets fewer bits from the same weights.
# R-Transformer and the Transformer carry nothing here, so the published set-up gives all models 80 characters of context for
# 320 that are scored. Its published code never scores the first 81 characters of a text. Of words it reads ten columns, and
# never scores the first 41 of each. `rtx` scores all.
#
# And 500 updates have not beaten a table of counts yet. Did you expect that?
#
# ## 6. A race on equal seconds
#
# Three small models learn in turns, two seconds each, from two seeds; the band lies between the seeds. None is
# tuned, and two seconds prove little.

# %%
entrants = {
    "R-Transformer": dict(model="r-transformer", d_model=64, layers=1, heads=4, window=7, tied=False),
    "Transformer": dict(model="transformer", d_model=64, layers=2, heads=4, tied=False, norm="pre"),
    "LSTM": dict(model="lstm", d_model=96, layers=1, tied=False),
}
race = explore.race(task, entrants, seconds=2.0, seeds=2, turns=4, learning_rate=0.01, batch_size=16).run()
race

# %% [markdown]
# **Try.** Click in the picture to move the target: which model is first at about 3.9 bits, and which of them get to 3.2?
# With a kernel, choose equal parameters and press “Train”.
#
# Seconds are fair to whoever pays for them, and to nobody else: they depend on the machine and on how well each model is
# programmed. Equal parameters and equal multiply-adds are other questions with other winners. The paper's models differ by a
# factor of six in size on characters (14.2 M parameters that learn for R-Transformer, 2.2 M for the TCN), so its table
# answers none of the three.
#
# ## 7. Tied weights, hidden words
#
# A language model has two (V, D) tables: one reads a token, one gives its logit. *Tied*, they are one.

# %%
for tied in (False, True):
    with torch.device("meta"):
        model = rtx.build(task_by_name("ptb-word"), "lstm", d_model=700, layers=3, tied=tied)
    print(f"3 × 700 LSTM, 10,000 words, tied={tied!s:5}: {sum(p.numel() for p in model.parameters()):,} parameters")
word = rtx.LanguageModel(rtx.RTransformer(8, 1, 2, 3), vocabulary=50, embedding_dropout=0.5)
_ = torch.manual_seed(1)
same = word.embed(torch.tensor([7, 9, 7, 7, 9]))
print("hidden words are hidden wherever they stand:", bool((same[0] == same[2]).all() and (same[1] == same[4]).all()))

# %% [markdown]
# Ordinary dropout draws anew at every place. `embedding_dropout` draws once per *word* and batch (Gal & Ghahramani, 2016):
# otherwise the text would give away what is hidden one line later. R-Transformer's authors do without: 0.35 in its layers and
# 0.15 of the embedded units (`input_dropout`), each drawn anew. AWD-LSTM does hide words: a tenth of them.
#
# For words one reports the perplexity. **Predict** that of a unigram model of some 2,900 words: near 2,900, 1,000 or 100?
#
# <details><summary>Answer</summary>
#
# Near 100: marks and words like "the" make up most of a text. Perplexity depends on the vocabulary as much as on the model: make
# more words `<unk>`, and it falls. PTB's ten thousand words include it, too.
#
# </details>

# %%
words = task_by_name("words")
print("over 2,500 words; unigram perplexity between 80 and 140:", words.inputs > 2500 and 80 < words.baseline() < 140)

# %% [markdown]
# ## 8. The real thing
#
# `rtx train ptb-char r-transformer` and `rtx train ptb-word r-transformer` train what the paper did; `--scale cpu` takes
# up to an hour instead of days. What this project has run on words so far, from the files in `results/` and from nowhere else:

# %%
from pathlib import Path
from IPython.display import HTML
from rtx.evidence import tables
from rtx.training import recipe

HTML(tables.to_html(tables.rows(recipe.load_recipe("ptb-word"), Path("../results"))))

# %% [markdown]
# The column *budget* says what cut a run short: a few epochs, where the published code runs a hundred, are no reproduction, and no refutation. In the
# paper the Transformer's 122.37 is worse than the plain RNN's 114.50, so words do not show "similar trends" to characters.
#
# The lines `same-parameters` give every model as many parameters as R-Transformer, 2.28 million with the embeddings, and two
# epochs of the whole text at one rate. After so few, R-Transformer is ahead of all with 128, Transformer-XL next with 149 (three
# seeds each): they learn fast. Where they end, two epochs do not say: in the paper an LSTM, a larger one, ends ahead of both.
#
# ## 9. Let it write
#
# $p_i \propto \exp(z_i / \tau)$ draws more boldly for a temperature $\tau > 1$ and more timidly below. **Top-k** keeps the k
# likeliest tokens. The **nucleus** keeps the fewest likeliest that together reach a share p: many where anything may come,
# few where one thing must.
#
# **Exercise 3** (medium, 10 minutes). Which tokens are in the nucleus? Probabilities (V,) in, a mask (V,) out, True for those
# that are in.

# %%
def nucleus(p, share):
    ...

exercises.nucleus(nucleus)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Sort; a token is in if those *before* it do not reach the share yet.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def nucleus(p, share):
#     ranked, tokens = p.sort(descending=True)
#     inside = ranked.cumsum(0) - ranked < share - 1e-6
#     return torch.zeros_like(p, dtype=torch.bool).scatter(0, tokens, inside)
# ```
#
# </details>

# %%
def write(model, start, tokens=120, **how):
    """Continue `start`. `how`: temperature, top_k, top_p."""
    prompt = torch.tensor([known.encode(start)])
    return known.decode(model.generate(prompt, tokens, **how)[0].tolist())

for how in ({"temperature": 0.0}, {"temperature": 1.0}, {"temperature": 1.0, "top_p": 0.9}):
    print(how, "\n  ", write(lstm, "The name of the ", **how).replace("\n", " "))

# %% [markdown]
# **Try.** Temperature 0 always takes the likeliest character: after how many does the text repeat itself? At 1, misspelt
# words come from the tail of the distribution; `top_p=0.9` cuts it off. The explorer at the top writes on, too.
#
# A trained checkpoint of your own writes with `rtx generate best.safetensors --temperature 0.8 --top-p 0.95`. To train
# one beside this notebook, with every knob in reach, change a number and press “Train”: the kernel stays free.

# %%
explore.training("characters", "gru", d_model=48, layers=1, learning_rate=0.01).train()

# %% [markdown]
# ## Recap
#
# - Bits per character are a mean of $-\log_2 p$; perplexity is $2^{\text{bits}}$. Both belong to one text and one way to cut it.
# - Counts of four in a row are a model, and a yardstick. Beat it, then compare.
# - "PTB characters" are three texts. Sure characters lower the mean, and nothing else.
# - The start of a window is costly: carry a state, or read context. Say which.
# - Equal parameters, multiply-adds and seconds are three races.
#
# ## Quiz
#
# 1. A model has 2.0 bits per character, and words have 5.5 characters with their blank. What perplexity per word is that?
#    <details><summary>Answer</summary>$2^{2.0 \cdot 5.5} = 2^{11} = 2048$, if it spells nothing but words. Small differences in
#    bits are large ones in perplexity.</details>
# 2. Why may one not compare perplexities with vocabularies of 10,000 and 30,000 words?
#    <details><summary>Answer</summary>The smaller one replaces more words by `<unk>`, which is easy to predict.</details>
# 3. A colleague counts the bigram table on train *and* test. What happens to the bits?
#    <details><summary>Answer</summary>They fall: the model has seen the answers. The check of exercise 2 names it: try.</details>
# 4. Does a temperature of 0.5 improve a model's bits per character?
#    <details><summary>Answer</summary>Hardly: bits are measured at temperature 1. A model that gets better by another one was
#    badly calibrated.</details>
#
# **Back:** [Make it fast](12_make_it_fast.ipynb) · **Index:** [README](../README.md) · **On:**
# [Translate and summarise](14_translate_and_summarise.ipynb)
