# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Start here: who depends on whom?
#
# A sequence model turns $T$ inputs into $T$ outputs. If one input changes, which outputs change? Drag a bar and see.

# %%
from rtx.lab import explore

explore.depends()

# %% [markdown]
# The bars are 24 inputs. Below them, each row is a layer of one of three models, and each square is a position. A square
# is blue if it changes when you drag the orange bar: the darker, the more. A white square stays exactly as it was.
#
# - In the RNN the change runs on to the end and fades: each step keeps only a part of what came before.
# - A LocalRNN reads windows of 4 positions. Two layers carry the change over $2 \cdot 3 = 6$ positions, and no further.
# - The R-Transformer has a LocalRNN, then attention. With attention every later position changes.
#
# The weights are random, so this is what the models *can* use, not what they have learnt to use. Click the name of a layer
# to switch it off: which of the layers makes the difference?
#
# - **You will** check your installation, learn the notation, measure the same in numbers, and solve a first exercise.
# - **You learn** to read a table of who depends on whom, and what recurrence and attention are each good at.
# - **You need** Python and a first acquaintance with PyTorch tensors. No GPU, no network.
# - **Time:** 15 minutes to read and try; the cells run in a few seconds.
#
# ## The notebooks
#
# | notebook | its question | minutes |
# | --- | --- | --- |
# | 00 Start here | Who depends on whom? | 15 |
# | [01 Frame the problem](01_frame_the_problem.ipynb) | What is a sequence task, when is a number good, and why is the past so hard to hold? | 30 |
# | [02 Slide a window](02_slide_a_window.ipynb) | What does a window see that a sequence-long RNN and a convolution do not? | 30 |
# | [03 Attend to the past](03_attend_to_the_past.ipynb) | How does a position fetch what it needs, however far back it lies? | 35 |
# | [04 Stack the block](04_stack_the_block.ipynb) | What does each of the block's three sublayers add, and does it matter where the norm stands? | 35 |
# | [05 Encode position](05_encode_position.ipynb) | How can attention be told where things stand, and what still works beyond the longest sequence seen? | 35 |
# | [06 Carry memory](06_carry_memory.ipynb) | How can attention read a text that is longer than what it reads at once? | 30 |
# | [07 Convolve or recur](07_convolve_or_recur.ipynb) | Which past can a model use: the one it can see, or the one it can learn from? | 35 |
# | [08 Split into channels](08_split_into_channels.ipynb) | Can a recurrent network read phrases without being told where they begin and end? | 40 |
# | [09 Add and multiply](09_add_and_multiply.ipynb) | Can a model without any recurrence remember over thousands of steps? | 30 |
# | [10 Read digits](10_read_digits.ipynb) | What does a score of 99.1 % against 99.0 % say? | 30 |
# | [11 Model music](11_model_music.ipynb) | Can a model learn a chorale, and what does an NLL of 2.37 per frame mean? | 30 |
# | [12 Make it fast](12_make_it_fast.ipynb) | Where does the time of a model go, and how much of it was never needed? | 30 |
# | [13 Model language](13_model_language.ipynb) | What does “1.24 bits per character” mean, and what must a model beat to deserve a number at all? | 35 |
# | [14 Translate and summarise](14_translate_and_summarise.ipynb) | How does a model turn one sequence into another of a different length, and how good is it? | 35 |
# | [15 Weigh the evidence](15_weigh_the_evidence.ipynb) | Which of the numbers in these papers can you trust, and how would you know? | 35 |
# | [16 What came after](16_what_came_after.ipynb) | Why does Griffin put the recurrence far and the attention near, the reverse of R-Transformer? | 30 |
#
# The paper behind most of them is Wang et al. (2019), *R-Transformer: Recurrent Neural Network Enhanced Transformer*.
# Wherever `rtx` and these pages state a number of the paper, they say so; all other numbers were computed here.
#
# <details><summary>Paper map</summary>
#
# | in the paper | equation | here | in `rtx` |
# | --- | --- | --- | --- |
# | §3, Figure 1: the whole model | 8 | section 3 | `rtx.RTransformer` |
# | §3.1, Figure 2: RNN and LocalRNN | 2-3 | above, notebook 02 | `rtx.RNN`, `rtx.nn.LocalRNN` |
# | §3.2: attention to the past only | 4-6 | section 3 | `rtx.nn.MultiHeadAttention` |
# | §3.3: comparison with the Transformer | | section 3 | `rtx.Transformer` |
#
# </details>
#
# ## 1. Is everything here?
#
# Run a cell with Shift + Enter. Each line should say `ok`.

