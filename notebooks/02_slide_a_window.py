# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Slide a window
#
# **What does a window see that a sequence-long RNN and a convolution do not?**
#
# R-Transformer puts a small recurrent network, *LocalRNN*, under its attention. It runs over the last $M$
# positions only, once for every position. Here you build it, and measure what it can see.
#
# - **You will** cut a sequence into windows, write LocalRNN from its equation, make its padding visible, and put
#   one of the paper's claims to the test.
# - **You learn** which inputs reach which outputs in an RNN, in LocalRNN and in a convolution, and what each costs.
# - **You need** Python, tensors, and what a recurrent network is: a state computed from the last state and the
#   present input. Nothing is trained here: all weights are as initialised, and say nothing about trained ones.
# - **Time:** 30 minutes to read and try; the cells run in about 15 seconds.
#
# ## Paper map
#
# Wang et al. (2019), *R-Transformer*, section 3.1. Shapes: $B$ sequences of $T$ positions, $D$ numbers each.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | local window | $M$ | section 1 | `window=` |
# | Eq. 2, one window | $h_t$ | section 2 | `LocalRNN(d_model, window, cell)` |
# | Eq. 3, all windows | $h_1, \dots, h_N$ (here $T$) | section 2 | `LocalRNN.forward` |
# | Figure 2, original and local RNN | | section 3 | `rtx.RNN`, `rtx.lab.receptive_field` |
# | padding by $M-1$ positions | | section 4 | zero vectors |
# | "analogous to 1-D convolution" | | section 5 | `torch.nn.Conv1d` |
# | discussion, cost | | section 6 | |

# %%
import matplotlib.pyplot as plt
import torch
from rtx.lab import exercises, explore, plots, receptive_field

plots.style()
torch.set_num_threads(1)

# %% [markdown]
# ## 1. One window per position
#
# Our sequence is a strip of handwriting: a 3, a 1 and a 4, each 8 × 8 pixels, read column by column from the left.
# So $T = 24$ positions hold $D = 8$ numbers each, from 0 (paper) to 1 (ink).

# %%
from sklearn.datasets import load_digits

images = torch.tensor(load_digits().images / 16).float()  # (1797, 8, 8)
x = torch.cat(list(images[[3, 1, 4]]), dim=1).T  # (T, D)
(T, D), M = x.shape, 4
print(f"T = {T} positions, D = {D} numbers each; the first column's ink is {x[0].sum():.0f}")

# %%
fig, ax = plt.subplots(figsize=(7, 2.2))
ax.imshow(x.T, cmap="Greys", extent=(0.5, T + 0.5, D + 0.5, 0.5), aspect="auto")
for t in (2, 14):
    first = t - M + 1
    ax.axvspan(max(first, 1) - 0.5, t + 0.5, color=plots.COLOURS[0], alpha=0.3)
    ax.axvspan(min(first, 1) - 0.5, 0.5, color=plots.COLOURS[1], alpha=0.3, visible=first < 1)
    print(f"the window of t = {t}: positions {max(first, 1)} to {t}, {max(1 - first, 0)} pads")
ax.set(title=f"two windows of M = {M}: read in blue, pads in orange", xlabel="position", ylabel="pixel")
plt.show()

# %% [markdown]
# The window of position $t$ holds $M$ positions and ends at $t$:
#
# $$(x_{t-M+1}, \; x_{t-M+2}, \; \dots, \; x_t), \qquad t = 1, \dots, T$$
#
# It never holds a later position, so the model may predict the future without seeing it. The first windows begin
# before the sequence does. There, the paper puts $M - 1$ pads; they are zero vectors.
#
# **Predict.** Take $M = 4$ and eight positions. What does $h_2$ read? Of how many windows is $x_5$ a part, and of
# how many $x_8$?
#
# <details><summary>Answer</summary>
#
# $h_2$ reads two pads, then $x_1$ and $x_2$. Position 5 is in four windows, those of $h_5$ to $h_8$. Position 8 is
# in one, its own; if the sequence went on, there would be four.
#
# </details>

# %%
from matplotlib.colors import ListedColormap

