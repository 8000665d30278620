# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Make it fast
#
# **Where does the time of a model go, and how much of it was never needed?**
#
# The papers' models are small, yet computed in the way of R-Transformer's published code they take hours on a laptop. (That
# code itself needs CUDA, so we rebuild its way here.) You find out why, and make it faster in four steps that change no
# result: *hoist, fuse, block, recompute*. A fifth step changes only the language.
#
# - **You will** measure a training step, take the windows apart, write a gradient by hand, and cut a softmax in two.
# - **You learn** to count before you measure, to measure in turns, and what a backward pass has to keep.
# - **You need** [02 slide a window](02_slide_a_window.ipynb), and what a gradient is.
# - **Time:** 30 minutes to read and try; the cells run in about 30 seconds.
#
# ## Paper map
#
# | in the paper | here | in `rtx` |
# | --- | --- | --- |
# | LocalRNN, Eq. 2-3 (Wang et al. 2019) | sections 2 and 3 | `rtx.nn.ops.local_rnn` |
# | attention, Eq. 5 | section 4 | `rtx.nn.ops.attention` |
# | context vector, Eq. 1 (Raffel & Ellis 2015) | section 5 | `rtx.nn.ops.pooling` |
# | "almost the same time cost" (Xu et al. 2019) | section 7 | `rtx.nn.multi_channel` |

# %%
import matplotlib.pyplot as plt
import torch
from rtx.lab import exercises, explore, kept_bytes, plots, race, training_step
from rtx.nn import implementation

plots.style()
torch.set_num_threads(1)

# %% [markdown]
# ## 1. Count, then measure
#
# A training step is a forward pass and a backward pass. Most of its arithmetic is matrix products, and those one can
# count on paper. One block of R-Transformer on $T$ positions of width $D$, with a GRU in windows of $M$, takes this many
# multiply-adds in its forward pass:
#
# $$\underbrace{3 M \, T D^2}_{\text{LocalRNN}} + \underbrace{4 \, T D^2 + T (T + 1) D}_{\text{attention}} +
# \underbrace{8 \, T D^2}_{\text{feed-forward}}$$
#
# The published code takes more: it copies every window out of the sequence, so that each position is projected $M$
# times, and it computes the scores of the future, to mask them.
#
# **Predict.** On MNIST, $T = 784$, $D = 32$ and $M = 7$. Which sublayer costs the most? And on characters, $T = 400$ and
# $D = 512$?
#
# <details><summary>Answer</summary>
#
# On MNIST attention: $T$ is large against $D$. (The paper's block has two LocalRNNs there; together they cost more.) On
# characters LocalRNN, at $3 M D = 21 D$ a position and unit of width
# against attention's $4 D + T$.
#
# </details>

# %%
def counted(T, D, M):
    """Millions of multiply-adds of the three sublayers in one forward pass."""
    return [round(n / 1e6, 1) for n in (3 * M * T * D**2, 4 * T * D**2 + T * (T + 1) * D, 8 * T * D**2)]

for name, sizes in {"MNIST": (784, 32, 7), "characters": (400, 512, 7)}.items():
    print(f"{name:10} LocalRNN {counted(*sizes)[0]:7}  attention {counted(*sizes)[1]:6}  feed-forward {counted(*sizes)[2]:6}")

# %% [markdown]
# **Try.** Find the $T$ from which attention costs more than LocalRNN, for $D = 32$; then double $D$.
#
# A count is not a time. So let two ways *race*: `race` runs them in turns, A B A B, and takes the median of the
# processor time. What disturbs one then disturbs the other, and programs beside it do not count.
#
# ## 2. Hoist
#
# Here is the published way to run LocalRNN: windows are gathered into a batch of $B \cdot T$ short sequences, for torch's
# own GRU.

