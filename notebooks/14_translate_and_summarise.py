# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How does one sequence become another?
#
# Here a German date becomes English. Day and month change places, and 14:05 becomes 2:05 PM. The models below write the English date piece by
# piece. A row of the picture shows where a model looks in the German date before it writes one piece. A darker cell has a larger weight.

# %%
from pathlib import Path
from statistics import mean
import matplotlib.pyplot as plt
import torch
import rtx  # this project's package
from rtx.lab import exercises, explore, plots
from rtx.lab.studies import chosen_runs
from rtx.tasks import task_by_name
from rtx.tasks.translation import date_pair
torch.set_num_threads(1)
plots.style()
runs = chosen_runs("../studies/dates_translated.json", "dates")
task = task_by_name("dates")
german, english = task.texts  # cut German and English texts into pieces
SHOWN = date_pair(day=13_580, minute=845, way=2)
READ, WRITTEN = ([text.decode([t]) for t in text.encode(date)] + ["end"] for text, date in zip(task.texts, SHOWN))

# %%
fig, axes = plt.subplots(1, 3, figsize=(10.5, 3.9), sharey=True)
for ax, name in zip(axes, ("RNNSearch, forwards", "RNNSearch, both directions", "R-Transformer")):
    looks = torch.tensor(runs[name][0]["test"][-1]["alignment"]).view(len(WRITTEN), len(READ))
    ax.imshow(looks, aspect="auto", cmap="Blues", vmin=0, vmax=1)
    ax.set_xticks(range(len(READ)), READ, rotation=90, fontsize=8)
    ax.set(title=name, xlabel="read")
axes[0].set_yticks(range(len(WRITTEN)), WRITTEN, fontsize=8)
axes[0].set_ylabel("written")
fig.suptitle("where three translators look (seed 0, after 400 updates)", fontsize=11)
plt.show()
for name in ("RNNSearch, forwards", "RNNSearch, both directions", "R-Transformer"):
    looks = torch.tensor(runs[name][0]["test"][-1]["alignment"]).view(len(WRITTEN), len(READ))
    print(f"{name:27}", ",  ".join(f"{WRITTEN[row]}: looks at {READ[looks[row].argmax()]!r} with {looks[row].max():.0%}" for row in (0, 2, 3)))

# %% [markdown]
# **Predict.** In the left picture, the row "8" is dark at the full stop after the 8. Is this a mistake? (Section 4.)
#
# - **You will** write the [attention](../docs/glossary.md#attention) of a translator, let it write without help, and (optional) write a beam search.
# - **You learn** whether attention helps, what an alignment shows, how a translation is searched, and what BLEU counts.
# - **You need** [attention](03_attend_to_the_past.ipynb) and recurrent networks.
# - **Time:** 60 minutes, and 25 more for the optional exercise. The cells run in about 30 seconds.
#
# ## 1. The task
#
# What must a model learn? Three pairs:

# %%
for way in (2, 7, 12):
    print(" → ".join(date_pair(day=13_580, minute=845, way=way)))
print(f"{len(task.split('train')):,} pairs to learn from, {len(task.split('test'))} to test; no date is in both")

# %% [markdown]
# The dates come from the library Babel. The texts are cut into **sub-words**
# (byte-pair encoding, Sennrich et al. 2016): a frequent word is one piece, or **token**, and a rare word is several.
# An English text starts with a **begin token**. All texts stop with an **end token**.
#
# ## 2. Look, then write
#
# How can a decoder use a source of any length? An **encoder** returns a vector $h_j$ for each position $j$ of the source, the **annotation**. A **decoder** writes the target:
#
# ```
# source     Sonntag    ,    8    .    März   …          (S positions)
#               |       |    |    |     |
# encoder      h_1     h_2  h_3  h_4   h_5   …           annotations
#                \      \    |    /     /
# attention       weights α_i1 … α_iS → c_i              context: the weighted mean
#                            |
# decoder      state s_(i-1), last token, c_i → s_i → next token
# ```
#
# The decoder computes a score $e_{ij}$ for each position, from its state $s_{i-1}$ and the annotation $h_j$. A softmax turns the scores into weights.
# A small example with three positions and two features:

# %%
s, h = torch.tensor([1.0, 0.0]), torch.tensor([[0.0, 2.0], [1.0, 0.0], [-1.0, 0.0]])
v = torch.tensor([2.0, 1.0])
e = torch.tanh(s + h) @ v  # the matrices W and U are the identity here
alpha = e.exp() / e.exp().sum()
for j in range(3):
    print(f"position {j + 1}: annotation {h[j].tolist()}, score {e[j]:.2f}, exp {e[j].exp():5.2f}, weight {alpha[j]:.2f}")
print("context, the weighted mean:", [round(c, 2) for c in (alpha @ h).tolist()])

# %% [markdown]
# In general, with learnt matrices $W$ and $U$ and a learnt vector $v$ (Bahdanau, Cho & Bengio 2015):
#
# $$e_{ij} = v^\top \tanh(W s_{i-1} + U h_j) \qquad \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{k=1}^{S} \exp(e_{ik})} \qquad
# c_i = \sum_{j=1}^{S} \alpha_{ij} h_j$$
#
# In a batch, the shorter sentences are filled up with **padding** at the end. The padding must get no weight.
#
# **Exercise 1** (medium, 10 minutes). You get scores `e` (B, T, S) and the lengths (B,) of the sources. Return the weights $\alpha$, (B, T, S).

# %%
def my_source_weights(e, lengths):
    ...  # each row sums to 1 over the real positions

source_weights = exercises.yours(my_source_weights, "source_weights")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `torch.arange(S) < lengths[:, None]` has shape (B, S) and is true at real positions. A score of $-\infty$ becomes a weight of 0.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_source_weights(e, lengths):
#     real = torch.arange(e.shape[-1]) < lengths[:, None]
#     return e.masked_fill(~real[:, None], -torch.inf).softmax(-1)
# ```
#
# </details>
#
# Your function now computes the small example. A second source in the batch has two positions and padding.

# %%
from rtx.nn.additive_attention import AdditiveAttention

def attend(s, h, lengths, W, U, v):
    """Return the contexts (B, D) and the weights (B, S) for states (B, D) and annotations (B, S, D)."""
    e = torch.tanh(W(s)[:, None] + U(h)) @ v
    alpha = source_weights(e[:, None], lengths)[:, 0]
    return (alpha[..., None] * h).sum(1), alpha

both, lengths = torch.stack([h, torch.cat([h[:2], torch.tensor([[9.0, 9.0]])])]), torch.tensor([3, 2])
contexts, weights = attend(torch.stack([s, s]), both, lengths, torch.nn.Identity(), torch.nn.Identity(), v)
for b in (0, 1):
    print(f"source {b + 1}: weights {weights[b].numpy().round(2)}, context {contexts[b].numpy().round(2)}")
_ = torch.manual_seed(0)
layer, states, annotations = AdditiveAttention(8), torch.randn(2, 8), torch.randn(2, 3, 8)
theirs, _ = layer(states, layer.encode(annotations, torch.arange(3) < lengths[:, None]))
ours, _ = attend(states, annotations, lengths, layer.query, layer.key, layer.energy.weight[0])
print(f"largest difference from rtx: {(ours - theirs).abs().max():.4f}")

# %% [markdown]
# ## 3. Does looking help?
#
# Without attention, the decoder gets the same vector of the source at every step. `studies/dates_translated.py`
# trains six models of about 131,000 parameters, from three random starts (**seeds**). Its dates have no seconds, and it tests 200 pairs. An **update** is one step of Adam on 32 pairs.
# Each model has the better of two [learning rates](../docs/glossary.md#learning-rate) (0.003 and 0.01), chosen on validation pairs with the first seed. (For *last annotation*, below, test BLEU chose.)
#
# - **RNNSearch** (Bahdanau, Cho & Bengio 2015), with GRUs. The encoder reads **forwards** only, or in **both directions**.
# - **No attention**: RNNSearch, forwards, with a fixed context. It is the **last annotation**, or the **mean** of all annotations.
# - **Transformer** (Vaswani et al. 2017), [pre-norm](../docs/glossary.md#post-norm-pre-norm), with two [blocks](../docs/glossary.md#block) in encoder and decoder, and sinusoidal positions.
# - **R-Transformer**: the same, but without [sinusoids](../docs/glossary.md#sinusoids). Each block has a [LocalRNN](../docs/glossary.md#localrnn), a small recurrent network that reads 3 neighbouring positions.
#
# **Predict.** Which models write more than half of the dates without a mistake after 400 updates?

