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
# A sequence model turns $T$ inputs into $T$ outputs. If one input changes, which outputs change? Drag an orange bar and see.

# %%
from rtx.lab import explore

explore.depends()

# %% [markdown]
# The bars at the top are 24 inputs. Below them are three models. Each row of squares is a layer of a model, and each square is
# a position. A square turns blue when it changes; a darker square changes more. You see three shapes:
#
# - **Fading.** In the RNN (recurrent neural network) the change passes from step to step and gets weaker.
# - **A band.** A LocalRNN is a small RNN that starts afresh at each position and reads only a window: this position and
#   the 3 before it. One layer carries a change to 3 later positions, two layers to 6. Then it ends.
# - **A band and everything.** The R-Transformer has a LocalRNN and then *attention*: each position reads a weighted mean of all
#   positions so far. So every later position changes, and the nearest ones change most.
#
# The weights are random. The picture shows what these models *can* use, not what they have learnt to use. Click the name
# of a layer to switch it off. Which layer of the R-Transformer carries the change to far positions?
#
# <details><summary>Answer</summary>
#
# The attention. Without its two attention layers the change ends after 6 positions, as in the model with LocalRNNs alone.
#
# </details>
#
# - **You will** compute these shapes by hand, and write the function that measures them for any model.
# - **You learn** how to read a table of dependencies, and what in it comes from the wiring.
# - **You need** Python and the basics of PyTorch tensors. You need no GPU and no network.
# - **Time:** 30 minutes to read and try. The cells run in about 20 seconds.
#
# Run a cell with Shift + Enter. The next cell is the set-up; every notebook has one like it. `rtx` is the package of this
# course. If Python does not find it, run `make lab` in a terminal: it installs what is missing and opens this page again.

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, plots, receptive_field
torch.set_num_threads(1)
plots.style()

# %% [markdown]
# The same letters mean the same things everywhere, in formulas and in comments such as `# (B, T, D)`:
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
# Positions count from 1 in formulas and pictures, and from 0 in code. A mask is `True` where a position *may* attend.
#
# ## 1. Three positions, by hand
#
# How do we measure a dependency? We nudge one input by a small amount $\varepsilon$, and divide the change of each output by
# $\varepsilon$. Here are three tiny models with one number per position. The RNN keeps half of its state at each step. The
# window adds up two positions. The mean is the simplest attention: all positions so far have equal weight.

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
    print(f"{model.__name__:7} outputs", *(f"{y:6.3f}" for y in before), "  after the nudge", *(f"{y:6.3f}" for y in after),
          "  change / nudge", *(f"{d:.2f}" for d in (after - before) / nudge))

# %% [markdown]
# Read the last three numbers of each line. They say how much the first input matters to outputs 1, 2 and 3. In the RNN the
# influence halves at each step. In the window it ends after one step. In the mean it shrinks, because more and more
# positions share the weight.
#
# **Predict.** Nudge the *second* input instead. What are the three numbers of each model?
#
# <details><summary>Answer</summary>
#
# RNN: 0, 1, 0.5. Window: 0, 1, 1. Mean: 0, 0.5, 0.33.
#
# </details>
#
# The first number is 0 each time, because output 1 does not depend on a later input. A model is called **causal** if no output
# depends on a later input. Such a model can be trained to predict at every position what comes next.
#
# ## 2. The table of dependencies
#
# Real models have $D$ numbers at each position. So we nudge each of the $D$ numbers of input $s$ in turn. Each nudge changes
# output $t$ by a vector. We divide it by $\varepsilon$, add up the squares, and take the root at the end. The result goes to
# row $t$ and column $s$ of a table:
#
# $$r_{ts} = \sqrt{\sum_{d=1}^{D} \left\lVert \frac{y_t(x + \varepsilon\, e_{sd}) - y_t(x)}{\varepsilon} \right\rVert^2}$$
#
# Here $e_{sd}$ is 1 in the $d$-th number of position $s$, and 0 elsewhere.
#
# **Exercise 1** (medium, 10 minutes). Write this table. `model` maps (1, T, D) to (1, T, D), and `x` is such a tensor. The
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
# The last line of the cell above checks your function. If it is right, the cells below use it. Until then they use ours, so
# "Run All" works at any time.
#
# Now three untrained models of two layers and width $D = 8$. The Transformer lets each position attend to all positions so far.
# Waves that are added to its input tell it where a position is. The R-Transformer first runs a small RNN over the last
# $M = 4$ positions, then attends. We use numbers of double precision, so that a small $\varepsilon$ does not drown in rounding.

