# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does a window see?
#
# A LocalRNN is a small recurrent network. For each position it reads a **window**, the last $M$ inputs, and no other input.

# %%
import torch
from sklearn.datasets import load_digits
from rtx.lab import explore

images = torch.tensor(load_digits().images / 16).float()  # (1797, 8, 8), from 0 (paper) to 1 (ink)
x = torch.cat(list(images[[3, 1, 4]]), dim=1).T  # (T, D): a strip of three digits, column by column
explore.window(x)

# %% [markdown]
# Our sequence is a strip of the handwritten digits 3, 1 and 4. Each column is a position, so we have $T = 24$ positions with
# $D = 8$ numbers each. Here a window has $M = 4$ columns. The LocalRNN's output at a position is the last [state](../docs/glossary.md#state) of its window.
#
# The picture shows the window that ends at position 2, and its first step. The table has the 8 numbers of the input, and of the state before and after this step. The rows between them are inner values of the GRU. You need only its update gate (section 3). A window that begins before the sequence reads **pads**, vectors of zeros. Section 5 shows what they do.
#
# In JupyterLab and on the website the picture is alive: you drag a window over the strip, and see what the network does at each step.
#
# All weights are random here. So the lesson shows what a window *can* see, not which layer learns better.
#
# - **You will** write a LocalRNN, measure what it sees, and test a claim of the [R-Transformer](../docs/glossary.md#r-transformer) paper (Wang et al., 2019).
# - **You learn** how it differs from an [RNN](../docs/glossary.md#rnn) over the whole sequence and from a convolution.
# - **You need** PyTorch tensors, and the words, letters and the table of dependencies of [notebook 00](00_start_here.ipynb).
# - **Time:** 55 minutes, 33 of them for the four exercises. The cells run in about 20 seconds.
#
# ## 1. Three positions, by hand
#
# What happens in a window, in numbers? Here are three positions with two numbers each. Our toy cell keeps half of its state
# $h$, adds the input, and adds 0.1 (a bias). The window has $M = 2$ positions. Each window starts from a zero state.

# %%
toy = [torch.zeros(2), torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]), torch.tensor([3.0, 1.0])]  # a pad, x_1, x_2, x_3
shown = lambda numbers: "(" + ", ".join(f"{n:5.2f}" for n in numbers) + ")"
for t in (1, 2, 3):
    first = 0.5 * torch.zeros(2) + toy[t - 1] + 0.1
    second = 0.5 * first + toy[t] + 0.1
    print(f"window {t}: reads {shown(toy[t - 1])}, h = {shown(first)}; reads {shown(toy[t])}, h = {shown(second)} = output {t}")

# %% [markdown]
# Window 1 reads the pad first. The pad gives the state (0.10, 0.10): the input is zero, but the bias is not.
#
# **Predict.** The second number of $x_1$ becomes 1 instead of 0. Which outputs change?
#
# <details><summary>Answer</summary>
#
# Outputs 1 and 2. Output 3 reads only positions 2 and 3, so it stays.
#
# </details>
#
# ## 2. Cut the windows
#
# The window of position $t$ holds $M$ positions and ends at $t$:
#
# $$(x_{t-M+1}, \; x_{t-M+2}, \; \dots, \; x_t), \qquad t = 1, \dots, T$$
#
# The window never holds a later position. So its output can be used to predict $x_{t+1}$. The first $M - 1$ windows begin with
# pads.
#
# **Exercise 1** (easy, 10 minutes). Write `my_windows(x, window)`. It turns sequences (B, T, D) into their windows
# (B, T, M, D). The places of a window that lie before the sequence hold zero vectors.

# %%
from rtx.lab import exercises

def my_windows(x, window):
    ...  # (B, T, D) to (B, T, M, D)

windows = exercises.yours(my_windows, "windows")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `torch.nn.functional.pad(x, (0, 0, window - 1, 0))` puts zero vectors before each sequence. `tensor.unfold(1, window, 1)` cuts
# windows along axis 1, and puts their positions on a new last axis. `.mT` swaps the last two axes.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_windows(x, window):
#     padded = torch.nn.functional.pad(x, (0, 0, window - 1, 0))
#     return padded.unfold(1, window, 1).mT
# ```
#
# </details>
#
# ## 3. Run a small RNN in each window
#
# In each window the same recurrent network starts from a zero state. Its last state is the output:
#
# $$h_t = \text{RNN}(x_{t-M+1}, \; x_{t-M+2}, \; \dots, \; x_t)$$
#
# We take a [GRU](../docs/glossary.md#gru-lstm) (gated recurrent unit). Its *update gate* holds numbers between 0 and 1, which decide how much of the state to
# keep.
#
# **Exercise 2** (medium, 10 minutes). Write `my_local_rnn(gru, x, window)`. Here `gru` is a
# `torch.nn.GRU(D, D, batch_first=True)`, and `x` is (B, T, D). Return the outputs of all windows, (B, T, D).

