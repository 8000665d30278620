# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How far back does a model look?
#
# A sequence model turns $T$ inputs into $T$ outputs. If one input changes, which outputs change?

# %%
from rtx.lab import explore

explore.depends()

# %% [markdown]
# Input 6 of 24 was changed. Each row is a model, and each square is an output. A white square does not change. A blue square
# changes; a darker blue means a larger change. All changes below $10^{-4}$ have the palest blue, as in the last squares of the
# [RNN](../docs/glossary.md#rnn). You see three shapes:
#
# - **Fading.** An RNN (recurrent neural network) passes a vector, its *state*, from step to step. With each step the change
#   gets weaker.
# - **A band.** A [LocalRNN](../docs/glossary.md#localrnn) reads only a [window](../docs/glossary.md#window): a position and the 3 before it. For each position a small RNN runs over this
#   window, from a zero [state](../docs/glossary.md#state). So one layer carries a change to 3 later positions. The picture's model has two such layers, one
#   after the other. Together they carry the change to 6 later positions.
# - **A band and everything.** The R-Transformer has a LocalRNN and then *[attention](../docs/glossary.md#attention)*: each position *attends to* all positions
#   so far. This means that the position reads a weighted mean of their vectors. So every later position changes. The nearest
#   ones also have input 6 in their windows, and change most.
#
# The models are untrained: their weights are random. Training changes the weights, so it can change the blue squares. The white squares stay white, because no model reads a later input and two LocalRNN layers carry a change only 6 positions
# (sections 2 and 3).
#
# **Try.** In JupyterLab and on the website this picture is alive. The inputs are bars that you can drag, and each layer of a
# model has a row of its own. Click the name of a layer to switch it off. Which layers of the [R-Transformer](../docs/glossary.md#r-transformer) carry the change far?
#
# <details><summary>Answer</summary>
#
# The two attention layers. Without them the change reaches only the 6 next positions (the table in section 2 has this control).
#
# </details>
#
# - **You will** compute these shapes by hand, and write the function that measures them for any model.
# - **You learn** to see in one table which inputs each output depends on.
# - **You need** Python and the basics of PyTorch tensors. You need no GPU and no network.
# - **Time:** 45 minutes, 25 of them for the three exercises. The cells run in about 20 seconds.
#
# Run a cell with Shift + Enter. The next cell is the set-up. `rtx` is the package of this course. If Python does not find it,
# call `make lab` in the folder of the project: it installs what is missing. Then open this page again.

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, plots, receptive_field
torch.set_num_threads(1)
plots.style()

# %% [markdown]
# Formulas and comments such as `# (B, T, D)` use these letters:
#
# | symbol | meaning | in code |
# | --- | --- | --- |
# | $B$ | sequences in a batch | first axis |
# | $T$ | positions in a sequence ("time") | second axis |
# | $D$ | numbers at each position | last axis, `d_model=` |
# | $H$ | attention heads | `heads=` |
# | $K$ | width of a head, $D / H$ | `d_model // heads` |
# | $M$ | window of a LocalRNN, its own position included | `window=` |
# | $L$ | layers, or blocks | `layers=` |
#
# Positions count from 1 in formulas and pictures, and from 0 in code. Some words return everywhere:
#
# - **Layer:** one step of a model, from $T$ vectors to $T$ vectors. A **block** is a group of layers that a model repeats.
# - **Head:** attention can run several times side by side. Each run is a head.
# - **Wiring:** which parts of a model are connected, whatever their weights are.
# - **Draw:** a model with fresh random weights. A **seed** fixes the random numbers. ± means [standard deviation](../docs/glossary.md#standard-deviation) over draws.
#
# ## 1. Three positions, by hand
#
# How do we measure a dependency? We **nudge** one input: we add a small number $\varepsilon$ to it. Then we divide the change
# of each output by $\varepsilon$. Here are three tiny models with one number per position. The RNN keeps half of its state at
# each step. The window adds up two positions. The mean is the simplest attention: all positions so far have equal weight. (An
# attention layer below also adds the position's own vector to its mean.)