# %%
import sys
from importlib.util import find_spec

print("ok" if sys.version_info >= (3, 11) else "too old:", "Python 3.11 or newer")
for name in ["rtx", "torch", "jaxtyping", "matplotlib", "seaborn", "ipywidgets", "sklearn", "music21"]:
    print("ok" if find_spec(name) else "missing:", name)

# %% [markdown]
# If one is missing, this kernel is not the project's. In a terminal, in the project's folder, `make lab` installs
# what is missing and opens this page with the right kernel; `make help` lists everything else that `make` can do.
#
# From here on every notebook begins with a set-up cell like this one. One thread and a fixed seed make your numbers
# those that you see here, up to rounding.

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, plots, receptive_field
torch.set_num_threads(1)
plots.style()

# %% [markdown]
# ## 2. Notation
#
# The same letters stand for the same things everywhere, in formulas and in comments such as `# (B, T, D)`. A page that needs
# one for something else says so.
#
# | symbol | meaning | in code |
# | --- | --- | --- |
# | $B$ | sequences in a batch | first axis |
# | $T$ | positions in a sequence ("time") | second axis |
# | $D$ | numbers at each position | last axis, `d_model=` |
# | $H$ | attention heads | `heads=` |
# | $K$ | width of a head, $D / H$ | `d_model // heads` |
# | $M$ | window of a LocalRNN, its own position included (the papers also write $k$ or ksize) | `window=` |
# | $L$ | layers, or blocks (the papers also write $N$) | `layers=` |
#
# Positions count from 1 in formulas and pictures, and from 0 in code. A mask is `True` where a position *may* attend.
#
# All models share one signature: $(B, T, D)$ in, $(B, T, D)$ out.

# %%
B, T, D = 5, 16, 8
for name in ("rnn", "gru", "transformer", "r-transformer"):
    size = {"heads": 2} if "transformer" in name else {}
    size |= {"window": 4} if name == "r-transformer" else {}
    model = rtx.MODELS[name](d_model=D, layers=2, **size)
    print(f"{name:14} {tuple(model(torch.randn(B, T, D)).shape)}")

# %% [markdown]
# ## 3. The first figure
#
# Nudge one input and watch the outputs. Those that move have seen it. How much output $y_t$ moves when input $x_s$
# is nudged is the size of a derivative; put it at row $t$ and column $s$ of a table:
#
# $$r_{ts} = \left\lVert \frac{\partial y_t}{\partial x_s} \right\rVert_F
# \approx \sqrt{\sum_{d=1}^{D} \left\lVert \frac{y_t(x + \varepsilon\, e_{sd}) - y_t(x)}{\varepsilon} \right\rVert^2}$$
#
# where $e_{sd}$ is 1 in the $d$-th number of position $s$ and 0 elsewhere. Two loops and a nudge:

# %%
def naive_receptive_field(model, x, epsilon=1e-5):
    _, T, D = x.shape
    before, total = model(x), torch.zeros(T, T).to(x)
    for s in range(T):
        for d in range(D):
            nudged = x.clone()
            nudged[0, s, d] += epsilon
            total[:, s] += ((model(nudged) - before)[0] / epsilon).square().sum(-1)
    return total.sqrt()

# %% [markdown]
# `receptive_field` computes the derivatives exactly. The two agree:

# %%
_ = torch.manual_seed(0)
model, x = rtx.RNN(D, layers=2, cell="gru").double(), torch.randn(1, T, D).double()
with torch.no_grad():
    nudged = naive_receptive_field(model, x)