# %%
_ = torch.manual_seed(0)
T, D = 16, 8
x16 = torch.randn(1, T, D).double()
models = {
    "RNN": rtx.RNN(D, layers=2, cell="rnn"),
    "Transformer": rtx.Transformer(D, layers=2, heads=2),
    "R-Transformer": rtx.RTransformer(D, layers=2, heads=2, window=4),
}
with torch.no_grad():
    tables = {name: dependencies(model.double(), x16) for name, model in models.items()}
print({name: f"{sum(p.numel() for p in model.parameters()):,} parameters" for name, model in models.items()})

# %% [markdown]
# **Predict** before you run the next cell.
#
# 1. What is to the right of the diagonal?
# 2. Which model's outputs depend most on their own input, which is on the diagonal?
# 3. In which model do inputs more than 8 steps back matter least?
#
# <details><summary>Answers</summary>
#
# 1. Zero, in all three. They are causal, so they can be trained to predict what comes next.
# 2. The Transformer's. In each of its layers the input is added to the output (a residual connection). The R-Transformer
#    has residual connections, too, and LocalRNNs that read the neighbours.
# 3. The RNN.
#
# </details>

# %%
fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True)
for ax, (name, table) in zip(axes, tables.items()):
    image = plots.receptive_field_map(ax, table / table.sum(1, keepdim=True), name, low=0.003)
    ax.set(xticks=range(2, T + 1, 2), yticks=range(2, T + 1, 2))
    ax.label_outer()
fig.colorbar(image, ax=axes, shrink=0.8, extend="min", label="share of what changes the output")
fig.suptitle("untrained: the RNN fades, the Transformer is even, the R-Transformer has a band and everything", fontsize=11)
plt.show()

# %% [markdown]
# Each row is divided by its sum, so a colour is a share. The colours are logarithmic, and white is exactly zero. The next cell
# gives the mean share *per position*, for outputs 10 to 16 and four ranges of distances. It draws the weights five times and
# prints mean ± standard deviation. The last line is a control: an RNN whose recurrent matrix starts as a rotation (an
# orthogonal matrix), which keeps the length of the state. Its tanh still shrinks the state a little.

# %%
def orthogonal():
    model = rtx.RNN(D, layers=2, cell="rnn")
    _ = [torch.nn.init.orthogonal_(w) for name, w in model.named_parameters() if "weight_hh" in name]
    return model

makers = {"RNN": lambda: rtx.RNN(D, layers=2, cell="rnn"), "Transformer": lambda: rtx.Transformer(D, layers=2, heads=2),
          "R-Transformer": lambda: rtx.RTransformer(D, layers=2, heads=2, window=4), "RNN, rotation": orthogonal}
ranges = {"own input": (0, 0), "1-3 back": (1, 3), "4-8 back": (4, 8), "9 and more": (9, T)}
back = torch.arange(T)[:, None] - torch.arange(T)  # t - s

# %%
print(f"{'% per position':14}", *(f"{part:>14}" for part in ranges))
for name, make in makers.items():
    drawn = []
    for seed in range(5):
        _ = torch.manual_seed(seed)
        table = receptive_field(make().double(), x16)  # the same table by exact derivatives
        shares = table / table.sum(1, keepdim=True)
        chosen = [((a <= back) & (back <= b))[9:] for a, b in ranges.values()]
        drawn.append([100 * shares[9:][here].mean() for here in chosen])
    drawn = torch.tensor(drawn)
    print(f"{name:14}", *(f"{m:7.2f} ± {s:4.2f}" for m, s in zip(drawn.mean(0), drawn.std(0))))

# %% [markdown]
# Compare the columns from left to right. In the RNN each range has far less than the range before it: its past fades. In
# the Transformer the three ranges of the past are about equal. In the R-Transformer the nearest range has more than the
# others, and far positions have about as much as in the Transformer.
#
# The control limits the finding about the RNN. With a rotation, the same RNN keeps about as much of the farthest range as the
# R-Transformer does at these 16 positions. So fading comes from the *weights*. A *zero* can come from the wiring: where no path
# leads from an input to an output, no weights can create one.
#
# ## 3. Zeros that come from the wiring
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
# **Exercise 3** (hard, optional, 10 minutes). Write `my_span(table)`: how far back does the model look? Find the dependency
# that goes back farthest, from any output. Count the positions from its input to its output, both included. If each output
# depends on its own input only, the answer is 1.

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
# We ask both functions about stacks of LocalRNNs with a window of 3, and about attention with and without its mask. A mask
# hides positions from attention; here it hides the later ones. Each model is drawn five times, with weights ten times as
# large as usual.