# %%
def test(name, measure, at=-1, place=0):
    """One test number of each seed. `at` is 0 after 200 updates and -1 after 400."""
    return [run["test"][at][measure][place] for run in runs[name]]

def spread(values, digits=0, scale=100):
    low, middle, high = (scale * one for one in (min(values), mean(values), max(values)))
    return f"{middle:5.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"

print("mean (lowest to highest seed)   dates right as a whole (%)           tokens right (%)      BLEU")
print(f"{'':31} {'200 updates':17} {'400 updates':17} 400 updates       400 updates")
for name in runs:
    cells = [spread(test(name, "whole", 0)), spread(test(name, "whole")), spread(test(name, "tokens"))]
    print(f"{name:31}", *(f"{cell:17}" for cell in cells), spread(test(name, "BLEU"), 1, 1))
for name in runs:
    print(f"{name:31} {runs[name][0]['parameters']:,} parameters, rate {runs[name][0]['rate']}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The four models with attention, with every seed. The two models without attention do not.
#
# </details>
#
# The mean contains something of every annotation, but it is the same at every step. RNNSearch, forwards, differs from the model with the mean only in the attention (and in 2 % of the parameters). So with this [recipe](../docs/glossary.md#recipe) the *choice* at each step helps.
#
# Five of the six models chose the larger rate, so still larger ones may help them, also those without attention. So no order of the models with attention is settled.
#
# ## 4. What does an alignment show?
#
# Does a dark cell mean "this word translates that word"? We use the test dates whose weekday is written in full.
# We measure two weights while a model writes the first token of a word. **Own word** is the weight of the German word with the same meaning. **Behind** is the weight
# of the next position, for example the comma after the weekday. (Transformers: mean over the [heads](../docs/glossary.md#head) of the last decoder block.)

# %%
LOOKING = [name for name in runs if not name.startswith("no attention")]
WORDS = ("weekday", "month", "day")

def per_seed(name, measure, place):
    return " ".join(f"{100 * one:4.0f}" for one in test(name, measure, -1, place))

print(f"mean weight in %, one number for each seed ({per_seed('Transformer', 'even', 0).split()[0]} if all positions had equal weight)")
for name in LOOKING:
    for place, word in enumerate(WORDS):
        print(f"{name:27} {word:8} own word {per_seed(name, 'own word', place)}   behind {per_seed(name, 'behind', place)}")

# %% [markdown]
# - The **R-Transformer** looks at the word itself, with every seed.
# - **RNNSearch, forwards**, looks at the full stop behind the day, with every seed. For the weekday, it looks at the word with seeds 0 and 2, and at the comma with seed 1.
# - **RNNSearch, both directions**, looks at the day itself, but the seeds differ for month and weekday. With seed 1, the month itself has almost no weight.
#
# Does it matter where a model looks? We hide the German word from the attention while the model writes the English word.
#
# **Predict.** A model has nearly all of its weight on the comma behind the weekday. With the weekday hidden, does it still write the right weekday?

# %%
MEASURES = ("own word", "right without", "right")
dots = [(*found, name, place) for name in LOOKING for place in range(3) for found in zip(*(test(name, one, -1, place) for one in MEASURES))]
fig, ax = plt.subplots(figsize=(6.4, 3.4))
for name, colour in zip(LOOKING, [plots.COLOURS[i] for i in (0, 1, 2, 4)]):
    for place, mark in enumerate("os^"):
        found = [(100 * own, 100 * hidden) for own, hidden, _, of, at in dots if (of, at) == (name, place)]
        ax.plot(*zip(*found), mark, color=colour, alpha=0.8, label=name if place == 0 else None)
ax.set(xlabel="weight of the own word (%)", ylabel="right without it (%)", title="a hidden word is mostly lost if most of the weight was on it (○ weekday, □ month, △ day; one mark per seed)")
ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
for low, high in ((0, 0.2), (0.2, 0.8), (0.8, 1.01)):
    hidden, shown = zip(*(one[1:3] for one in dots if low <= one[0] < high))
    print(f"own word has {100 * low:.0f} to {min(100 * high, 100):.0f} %: {len(hidden):2} cases, right without it {100 * mean(hidden):.0f} % on average, and with it {100 * mean(shown):.0f} %")

# %%
print("RNNSearch, forwards: right in %, one number for each seed")
for what, measure in {"all words visible": "right", "the word hidden": "right without", "only the word visible": "right with only"}.items():
    print(f"{what:23}", "".join(f"{WORDS[place]:>10} {per_seed('RNNSearch, forwards', measure, place)}" for place in (0, 2)))

# %% [markdown]
# <details><summary>Answer</summary>
#
# Yes. RNNSearch, forwards, has this weight with seed 1, and still writes every weekday. A likely reason: the comma's annotation is the state of a network that has just read the weekday. The word alone is not enough (58). (We did not hide the comma, too.)
#
# </details>
#
# So in most cases, a word is needed if most of the weight is on it. But a dark cell can lie beside the word, because an annotation describes more than its own
# position. The full stop in the first picture is no mistake: the model writes the day without seeing the 8. If it sees only the 8, it almost always writes the day, too. So an alignment shows *where a decoder looks*, and not which words mean the same.
#
# ## 5. Left alone
#
# In training, the decoder always reads the *true* tokens so far (**teacher forcing**). When it translates, it reads what it wrote itself (**free running**).
# The simplest way is **greedy**: always write the most likely next token.
#
# **Exercise 2** (medium, 15 minutes). `step(token, state)` reads one token and returns the logits (V,) of the next token, and the next state. Start with `BEGIN` and
# the given state. Stop after `END`, or after `longest` tokens. Return the list of tokens with the end token, but without the begin token.

# %%
from rtx.tasks.subwords import BEGIN, END

def my_greedy_translation(step, state, longest):
    ...  # a list of whole numbers

greedy_translation = exercises.yours(my_greedy_translation, "greedy_translation")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Keep the last token in a variable that starts as `BEGIN`. In a loop: one step, `int(logits.argmax())`, append, and stop if it is `END`.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_greedy_translation(step, state, longest):
#     last, written = BEGIN, []
#     while len(written) < longest and last != END:
#         logits, state = step(last, state)
#         last = int(logits.argmax())
#         written.append(last)
#     return written
# ```
#
# </details>
#
# We train a translator for 300 updates on dates with and without seconds. Then your function writes.

# %%
from itertools import islice
from rtx.lab.learning import learn

_ = torch.manual_seed(0)
model = rtx.build(task, "rnnsearch", recurrent="gru", d_model=64, layers=1, bidirectional=False)
_ = model.double()  # 64 bits: so exact that every processor learns the same
for _ in islice(learn(task, model, learning_rate=0.005, batch_size=32), 300):
    pass
_ = model.eval().requires_grad_(False)

def step(token, state):
    """One step of the model for a single sentence."""
    logits, state = model.step(torch.tensor([token]), state)
    return logits[0], state

def start(source):
    return model.start(torch.tensor([[*german.encode(source), END]]))

# %%
pairs = [(german.decode(one.inputs.tolist()), english.decode(one.target.tolist())) for one in task.split("test")[:20]]
greedy = [english.decode(greedy_translation(step, start(source), 40)) for source, _ in pairs]
print(f"{'eight test dates':30}what your function writes")
for (source, target), text in list(zip(pairs, greedy))[:8]:
    print(f"{source:30}{text:30}{'' if text == target else f'wrong; right: {target}'}")

# %%
from rtx.tasks.pairs import write

by_rtx = write(model, task.texts, [source for source, _ in pairs], beam=1, longest=40)
print("the same text as the greedy search of rtx:", sum(a == b for a, b in zip(greedy, by_rtx)), "of", len(pairs))

# %% [markdown]
# **Predict.** (Models of section 3.) Is the share of right tokens larger or smaller in free running than under teacher forcing? And the share of dates that are right as a *whole*?

# %%
print("right in %, mean (lowest to highest seed)")
print(f"{'':31} {'tokens, teacher':18} {'tokens, free':18} {'whole, teacher':18} whole, free")
for name in runs:
    print(f"{name:31}", *(f"{spread(test(name, how)):18}" for how in ("tokens", "tokens, free", "whole", "whole, free")))

# %% [markdown]
# <details><summary>Answer</summary>
#
# The share of tokens is smaller in free running. After a mistake, the model reads a wrong beginning, and later tokens may be at shifted places. The share of whole dates is the same, because both ways feed the same tokens until the first mistake.
#
# </details>
#
# ## 6. Search
#
# A **beam** of width $K$ keeps the $K$ most likely beginnings at each step. Width 1 is
# greedy. Here greedy loses. The first token is A with 0.6, or B with 0.4. In each product, the second factor belongs to the second token:

# %%
for text, p in {"A x": 0.6 * 0.4, "A y": 0.6 * 0.3, "A z": 0.6 * 0.3, "B x": 0.4 * 0.9, "B y": 0.4 * 0.1}.items():
    print(f"{text}: probability {p:.2f}")

# %% [markdown]
# Greedy writes "A x" with 0.24. A beam of 2 keeps A and B, and finds "B x" with 0.36.
#
# Each further token multiplies the probability of a text by a factor below 1, so long texts are often less likely. Therefore texts on the beam (**hypotheses**) are compared by $\log p / \text{length}^a$. With $a = 1$ this is
# the mean over the tokens, and $a = 0$ corrects nothing.
#
# **Predict.** Two texts: $\log p = -1.2$ with 2 tokens, and $\log p = -2.1$ with 5. Which text wins with $a = 0$, and which with $a = 1$?
#
# <details><summary>Answer</summary>
#
# With $a = 0$ the short text wins. With $a = 1$ the long text wins: -0.42 against -0.60.
#
# </details>
#
# The explorer shows a beam search of our model. Each path of its live tree is a hypothesis.

# %%
explore.beam(model, task.texts, "22.07.85")

# %% [markdown]
# **Try.** (1) "7/22/85" is right. Does greedy (width 1) find it? And width 2? (2) Set alpha, our $a$, to 1.5. Which text wins now?
#
# <details><summary>Answers</summary>
#
# (1) Greedy adds a time: "7/22/85, 8:28 PM". Width 2 finds the right text. (2) The long text with the time, although it is less likely.
#
# </details>
#
# **Exercise 3** (hard, optional, 25 minutes). Write the beam search, with `step` and `state` as in exercise 2. At each step, extend all hypotheses by all
# tokens, and keep the `width` most likely of all extensions. Hypotheses that end with `END` are complete, and leave the beam. After `longest` tokens,
# the hypotheses on the beam count as complete. Return the tokens of the complete hypothesis with the best mean log-probability.

# %%
def my_beam_translation(step, state, width, longest):
    ...  # a list of whole numbers

beam_translation = exercises.yours(my_beam_translation, "beam_translation")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Keep a list of hypotheses `(total, tokens, state)`, where `total` is the log-probability. `logits.log_softmax(-1).topk(width)` is enough for the extensions of one hypothesis.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_beam_translation(step, state, width, longest):
#     live, found = [(0.0, [BEGIN], state)], []
#     for length in range(1, longest + 1):
#         grown = []
#         for total, tokens, before in live:
#             logits, after = step(tokens[-1], before)
#             best = logits.log_softmax(-1).topk(width)
#             grown += [(total + p, [*tokens, t], after) for p, t in zip(best.values.tolist(), best.indices.tolist())]
#         grown = sorted(grown, key=lambda one: one[0], reverse=True)[:width]
#         found += [(total / length, tokens[1:]) for total, tokens, _ in grown if tokens[-1] == END or length == longest]
#         live = [one for one in grown if one[1][-1] != END]
#     return max(found)[1]
# ```
#
# </details>

# %%
searched = [english.decode(beam_translation(step, start(source), 3, 40)) for source, _ in pairs]
wide = write(model, task.texts, [source for source, _ in pairs], beam=3, longest=40)
print("the same text as the beam search of rtx, width 3:", sum(a == b for a, b in zip(searched, wide)), "of", len(pairs))

# %% [markdown]
# **Predict.** How much does a beam help on dates, after 200 and after 400 updates?

# %%
print(f"{'':40} log-probability per token    BLEU                 other text than greedy (%)")
for name in ("RNNSearch, forwards", "R-Transformer"):
    for at, updates in ((0, 200), (-1, 400)):
        for place, width in enumerate((1, 2, 5)):
            found = spread(test(name, "log p", at, place), 4, 1), spread(test(name, "BLEU", at, place), 1, 1)
            print(f"{name:20} {updates} updates, width {width}  {found[0]:28} {found[1]:20} {spread(test(name, 'other than greedy', at, place), 1)}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# After 200 updates, a beam of 2 finds texts with a higher mean log-probability, and BLEU rises by about one point on average. After 400 updates, a beam hardly helps.
#
# </details>
#
# A more likely text need not be better. Stahlberg and Byrne (2019) searched for the most likely translation of all: for more than half of their sentences it was the empty text.
#
# ## 7. What does BLEU count?
#
# BLEU (Papineni et al. 2002) compares a translation with a reference. An **n-gram** is a sequence of $n$ words; a comma is a word. $p_n$ is the share of the translation's n-grams that are also in the reference. Each counts at most as often as it occurs there.
# The factor in front punishes short texts: $c$ words were written, and the reference has $r$.
#
# $$\text{BLEU} = 100 \cdot \min\left(1, e^{1 - r/c}\right) \cdot \left(p_1 p_2 p_3 p_4\right)^{1/4}$$

# %%
from collections import Counter
from rtx.tasks.translation import bleu

def grams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

REFERENCE, WRONG = "Thursday, March 5, 1987 at noon", "Thursday, March 6, 1987 at noon"
wrong, right = (text.replace(",", " ,").split() for text in (WRONG, REFERENCE))
product = 1.0
for n in (1, 2, 3, 4):
    shared, total = (grams(wrong, n) & grams(right, n)).total(), grams(wrong, n).total()
    product *= shared / total
    print(f"{n}-grams: {shared} of {total} are in the reference")
print(f"BLEU by hand {100 * product**0.25:.1f}, by sacrebleu {bleu([('', REFERENCE)], [WRONG])['BLEU']:.1f}")

# %% [markdown]
# **Predict.** The reference is "Thursday, March 5, 1987 at noon". Which text has a larger BLEU: "Thursday, March 6, 1987 at noon", or "Thursday, 5 March 1987 at noon"?

# %%
for text in (REFERENCE, WRONG, "Thursday, 5 March 1987 at noon", REFERENCE.lower(), "Thursday, March 5"):
    found = [bleu([("", REFERENCE)], [text], tokenize)["BLEU"] for tokenize in ("13a", "none")]
    print(f"{text:33} punctuation apart (13a): {found[0]:5.1f}   split at blanks (none): {found[1]:5.1f}")
print("signature of the first column:", bleu([("", REFERENCE)], [WRONG])["signature"].rsplit("|", 1)[0])

# %% [markdown]
# <details><summary>Answer</summary>
#
# The wrong date has 50.0. The right date in another order has 29.0. It has no 4-gram of the reference, and the library then uses a small number instead of $p_4 = 0$ ("smooth:exp"). It is also shorter by a comma. BLEU counts shared n-grams, not truth.
#
# </details>
#
# Upper case and the cut into words change BLEU, too. So sacrebleu prints its settings as a **signature** (last line). Compare BLEU only between equal signatures.
#
# ## 8. Real sentences
#
# Here are our runs on Multi30k: 29,000 captions of photographs, German and English ([lesson 08](08_split_into_channels.ipynb) explains [MC-RNN](../docs/glossary.md#mc-rnn)).

# %%
from rtx.evidence import tables
from rtx.training.recipe import load_recipe

ROWS = {"baseline": "RNNSearch, LSTM", "baseline-large": "RNNSearch, wider", "mc-rnn-3": "RNNSearch of MC-RNNs", "transformer": "Transformer", "r-transformer": "R-Transformer"}
print("Multi30k, BLEU: mean ± standard deviation (each seed)")
for name, groups in tables.cells(load_recipe("multi30k"), Path("../results")).items():
    if name in ROWS:  # most seeds, then the rate with the lowest validation perplexity
        seeds = max(groups, key=lambda group: (len(group), -mean(run.validation for run in group)))
        each = " ".join(f"{run.test:.1f}" for run in seeds)
        print(f"{ROWS[name]:22} {tables.spread([run.test for run in seeds], 1):11} ({each})   {seeds[0].parameters:,} parameters")

# %% [markdown]
# With every seed, the R-Transformer is ahead of the Transformer, and both are far ahead of the recurrent models. But the models are small, with eight [epochs](../docs/glossary.md#epoch) and one learning rate. (MC-RNNs had two. With a second, RNNSearch has 26.9 BLEU, one seed.) The Transformer has only [sinusoids](../docs/glossary.md#sinusoids).
# The R-Transformer has a tenth more parameters, and may only learn sooner.
#
# ## Recap
#
# An encoder reads, a decoder writes, and attention chooses what to read at each step. In this study (dates, 131,000 parameters, at most 400 updates, three seeds):
#
# - **Attention helped** with every seed, after 400 updates, at the better of two rates.
# - **An alignment** shows where a decoder looks. RNNSearch looked at other positions with other seeds, but the R-Transformer did not.
# - **Teacher forcing** and free running have the same whole dates right, but not the same tokens.
# - **A beam** helped a little after 200 updates, and hardly after 400.
# - **BLEU** can be higher for a wrong date than for a right one.
#
# ## Quiz
#
# 1. A colleague reports 98 % token [accuracy](../docs/glossary.md#accuracy) at test time, from one call of `model(source, target)`. What was measured?
# 2. A row of an alignment is dark at a comma. What can this mean, and how do you test it?
#
# <details><summary>Answers</summary>
#
# 1. Accuracy under teacher forcing. Nobody has the target when translating.
# 2. Perhaps the comma's annotation contains the word before it. Hide the word, then the comma.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Bahdanau, Cho and Bengio (2015), *Neural Machine Translation by Jointly Learning to Align and Translate*; Xu et al. (2019), MC-RNN; Wang et al. (2019), R-Transformer.
#
# | in the papers | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | attention (Bahdanau, Eq. 5-6) | $e_{ij}$, $\alpha_{ij}$, $c_i$ | section 2 | `AdditiveAttention` |
# | RNNSearch (Bahdanau; the baseline of Xu, section 4.1) | $h_j$, $s_i$ | sections 2 to 4 | `rnnsearch` |
# | "easily extended" (Wang, section 2) | | section 3 | `EncoderDecoder` with a `window` |
# | beam of 5 (Xu, section 4.1) | $K$ | section 6 | `rtx.nn.search.beam_search` |
# | BLEU (Xu, Tables 2 and 5) | $p_n$ | sections 7, 8 | `rtx train multi30k`, `rtx train translation` |
# | headlines, ROUGE (Xu, Table 3) | | | `rtx train headlines` |
#
# </details>
#
# **Back:** [What must a language model beat?](13_model_language.ipynb) · **Index:** [README](../README.md) · **Words:** [glossary](../docs/glossary.md) · **On:**
# [Which numbers can you trust?](15_weigh_the_evidence.ipynb)