# %%
def rnn(x):
    states, h = [], 0.0
    for x_t in x:
        h = 0.5 * h + x_t
        states.append(h)
    return torch.stack(states)

def window(x):
    return torch.stack([x[max(0, t - 1) : t + 1].sum() for t in range(len(x))])

def mean(x):
    return torch.stack([x[: t + 1].mean() for t in range(len(x))])

# %%
x, nudge = torch.tensor([0.2, -0.4, 0.6]), 0.01
for model in (rnn, window, mean):
    before, after = model(x), model(x + torch.tensor([nudge, 0.0, 0.0]))
    print(f"{model.__name__:6} outputs", *(f"{y:7.4f}" for y in before), "  after the nudge", *(f"{y:7.4f}" for y in after),
          "  change / nudge", *(f"{d:.2f}" for d in (after - before) / nudge))

# %% [markdown]
# The last three numbers of each line say how much input 1 matters to outputs 1, 2 and 3. In the RNN its influence
# halves at each step. In the window it ends after one step. In the mean it shrinks, because more positions share the weight.
#
# **Predict.** Nudge the *second* input instead. What are the three numbers of each model?
#
# <details><summary>Answer</summary>
#
# RNN: 0, 1, 0.5. Window: 0, 1, 1. Mean: 0, 0.5, 0.33.
#
# </details>
#
# The first number is 0 each time. A model is called **causal** if no output depends on a later input. Output $t$ of such a
# model has not seen input $t + 1$. So the model can be trained to predict this input.
#
# ## 2. The table of dependencies
#
# How do we measure a real model, with $D$ numbers at each position? We nudge each of the $D$ numbers of input $s$ in turn.
# Each nudge changes output $t$ by a vector. We divide this vector by $\varepsilon$ and add up the squares of its numbers. We
# sum these squares over the $D$ nudges, and take the root. The result goes to row $t$ and column $s$ of the **table of dependencies**:
#
# $$r_{ts} = \sqrt{\sum_{d=1}^{D} \left\lVert \frac{y_t(x + \varepsilon\, e_{sd}) - y_t(x)}{\varepsilon} \right\rVert^2}$$
#
# Here $e_{sd}$ is 1 in the $d$-th number of position $s$, and 0 elsewhere.
#
# **Exercise 1** (medium, 10 minutes). Compute this table. `model` maps (1, T, D) to (1, T, D), and `x` is such a tensor. The
# figure below will use your function.

# %%
def my_dependencies(model, x, epsilon=1e-5):
    ...  # (T, T): row t is an output, column s an input

dependencies = exercises.yours(my_dependencies, "dependencies")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two loops: over s, and over d. In each, clone `x` and add `epsilon` to `x[0, s, d]`. The change of all outputs is one tensor
# (T, D). Its squares, summed over the last axis, belong to column s.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_dependencies(model, x, epsilon=1e-5):
#     _, T, D = x.shape
#     before, squares = model(x), torch.zeros(T, T).to(x)
#     for s in range(T):
#         for d in range(D):
#             nudged = x.clone()
#             nudged[0, s, d] += epsilon
#             squares[:, s] += ((model(nudged) - before)[0] / epsilon).square().sum(-1)
#     return squares.sqrt()
# ```
#
# </details>
#
# The line with `exercises.yours` checks your function. If it is right, the cells below use it. Until then they use ours, so
# "Run All" works at any time.
#
# Now we measure three untrained models of width $D = 8$. The RNN and the [Transformer](../docs/glossary.md#transformer) have two layers. The Transformer lets each position attend to all
# positions so far. To mark the positions, it adds to each input a vector that is different at each position
# ([notebook 05](05_encode_position.ipynb)). The R-Transformer adds no such vector. In each of its two blocks, a LocalRNN with
# $M = 4$ runs first, and attention follows. We use double precision (16 digits), because the usual 7 digits could hide a small
# change.