torch.testing.assert_close(nudged, receptive_field(model, x), rtol=1e-3, atol=1e-6)
print("nudges and derivatives agree on", tuple(nudged.shape), "numbers")

# %% [markdown]
# Now three models of equal depth and width, with the weights they are born with. An RNN passes a state from position
# to position. A Transformer lets each position attend to all earlier ones; sinusoids tell it where it is. An
# R-Transformer first runs a small RNN over the last $M$ positions, then attends; nothing tells it where it is.

# %%
_ = torch.manual_seed(0)
x = torch.randn(1, T, D)
models = {
    "RNN": rtx.RNN(D, layers=2, cell="rnn"),
    "Transformer": rtx.Transformer(D, layers=2, heads=2),
    "R-Transformer": rtx.RTransformer(D, layers=2, heads=2, window=4),
}
moved = {name: receptive_field(model, x) for name, model in models.items()}
share = {name: table / table.sum(1, keepdim=True) for name, table in moved.items()}

# %% [markdown]
# Only proportions matter here, so each row is divided by its sum: what share of all that moves output $t$ comes from
# input $s$?
#
# **Predict** before you run the next cells, and write your answers down.
#
# 1. What lies to the right of the diagonal?
# 2. Which model's outputs depend most on their *own* input, on the diagonal?
# 3. In which model do inputs more than 8 steps back count least?
# 4. For the untrained Transformer, does a neighbour count for more than a far position?
#
# <details><summary>Answers (click to unfold)</summary>
#
# 1. Nothing: exactly zero for all three. They are causal, so they may be trained to predict what comes next.
# 2. The Transformer's. Its residuals, ways around each sublayer, carry the own input on. The R-Transformer has residuals,
#    too, but its LocalRNNs mix the neighbours in; the RNN here has none.
# 3. The RNN: its state loses some of the past at each step, so the past fades by a factor per step.
# 4. No. Untrained attention spreads its weight almost evenly over the past. Near and far look alike to it.
#
# </details>

# %%
for name, table in moved.items():
    print(f"{name:13} nothing reaches the future: {bool((table.triu(1) == 0).all())}")

# %%
fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True)
for ax, (name, table) in zip(axes, share.items()):
    image = plots.receptive_field_map(ax, table, name, low=0.003)
    ax.set(xticks=range(2, T + 1, 2), yticks=range(2, T + 1, 2))
    ax.label_outer()
fig.colorbar(image, ax=axes, shrink=0.8, extend="min", label="share of what moves the output")
fig.suptitle("a past that fades, a past that is even, and both at once", fontsize=11)
plt.show()

# %% [markdown]
# Read a row from right to left: first the output's own input, then its past. Colours are logarithmic; white is
# exactly zero. The RNN fades into the corner. The Transformer has a bright diagonal, and below it much the same shade
# near and far. The R-Transformer has a bright diagonal, a band beside it that fades within a few steps, and below that
# the Transformer's shade. The same in numbers, averaged over the outputs from 10 on:

# %%
distance = torch.arange(T)[:, None] - torch.arange(T)  # t - s
for name, table in share.items():
    parts = {"own input": (0, 0), "1-3 back": (1, 3), "4-8 back": (4, 8), "more than 8": (9, T)}
    line = f"{name:13}"
    for part, (nearest, farthest) in parts.items():
        chosen = (nearest <= distance) & (distance <= farthest)
        line += f"   {part} {100 * (table * chosen)[9:].sum(1).mean():4.1f} %"
    print(line)

# %% [markdown]
# That is the paper's idea in one table. An RNN favours what is near and loses what is far. Attention reaches what is
# far, but does not favour what is near. R-Transformer stacks one on the other.
#
# Weights that were trained give other tables: an LSTM can learn to keep a thing for long, a Transformer can learn to
# look nearby. What cannot be learnt away are the zeros.
#
# ## 4. Explorers
#
# The picture at the top is an explorer. Explorers work in the page itself: you drag, click, or use the arrow keys after a
# click in the picture. "Reset" brings the start back. Most explorers take your own model as well. This one looks through
# a model part by part:

# %%
mine = torch.nn.Sequential(rtx.nn.LocalRNN(8, window=3), rtx.nn.FeedForward(8))
explore.xray(mine, torch.randn(1, 16, 8))

# %% [markdown]
# **Try.** Click a row of the table: how many inputs does that output depend on? Choose part `1`, the feed-forward network.
# Why is its table a diagonal? Then build a stack of three LocalRNNs: over how many positions does it look back? (The rule is
# an exercise of [notebook 02](02_slide_a_window.ipynb).)
#
# ## 5. An exercise
#
# An exercise is a cell with a stub. The check below it says "not attempted yet" until you write something; it
# names the likely bug if you are wrong. What a function is given belongs to its caller: work on a copy, do not change
# it. Nothing after an exercise depends on it, so Run All works before you have solved any.
#
# **Exercise** (easy, 5 minutes). Write `is_causal(moved)`: from a table of derivatives $(T, T)$, rows outputs and columns
# inputs, tell whether no output sees the future. Return `True` or `False`.

# %%
def is_causal(moved):
    ...  # True if no output is moved by a later input

exercises.is_causal(is_causal)

# %% [markdown]
# <details><summary>Hint</summary>
#
# `table.triu(k)` keeps what lies on the k-th diagonal and right of it; $k = 0$ is the main diagonal.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def is_causal(moved):
#     return bool((moved.triu(1) == 0).all())
# ```
#
# </details>
#
# ## 6. Where things are
#
# | folder | what it holds |
# | --- | --- |
# | `rtx/nn` | the bricks: LocalRNN, attention, feed-forward, residual; `rtx/nn/reference.py` has them as plain loops |
# | `rtx/models` | one file per model |
# | `rtx/tasks` | one file per kind of experiment: data, loss, metric |
# | `rtx/training` | recipes, one per table of the paper, and what trains by them |
# | `rtx/lab` | what these notebooks use: pictures, explorers, exercises |
# | `notebooks` | these pages; the `.py` beside each is its source |
# | `results` | the ledger: one file per finished run, with its number and how it came about |
#
# In a terminal with the project's environment active (`source .venv/bin/activate`), `rtx list` names models, tasks
# and recipes, `rtx table nottingham` prints a table of the paper with our numbers beside it, and
# `rtx train --help` tells how to make one yourself.
#
# **When you are stuck**
#
# - Cells ran out of order, or a name is not defined: menu *Kernel*, *Restart Kernel and Run All Cells*.
# - A slider does nothing: its cell has not run since you opened the page. Run it.
# - Your changes broke a page: `git checkout notebooks/` brings all pages back as they were.
# - An error that says `name: expected …, got …` comes from `rtx`, and names the argument to mend.
# - Anything else: `make help` lists what can be done, `make test` says whether the installation is sound.
#
# ## Recap
#
# - A table of derivatives says which input (column) moves which output (row). Causal models have zeros right of the diagonal.
# - Untrained, an RNN favours the near past, a Transformer its own position and all of the past alike. An
#   R-Transformer has a fading band from its RNN and the whole past from its attention.
# - Predict, then run. Unfold answers late. Explorers follow figures; exercises never block the way.
#
# ## Quiz
#
# 1. Row 3 of a model's table of derivatives is non-zero in columns 1 to 5. Is the model causal?
# 2. You train a causal model of stacked LocalRNNs for a week. Which cells of its table may still be zero, and which
#    must?
# 3. The Transformer was told its positions by sinusoids. Why does its near past count for no more than its far past?
#
# <details><summary>Answers</summary>
#
# 1. No. Output 3 is moved by inputs 4 and 5, which lie in its future.
# 2. Right of the diagonal, and beyond the reach of the windows, all must be zero: no path leads there, whatever the
#    weights. Any other cell may be zero, if the weights happen to be so.
# 3. Knowing where one is does not make near positions count for more. The weights would have to learn to use it.
#
# </details>
#
# **Index:** [README](../README.md) · **On:** [Frame the problem](01_frame_the_problem.ipynb): what these
# models are for.