# %%
def gathered(gru, x, window):
    """(B, T, D) to (B, T, D): a copy of every window, then torch's GRU on B · T of them."""
    B, T, D = x.shape
    padded = torch.nn.functional.pad(x, (0, 0, window - 1, 0))
    windows = padded.unfold(1, window, 1).mT.reshape(B * T, window, D)
    return gru(windows)[0][:, -1].view(B, T, D)

# %% [markdown]
# What the cell does with $x_s$ alone, $W x_s + b$, is the same in all $M$ windows that hold it. *Hoisting* computes it
# once, outside of the loop. `LocalRNN` does this. Its plain version, `implementation("torch")`, does nothing else.

# %%
from rtx.nn import LocalRNN

_ = torch.manual_seed(0)
B, T, D, M = 4, 256, 64, 7
x = torch.randn(B, T, D)
gru = torch.nn.GRU(D, D, batch_first=True)
local = LocalRNN(D, M)
_ = local.load_state_dict(gru.state_dict())

def hoisted(x):
    with implementation("torch"):
        return local(x)

torch.testing.assert_close(hoisted(x), gathered(gru, x, M))
print("gathered and hoisted agree")

# %% [markdown]
# **Predict.** Hoisting saves $M - 1$ of $M$ input projections, and the recurrent product of the first step. Of the
# multiply-adds, what share is left? Will the time shrink by as much?
#
# <details><summary>Answer</summary>
#
# $2M \cdot 3 T D^2$ become $M \cdot 3 T D^2$: half. Time need not follow: gates are sigmoids and tanhs, as many as
# before, and they cost more than their count says.
#
# </details>

# %%
ways = {"gathered": lambda x: gathered(gru, x, M), "hoisted": hoisted}
times = race({name: training_step(way, x) for name, way in ways.items()})
for name, milliseconds in times.items():
    print(f"{name}: {milliseconds:.0f} ms, keeps {kept_bytes(lambda: ways[name](x.requires_grad_())) / 2**20:.0f} MiB")
print(f"gathered / hoisted: {times['gathered'] / times['hoisted']:.1f} ×")

# %% [markdown]
# ## 3. Fuse
#
# torch keeps, for its backward pass, whatever the gradient of each small operation needs. A GRU's step has a dozen of
# those, and each writes an array that the next one reads. A gradient written by hand for the whole step keeps less.
#
# Take a plain cell, $h = \tanh(a)$. What must be kept of the forward pass to go back?
#
# **Exercise 1** (easy, 5 minutes). From $d_h$, the gradient of $h$, and $h$ itself, find the gradient of $a$.

# %%
def back_through_tanh(d_h, h):
    ...  # the gradient of a

exercises.back_through_tanh(back_through_tanh)

# %% [markdown]
# <details><summary>Hint</summary>
#
# The derivative of $\tanh(a)$ is $1 - \tanh^2(a)$. You are not given $a$; do you need it?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def back_through_tanh(d_h, h):
#     return d_h * (1 - h * h)
# ```
#
# </details>
#
# `rtx/nn/ops/local_rnn/native.cpp` has the three cells written in this way, forward and backward. All that a cell does between
# two matrix products is one pass over memory. `native.py` makes one `torch.autograd.Function` of all $M$ steps, and leaves
# the products to torch. This version is called `"native"`. Your own compiler builds it when it is first needed, once, in
# some seconds. Without a compiler, `rtx` uses the hoisted one, and the bars below show that one twice.

# %%
from rtx.nn.ops.local_rnn import local_rnn

weights = [local.weight_ih_l0, local.weight_hh_l0, local.bias_ih_l0, local.bias_hh_l0, M, "gru"]
chosen = local_rnn.choose(x, *weights)  # "native", or "torch" without a compiler

def fused(x):
    with implementation(chosen, "local_rnn"):
        return local(x)