# %%
def stack(n):
    return torch.nn.Sequential(*[rtx.nn.LocalRNN(D, window=3) for _ in range(n)])

class Unmasked(rtx.nn.MultiHeadAttention):
    def forward(self, x):
        return super().forward(x, torch.ones(T, T, dtype=torch.bool))  # every position may attend to every other

kinds = {"1 LocalRNN": lambda: stack(1), "2 LocalRNNs": lambda: stack(2), "3 LocalRNNs": lambda: stack(3)}
kinds |= {"attention with mask": lambda: rtx.nn.MultiHeadAttention(D, 2), "attention without": lambda: Unmasked(D, 2)}
for name, make in kinds.items():
    found = set()
    for seed in range(5):
        _ = torch.manual_seed(seed)
        model = make().double()
        with torch.no_grad():
            _ = [weight.mul_(10) for weight in model.parameters()]
        table = receptive_field(model, x16)
        found.add(("causal" if is_causal(table) else "sees the future", f"looks back over {span(table)} of {T}"))
    print(f"{name:20}", *found)

# %% [markdown]
# All five draws of a kind agree, as they must: where no path leads, a larger weight changes nothing.
#
# **Try.** What is the rule for $n$ LocalRNNs with window $M$? [Notebook 02](02_slide_a_window.ipynb) derives it.
#
# <details><summary>Answer</summary>
#
# $n (M - 1) + 1$: each layer adds $M - 1$ positions.
#
# </details>
#
# ## 4. Your own model
#
# The X-ray explorer looks at your own model, part by part. Click a row of its table: on how many inputs does this output
# depend? Choose part `1`, the feed-forward network. It treats each position by itself, so its table is a diagonal.

# %%
mine = torch.nn.Sequential(rtx.nn.LocalRNN(8, window=3), rtx.nn.FeedForward(8))
explore.xray(mine, torch.randn(1, 16, 8))

# %% [markdown]
# ## Recap
#
# - The table of dependencies says how much input $s$ (column) matters to output $t$ (row). A causal model has zeros to the
#   right of the diagonal.
# - We saw three shapes in untrained models: fading (RNN), a band (LocalRNN), a band and everything (R-Transformer).
# - A missing path gives a zero for all weights. How fast an RNN fades depends on its weights; the control with a rotation
#   showed it.
# - Open: which of these dependencies does a *trained* model use? And what happens over thousands of positions? The next
#   notebooks train models and look.
#
# ## Quiz
#
# 1. Row 3 of a table has non-zero entries in columns 1 to 5. Is the model causal?
# 2. You train a causal stack of LocalRNNs for a week. Which entries of its table are zero for certain?
#
# <details><summary>Answers</summary>
#
# 1. No. Output 3 depends on inputs 4 and 5, which come later.
# 2. Those to the right of the diagonal, and those beyond the stack's span. No path leads there.
#
# </details>
#
# ## The course
#
# - [01 Frame the problem](01_frame_the_problem.ipynb): Why is the past hard to hold?
# - [02 Slide a window](02_slide_a_window.ipynb): What does a window see?
# - [03 Attend to the past](03_attend_to_the_past.ipynb): How does a position fetch what it needs?
# - [04 Stack the block](04_stack_the_block.ipynb): What does each part of the block add?
# - [05 Encode position](05_encode_position.ipynb): How can attention know where things are?
# - [06 Carry memory](06_carry_memory.ipynb): Long texts in pieces
# - [07 Convolve or recur](07_convolve_or_recur.ipynb): Convolution, recurrence or attention
# - [08 Split into channels](08_split_into_channels.ipynb): Recurrence with blocks of several lengths
# - [09 Add and multiply](09_add_and_multiply.ipynb): Memory over thousands of steps
# - [10 Read digits](10_read_digits.ipynb): Images, pixel by pixel
# - [11 Model music](11_model_music.ipynb): Chorales and tunes
# - [12 Make it fast](12_make_it_fast.ipynb): Where the time goes
# - [13 Model language](13_model_language.ipynb): Characters and words
# - [14 Translate and summarise](14_translate_and_summarise.ipynb): One sequence into another
# - [15 Weigh the evidence](15_weigh_the_evidence.ipynb): Which numbers to trust
# - [16 What came after](16_what_came_after.ipynb): Griffin and later hybrids
#
# [Why these papers?](../docs/why-these-papers.md) Where we print a number of a paper, we say so. All other numbers were
# computed by this project.
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
# **Index:** [README](../README.md) · **On:** [Why is the past hard to hold?](01_frame_the_problem.ipynb)