positions = torch.arange(2 - M, 9)
reads = torch.stack([((t - M < positions) & (positions <= t)).int() for t in range(1, 9)])  # (8, 8 + M - 1)
reads[:, positions < 1] *= 2  # pads
fig, ax = plt.subplots(figsize=(5.6, 3.8))
colours = ListedColormap(["white", plots.COLOURS[0], plots.COLOURS[1]])
ax.pcolormesh(positions, range(1, 9), reads, cmap=colours, edgecolors="0.8")
ax.set(title="$h_t$ reads M = 4 positions; before the start they are pads", xlabel="input position (0 and below: pads)", ylabel="output position t")
ax.set(xticks=positions, yticks=range(1, 9), ylim=(8.5, 0.5))
plt.show()
print("pads read by h_1 … h_8:", (reads == 2).sum(1).tolist())
print("windows with x_1 … x_8:", (reads == 1).sum(0)[M - 1 :].tolist())

# %% [markdown]
# A band: blue on and below the diagonal, $M$ wide, with an orange triangle of pads in the first $M - 1$ rows.
# Keep this picture in mind; in section 3 you will measure it.
#
# **Exercise 1** (easy, 10 minutes). Write `windows(x, window)`: from sequences (B, T, D) to their windows
# (B, T, M, D), zero vectors where a window begins before its sequence.

# %%
def windows(x, window):
    ...  # (B, T, D) to (B, T, M, D)

exercises.windows(windows)

# %% [markdown]
# <details><summary>Hint</summary>
#
# `torch.nn.functional.pad(x, (0, 0, M - 1, 0))` puts $M - 1$ zero vectors before each sequence.
# `tensor.unfold(1, M, 1)` cuts windows along axis 1, and puts their positions on a new last axis.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def windows(x, window):
#     padded = torch.nn.functional.pad(x, (0, 0, window - 1, 0))
#     return padded.unfold(1, window, 1).mT
# ```
#
# </details>
#
# ## 2. A small RNN in each window
#
# In each window, the same recurrent network starts from a zero state and reads from left to right. Its last state
# is the output:
#
# $$h_t = \text{LocalRNN}(x_{t-M+1}, x_{t-M+2}, \dots, x_t) \qquad (2)$$
#
# $$h_1, h_2, \dots, h_T = \text{LocalRNN}(x_1, x_2, \dots, x_T) \qquad (3)$$
#
# Any recurrent cell will do: a plain RNN, a GRU, an LSTM. With torch's GRU cell, two loops say it all:

# %%
def naive_local_rnn(cell, x, window):
    """One sequence (T, D) to its windows' last states (T, D)."""
    padded = torch.cat([torch.zeros(window - 1, x.shape[1]), x])
    outputs = []
    for t in range(len(x)):
        h = torch.zeros(x.shape[1])
        for x_s in padded[t : t + window]:  # Eq. (2)
            h = cell(x_s, h)
        outputs.append(h)
    return torch.stack(outputs)  # Eq. (3)

# %% [markdown]
# `rtx.nn.LocalRNN` computes the same without the loop over $t$: all windows take their first step together, then
# their second. Its parameters bear the names of `torch.nn.GRU`, so weights move by state dict.
#
# **Predict.** A LocalRNN of $M = 4$ is to become one of $M = 40$. Which weights must change their shape?
#
# <details><summary>Answer</summary>
#
# None. The same cell takes four steps or forty. That is the first difference to a convolution: see section 5.
#
# </details>

# %%
import rtx
from rtx.nn import LocalRNN

_ = torch.manual_seed(0)
whole = rtx.RNN(D, cell="gru")  # torch.nn.GRU over the whole sequence, for section 3
local = LocalRNN(D, window=M, cell="gru")
weights = whole.network.state_dict()
cell = torch.nn.GRUCell(D, D)
_ = cell.load_state_dict({name.removesuffix("_l0"): weight for name, weight in weights.items()})
print("torch.nn.GRU to LocalRNN, M = 4: ", local.load_state_dict(weights))
print("torch.nn.GRU to LocalRNN, M = 40:", LocalRNN(D, window=40).load_state_dict(weights))
print("LocalRNN to torch.nn.GRU:        ", torch.nn.GRU(D, D).load_state_dict(local.state_dict()))
print({name: tuple(weight.shape) for name, weight in weights.items()})