# %%
def my_local_rnn(gru, x, window):
    ...  # (B, T, D) to (B, T, D)

local_rnn = exercises.yours(my_local_rnn, "local_rnn")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `gru(batch)` returns the states after each step, (batch, steps, D), and the last states. Treat the windows as a batch:
# `flatten(0, 1)` turns (B, T, M, D) into (B T, M, D). `unflatten(0, (B, T))` undoes this.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_local_rnn(gru, x, window):
#     states, _ = gru(windows(x, window).flatten(0, 1))  # (B T, M, D)
#     return states[:, -1].unflatten(0, x.shape[:2])
# ```
#
# </details>
#
# Now compare this function with `rtx.nn.LocalRNN`, from the package of this course. Its parameters have the names of a
# `torch.nn.GRU`, so we can copy them.

# %%
import rtx
torch.set_num_threads(1)
_ = torch.manual_seed(0)
(T, D), M = x.shape, 4
gru, layer = torch.nn.GRU(D, D, batch_first=True), rtx.nn.LocalRNN(D, window=M)
_ = layer.load_state_dict(gru.state_dict())
with torch.no_grad():
    apart = (local_rnn(gru, x[None], M) - layer(x[None])).abs().max()
print(f"outputs are up to {layer(x[None]).abs().max():.2f}; the two functions differ by at most {apart:.5f}")

# %% [markdown]
# ## 4. Compare it with an RNN over the whole sequence
#
# What does a model lose with a window? We give the same weights to an RNN that reads the whole sequence. Then we measure both
# tables of dependencies. Row $t$, column $s$ says how much output $t$ changes when input $s$ changes: the size of the
# derivative, as in notebook 00.
#
# **Predict.** Which entries are exactly zero in each table?
#
# <details><summary>Answer</summary>
#
# To the right of the diagonal both are zero, because no output depends on the future. The LocalRNN is also zero from distance
# $M$ on.
#
# </details>

# %%
import matplotlib.pyplot as plt
from rtx.lab import plots, receptive_field
plots.style()

class MyLocalRNN(torch.nn.Module):
    def __init__(self, gru, window=M):
        super().__init__()
        self.gru, self.window = gru, window

    def forward(self, x):
        return local_rnn(self.gru, x, self.window)

# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True)
for ax, (name, model) in zip(axes, {"RNN over the whole sequence": gru, f"LocalRNN, M = {M}": MyLocalRNN(gru)}.items()):
    image = plots.receptive_field_map(ax, receptive_field(model, x[None]), name)
    ax.label_outer()
fig.colorbar(image, ax=axes, extend="min", label="change of output t with input s")
fig.suptitle("same weights: the RNN depends on the whole past, the LocalRNN on four positions", fontsize=11)
plt.show()

# %% [markdown]
# White is exactly zero. On the left, old inputs have little influence. Does every RNN fade like this? As a control we take a GRU
# with the same weights, but raise the biases of its update gate by 3. This GRU keeps more of its state. Each model has five
# draws of its weights. For each draw and each of four distances $t - s$, we take the mean of all entries at this distance. The
# table prints mean ± [standard deviation](../docs/glossary.md#standard-deviation) of the five draws.

# %%
def keeper(gru):
    other = torch.nn.GRU(D, D, batch_first=True)
    other.load_state_dict(gru.state_dict())
    other.bias_hh_l0.data[D : 2 * D] += 3  # the order of the gates: reset, update, new
    return other

def draws(make, seeds=5):
    for seed in range(seeds):
        _ = torch.manual_seed(seed)
        yield make(torch.nn.GRU(D, D, batch_first=True))

# %%
print(f"{'mean entry at distance':22}", *(f"{d:>15}" for d in (0, 3, 4, 16)), " share left at 16")
for name, make in {"LocalRNN, M = 4": MyLocalRNN, "RNN": lambda gru: gru, "RNN that keeps more": keeper}.items():
    tables = torch.stack([receptive_field(model, x[None]) for model in draws(make)])
    far = [tables.diagonal(-d, 1, 2).mean(1) for d in (0, 3, 4, 16)]
    print(f"{name:22}", *(f"{one.mean():6.4f} ± {one.std():.4f}" for one in far), f"{100 * far[-1].mean() / far[0].mean():8.1f} %")