ways |= {f"fused ({chosen})": fused}
torch.testing.assert_close(fused(x), gathered(gru, x, M))
steps = race({name: training_step(way, x) for name, way in ways.items()}, rounds=15)
kept = {name: kept_bytes(lambda: way(x.requires_grad_())) / 2**20 for name, way in ways.items()}
print("all three agree; what each keeps, in MiB:", {name: round(size) for name, size in kept.items()})

# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 2.4), sharey=True)
for ax, values, label in zip(axes, (steps, kept), ("processor time (ms)", "kept for the way back (MiB)")):
    ax.bar_label(ax.barh(list(values), list(values.values()), color=plots.COLOURS[0]), fmt=" %.0f")
    ax.set(xlabel=label, xlim=(0, 1.15 * max(values.values())))
axes[0].invert_yaxis()
fig.suptitle("a training step of LocalRNN in three ways", fontsize=11)
plt.show()
print("no way keeps less than the fused one:", min(kept.values()) == kept[f"fused ({chosen})"])

# %% [markdown]
# The bars on the left are of this machine, now: run the two cells again, and see by how much they move. Fusing always saves
# memory. It saves less time, because the large products take most of it, and fusing does not change those. Where $D$ is
# below 64, the C++ version keeps even less: it stores no gates, and computes them again on the way back, as in section 5.
#
# ## 4. Block
#
# Attention's weights are a $T \times T$ table for each head and each sequence. Without dropout, torch's
# `scaled_dot_product_attention` never makes it. With dropout, on a CPU, it does, and keeps it:

# %%
from rtx.nn.ops.attention import causal_attention

def attend(impl):
    return lambda q: causal_attention(q, q, q, 0.05, impl=impl)

for length in (128, 256, 512):
    q = torch.randn(1, 2, length, 16, requires_grad=True)
    sizes = {impl: kept_bytes(lambda: attend(impl)(q)) / 2**10 for impl in ("torch", "fused")}
    print(f"T = {length}: torch keeps {sizes['torch']:,.0f} KiB, in blocks {sizes['fused']:,.0f} KiB")

# %% [markdown]
# Double $T$: the first column grows four times, the second twice. How can one know a softmax without its whole row? Each
# weight is $e^{s_i} / \sum_j e^{s_j}$. So a row may be read in pieces whose sums are added up. Large scores would overflow, so each
# piece first subtracts a number from its scores: the *same* one in all of them, the largest of the row.
#
# **Exercise 2** (medium, 15 minutes). The keys come in two halves, with scores (T, S) and values (S, D) each. Give the
# attention's output (T, D) over both. Do not join the halves.

# %%
def softmax_in_halves(scores_a, values_a, scores_b, values_b):
    ...  # (T, S_a), (S_a, D), (T, S_b), (S_b, D) to (T, D)

exercises.softmax_in_halves(softmax_in_halves)

# %% [markdown]
# <details><summary>Hint</summary>
#
# First the largest score of each row, over both halves. Then exponentials, of each half by itself; then what they
# weigh, and how much they are in sum.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def softmax_in_halves(scores_a, values_a, scores_b, values_b):
#     top = torch.maximum(scores_a.amax(-1, True), scores_b.amax(-1, True))
#     a, b = (scores_a - top).exp(), (scores_b - top).exp()
#     return (a @ values_a + b @ values_b) / (a.sum(-1, True) + b.sum(-1, True))
# ```
#
# </details>
#
# `rtx/nn/ops/attention/fused.py` takes 64 queries at a time, and only the keys that they may see. Of each row it keeps one
# number, $\log \sum_j e^{s_j}$. The way back computes each block of weights once more, and draws the same dropout mask
# again from the same seed. The price: there is no second derivative. `implementation("torch")` has one.
#
# **Predict.** Computing the weights twice is more arithmetic. Is the training step slower, then?
#
# <details><summary>Answer</summary>
#
# No. Writing a large table to memory and reading it back takes longer than computing it again where it is needed:
# a block stays in the processor's cache. And the blocks above the diagonal are never computed at all.
#
# </details>

