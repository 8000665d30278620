# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where does the time go?
#
# The picture shows training steps (forward and backward) on four MNIST images, read pixel by pixel. The first seven bars are an [R-Transformer](../docs/glossary.md#r-transformer). All seven compute
# the same function, apart from the random numbers of dropout. Why does the first take 1.7 seconds, and the last of them 0.5? And why does an LSTM take 0.43 seconds or 0.04?

# %%
import json
from pathlib import Path
import matplotlib.pyplot as plt
import torch
from rtx.lab import exercises, kept_bytes, plots, race, training_step
plots.style()
_ = torch.set_num_threads(1), torch.manual_seed(0)
study = json.loads(Path("../studies/where_time_goes.json").read_text(encoding="utf-8"))
PARTS = ("LocalRNN", "attention", "feed-forward", "rest")

def fastest(step, way):
    """Milliseconds of the fastest round: the whole and its parts."""
    times = {part: values for part, values in study["steps"][step]["ways"][way].items() if isinstance(values, list)}
    place = times["whole"].index(min(times["whole"]))
    found = {part: values[place] for part, values in times.items()}
    return found | {"rest": found["whole"] - sum(found.get(part, 0) for part in PARTS)}

# %%
def bars(ax, step):
    ways = list(study["steps"][step]["ways"])
    ends = [0.0] * len(ways)
    for part, colour in zip(PARTS, (plots.COLOURS[0], plots.COLOURS[1], plots.COLOURS[2], plots.COLOURS[6])):
        widths = [fastest(step, way).get(part, 0) for way in ways]
        ax.barh(ways, widths, left=ends, color=colour, label=part)
        ends = [end + width for end, width in zip(ends, widths)]
    for row, end in enumerate(ends):
        ax.text(end, row, f" {end:,.0f}", va="center", fontsize=8)
    ax.set(xlabel="processor time (ms)", xlim=(0, 1.12 * max(ends)), ylim=(len(ways) - 0.4, -0.6))

fig, ax = plt.subplots(figsize=(8, 3.9))
bars(ax, "MNIST")
ax.legend(frameon=False, loc="lower right")
_ = ax.set_title("one training step on MNIST: most of the time goes into attention, until it is fused")

# %% [markdown]
# All bars come from one stored run of `studies/where_time_goes.py`, on one core. The sizes are those of the R-Transformer paper. The first bar computes as the
# published code does. From bar 2 to bar 7, each differs from the bar above it in one part of the code. Bars 8 to 12
# show no parts.
#
# - **You will** write a [LocalRNN](../docs/glossary.md#localrnn) that computes less, the gradient of a fused operation, and (optional) a softmax in pieces.
# - **You learn** to count, to measure, and what a backward pass keeps in memory.
# - **You need** LocalRNN ([02](02_slide_a_window.ipynb)), [attention](../docs/glossary.md#attention) ([03](03_attend_to_the_past.ipynb)) and gradients.
# - **Time:** 60 minutes, and 20 more for the optional exercise. The cells run in about 20 seconds.
#
# ## 1. Count
#
# Most arithmetic is products of matrices. A linear layer that maps 3 positions of width 2
# to width 4 has $3 \cdot 2 \cdot 4 = 24$ **multiply-adds**. One block of an R-Transformer with one LocalRNN (a [GRU](../docs/glossary.md#gru-lstm) in [windows](../docs/glossary.md#window) of $M$), $T$ positions and width $D$ has
#
# $$\underbrace{3 M \, T D^2}_{\text{LocalRNN}} + \underbrace{4 \, T D^2 + 2 \, T^2 D}_{\text{attention}} +
# \underbrace{8 \, T D^2}_{\text{feed-forward}}$$
#
# multiply-adds in the forward pass. (A GRU has three gates. So LocalRNN needs 3 products for each position, and 3 for each of $M - 1$ states in its window; the first state is 0. Attention computes the whole table, although half of it is masked.) On MNIST, $T = 784$, $D = 32$ and $M = 7$, and a block has two LocalRNNs. On the characters of Penn Treebank (PTB), $T = 400$ and $D = 512$.
#
# **Predict.** Which part has the most multiply-adds on MNIST? Is its share of the time as large?