# %% [markdown]
# At distances 0 and 3, the LocalRNN and the RNN are almost equal. At distance 16, the plain RNN has lost almost all influence
# of an input. In the RNN that keeps more, 43 % of the influence is left. But an output depends less on its own input. So how
# fast an RNN fades depends on its weights.
#
# The zeros of the LocalRNN are different. No weights can make it see beyond its window. A stack of LocalRNNs sees farther.
#
# **Exercise 3** (easy, 3 minutes). In a stack of LocalRNNs with window $M$, on how many inputs does an output of the top layer
# depend, its own included?

# %%
def my_stacked_reach(layers, window):
    ...  # a whole number

stacked_reach = exercises.yours(my_stacked_reach, "stacked_reach")

# %% [markdown]
# <details><summary>Hint</summary>
#
# One layer looks back from $t$ to $t - (M - 1)$. How far back does the layer below look from there?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_stacked_reach(layers, window):
#     return layers * (window - 1) + 1
# ```
#
# </details>

# %%
for layers in (1, 2, 3):
    stack = torch.nn.Sequential(*[rtx.nn.LocalRNN(D, M) for _ in range(layers)])
    measured = int((receptive_field(stack, x[None])[-1] > 0).sum())
    print(f"{layers} of M = {M}: predicted {stacked_reach(layers, M):2}, measured {measured:2} of {T} positions")

# %% [markdown]
# ## 5. What the pads do
#
# Does it matter that the network reads pads? The alternative is a window that is cut short: it starts at $x_1$.
#
# **Exercise 4** (hard, optional, 10 minutes). Write `my_without_pads(gru, x, window)`. It is like `local_rnn`, but no window
# reads a pad.

# %%
def my_without_pads(gru, x, window):
    ...  # (B, T, D) to (B, T, D)

without_pads = exercises.yours(my_without_pads, "without_pads")

# %% [markdown]
# <details><summary>Hint</summary>
#
# A window that is cut short holds $x_1, \dots, x_t$. Which network reads just these positions from a zero state?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_without_pads(gru, x, window):
#     start = gru(x)[0][:, : window - 1]  # the RNN over the whole sequence
#     return torch.cat([start, local_rnn(gru, x, window)[:, window - 1 :]], 1)
# ```
#
# </details>
#
# **Predict.** At which positions do the outputs with and without pads differ? What if all biases of the GRU are zero?
#
# <details><summary>Answer</summary>
#
# They differ at positions 1 to $M - 1$, because only these windows hold pads. With zero biases they differ nowhere: a zero
# input and a zero state give a zero state.
#
# </details>
#
# The figure shows the size (norm) of the change of each output: mean and standard deviation of five draws. It is given in % of the mean norm of the 24 outputs without pads. We also print this change for the GRU of section 4 that keeps more of its state.

# %%
def no_bias(gru):
    _ = [p.data.zero_() for name, p in gru.named_parameters() if "bias" in name]
    return gru

def effect_of_pads(gru):
    with torch.no_grad():
        cut_short = without_pads(gru, x[None], M)[0]
        return 100 * (local_rnn(gru, x[None], M)[0] - cut_short).norm(dim=1) / cut_short.norm(dim=1).mean()

makers = {"with biases": lambda gru: gru, "without biases": no_bias, "keeps more": keeper}
effects = {name: torch.stack([effect_of_pads(one) for one in draws(make)])[:, :8] for name, make in makers.items()}

# %%
fig, ax = plt.subplots(figsize=(6.4, 2.8))
mean, deviation = effects["with biases"].mean(0), effects["with biases"].std(0)
ax.bar(torch.arange(1, 9), mean, 0.5, yerr=deviation, color=plots.COLOURS[1], label="with biases")
ax.plot(torch.arange(1, 9), effects["without biases"].mean(0), "o", color=plots.COLOURS[0], label="without biases", clip_on=False)
ax.set(xlabel="position t", ylabel="change of output (%)", title=f"pads change the first {M - 1} outputs, through the biases")
_ = ax.legend(frameon=False)
plt.show()
print("change of output (%) at position     1            2            3            4")
for name, effect in effects.items():
    print(f"{name:31}", *(f"{m:5.1f} ± {s:4.1f}" for m, s in zip(effect.mean(0)[:4], effect.std(0))))