# %%
_ = torch.manual_seed(0)
T, D = 16, 8
x16 = torch.randn(1, T, D).double()
models = {
    "RNN": rtx.RNN(D, layers=2, cell="rnn"),  # the plain cell, with a tanh
    "Transformer": rtx.Transformer(D, layers=2, heads=2),
    "R-Transformer": rtx.RTransformer(D, layers=2, heads=2, window=4),
}
with torch.no_grad():
    tables = {name: dependencies(model.double(), x16) for name, model in models.items()}

# %% [markdown]
# The figure divides each row by its sum, so that a row adds up to 1. The colour of a square is its share of this sum.
#
# **Predict.**
#
# 1. What is to the right of the diagonal?
# 2. In which model does an output's own input, on the diagonal, have the largest share?
# 3. In which model do the inputs that are 7 or more steps back matter least?
#
# <details><summary>Answers</summary>
#
# 1. Zero, in all three. They are causal.
# 2. In the Transformer.
# 3. In the RNN.
#
# </details>

# %%
fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True)
for ax, (name, table) in zip(axes, tables.items()):
    image = plots.receptive_field_map(ax, table / table.sum(1, keepdim=True), name, low=0.003)
    ax.set(xticks=range(2, T + 1, 2), yticks=range(2, T + 1, 2))
    ax.label_outer()
fig.colorbar(image, ax=axes, shrink=0.8, extend="min", label="share of what moves the output")
fig.suptitle("untrained: far inputs matter little in the RNN, more in the Transformer and the R-Transformer", fontsize=11)
plt.show()

# %% [markdown]
# White is exactly zero. The next table prints the average share of an input in four ranges of distances, for outputs 10 to 16.
# Each model is drawn five times.
#
# Four lines of the table are **controls**: each changes one thing in a model. In a Transformer, each layer
# adds the position's own vector to its result; one control leaves out this addition. Two others remove a part of the
# R-Transformer. The last changes an RNN. An RNN multiplies its state by a matrix at each step. In the
# control this matrix only rotates or mirrors the state, so the product keeps its length.

# %%
def orthogonal():
    model = rtx.RNN(D, layers=2, cell="rnn")
    _ = [torch.nn.init.orthogonal_(w) for name, w in model.named_parameters() if "weight_hh" in name]
    return model

def without_addition():
    model = rtx.Transformer(D, layers=2, heads=2)
    for part in model.modules():
        if isinstance(part, rtx.nn.Residual):  # the result without the position's own vector
            part.register_forward_hook(lambda part, given, result: part.norm(part.sublayer(*given)))
    return model

# %%
makers = {"RNN": lambda: rtx.RNN(D, layers=2, cell="rnn"), "Transformer": lambda: rtx.Transformer(D, layers=2, heads=2),
          "… without addition": without_addition, "R-Transformer": lambda: rtx.RTransformer(D, layers=2, heads=2, window=4),
          "… without LocalRNN": lambda: rtx.RTransformer(D, layers=2, heads=2, window=4, local_layers=0),
          "… without attention": lambda: rtx.RTransformer(D, layers=2, heads=0, window=4), "RNN, rotation": orthogonal}
ranges = {"own input": (0, 0), "1-3 back": (1, 3), "4-6 back": (4, 6), "7 and more": (7, T)}
back = torch.arange(T)[:, None] - torch.arange(T)  # t - s

print(f"{'% per input':19}", *(f"{part:>14}" for part in ranges))
for name, make in makers.items():
    drawn = []
    for seed in range(5):
        _ = torch.manual_seed(seed)
        table = receptive_field(make().double(), x16)  # the same table, by derivatives instead of nudges
        shares = table / table.sum(1, keepdim=True)
        chosen = [((a <= back) & (back <= b))[9:] for a, b in ranges.values()]
        drawn.append([100 * shares[9:][here].mean() for here in chosen])
    drawn = torch.tensor(drawn)
    print(f"{name:19}", *(f"{m:7.2f} ± {s:4.2f}" for m, s in zip(drawn.mean(0), drawn.std(0))))