# %%
for step, data in study["steps"].items():
    counts, times, size = dict(data["multiply-adds"]), fastest(step, "hoisted"), data["sizes"]
    # the stored count of attention is without the masked half
    counts["attention"] += size["B"] * size["layers"] * size["T"] * (size["T"] - 1) * size["d_model"]
    for part, count in counts.items():
        print(f"{step:10} {part:12} {count / 1e6:5,.0f} million multiply-adds {count / sum(counts.values()):4.0%}   {times[part] / times['whole']:4.0%} of the time")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Attention has the most, 51 %. Its share of the time is larger, 70 %.
#
# </details>
#
# On characters the columns roughly agree. On MNIST, attention has a quarter more multiply-adds than LocalRNN, but takes over three times as long. What else does attention do? For each pair of positions it computes a
# mask, an exponential, and a random number for **dropout** (setting some weights to 0 in training). None of these are multiply-adds. A control: the same step without dropout of the attention weights.

# %%
def show(step, *ways, part="whole"):
    """Print the fastest round, the memory, and the ratio to the way before in each round."""
    found = [study["steps"][step]["ways"][way] for way in ways]
    for way, data, before in zip(ways, found, [None, *found]):
        ratios = [time / old for time, old in zip(data[part], before[part])] if before else []
        compared = "   ×" + "".join(f" {ratio:.2f}" for ratio in sorted(ratios)) if before else ""
        memory = f"{data['peak MiB']:4.0f} MiB" if part == "whole" else " " * 8
        print(f"{step:10} {part:8} {way:31} {min(data[part]):5,.0f} ms {memory}{compared}")

show("MNIST", "hoisted", "hoisted, no dropout of weights")

# %% [markdown]
# This dropout takes a fifth to a half of this step. So a count of products does not always say where the time goes.
#
# ## 2. Measure
#
# The study follows three rules:
#
# - **Processor time**, not the clock on the wall: time in which other programs run does not count.
# - **In turns** (A B C A B C): a disturbance then often hits all ways.
# - **The fastest round:** other programs still share the caches. They can make a round longer, but hardly shorter.
#
# Above, the numbers after × are this time divided by the time one line above, one number for each round, sorted. Without dropout, the step took 0.46 to 0.78 times as long. We call a difference **clear** if it
# has the same direction in each round. Memory is the largest amount that the step holds at one time.
#
# **Predict.** The next section saves almost half of LocalRNN's multiply-adds. Does the step become faster on MNIST? And on characters?
#
# ## 3. Hoist
#
# The published code copies each window and lets a GRU read it. Take four positions, and windows of length 3. Position 2 is in the windows 2, 3 and 4. So the GRU computes $W x_2 + b$
# three times. In all, it computes $4 \cdot 3 = 12$ projections. With two pads there are only $4 + 2 = 6$ positions
# to project. **Hoisting** moves what does not change out of the loop: we project each position once.
#
# **Exercise 1** (medium, 15 minutes). Write LocalRNN in this way. `project(x)` maps positions $(B, S, D)$ to their projections. `step(a, h)` returns the new states
# of many windows, from projections `a` and states `h`. One call of `step` does step $i$ of all windows.

# %%
def my_hoisted_local_rnn(project, step, x, M):
    ...  # the last state of each window, (B, T, D)

hoisted_local_rnn = exercises.yours(my_hoisted_local_rnn, "hoisted_local_rnn")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Put $M - 1$ zero vectors before the sequence, then project. The first projection of window $t$ is `a[:, t]`. In step `i`, it reads `a[:, t + i]`. So all windows together read
# `a[:, i : i + T]`.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_hoisted_local_rnn(project, step, x, M):
#     B, T, D = x.shape
#     a = project(torch.cat([x.new_zeros(B, M - 1, D), x], 1))
#     h = torch.zeros_like(x)
#     for i in range(M):
#         h = step(a[:, i : i + T], h)
#     return h
# ```
#
# </details>
#
# We run your function with a GRU, beside the published way.

# %%
from torch.nn.functional import linear, pad
from torch.utils.flop_counter import FlopCounterMode
from rtx.nn.recurrent import CELLS

def ways_of_a_gru(D, M):
    gru = torch.nn.GRU(D, D, batch_first=True)
    project = lambda x: linear(x, gru.weight_ih_l0, gru.bias_ih_l0)
    step = lambda a, h: CELLS["gru"].step(a, linear(h, gru.weight_hh_l0, gru.bias_hh_l0), (h,))[0]
    copies = lambda x: pad(x, (0, 0, M - 1, 0)).unfold(1, M, 1).mT.flatten(0, 1)
    return {"copied": lambda x: gru(copies(x))[0][:, -1].view_as(x), "hoisted": lambda x: hoisted_local_rnn(project, step, x, M)}