# %%
h = local(x[None])[0]  # (T, D); [None] makes it a batch of one
torch.testing.assert_close(h, naive_local_rnn(cell, x, M))
print("the loops and rtx agree:", tuple(h.shape))

# %% [markdown]
# The explorer shows one window at work. Above, the positions with the window (blue) and its pads (orange): drag the window,
# or click a position in it. Below, what the cell reads there, its gates, and the state before and after. It starts from
# untrained weights; `explore.window(data, model)` takes a (T, D) tensor and a LocalRNN of your own.

# %%
explore.window(x)

# %% [markdown]
# **Try.** Step through the pads: the state moves while it reads nothing but zeros, since the cell's biases act on
# them (section 4). Then set $t = 18$ and widen $M$ from 1 to 8: the norm settles. Older positions hardly count.
#
# ## 3. Against an RNN over the whole sequence
#
# How far does a model see? Wiggle input $x_s$ a little, and watch output $h_t$. The size of the Jacobian tells how
# much it moves:
#
# $$r_{ts} = \left\lVert \frac{\partial h_t}{\partial x_s} \right\rVert_F$$
#
# `receptive_field` computes this table for any model. The naive version takes two lines:

# %%
jacobian = torch.autograd.functional.jacobian(lambda x: local(x[None])[0], x)  # (T, D, T, D)
naive_reach = jacobian.square().sum((1, 3)).sqrt()  # (T, T)
banded, full = receptive_field(local, x[None]), receptive_field(whole, x[None])
torch.testing.assert_close(banded, naive_reach)

# %% [markdown]
# **Predict.** The two models have equal weights. Which parts of the two tables are exactly zero? Which are small, but
# not zero?
#
# <details><summary>Answer</summary>
#
# Above the diagonal both are exactly zero: no output depends on the future. Below it, LocalRNN is exactly zero from
# distance $M$ on. The RNN over the whole sequence has no further zero: its table is a full triangle, which fades.
#
# </details>

# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True)
plots.receptive_field_map(axes[0], full, "RNN over the whole sequence")
image = plots.receptive_field_map(axes[1], banded, f"LocalRNN, M = {M}")
fig.colorbar(image, ax=axes, label="reach of $x_s$ at $h_t$")
fig.suptitle("equal weights: a triangle that fades, and a band that ends", fontsize=11)
plt.show()
for name, table in {"RNN": full, "LocalRNN": banded}.items():
    print(f"{name}: {int((table[-1] > 0).sum())} inputs reach the last output")

# %% [markdown]
# White is exactly zero. On the right is the blue band of section 1, now measured. The left triangle grows dark
# towards its corner: old inputs still reach the output, but faintly.
#
# Is fading a law? Raise the bias of the GRU's update gate, which says how much of the old state is kept, and average
# along the diagonals.

# %%
keeper = rtx.RNN(D, cell="gru")
keeper.load_state_dict(whole.state_dict())
with torch.no_grad():
    keeper.network.bias_hh_l0[D : 2 * D] += 3  # the gates' order: reset, update, new
reaches = {"LocalRNN": banded, "RNN": full, "RNN, keeps more": receptive_field(keeper, x[None])}
profiles = {name: torch.stack([table.diagonal(-d).mean() for d in range(T)]) for name, table in reaches.items()}
for name, profile in profiles.items():
    print(f"{name:16} at distance 0, 3, 4, 16:", *(f"{profile[d]:.2g}" for d in (0, 3, 4, 16)))

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.2))
for (name, profile), width in zip(profiles.items(), (8, 2, 2)):
    ax.semilogy(profile.where(profile > 0, torch.nan), linewidth=width, label=name)
ax.set(xlabel="distance t - s (positions)", ylabel="mean reach")
ax.set(title="how fast an RNN fades is up to its weights; a window ends at M")
ax.legend(frameon=False)
plt.show()
print("LocalRNN is exactly zero from distance M on:", bool((profiles["LocalRNN"][M:] == 0).all()))

