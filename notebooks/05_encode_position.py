# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Encode position
#
# **How can attention be told where things stand, and which ways still work beyond the longest sequence seen?**
#
# Attention sees a set ([03 attend to the past](03_attend_to_the_past.ipynb)). Positions make it a sequence again: as
# waves added to the input, as a table, as distances in the scores. R-Transformer says it needs none.
#
# - **You will** build three encodings from their equations, test a claim of a survey and find it wrong, switch
#   Transformer-XL's terms on and off, and ask models about sequences four times longer than any they saw.
# - **You learn** what a sinusoid tells, what clipping clips, what u and v are for, and who extrapolates.
# - **You need** attention, its scores and heads (notebook 03).
# - **Time:** 35 minutes to read and try; the cells run in about 20 seconds.
#
# ## Paper map
#
# | paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | Vaswani et al. (2017), section 3.5 | $PE$ | section 1 | `sinusoidal_positions`, `position="sinusoidal"` |
# | the same: learned positions | | section 2 | `Transformer(position="learned")` |
# | Shaw et al. (2018), Eq. 3-5 | $a^K, a^V, k$ | section 3 | `RelativeAttention(clip=k)` |
# | Dai et al. (2019), Transformer-XL, section 3.3 | $u, v, R_{i-j}$ | section 4 | `XLAttention.terms` |
# | Wang et al. (2019), R-Transformer, section 3 | none | section 5 | `RTransformer` |

# %%
import math
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots, receptive_field
from rtx.nn import RelativeAttention, sinusoidal_positions
from rtx.nn.relative import XLAttention
plots.style()
_ = torch.set_num_threads(1), torch.manual_seed(0)

# %% [markdown]
# ## 1. Waves
#
# Numbers $2i$ and $2i + 1$ of position $t$ are waves of one length; from pair to pair it grows, from $2\pi$ towards
# $10000 \cdot 2\pi$ steps (at $D = 32$, the longest has $5623 \cdot 2\pi$):
#
# $$PE_{t, 2i} = \sin\left(t / 10000^{2i/D}\right), \qquad PE_{t, 2i+1} = \cos\left(t / 10000^{2i/D}\right)$$
#
# The table is added to the input. It has no weights, and no end.