# %% [markdown]
# In the RNN each range has far less than the one before: it fades. In the Transformer the three ranges of the past are
# about equal. Its own input has most, because each layer adds the position's own vector to its result: without the addition it has 1 %, and the oldest inputs have most (layer 2 averages the averages of layer 1, and the oldest inputs are in most of these).
#
# In the R-Transformer, an input 1-3 back has a larger share than an input farther back. The cause is the LocalRNN, because
# without it the three ranges are about equal. Two LocalRNNs together also reach inputs 4-6 back, but these inputs have little:
# 0.48 % each without attention. From 7 and more steps back, nothing arrives without attention.
#
# With a rotation, the RNN fades much more slowly. (It still fades, and notebook 01 shows why: the slope of the tanh.) So how fast an
# RNN fades depends on its *weights*. The zeros of a LocalRNN do not depend on the weights. A LocalRNN computes an output from
# its window only. No other input enters, whatever the weights are.
#
# ## 3. Zeros that come from the wiring
#
# What does a table say about the wiring? Two things: whether the model is causal, and how far back it looks.
#
# **Exercise 2** (easy, 5 minutes). Write `my_is_causal(table)`. It returns `True` if no output depends on a later input.

# %%
def my_is_causal(table):
    ...

is_causal = exercises.yours(my_is_causal, "is_causal")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `table.triu(k)` keeps the k-th diagonal and everything to its right. $k = 0$ is the main diagonal.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_is_causal(table):
#     return bool((table.triu(1) == 0).all())
# ```
#
# </details>
#
# **Exercise 3** (hard, optional, 10 minutes). Write `my_span(table)`: how far back does the model look? Each non-zero entry has
# a row $t$ and a column $s$. Return the largest $t - s + 1$. If each output depends on its own input only, the answer is 1.

# %%
def my_span(table):
    ...  # a whole number

span = exercises.yours(my_span, "span")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `(table > 0).nonzero()` lists the rows and columns of all dependencies. What is row minus column?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_span(table):
#     rows, columns = (table > 0).nonzero().T
#     return int((rows - columns).max()) + 1
# ```
#
# </details>
#
# We ask both functions about stacks of LocalRNNs with a window of 4, and about attention with and without its **mask**. The
# mask is a table, too: where it is `False`, position $t$ may not attend to position $s$. Usually it is `False` for all later
# positions.

# %%
def stack(n):
    return torch.nn.Sequential(*[rtx.nn.LocalRNN(D, window=4) for _ in range(n)])

class Unmasked(rtx.nn.MultiHeadAttention):
    def forward(self, x):
        return super().forward(x, torch.ones(T, T, dtype=torch.bool))  # every position may attend to every other

kinds = {"1 LocalRNN": lambda: stack(1), "2 LocalRNNs": lambda: stack(2), "3 LocalRNNs": lambda: stack(3)}
kinds |= {"attention with mask": lambda: rtx.nn.MultiHeadAttention(D, 2), "attention without": lambda: Unmasked(D, 2)}
for name, make in kinds.items():
    found = set()
    for seed in range(5):
        _ = torch.manual_seed(seed)
        table = receptive_field(make().double(), x16)
        found.add(f"{'causal' if is_causal(table) else 'sees the future'}, span {span(table)} of {T}")
    print(f"{name:20}", " or ".join(found))