# %% [markdown]
# The RNN falls by about a factor 1,000 over 16 positions. The one that keeps more falls by less than 3, but each
# new input moves it less. So fading is a matter of weights, and of training. The band is not: no weights let LocalRNN
# see beyond $M$. What lies farther back is left to attention. In exchange, a window needs $M$ steps one after the
# other, however long the sequence.
#
# ## 4. Pads, made visible
#
# The authors' code runs its cell over the zero pads, and so does `rtx`. The alternative is to start at the first
# real position. Here are both: a window that begins too early is cut short.

# %%
def without_pads(network, x, window):
    ends = range(1, len(x) + 1)
    return torch.cat([network(x[max(0, t - window) : t])[0][-1:] for t in ends])

def effect_of_pads(network):
    padded = LocalRNN(D, M)
    padded.load_state_dict(network.state_dict())
    return (padded(x[None])[0] - without_pads(network, x, M)).norm(dim=1).detach()

# %% [markdown]
# **Predict.** At which positions do the two differ? And if all biases were zero?
#
# <details><summary>Answer</summary>
#
# At positions 1 to $M - 1$: only these windows hold pads. With zero biases, nowhere: a zero input meets a zero state
# and no bias, so the state stays zero until the first real position.
#
# </details>

# %%
differences = effect_of_pads(whole.network)
no_bias = torch.nn.GRU(D, D)
no_bias.load_state_dict({name: 0 * w if "bias" in name else w for name, w in weights.items()})
fig, ax = plt.subplots(figsize=(6.4, 2.6))
ax.bar(range(1, T + 1), differences, color=plots.COLOURS[1])
ax.set(xlabel="position t", ylabel="change of $h_t$ (norm)", title="pads move the first M - 1 outputs")
plt.show()
print("with biases, they differ at", (1 + (differences > 1e-6).nonzero()[:, 0]).tolist())
print("without biases, they differ at", (1 + (effect_of_pads(no_bias) > 1e-6).nonzero()[:, 0]).tolist())

# %% [markdown]
# Three bars, falling, then nothing. From position $M$ on, padding no longer matters.
#
# So a pad is not "nothing": it is a blank input. Our strip happens to begin with a blank column (its ink was 0), which
# LocalRNN cannot tell from a fourth pad. The same explorer, now with the weights from above:

# %%
explore.window(x, local)

# %% [markdown]
# **Try.** Step through the pads: which gate lets the biases in? Untick the box, and the state stays zero until the first
# position is read.
#
# ## 5. Against a convolution
#
# A causal convolution with a kernel of $M$ reads the same window:
#
# $$h_t = b + \sum_{i=0}^{M-1} W_i \, x_{t-i}$$

# %%
class CausalConv(torch.nn.Conv1d):
    def forward(self, x):  # (B, T, D) to (B, T, D); Conv1d wants time last
        return super().forward(torch.nn.functional.pad(x.mT, (self.kernel_size[0] - 1, 0))).mT

conv = CausalConv(D, D, kernel_size=M)
print("reached by the same inputs:", torch.equal(receptive_field(conv, x[None]) > 0, banded > 0))

# %% [markdown]
# The same band. So what differs? The paper (section 3.1) says that "the convolution operation completely ignores the
# sequential information of positions within the local window". Test it: take four columns of the 3, and put them in
# all 24 orders. A reader that ignores order gives the same output 24 times.
#
# **Predict.** How many different outputs do LocalRNN, the convolution, mean pooling and max pooling give?
#
# <details><summary>Answer</summary>
#
# 24, 24, 1 and 1. A convolution has a matrix $W_i$ for each place in the window; a column that changes its place
# meets another matrix. Pooling treats all places alike.
#
# </details>

# %%
from itertools import permutations

orders = torch.stack([x[2:6][list(order)] for order in permutations(range(M))])  # (24, M, D)
outputs = {"LocalRNN": local(orders)[:, -1], "Conv1d": conv(orders)[:, -1]}
outputs |= {"mean pooling": orders.mean(1), "max pooling": orders.amax(1)}
for name, output in outputs.items():
    distinct = len(output.round(decimals=4).unique(dim=0))
    print(f"{name:12} {distinct:2} outputs from {len(orders)} orders")