# %% [markdown]
# Output 1 reads three pads and changes most. Without biases, no output changes. So pads act through the biases. In the GRU that keeps more, the effect of the pads is larger and fades more slowly. (Its bias is larger, too.) `rtx` reads pads, too.
#
# **Try.** In the living explorer, set the slider *position t* to 1. Move *step in the window* from 1 to 3, and watch the row
# *state after*. Untick "pads go through the cell", and do it again. What happens to the state in the first steps?
#
# <details><summary>Answer</summary>
#
# The state stays zero while the window reads pads.
#
# </details>
#
# ## 6. Compare it with a convolution
#
# What is special about a recurrent network in the window? A [causal](../docs/glossary.md#causal) convolution sees the same window. It multiplies each input
# in the window by a matrix $W_i$, a different one for each place:
#
# $$h_t = b + \sum_{i=0}^{M-1} W_i \, x_{t-i}$$
#
# The paper (section 3.1) says why it prefers a recurrent network: "the convolution operation completely ignores the sequential
# information of positions within the local window". We take "sequential information" to mean order. To
# test the claim, we put four columns of the digit 3 in all 24 orders. A model that ignores the order gives the same output 24 times.
#
# **Predict.** How many different outputs does a LocalRNN give? A convolution? A convolution with the same matrix at all places?
# Pooling, which takes the mean or the maximum over the window?
#
# <details><summary>Answer</summary>
#
# The LocalRNN and the convolution give 24, the others 1. In the LocalRNN, what a column does to the state depends on the columns
# before it. In the convolution, each place in the window has its own matrix. If a column moves to another place, a different
# matrix multiplies it. With the same matrix at all places, the convolution multiplies the sum of the columns. A sum, a mean and
# a maximum do not depend on the order.
#
# </details>

# %%
from itertools import permutations

class CausalConv(torch.nn.Conv1d):
    def forward(self, x):  # (B, T, D) to (B, T, D); Conv1d wants time last
        return super().forward(torch.nn.functional.pad(x.mT, (self.kernel_size[0] - 1, 0))).mT

def window_models():
    conv, tied = CausalConv(D, D, M), CausalConv(D, D, M)
    tied.weight.data[:] = tied.weight.data[..., :1]
    return {"LocalRNN": MyLocalRNN(torch.nn.GRU(D, D, batch_first=True)), "convolution": conv,
            "convolution + ReLU": torch.nn.Sequential(conv, torch.nn.ReLU()), "conv., one matrix": tied,
            "mean pooling": lambda x: x.mean(1, keepdim=True), "max pooling": lambda x: x.amax(1, keepdim=True)}

orders = torch.stack([x[2:6][list(order)] for order in permutations(range(M))])  # (24, M, D)

# %%
found = {}
for seed in range(5):
    _ = torch.manual_seed(seed)
    for name, model in window_models().items():
        with torch.no_grad():
            y = model(orders)[:, -1]
        moved = 100 * (y - y.mean(0)).norm(dim=1).mean() / y.norm(dim=1).mean()
        found.setdefault(name, []).append((len((y - y.mean(0)).round(decimals=4).unique(dim=0)), moved.item(), y))
print("of 24 orders            different outputs    mean distance of an output from the average of the 24, % of their mean norm")
for name, runs in found.items():
    counts, moved = {run[0] for run in runs}, torch.tensor([run[1] for run in runs])
    print(f"{name:24} {' or '.join(map(str, counts)):>15} {moved.mean():28.1f} ± {moved.std():.1f}")

# %%
fig, axes = plt.subplots(1, 4, figsize=(9, 3.2), sharey=True)
scale = dict(cmap="RdBu_r", vmin=-0.4, vmax=0.4, extent=(0.5, D + 0.5, 24.5, 0.5), aspect="auto", interpolation="nearest")
for ax, name in zip(axes, ("LocalRNN", "convolution", "conv., one matrix", "max pooling")):
    image = ax.imshow(found[name][0][2] - found[name][0][2].mean(0), **scale)
    ax.set(title=name, xlabel="output number", xticks=range(1, D + 1))
axes[0].set(ylabel="one of the 24 orders", yticks=[1, 12, 24])
fig.colorbar(image, ax=axes, extend="both", label="output minus the average of the 24")
fig.suptitle("one draw: LocalRNN and convolution notice the order; one matrix for all places, or pooling, does not", fontsize=11)
plt.show()

# %% [markdown]
# A convolution does notice the order of these four columns. So in this sense the claim is too strong. The control has the same
# matrix at all places, and does not notice the order. In these untrained models, the order even moves the output of the
# convolution more.
#
# What else may differ? A table of dependencies says how much each input matters. Does this table change with the strip? We
# compare our strip with a strip of the digits 5, 9 and 2.

# %%
strip = torch.cat(list(images[[5, 9, 2]]), dim=1).T
changes = {}
for seed in range(5):
    _ = torch.manual_seed(seed)
    for name, model in list(window_models().items())[:3]:
        one, two = receptive_field(model, x[None]), receptive_field(model, strip[None])
        change = 100 * (one - two).norm() / one.norm()
        changes.setdefault(name, []).append(change)