# %%
def naive_sinusoids(T, D):
    rows = [[t / 10000 ** (2 * (i // 2) / D) for i in range(D)] for t in range(T)]
    return torch.tensor([[math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(row)] for row in rows])

p = sinusoidal_positions(64, 32)
torch.testing.assert_close(naive_sinusoids(64, 32), p)
print("the equation and rtx agree")

# %% [markdown]
# **Predict.** A query meets a key by their inner product. What does $\langle p_t, p_s \rangle$ depend on? Remember that
# $\sin a \sin b + \cos a \cos b = \cos(a - b)$.
#
# <details><summary>Answer</summary>
#
# On the distance alone: $\sum_i \cos(\omega_i (t - s))$ with $\omega_i = 10000^{-2i/D}$. It is largest at
# distance 0, where all waves agree, and the same forwards and backwards. So the sinusoids name absolute places, but one
# linear map away lie the distances.
#
# </details>

# %%
products = p @ p.T / 16
fig, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.2), layout="constrained")
image = left.imshow(products, cmap="PuOr_r", vmin=-1, vmax=1, extent=(0.5, 64.5, 64.5, 0.5))
left.set(xlabel="position s", ylabel="position t", title="every diagonal has one colour")
right.plot(products[0], color=plots.COLOURS[0])
right.set(xlabel="distance", ylabel="product with the first position", title="most alike nearby, then less, in waves", ylim=(0, 1.05))
fig.colorbar(image, ax=left, label="product, over D / 2")
plt.show()
same = max((products.diagonal(d) - products[0, d]).abs().max().item() for d in range(64))
print("on each diagonal equal to 1e-5:", same < 1e-5)

# %% [markdown]
# ## 2. A table
#
# `position="learned"` adds a trained row for each position. It is as good as sinusoids up to its last row, and then it
# ends:

# %%
learned = rtx.Transformer(32, layers=1, heads=2, position="learned", max_length=24)
try:
    learned(torch.randn(1, 25, 32))
except ValueError as error:
    print(error)

# %% [markdown]
# ## 3. Clipped distances
#
# Shaw et al. put the distance into the score. Keys (and values) get a vector for how far away they are, and distances
# beyond $k$ count as $k$:
#
# $$\text{score}_{ts} = \frac{\langle q_t,\; k_s + a^K_{\text{clip}(s - t,\, k)} \rangle}{\sqrt{d_k}}, \qquad
# \text{clip}(x, k) = \max(-k, \min(k, x)) \qquad (4)$$
#
# **Exercise 1** (easy, 5 minutes). The vectors stand in a table of $2k + 1$ rows: row 0 for $-k$, row $k$ for 0. Which
# row belongs to each query $t$ and key $s$ of $T$ positions? `torch.clamp` clips.

# %%
def clipped_rows(T, k):
    ...  # (T, T) whole numbers

exercises.clipped_rows(clipped_rows)

# %% [markdown]
# <details><summary>Hint</summary>
#
# With `t = torch.arange(T)`, what is `t - t[:, None]`?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def clipped_rows(T, k):
#     t = torch.arange(T)
#     return (t - t[:, None]).clamp(-k, k) + k
# ```
#
# </details>

# %%
def naive_score(q, k, table, t, s, clip):
    distance = max(-clip, min(clip, s - t))
    return q[t] @ (k[s] + table[distance + clip]) / len(q[t]) ** 0.5  # Eq. (4)

clip, T = 2, 10
layer = RelativeAttention(8, heads=1, clip=clip)  # causal: its tables end at distance 0
x = torch.randn(1, T, 8)
q, k = layer.query(x[0]), layer.key(x[0])
naive = [[naive_score(q, k, layer.key_table, t, s, clip) for s in range(t + 1)] for t in range(T)]
weights = [torch.stack(row).softmax(0) for row in naive]
for t, row in enumerate(weights):
    torch.testing.assert_close(row, layer.weights(x)[0, 0, t, : t + 1])
print("Eq. 4 and rtx agree")

# %% [markdown]
# ### A claim to test
#
# A survey of Transformer variants writes of such relative position representations (RPR): "RPR only considers context
# in a fixed window size $2k+1$".
#
# **Predict.** With $k = 2$, does input 1 move output 10? What if inputs 1 and 5 change places? And inputs 8 and 9?
#
# <details><summary>Answer</summary>
#
# It does: the far key is seen as well as any, with the vector of distance $-2$. For output 10, inputs 1 to 8 all share
# that vector, so 1 and 5 may change places unnoticed. 9 has one of its own.
#
# </details>

# %%
def change(a, b):
    """How far the last output moves if two inputs, counted from 1, change places."""
    order = list(range(T))
    order[a - 1], order[b - 1] = b - 1, a - 1
    return (layer(x[:, order]) - layer(x))[0, -1].norm().item()

fig, ax = plt.subplots(figsize=(4.2, 3.4))
moved = receptive_field(layer, x)
image = plots.receptive_field_map(ax, moved / moved.sum(1, keepdim=True), f"k = {clip}: the whole past is seen", low=0.003)
ax.set(xticks=range(1, T + 1), yticks=range(1, T + 1))
fig.colorbar(image, label="share of what moves the output")
plt.show()
print(f"inputs that move output {T}: {int((moved[-1] > 0).sum())}, the window of the claim holds {clip + 1} of them")
print("1 and 5 change places, noticed:", change(1, 5) > 1e-5, "  8 and 9:", change(8, 9) > 1e-5)

# %% [markdown]
# The claim is wrong, in an instructive way: what ends at $k$ is the *distinction*, not the *view*. That is also why
# clipping serves sequences of any length: no distance is new.
#
# ## 4. Four terms
#
# Transformer-XL starts from absolute positions, multiplies out the score of $(x + p)_t$ and $(x + p)_s$, and rewrites
# what it finds. $R_{t-s}$ is the sinusoid of the *distance*, $r = W_{k,R} R_{t-s}$:
#
# $$A_{ts} = \underbrace{\langle q_t, k_s\rangle}_{(a)\text{ content}} + \underbrace{\langle q_t, r\rangle}_{(b)\text{
# content, distance}} + \underbrace{\langle u, k_s\rangle}_{(c)\text{ content, for any query}} + \underbrace{\langle v,
# r\rangle}_{(d)\text{ distance, for any query}}$$
#
# In (c) and (d) the query's own position used to stand. Where a query stands should not matter, so learnt vectors $u$ and $v$
# take its place.
#
# **Exercise 2** (easy, 5 minutes). Write the score of one query and one key, scaled by $1/\sqrt{d_k}$. All arguments
# are vectors of $d_k$ numbers.

# %%
def xl_score(q, k, r, u, v):
    ...  # a number

exercises.xl_score(xl_score)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two products are enough: one with $k$, one with $r$.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def xl_score(q, k, r, u, v):
#     return ((q + u) @ k + (q + v) @ r) / len(q) ** 0.5
# ```
#
# </details>

# %%
xl = XLAttention(8, heads=1)
_ = [torch.nn.init.normal_(bias) for bias in (xl.content_bias, xl.position_bias)]  # 0.02 would not be seen
q, k, R = xl.query(x[0]), xl.key(x[0]), xl.distance(sinusoidal_positions(T, 8))
u, v = xl.content_bias[0, 0], xl.position_bias[0, 0]
terms = xl.terms(q[None, None], k[None, None])
for t, s in ((9, 0), (9, 9), (5, 3)):
    naive = torch.stack([q[t] @ k[s], q[t] @ R[t - s], u @ k[s], v @ R[t - s]]) / 8**0.5
    torch.testing.assert_close(naive, torch.stack([part[0, 0, t, s] for part in terms.values()]))
print("rtx has the same four terms:", *terms)

# %%
past = torch.ones(T, T).tril() == 1
fig, axes = plt.subplots(1, 4, figsize=(10, 2.6), sharey=True)
for ax, (letter, (name, part)) in zip(axes, zip("abcd", terms.items())):
    shown = part[0, 0].detach().where(past, torch.nan)
    image = ax.imshow(shown, cmap="PuOr_r", vmin=-2, vmax=2, extent=(0.5, T + 0.5, T + 0.5, 0.5))
    ax.set(title=f"({letter}) {name.replace('_', ' ')}", xlabel="key s", xticks=(1, 5, 10), yticks=(1, 5, 10))
axes[0].set(ylabel="query t")
fig.colorbar(image, ax=axes, label="score")
fig.suptitle("columns in (c), diagonals in (d)", fontsize=11)
plt.show()

# %% [markdown]
# (c) has columns: some keys matter to everyone. (d) has diagonals: some distances do. (b) mixes query and distance, and
# (a) is attention as you know it. Now all encodings in one place:

# %%
explore.positions()

# %% [markdown]
# **Try.** Shaw's distances with $k = 1$, then with more: what becomes of the far keys? In Transformer-XL, leave only
# (a) on, then only (d): which of the two knows order? Your own layer goes in as `explore.positions(layer, x)`.
#
# ## 5. Longer than ever seen
#
# A task that needs distances and nothing else: of a random sequence of 8 symbols, say at each step which one stood
# three steps back. All models have one layer of the same width; all are trained at 24 steps.

# %%
from torch.nn.functional import cross_entropy
BACK = 3

def train(backbone, steps=300, T=24):
    model = rtx.LanguageModel(backbone, 8, tied=False)
    torch.nn.init.normal_(model.embedding.weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        x = torch.randint(8, (32, T))
        loss = cross_entropy(model(x)[:, BACK:].flatten(0, 1), x[:, :-BACK].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model

def right(model, T=96):
    x = torch.randint(8, (300, T))
    with torch.no_grad():
        return (model(x)[:, BACK:].argmax(-1) == x[:, :-BACK]).float().mean(0)

# %% [markdown]
# **Predict.** Six models: no positions; sinusoids; a learned table with 96 rows; Shaw's distances, $k = 8$;
# Transformer-XL's terms; R-Transformer with a window of 4. Who is right up to step 24? Who still is at step 96?
#
# <details><summary>Answer</summary>
#
# Without positions nobody can say what stood three steps back: attention sees a set. All others learn it. Beyond 24,
# the rows of the table were never trained, and sinusoids of places never seen mislead. Those who only know distances
# go on as if nothing had happened, and so does the window, which takes its three steps along.
#
# </details>

# %%
_ = torch.manual_seed(0)
make = lambda position, **more: rtx.Transformer(32, layers=1, heads=2, position=position, **more)
backbones = {
    "none": make("none"),
    "sinusoids": make("sinusoidal"),
    "learned": make("learned", max_length=96),
    "Shaw, k = 8": make("relative", max_distance=8),
    "Transformer-XL": rtx.TransformerXL(32, layers=1, heads=2, segment=96, memory=0),
    "R-Transformer": rtx.RTransformer(32, layers=1, heads=2, window=4),
}
found = {name: right(train(backbone)) for name, backbone in backbones.items()}
for name, share in found.items():
    seen, beyond = (bool(part.mean() > 0.9) for part in (share[:21], share[56:]))
    print(f"{name:15} nine in ten right up to step 24: {seen!s:5}  from 60 on: {beyond}")

# %%
fig, ax = plt.subplots(figsize=(8, 3.2))
for (name, share), line in zip(found.items(), ("-", "--", ":", "-", "--", ":")):
    smooth = share[: 93 // 3 * 3].view(-1, 3).mean(1)
    ax.plot(range(5, 97, 3), smooth, line, label=name, linewidth=4 if name == "R-Transformer" else 1.8)
ax.axvline(24, color="0.6", linewidth=1)
ax.axhline(1 / 8, color="0.6", linewidth=1)
ax.set(xlabel="step (grey: the longest seen in training)", ylabel="share that is right (grey: a guess)", ylim=(0, 1.05))
ax.set_title("absolute positions end where training ended, distances do not")
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown]
# R-Transformer's claim holds here: it has no position embedding and misses none. Keep the limits in mind. The task asks
# for a short distance, which lies inside the window; with a window of 3 the window alone could not reach it. And models
# of several layers get some order from the causal mask alone ([04 stack the block](04_stack_the_block.ipynb)).
#
# ## Recap
#
# - Sinusoids name places, and their products know distances. They have no end, but training has.
# - A learned table ends at its last row.
# - Shaw's clipped distances see the whole past; beyond $k$ they do not tell one distance from another.
# - Transformer-XL scores content and distance in four terms, none of which knows where the query stands.
# - What is relative goes on beyond the longest sequence seen, on this task at least; so does a window.
#
# ## Quiz
#
# 1. You begin to count positions at 50 instead of 0. Which models of section 5 give other outputs?
# 2. Why does (c), $\langle u, k_s \rangle$, tell nothing about order?
# 3. Shaw's layer with $k = 2$, two layers deep. Inputs 5 and 6 steps back change places: can the last output notice?
#
# <details><summary>Answers</summary>
#
# 1. Those with sinusoids and with a table. The others do not count.
# 2. It depends on the key's content only: permute the keys, and their scores go along.
# 3. Yes. In the first layer the position 4 steps back sees the two at distances 1 and 2, which it can tell apart. What it
#    makes of them is read by the second layer, however far back it stands. Depth buys distance, as with windows.
#
# </details>
#
# **Back:** [Stack the block](04_stack_the_block.ipynb) · **Index:** [README](../README.md) · **On:**
# [Carry memory](06_carry_memory.ipynb)