# %%
q = torch.randn(4, 2, 512, 16)
times = race({impl: training_step(attend(impl), q) for impl in ("torch", "fused")})
for impl, milliseconds in times.items():
    print(f"{impl}: {milliseconds:.0f} ms")
print("in blocks, with every weight computed twice, it is faster:", times["fused"] < times["torch"])

# %% [markdown]
# ## 5. Recompute
#
# Feed-forward attention makes one vector of a whole sequence, $c = \sum_t \alpha_t h_t$. A state $h_t$ has $D = 100$
# numbers, and comes from an input of two. To keep all states is to keep fifty times the input. To compute them again
# takes two multiply-adds each. A score is a tanh, between -1 and 1: here no largest score is needed.

# %%
import rtx

_ = torch.manual_seed(0)
model = rtx.FeedForwardAttention()

def pool(impl):
    def run(x):
        with implementation(impl, "pooling"):
            return model(x)
    return run

for length in (500, 1000, 2000):
    pairs = torch.randn(20, length, 2)
    sizes = {impl: kept_bytes(lambda: pool(impl)(pairs)) / 2**10 for impl in ("torch", "fused")}
    print(f"T = {length}: input {pairs.nbytes / 2**10:,.0f} KiB; kept {sizes['torch']:,.0f} and {sizes['fused']:,.0f} KiB")

# %%
pairs = torch.randn(50, 2000, 2)
def update(impl):
    def run():
        torch.autograd.grad(pool(impl)(pairs).square().sum(), list(model.parameters()))
    return run

times = race({impl: update(impl) for impl in ("torch", "fused")})
for impl, milliseconds in times.items():
    print(f"{impl}: {milliseconds:.0f} ms")
print("computing the states twice is faster than keeping them:", times["fused"] < times["torch"])

# %% [markdown]
# At $T = 10{,}000$ and a hundred sequences, the lengths of the paper's last column, the states would take 400 MB, and
# autograd keeps twice that in all.
#
# ## 6. Leave Python
#
# What is left is the price of small operations: each reads its arrays from memory and writes another one for the next
# operation. Attention and pooling have a `native.cpp` too. It computes the same functions in C++, with as many
# numbers at a time as a register holds. The numbers between two operations stay in the processor's registers.
#
# **Predict.** Three functions: windows of a GRU, attention with dropout, pooling over 2,000 steps. Each in C++ is compared
# with its fastest version in torch. Which gains the most?
#
# <details><summary>Answer</summary>
#
# Pooling. It has a handful of operations for each number, and torch moves the number to memory and back between any two of
# them. Windows gain least: the large products take most of the time, and torch does those in both versions.
#
# </details>

# %%
windows, heads, sequences = torch.randn(B, T, D), torch.randn(4, 2, 512, 16), torch.randn(50, 2000, 2)
gains = {}
for name, run, data, slower, faster in [
    ("windows", lambda impl: lambda x: local_rnn(x, *weights, impl=impl), windows, "torch", chosen),
    ("attention", attend, heads, "fused", "fused" if chosen == "torch" else "native"),
    ("pooling", pool, sequences, "fused", "fused" if chosen == "torch" else "native"),
]:
    times = race({impl: training_step(run(impl), data) for impl in {slower, faster}})
    gains[name] = times[slower] / times[faster]

# %%
fig, ax = plt.subplots(figsize=(6, 1.8))
ax.barh(list(gains), list(gains.values()), color=plots.COLOURS[0])
ax.axvline(1, color="0.4", linewidth=1)
ax.set(xlabel="times as fast as in torch", xlim=(0, None), title="C++ against torch (grey line: alike), on this machine")
ax.invert_yaxis()
plt.show()
print("what rtx chooses by itself is within a tenth of the faster one, or ahead:", min(gains.values()) > 0.9)