def multiply_adds(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops() / 2

# %%
for B, T, D in ((4, 784, 32), (1, 200, 512)):
    ways, x = ways_of_a_gru(D, 7), torch.randn(B, T, D)
    counts = {name: multiply_adds(lambda way=way: way(x)) / 1e6 for name, way in ways.items()}
    times = race({name: training_step(way, x) for name, way in ways.items()}, rounds=5)
    apart = (ways["copied"](x) - ways["hoisted"](x)).abs().max()
    print(f"D = {D}: {counts['copied']:,.0f} and {counts['hoisted']:,.0f} million multiply-adds, largest difference {apart:.4f}")
    print(f"   training step {times['copied']:.0f} ms and {times['hoisted']:.0f} ms, ratio {times['copied'] / times['hoisted']:.1f} ×")

# %% [markdown]
# These times are of your machine. (The hoisted way counts a little more than the formula, because it also multiplies the first state.) What does hoisting change in the stored step?

# %%
for step in study["steps"]:
    for part in ("LocalRNN", "whole"):
        show(step, "windows copied, whole table", "hoisted", part=part)

# %% [markdown]
# LocalRNN becomes clearly faster in both steps. On characters, the fastest step is a fifth faster, but one round of four shows no gain. On MNIST
# LocalRNN is less than a third of the step, and the whole step shows no clear gain.
#
# ## 4. Attention in blocks
#
# On MNIST, the weights of attention are a table of $784 \times 784$ numbers for each of 4 sequences, 8 layers and 2 heads. That is 150 MiB in all, and autograd keeps several such
# tables. Half of each table belongs to the future and is masked. Can we compute only the visible half?
#
# We take **blocks** of 64 queries. Each block uses only the [keys](../docs/glossary.md#query-key-value) up to its own end. The largest array then has 64 rows.
#
# Can a softmax even read a row in pieces? Each weight is $e^{s_i} / \sum_j e^{s_j}$, and a sum can be computed in pieces. But $e^{s}$ overflows for
# large scores, so one subtracts the largest score of the row. Before the last piece, nobody knows the largest score. The solution is a **running maximum**. When it
# rises from $m$ to $m'$, all earlier sums are multiplied by $e^{m - m'}$ (Milakov & Gimelshein, 2018).

# %%
from math import exp, inf

top, total = -inf, 0.0
for scores in ([1.0, 3.0], [5.0, 2.0], [4.0]):
    new = max(top, *scores)
    factor, added = exp(top - new), sum(exp(s - new) for s in scores)
    print(f"piece {scores}: maximum {new:.0f}, sum {total:.3f} · {factor:.3f} + {added:.3f} = {total * factor + added:.3f}")
    top, total = new, total * factor + added
print(f"the whole row: maximum 5, sum {sum(exp(s - 5) for s in (1, 3, 5, 2, 4)):.3f}")

# %% [markdown]
# The second piece raises the maximum from 3 to 5. So the old sum is multiplied by $e^{3 - 5} = 0.135$. The third piece does not raise the maximum, so the factor is 1. The
# weighted sum of the values needs the same factor.
#
# **Exercise 2** (hard, optional, 20 minutes). `piece(i)` computes the scores $(T, S)$ and the values $(S, D)$ of piece `i`. Return the output of attention over all `n` pieces. Use each
# piece once, and do not keep the pieces.

# %%
def my_softmax_in_pieces(piece, n):
    ...  # (T, D)

softmax_in_pieces = exercises.yours(my_softmax_in_pieces, "softmax_in_pieces")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Keep three things for each row: the maximum so far, the sum of the exponentials, and the weighted sum of the values. Start with $-\infty$, 0 and 0.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_softmax_in_pieces(piece, n):
#     top, total, out = torch.tensor(-torch.inf), 0.0, 0.0
#     for i in range(n):
#         scores, values = piece(i)
#         new = torch.maximum(top, scores.amax(-1, keepdim=True))
#         factor, weights = (top - new).exp(), (scores - new).exp()
#         total = total * factor + weights.sum(-1, keepdim=True)
#         out = out * factor + weights @ values
#         top = new
#     return out / total
# ```
#
# </details>
#
# Your function now computes attention: 64 queries at a time, 64 keys in each piece.

# %%
def whole(q, k, v):
    scores = q @ k.T / q.shape[1] ** 0.5
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf).softmax(-1) @ v