for name, change in changes.items():
    change = torch.stack(change)
    print(f"{name:19} the other strip's table differs by {change.mean():4.1f} ± {change.std():3.1f} % of the norm of our strip's table")

# %% [markdown]
# A convolution is linear, so its derivatives are the same for all strips. The table of a LocalRNN depends on the strip. The table of a convolution with a ReLU after it depends on the strip, too. (A ReLU sets negative numbers to 0, and which numbers are negative
# depends on the strip.)
#
# **What do they cost?** A convolution has $M$ matrices. A LocalRNN uses one cell $M$ times.

# %%
from torch.utils.flop_counter import FlopCounterMode

def price(model):
    with FlopCounterMode(display=False) as counter:
        model(x[None])
    return f"{counter.get_total_flops() // 2 // T:7,}", f"{sum(p.numel() for p in model.parameters()):6,}"

print("          multiply-adds per position         parameters")
print("  M       LocalRNN   conv.     RNN      LocalRNN   conv.     RNN")
for window in (2, 4, 8, 16):
    three = [price(model) for model in (rtx.nn.LocalRNN(D, window), CausalConv(D, D, window), gru)]
    print(f"{window:3}       ", *(adds for adds, _ in three), "    ", *(size for _, size in three), sep="  ")

# %% [markdown]
# What is special about the LocalRNN: one cell serves all places of the window, and its output still depends on the order. So it is as large as the RNN for every
# $M$. The convolution grows with $M$.
#
# For each position, the RNN multiplies two vectors by matrices: an input and a state. `rtx` multiplies each input by the
# matrices once, and uses the products in all windows that hold this input. In a window it also multiplies $M - 1$ states, because the first state is zero. So the LocalRNN multiplies $1 + (M - 1) = M$ vectors for each position, and the RNN two. The convolution also multiplies $M$ vectors, by one matrix each. A GRU needs three matrices for each vector, so the LocalRNN needs three times as many multiply-adds as the convolution.
#
# These counts are not times. The RNN takes $T$ steps one after the other. The windows of a LocalRNN do not wait for each other,
# so it takes $M$ steps. The convolution takes one.
# [Notebook 12](12_make_it_fast.ipynb) measures times.
#
# ## Recap
#
# **What does a window see?** It sees the last $M$ positions, its own included, and their order.
#
# - An RNN over the whole sequence can see the whole past. Its weights decide how strongly. The LocalRNN's zeros
#   beyond $M$ hold for all weights. A stack of $L$ layers sees $L (M - 1) + 1$ positions.
# - The first $M - 1$ windows also read pads. Through the biases, pads change the outputs of these windows.
# - A convolution sees the same window and its order, too. It has a matrix for each place; the LocalRNN has one cell for all
#   places.
# - Open here: which of the two learns better? [Notebook 07](07_convolve_or_recur.ipynb) trains both.
#
# ## Quiz
#
# 1. A LocalRNN and an RNN over the whole sequence have the same weights. At which position do their outputs agree for certain?
# 2. Why can a LocalRNN with any window load the weights of a one-layer `torch.nn.GRU`?
# 3. A classmate says: "A convolution cannot tell AB from BA." For which convolution is this true?
#
# <details><summary>Answers</summary>
#
# 1. At $t = M$: both start at $x_1$ and read up to $x_M$. Earlier, the LocalRNN reads pads. Later, the RNN has read more.
# 2. The cell is the same at every step, so the weights are the same for every number of steps.
# 3. For a convolution with the same matrix at all places.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Wang et al. (2019), *R-Transformer: Recurrent Neural Network Enhanced Transformer*, section 3.1. There $N$ is our $T$.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | local window | $M$ | section 2 | `window=` |
# | Eq. 2, one window | $h_t$ | section 3 | `rtx.nn.LocalRNN` |
# | Eq. 3, all windows | $h_1, \dots, h_N$ | section 3 | `LocalRNN.forward` |
# | Figure 2, original and local RNN | | section 4 | `rtx.RNN`, `rtx.lab.receptive_field` |
# | padding by $M - 1$ positions | | section 5 | zero vectors |
# | "analogous to 1-D convolution" | | section 6 | `torch.nn.Conv1d` |
#
# </details>
#
# **Back:** [Why is the past hard to hold?](01_frame_the_problem.ipynb) · **Index:** [README](../README.md) · **Words:**
# [glossary](../docs/glossary.md) · **On:** [How does a position fetch what it needs?](03_attend_to_the_past.ipynb)