# %% [markdown]
# `rtx` keeps a faster version only if it makes a whole training step at a paper's size at least 1.2 times faster. So the
# windows have no fused version in torch, and attention *without* dropout is always torch's own.
#
# ## 7. What it adds up to
#
# `make bench` runs whole training steps at the papers' sizes, and compares them with the published way and with torch's own
# Transformer, TCN and LSTM. This is its committed result; `benchmarks/README.md` says how to read it.

# %%
from pathlib import Path
from IPython.display import Image

Image(Path("../figures/speed_cpu.png").read_bytes(), width=760, alt="Speed of training steps on a CPU, by case and way")

# %% [markdown]
# Blue is `rtx`, orange what it is measured against, grey what else there is.
# The stored result names the commit, the processor and the versions that it was measured with: this figure is about *that*
# machine, and `make bench` measures yours. On MNIST the published step spends most of its time on attention over 784 steps with
# dropout, so blocks help most there. On characters the model consists of large products, which were fast before.
#
# On a GPU none of this was measured yet. There is one version of LocalRNN for GPUs, `rtx/nn/ops/local_rnn/triton.py`: one
# readable kernel that keeps a window's state in registers from the first step to the last. It is tested on a CPU, in
# Triton's interpreter. Nobody knows whether it is faster than torch on a GPU, so it runs only if you ask for it, with
# `implementation("triton")`.
#
# What of MC-RNN, at "almost the same time cost as the conventional RNN"? The paper grants that it computes more, and counts
# on channels that run in parallel. `rtx` has no fast path for it: `rtx/nn/multi_channel.py` is a plain loop over the steps, and
# the figure compares this loop with torch's LSTM. How much more is there to compute? An LSTM's step has $8 D^2$
# multiply-adds. MC-RNN with $n - 1$ channels runs
# the cell in each of them; the input's part is shared. Where a channel has $m$ predecessors it maps $m$ states by a matrix
# each, and at any step the channels have 1, 2, … and $n - 1$ of them (Eq. 1), together $n (n - 1) / 2$:
#
# $$\underbrace{4 D^2}_{\text{input}} + (n - 1) \big( \underbrace{4 D^2}_{\text{state}} + \underbrace{D^2}_{\text{attention}}
# \big) + \underbrace{\tfrac{n (n - 1)}{2} D^2}_{W_j} + \underbrace{D^2}_{\text{attention}}$$

# %%
for channels in (1, 2, 3, 4):
    products = 4 + channels * (4 + 1) + channels * (channels + 1) / 2 + 1
    print(f"MC-RNN-{channels}: {products / 8:.1f} times an LSTM's multiply-adds")

# %% [markdown]
# So for three channels "almost the same" can hold only where one waits for something else than arithmetic: on a GPU that is
# mostly idle because each step has to wait for the step before, or where the rest of the model, such as a large
# vocabulary's softmax, takes most of the time.
#
# ## Recap
#
# - *Count* first: it says what is worth a look, and what no trick will save.
# - *Hoist* what does not depend on the loop out of the loop.
# - *Fuse* small operations, and write the gradient of the whole: less is kept, less is moved.
# - *Block* what is large: a softmax needs its row's sum, not its row.
# - *Recompute* what is cheap to compute and costly to keep.
# - Last, write the inner loop where a number can stay in a register.
# - None of these changed a result: tests compare each version with plain loops (`rtx.nn.reference`), outputs and gradients.
#
# **Quiz.** 1. Which of the four steps, hoist to recompute, would not help an LSTM over the whole sequence? 2. Dropout masks
# are random: how can a block's weights be computed again?
#
# <details><summary>Answers</summary>
#
# 1. Blocking: it has no table to cut. Its projection can be hoisted, its step fused, its states computed again. 2. By
# drawing them from a generator that starts from a kept seed.
#
# </details>
#
# **Back:** [Model music](11_model_music.ipynb) · **Index:** [README](../README.md) · **On:**
# [Model language](13_model_language.ipynb)