# %%
fig, axes = plt.subplots(1, 4, figsize=(8, 3.4), sharey=True)
scale = dict(cmap="RdBu_r", vmin=-0.8, vmax=0.8, extent=(0.5, D + 0.5, 24.5, 0.5), aspect="auto")
for ax, (name, output) in zip(axes, outputs.items()):
    image = ax.imshow((output - output.mean(0)).detach(), interpolation="nearest", **scale)
    ax.set(title=name, xlabel="output number", xticks=[1, D])
axes[0].set(ylabel="order of the four columns", yticks=[1, 24])
fig.colorbar(image, ax=axes, label="output, less its mean")
fig.suptitle("a row for each order: only pooling is blind to it", fontsize=11)
plt.show()
for name, output in outputs.items():
    print(f"{name:12} moves by {(output[1] - output[0]).norm():.2f} when the last two columns are swapped")

# %% [markdown]
# Pooling is blank: no order moves it. LocalRNN and the convolution change from row to row, here the convolution even
# more. So the claim, as written, is too strong: a convolution does see order, as each place has weights of its own.
#
# What else may differ? Whether an input's effect depends on the *other* inputs, how the effect is spread over the
# window, and how many weights it takes. Measure all three.
#
# **Predict.** Show the models another strip: 5, 9, 2. Whose reach changes: that of the convolution, of the
# convolution with a ReLU behind it, of LocalRNN?
#
# <details><summary>Answer</summary>
#
# The last two. A convolution is linear, so its Jacobian is made of its weights and nothing else. A ReLU passes or
# blocks, depending on the input; a GRU's gates and its tanh depend on it, too.
#
# </details>

# %%
other = torch.cat(list(images[[5, 9, 2]]), dim=1).T  # another strip: 5, 9, 2
readers = {"Conv1d": conv, "Conv1d + ReLU": torch.nn.Sequential(conv, torch.nn.ReLU()), "LocalRNN": local}
for name, model in readers.items():
    one, two = receptive_field(model, x[None]), receptive_field(model, other[None])
    change = 100 * (one - two).norm() / one.norm()
    spread = " ".join(f"{one.diagonal(-d).mean():.2f}" for d in range(M))
    print(f"{name:13} changes by {change:4.1f} %; reach at distance 0 … 3: {spread}")

# %%
def size(model):
    return sum(p.numel() for p in model.parameters())

for window in (4, 8, 16):
    print(f"M = {window:2}: Conv1d {size(CausalConv(D, D, window)):5,} weights,", end=" ")
    print(f"LocalRNN (GRU) {size(LocalRNN(D, window))}")

# %% [markdown]
# - A lone convolution treats each column the same, whatever the others hold; LocalRNN does not. But nor does a
#   convolution with a ReLU behind it, as in TCN. This is no dividing line.
# - The convolution's reach is about level over the window. LocalRNN's falls with distance: what is older has gone
#   through more steps. Training may change both.
# - The convolution pays for each place with a new $D \times D$ matrix. LocalRNN uses the same cell at each step, so its
#   size does not depend on $M$.
#
# So both see the same window, and both see its order: a convolution by a matrix per place, LocalRNN by a walk
# through the window. Which of them learns better is for experiments to say. The paper reports 99.1 % against TCN's
# 99.0 % on MNIST, and an NLL per frame of 2.37 against 3.07 on Nottingham, for models that differ in size and in more than
# this layer.
#
# ## 6. What it costs
#
# A position stands in $M$ windows, yet what the cell computes from $x_s$ alone, $W x_s + b$, is the same in all of
# them. The naive loops compute it $M$ times, `rtx` once. And the recurrent product of the first step is skipped: its
# state is zero. With $G$ gates ($G = 3$ for the GRU), the products with weight matrices take so many multiplications:
#
# $$\underbrace{T \cdot M \cdot 2 \, G D^2}_{\text{naive}} \qquad
# \underbrace{T \cdot G D^2 + T \, (M-1) \, G D^2}_{\texttt{rtx}} = T \cdot M \cdot G D^2$$
#
# **Predict.** By what factor do they differ? The RNN over the whole sequence costs $2 \, T \, G D^2$: at which $M$ does
# each of the two cost the same? Then let torch count.
#
# <details><summary>Answer</summary>
#
# By two, for every $M$. The naive loops cost as much as the RNN over the whole sequence at $M = 1$, `rtx` at $M = 2$.
#
# </details>