# %% [markdown]
# All five draws of a model give the same answer. (If not, its line would show several, joined with "or".)
#
# **Try.** What is the span of $n$ LocalRNNs with window $M$? [Notebook 02](02_slide_a_window.ipynb) derives it.
#
# <details><summary>Answer</summary>
#
# $n (M - 1) + 1$: each layer adds $M - 1$ positions.
#
# </details>
#
# ## 4. Your own model
#
# Which inputs does *your* model use? The X-ray explorer shows the model's table on the left, with each row divided by its sum.
# On the right is row 8 of this table: the inputs of output $t = 8$. On how many inputs does output 8 depend? In the living
# version, click another row, or choose a part of the model.

# %%
mine = torch.nn.Sequential(rtx.nn.LocalRNN(8, window=4), rtx.nn.FeedForward(8))
explore.xray(mine, torch.randn(1, 16, 8))

# %% [markdown]
# Output 8 depends on 4 inputs, the window of the LocalRNN. The second part, `FeedForward`, adds none: it treats each position
# by itself.
#
# ## Recap
#
# - The table of dependencies says how much input $s$ (column) matters to output $t$ (row). A causal model has zeros to the
#   right of the diagonal.
# - Untrained models have different shapes. The RNN fades. The LocalRNN has a band. The Transformer depends mostly on its own
#   input, and about equally on all earlier ones. The R-Transformer has a band and everything before it.
# - Where an input never enters, the table has a zero, whatever the weights are. How fast an RNN fades depends on its weights.
# - Open: which of these dependencies does a *trained* model use?
#
# ## Quiz
#
# 1. Row 3 of a table has non-zero entries in columns 1 to 5. Is the model causal?
# 2. You train a causal stack of LocalRNNs for a week. Which entries of its table are zero for certain?
#
# <details><summary>Answers</summary>
#
# 1. No. Output 3 depends on inputs 4 and 5, which come later.
# 2. The entries to the right of the diagonal, and the entries more than $n (M - 1)$ positions back. Those inputs never enter.
#
# </details>
#
# ## The course
#
# - [01](01_frame_the_problem.ipynb) Why is the past hard to hold?
# - [02](02_slide_a_window.ipynb) What does a window see?
# - [03](03_attend_to_the_past.ipynb) How does a position fetch what it needs?
# - [04](04_stack_the_block.ipynb) What does each part of the block add?
# - [05](05_encode_position.ipynb) How can attention know where things are?
# - [06](06_carry_memory.ipynb) Long texts in pieces
# - [07](07_convolve_or_recur.ipynb) Convolution, recurrence or attention
# - [08](08_split_into_channels.ipynb) Recurrence with blocks of several lengths
# - [09](09_add_and_multiply.ipynb) Memory over thousands of steps
# - [10](10_read_digits.ipynb) Images, pixel by pixel
# - [11](11_model_music.ipynb) Chorales and tunes
# - [12](12_make_it_fast.ipynb) Where the time goes
# - [13](13_model_language.ipynb) Characters and words
# - [14](14_translate_and_summarise.ipynb) One sequence into another
# - [15](15_weigh_the_evidence.ipynb) Which numbers to trust
# - [16](16_what_came_after.ipynb) Griffin and later hybrids
#
# [Why these papers?](../docs/why-these-papers.md) Numbers from a paper are marked. This project computed all other numbers.
#
# <details><summary>Paper map</summary>
#
# Wang et al. (2019), *R-Transformer*.
#
# | in the paper | equation | here | in `rtx` |
# | --- | --- | --- | --- |
# | §3, Figure 1: the whole model | 8 | section 2 | `rtx.RTransformer` |
# | §3.1, Figure 2: RNN and LocalRNN | 2-3 | first screen, section 3 | `rtx.RNN`, `rtx.nn.LocalRNN` |
# | §3.2: attention to the past only | 4-6 | section 3 | `rtx.nn.MultiHeadAttention` |
#
# </details>
#
# **Index:** [README](../README.md) · **Words:** [glossary](../docs/glossary.md) · **On:**
# [Why is the past hard to hold?](01_frame_the_problem.ipynb)