def queries_of(block, q, k, v, S=64):
    def piece(i):
        scores = q[block * S : (block + 1) * S] @ k[i * S : (i + 1) * S].T / q.shape[1] ** 0.5
        future = torch.ones_like(scores).triu(1).bool() if i == block else torch.zeros_like(scores).bool()
        return scores.masked_fill(future, -torch.inf), v[i * S : (i + 1) * S]
    return softmax_in_pieces(piece, block + 1)

def in_blocks(q, k, v):
    return torch.cat([queries_of(block, q, k, v) for block in range(len(q) // 64)])

# %%
def kept(attention, T):
    """KiB that autograd keeps for the backward pass, without q, k and v."""
    q, k, v = torch.randn(3, T, 16, requires_grad=True).unbind()
    return (kept_bytes(lambda: attention(q, k, v)) - 3 * 4 * T * 16) / 2**10

q, k, v = torch.randn(3, 512, 16)
print(f"largest difference: {(whole(q, k, v) - in_blocks(q, k, v)).abs().max():.4f}")
for T in (256, 512, 1024):
    print(f"T = {T:4}: whole table {kept(whole, T):6,.0f} KiB, in blocks {kept(in_blocks, T):6,.0f} KiB")

# %% [markdown]
# The result is the same, but it needs slightly more memory: for each piece, autograd keeps its scores and its weights. The stored steps cut the queries into blocks, but not the keys into pieces. There the memory falls:

# %%
show("MNIST", "hoisted", "+ attention in blocks")

# %% [markdown]
# The step is clearly faster. Most of the masked half is not computed, and the arrays are smaller. This run does not separate these two causes.
#
# ## 5. Recompute
#
# The backward pass can compute a block's weights again from the queries and the keys (Rabe & Staats, 2021). torch offers this as `checkpoint`.
#
# **Predict.** What happens to the memory? And to the time?

# %%
from torch.utils.checkpoint import checkpoint

def recomputed(q, k, v):
    return torch.cat([checkpoint(queries_of, block, q, k, v, use_reentrant=False) for block in range(len(q) // 64)])

for T in (256, 512, 1024):
    print(f"T = {T:4}: in blocks {kept(in_blocks, T):6,.0f} KiB, recomputed {max(0, kept(recomputed, T)):4,.0f} KiB")
show("MNIST", "+ attention in blocks", "+ blocks recomputed", "+ cheap random numbers")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The cell keeps only q, k and v, which we do not count. The memory of the step falls from 686 to 402 MiB. The step becomes clearly slower.
#
# </details>
#
# Each block is computed twice, and its random numbers are drawn twice. The next way draws one random *byte* for each weight, where torch draws a longer number. The step then shows no clear difference
# from the one without recomputing. We did not run cheap random numbers without recomputing.
#
# ## 6. Fuse, in C++
#
# What is left? A GRU's step ends with these small operations, for arrays $a$, $c$ and the state $h$ before:
#
# $$z = \sigma(a), \qquad n = \tanh(c), \qquad h' = z \, h + (1 - z) \, n$$
#
# torch runs them one after the other. Each operation reads arrays from memory and writes a new array. **Fused** means: several small operations become one pass over memory. The C++ code
# of `rtx`, called `"native"`, fuses a step of a GRU in this way.
#
# A fused operation needs its own gradient. Example with single numbers: $z = 0.5$, $n = 0.8$, $h = 0.2$, and the gradient of $h'$ is $d = 1$. Then the gradient of
# $z$ is $d \, (h - n) = -0.6$. The derivative of the sigmoid is $z (1 - z) = 0.25$. So the gradient of $a$ is $-0.6 \cdot 0.25 = -0.15$.
#
# **Exercise 3** (medium, 10 minutes). Return the gradients of $a$, $c$ and $h$ (called `before`), stacked. `d_h` is the gradient of $h'$.

# %%
def my_back_through_gate(d_h, z, n, before):
    ...  # torch.stack([...]) of three gradients

back_through_gate = exercises.yours(my_back_through_gate, "back_through_gate")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The derivative of $\tanh(c)$ is $1 - \tanh^2(c)$, and $n$ is already $\tanh(c)$.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_back_through_gate(d_h, z, n, before):
#     return torch.stack([d_h * (before - n) * z * (1 - z), d_h * (1 - z) * (1 - n * n), d_h * z])
# ```
#
# </details>
#
# With your gradient, the formulas above are one operation for autograd. So autograd keeps less.

# %%
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, c, before):
        z, n = a.sigmoid(), c.tanh()
        ctx.save_for_backward(z, n, before)
        return z * before + (1 - z) * n

    @staticmethod
    def backward(ctx, d_h):
        return back_through_gate(d_h, *ctx.saved_tensors).unbind()

# %%
def in_small_operations(a, c, before):
    z = a.sigmoid()
    return z * before + (1 - z) * c.tanh()

inputs = [torch.randn(1000, 64, requires_grad=True) for _ in range(3)]
gradients = [torch.autograd.grad(run(*inputs).square().sum(), inputs) for run in (in_small_operations, Gate.apply)]
print(f"largest difference of the gradients: {max((one - other).abs().max() for one, other in zip(*gradients)):.4f}")
for name, run in (("small operations", in_small_operations), ("one operation", Gate.apply)):
    print(f"{name:16} keep {kept_bytes(lambda: run(*inputs)) / 2**10:,.0f} KiB")
show("MNIST", "+ cheap random numbers", "+ fused LocalRNN (C++)", "+ fused attention (C++)")

# %% [markdown]
# With the fused LocalRNN, the step needs a quarter of the memory, and its time shows no clear change. This LocalRNN as a whole is one operation for autograd. At widths below 64 it keeps no gates, and computes them again in the backward pass. This run does not separate the two.
#
# With the fused attention, the step takes about half of the time. The fused attention also draws its random
# numbers in C++.
#
# ## 7. When is it worth it?
#
# On MNIST all changes together bring the step from 1.7 to 0.5 seconds. Are the gains so large everywhere? The left panel shows characters. The right panel has single blocks with four heads. Each batch has 1,600 positions in all. Each dot is a round.

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.9), width_ratios=(3, 2))
bars(left, "characters")
left.legend(frameon=False, loc="lower right", fontsize=8)
left.set_title("characters, T = 400, D = 512: smaller gains")
for place, block in enumerate(study["blocks"]):
    first, hoisted, *_, last = (way["whole"] for way in block["ways"].values())
    gains = [slow / fast for slow, fast in zip(first, last)]
    right.plot(gains, [place] * len(gains), "o", color=plots.COLOURS[0], alpha=0.7)
    print(f"T = {block['T']:3}, D = {block['D']:3}: first {min(first):5,.0f} ms, hoisted {min(hoisted):5,.0f} ms, all changes {min(last):5,.0f} ms, gains {min(gains):.1f} to {max(gains):.1f}")
right.set_yticks(range(4), [f"T = {block['T']}, D = {block['D']}" for block in study["blocks"]])
right.set(xlabel="time of the first way / time of the last way", xlim=(1, 6.5), ylim=(3.5, -0.5))
right.set_title("one block: gains are largest for T = 800, D = 32", fontsize=10)
plt.show()

# %% [markdown]
# Only the block with a long sequence *and* a small width gains a factor of 3 to 6. On MNIST ($T = 784$, $D = 32$), most of the time went into attention until it was fused. On characters ($D = 512$), LocalRNN took the largest part.
#
# **LSTM and TCN.** In the first picture, a TCN takes a tenth of the time of the fastest R-Transformer. The two LSTM bars are the same model. In
# the second bar, numbers below $10^{-38}$ (**denormals**) become 0, with `torch.set_flush_denormal(True)`. Then the LSTM is about ten times as fast. Where do such small numbers come from? On MNIST only the last of 784 steps is scored. We follow the gradient of this step back:

# %%
_ = torch.manual_seed(0)
cell, state, states = torch.nn.LSTMCell(1, 130), None, []  # as wide as the LSTM of the picture
for pixels in torch.randn(784, 4, 1):
    state = cell(pixels, state)
    states.append(state)
for name, part in zip("hc", zip(*states)):
    shrinking = torch.autograd.grad(state[0].sum(), part, retain_graph=True)
    largest = (f"{back} steps back {shrinking[-1 - back].abs().max():.0e}" for back in (0, 100, 200, 300, 780))
    print(f"largest gradient of {name}:", "   ".join(largest))

# %% [markdown]
# After 200 steps, both gradients are below $10^{-38}$. Farther back, that of the cell state $c$ stays at $10^{-45}$, the smallest number. On characters
# many steps are scored, and the switch changes little.
#
# The stored [benchmark](../benchmarks/README.md) is from an older commit and another processor, without the switch. "published" is like our first way, and "rtx" has all changes. "TransformerEncoder" is torch's own code. (The picture's [Transformer](../docs/glossary.md#transformer) is another one: it uses the fused attention of `rtx`.)

# %%
bench = json.loads(Path("../benchmarks/results/cpu.json").read_text(encoding="utf-8"))
def row(case, name):  # "medium" is the setting with torch.set_float32_matmul_precision("medium"); all rows have it
    return next(one for one in bench["cases"][case]["rows"] if one["name"].startswith(name) and one.get("setting", "medium") == "medium")

print(f"{bench['hardware']}, 8 sequences")
for name in ("published", "rtx", "TransformerEncoder", "TCN", "nn.LSTM"):
    print(f"   MNIST, {name:20} {row('mnist', name)['processor_ms']:5,.0f} ms")
mc_rnn, lstm = row("mc-rnn", "rtx"), row("mc-rnn", "nn.LSTM")
print(f"MC-RNN with three channels / LSTM: {mc_rnn['multiply_adds_g'] / lstm['multiply_adds_g']:.1f} in multiply-adds, {mc_rnn['processor_ms'] / lstm['processor_ms']:.1f} in time")

# %% [markdown]
# On this processor the LSTM is fast without the switch. We did not test why.
#
# So when should you use which model? On MNIST, the paper reports an [accuracy](../docs/glossary.md#accuracy) of 99.0 % for the TCN and 99.1 % for the R-Transformer. For such a task choose
# a **TCN**. An **LSTM** can be as fast, but has 87.2 % in the paper.
#
# The paper of [MC-RNN](../docs/glossary.md#mc-rnn) ([08](08_split_into_channels.ipynb)) says that it computes more, but has "almost the same time cost as the conventional RNN" if its channels run in parallel. One core cannot run them in parallel: in the last line MC-RNN needs 3.6 times the multiply-adds of an LSTM and 3.7 times its time. So this does not test the claim.
#
# ## Recap
#
# In one stored run on one processor:
#
# - **Count:** shares of multiply-adds and of time roughly agreed on characters ($D = 512$), but not on MNIST ($D = 32$).
# - **Hoist:** LocalRNN became clearly faster, the two whole steps did not.
# - **Blocks:** saved a fifth to a half of the time on MNIST.
# - **Recompute:** less memory, more time. With cheap random numbers there was no clear difference from the step without recomputing.
# - **Fuse:** a fused LocalRNN saved memory. With a fused attention, the step took half as long.
# - On MNIST a TCN was about ten times as fast as the fastest R-Transformer.
# - Open: GPUs, more cores, and which part of the fused attention gives the gain.
#
# ## Quiz
#
# 1. Your model has $T = 100$ and $D = 1024$. Which change would you try first?
# 2. In a piece, all scores are lower than the running maximum. What is the factor for the earlier sums?
#
# <details><summary>Answers</summary>
#
# 1. Hoisting. At $D = 512$, LocalRNN took most of the time.
# 2. 1. The maximum does not rise.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Wang et al. (2019), *R-Transformer*; Milakov & Gimelshein (2018), *Online normalizer calculation for softmax*; Rabe & Staats (2021), *Self-attention Does Not Need O(n²) Memory*; Dao et al. (2022), *FlashAttention*, which does sections 4 to 6 on a GPU.
#
# | in the papers | here | in `rtx` |
# | --- | --- | --- |
# | LocalRNN, Eq. 2-3 (Wang et al.) | sections 3, 6 | `rtx.nn.ops.local_rnn`: "torch", "native" |
# | attention, Eq. 5 (Wang et al.) | sections 4-6 | `rtx.nn.ops.attention`: "torch", "blocks", "native" |
# | running maximum (Milakov & Gimelshein) | section 4 | |
# | "almost the same time cost" (Xu et al., 2019) | section 7 | `rtx.nn.multi_channel` |
#
# </details>
#
# **Back:** [Can a model learn a chorale?](11_model_music.ipynb) · **Index:** [README](../README.md) · **Words:** [glossary](../docs/glossary.md) · **On:**
# [What must a language model beat?](13_model_language.ipynb)