# %%
from torch.utils.flop_counter import FlopCounterMode

def multiplications(function, *arguments):
    with FlopCounterMode(display=False) as counter:
        function(*arguments)
    return counter.get_total_flops() // 2  # it counts an addition with each multiplication

counts = {"naive": [], "LocalRNN": [], "RNN": [], "Conv1d": []}
for window in range(1, 13):
    counts["naive"].append(multiplications(naive_local_rnn, cell, x, window))
    counts["LocalRNN"].append(multiplications(LocalRNN(D, window), x[None]))
    counts["RNN"].append(multiplications(whole, x[None]))
    counts["Conv1d"].append(multiplications(CausalConv(D, D, window), x[None]))
print(f"M = {M}:", {name: count[M - 1] for name, count in counts.items()})

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.2))
plots.curves(ax, counts, "window M (positions)", "multiplications", "the loops cost twice LocalRNN (T = 24, D = 8)")
ax.set_xlim(1, 14)
ax.yaxis.set_major_formatter("{x:,.0f}")
plt.show()
print("naive = 2 × LocalRNN at every M:", counts["naive"] == [2 * count for count in counts["LocalRNN"]])

# %% [markdown]
# All lines but the RNN's rise with $M$. The convolution costs a third of LocalRNN. But counts are not time: the RNN
# takes $T$ steps, each waiting for the one before; LocalRNN takes $M$, the convolution one, each over all positions
# at once.
#
# ## 7. Windows on windows
#
# R-Transformer stacks layers. Let $L$ LocalRNNs of window $M$ stand on top of one another, without attention between.
#
# **Exercise 2** (easy, 5 minutes). How many positions, the present one included, reach an output of the top one?

# %%
def stacked_reach(layers, window):
    ...  # a whole number

exercises.stacked_reach(stacked_reach)

# %% [markdown]
# <details><summary>Hint</summary>
#
# One layer reaches from $t$ back to $t - (M - 1)$. What does that position reach in the layer below?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def stacked_reach(layers, window):
#     return layers * (window - 1) + 1
# ```
#
# </details>
#
# Measured, on the last row of the table:

# %%
for layers in (1, 2, 3):
    stack = torch.nn.Sequential(*[LocalRNN(D, M) for _ in range(layers)])
    print(f"L = {layers}: {int((receptive_field(stack, x[None])[-1] > 0).sum())} positions")

# %% [markdown]
# For MNIST, the authors put two LocalRNNs of $M = 7$ into each block: 13 positions before attention comes in.
#
# ## Recap
#
# - LocalRNN runs one small RNN, from a zero state, over the $M$ positions that end at each $t$ (Eq. 2-3).
# - Against an RNN over the whole sequence, it sees less: a band instead of a triangle, exactly zero outside. It needs
#   $M$ steps in a row instead of $T$.
# - Against a convolution, it sees the same band. Both see order; the convolution with a matrix per place, LocalRNN with
#   one cell used $M$ times.
# - Zero pads pass through the cell, and its biases act on them. Outputs 1 to $M - 1$ depend on that, later ones do not.
#
# ## Quiz
#
# 1. LocalRNN and the RNN over the whole sequence have equal weights. At which position do they agree for certain?
# 2. Why can a LocalRNN of any window load the weights of a `torch.nn.LSTM` of one layer?
# 3. A LocalRNN of $M = T$, with biases: is its last output that of the RNN over the whole sequence?
#
# <details><summary>Answers</summary>
#
# 1. At $t = M$: both start from a zero state at $x_1$ and read up to $x_M$. Earlier, LocalRNN has read pads; later, the
#    RNN remembers more.
# 2. Because the cell is the same at every step, no weight depends on the number of steps; and the names and shapes
#    are torch's.
# 3. Yes. The last window holds the whole sequence and no pad. The outputs before it do hold pads, and differ.
#
# </details>
#
# **Back:** [Frame the problem](01_frame_the_problem.ipynb) · **Index:** [README](../README.md) · **On:**
# [Attend to the past](03_attend_to_the_past.ipynb), beyond the window.
