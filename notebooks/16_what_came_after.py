# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What came after
#
# **R-Transformer put recurrence into a window and let attention see far. Five years later Griffin does the reverse. Why?**
#
# Both mix the same two ingredients. In R-Transformer a recurrent network reads the last few positions, and attention
# looks at everything. In Griffin attention looks at the last few positions, and a recurrence carries everything. What changed
# in between is not taste: someone made the recurrence *linear*, and someone paid for the cache of keys and values.
#
# - **You will** compute a recurrence in $\log_2 T$ rounds, weigh what a stream must remember, and race both designs.
# - **You learn** what linearity buys, how long a decay remembers, and what decides between designs: bytes and rounds.
# - **You need** [02 slide a window](02_slide_a_window.ipynb), [03 attend to the past](03_attend_to_the_past.ipynb).
# - **Time:** 30 minutes to read and try; the cells run in about 30 seconds.
#
# ## Paper map
#
# De et al. (2024), *Griffin: Mixing Gated Linear Recurrences with Local Attention for Efficient Language Models*.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | residual block, recurrent block (§2.1-2.3) | | section 1 | `rtx.models.griffin` |
# | RG-LRU (§2.4, Eq. 1-4) | $r_t$, $i_t$, $a_t$, $h_t$ | section 2 | `rtx.nn.linear_recurrence` |
# | local attention (§2.3) | $W$ | sections 1, 3 | `rtx.nn.local_attention` |
# | state against cache | | section 3 | `model.step` |

# %%
import math
import time
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots, xray

plots.style()
torch.set_num_threads(1)

# %% [markdown]
# ## 1. Who swapped what
#
# | | Transformer | R-Transformer | Griffin |
# | --- | --- | --- | --- |
# | near | attention | **recurrence in a window** (LocalRNN) | **attention in a window** |
# | far | attention | **attention** to all | **recurrence** over all |
# | the recurrence | none | GRU or LSTM, non-linear | gated, linear in its state |
# | position | added encoding | none: the LocalRNN knows order | rotary, in the window; the recurrence knows order |
# | a block | attention, feed-forward | LocalRNN, attention, feed-forward | recurrence or attention, then a gated network |
# | norm | LayerNorm, after (2017) | after (paper), before (code) | RMSNorm, before |
#
# Other designs of these years fit the same table: the selective state space of Mamba (Gu & Dao, 2023), for one, is a gated linear
# recurrence, too. It is not in `rtx`, so we measure nothing of it here.
#
# **Predict.** Of LocalRNN (M = 4), local attention (W = 4), RG-LRU and attention, which look back how far?
#
# <details><summary>Answer</summary>
#
# The two with a window over 4 positions, the other two over all that came before. One of each kind is recurrent.
#
# </details>

# %%
from rtx.nn import LocalRNN, MultiHeadAttention
from rtx.nn.linear_recurrence import RGLRU
from rtx.nn.local_attention import LocalAttention

_ = torch.manual_seed(0)
noise = torch.randn(1, 16, 8)
for name, part in {"LocalRNN, M = 4": LocalRNN(8, 4), "local attention, W = 4": LocalAttention(8, 2, 4),
                   "RG-LRU": RGLRU(8, 2), "attention": MultiHeadAttention(8, 2)}.items():
    print(f"{name:23} looks back over {xray(part, noise).span:2} of 16 positions")

# %%
explore.xray(rtx.Griffin(8, layers=3, heads=2, window=4), noise[:, :12])

# %% [markdown]
# **Try.** `blocks.0.mixing.recurrence` against `blocks.2.mixing`: which is a triangle, which a band? And how many positions
# does `blocks.0.mixing.convolution` read?
#
# ## 2. A recurrence that need not wait
#
# The real-gated linear recurrent unit has two gates, a decay that they move, and one line of recurrence:
#
# $$r_t = \sigma(W_a x_t + b_a) \quad (1) \qquad i_t = \sigma(W_x x_t + b_x) \quad (2) \qquad a_t = a^{c\, r_t} \quad (3)$$
#
# $$h_t = a_t \odot h_{t-1} + \sqrt{1 - a_t^2} \odot (i_t \odot x_t) \qquad (4)$$
#
# with $c = 8$, $a = \sigma(\Lambda)$ learnt for each number; $\odot$ multiplies number by number. The gates
# see $x_t$ alone, never $h_{t-1}$. That is the difference to a GRU that counts here.

# %%
def naive(x, unit, c=8):
    """States (T, D) of x (T, D), one step after the other; gates of one block."""
    h, states = torch.zeros(x.shape[1]), []
    for x_t in x:
        r = torch.sigmoid(unit.recurrence_gate.weight[0] @ x_t + unit.recurrence_gate.bias)  # Eq. (1)
        i = torch.sigmoid(unit.input_gate.weight[0] @ x_t + unit.input_gate.bias)  # Eq. (2)
        a = torch.sigmoid(unit.decay) ** (c * r)  # Eq. (3)
        h = a * h + torch.sqrt(1 - a**2) * (i * x_t)  # Eq. (4)
        states.append(h)
    return torch.stack(states)

unit, x = RGLRU(8), torch.randn(50, 8)
with torch.no_grad():
    torch.testing.assert_close(naive(x, unit), unit(x[None])[0], rtol=1e-4, atol=1e-5)
print("the equations and rtx agree over 50 steps")

# %% [markdown]
# Given $a_t$ and $b_t$, each step is a map $h \mapsto a_t h + b_t$. Two such maps in a row make another such map. So steps can
# be joined in pairs, the pairs in fours, and so on, all at once: $\lceil \log_2 T \rceil$ rounds instead of $T$.
#
# **Exercise 1** (medium, 5 minutes). First $(a_1, b_1)$, then $(a_2, b_2)$: give the one step that does both, as
# `torch.stack([a, b])`.

# %%
def compose_steps(a1, b1, a2, b2):
    ...

exercises.compose_steps(compose_steps)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Write out $a_2 (a_1 h + b_1) + b_2$, and sort by $h$.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def compose_steps(a1, b1, a2, b2):
#     return torch.stack([a2 * a1, a2 * b1 + b2])
# ```
#
# </details>

# %%
def scan(a, b):
    """h_t = a_t h_{t-1} + b_t for (T, D), in rounds; and how many."""
    shift, rounds = 1, 0
    while shift < len(a):
        joined = a[shift:] * b[:-shift] + b[shift:]  # what step t - shift added decays at t
        a, b = torch.cat([a[:shift], a[shift:] * a[:-shift]]), torch.cat([b[:shift], joined])
        shift, rounds = 2 * shift, rounds + 1
    return b, rounds

from rtx.nn import reference
from rtx.nn.linear_recurrence import linear_scan

a, b = torch.rand(1000, 8), torch.randn(1000, 8)
states, rounds = scan(a, b)
torch.testing.assert_close(states, reference.linear_scan(a[None], b[None])[0], rtol=1e-4, atol=1e-4)
torch.testing.assert_close(states, linear_scan(a[None], b[None])[0], rtol=1e-4, atol=1e-4)
print("loop, scan and rtx agree; rounds for 1,000 steps:", rounds)

# %% [markdown]
# **Predict.** The scan has $\log_2 T$ rounds of up to $2T$ multiplications; the loop does $T$ in all. Which is faster here, on one core? And on a machine
# that does thousands at a time?
#
# <details><summary>Answer</summary>
#
# With narrow rows the scan, even here: the loop pays for starting an operation a thousand times. With wide rows the extra
# work shows, and on one core the plain loop catches up or wins. With thousands of cores the rounds count, if
# sequences and their numbers are too few to fill them. If they are not, as in Griffin's training, memory counts: its code
# takes one step after the other, in one kernel (§4.2). That is fast because a linear step is a few multiplications for each
# number, as all gates are known before. A GRU has no choice, and waits at each step for a product of matrices: its next
# gates need its last state.
#
# </details>

# %%
def seconds(function, *arguments, times=5):
    start = time.process_time()
    for _ in range(times):
        function(*arguments)
    return (time.process_time() - start) / times

ratios = {}
for width in (8, 512):
    a, b = torch.rand(1, 1000, width), torch.randn(1, 1000, width)
    ratios[width] = seconds(reference.linear_scan, a, b) / seconds(linear_scan, a, b)
    print(f"{width:3} numbers wide: the loop takes {ratios[width]:.1f} × the time of the scan")

# %% [markdown]
# What does a linear recurrence remember? If the gate stays at $r$, the share $a^{c r l}$ of a number is left after $l$ steps. At the start $a^c$ is
# drawn between 0.9 and 0.999.
#
# **Exercise 2** (easy, 5 minutes). After how many steps is half of it left? Give the half-life of a factor `a` a step, a float,
# without rounding.

# %%
def half_life(a):
    ...

exercises.half_life(half_life)

# %% [markdown]
# <details><summary>Hint</summary>
#
# After $l$ steps $a^l$ is left. For which $l$ is that ½? A logarithm brings $l$ down from the exponent.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def half_life(a):
#     return math.log(0.5) / math.log(a)
# ```
#
# </details>

# %%
_ = torch.manual_seed(0)
unit, lstm = RGLRU(64), rtx.RNN(64, cell="lstm")
x = torch.randn(1, 200, 64).repeat(64, 1, 1).requires_grad_()
fig, ax = plt.subplots(figsize=(6.4, 2.8))
left = {}
for name, model in (("RG-LRU", unit), ("LSTM", lstm)):
    (gradient,) = torch.autograd.grad(model(x)[:, -1].diagonal().sum(), x)
    size = gradient.square().sum((0, 2)).sqrt().flip(0)
    left[name] = size / size[0]
    ax.semilogy(left[name].where(left[name] > 1e-9, torch.nan), label=name)
ax.set(xlabel="distance l (steps)", ylabel="gradient, share of that at l = 0", title="untrained: the linear recurrence remembers from the start")
ax.legend(frameon=False)
plt.show()
for a in (0.9, 0.999):
    print(f"a factor of {a} a step, gate open: half is left after {math.log(0.5) / math.log(a):.0f} steps")
print("over 100 steps more than a hundredth is left: RG-LRU", bool(left["RG-LRU"][100] > 0.01), " LSTM", bool(left["LSTM"][100] > 0.01))

# %% [markdown]
# The root in Eq. 4 keeps states at one size: what is kept has the weight $a$, what comes in $\sqrt{1-a^2}$, and squares sum to one. The price
# of linearity: without the state in its gates, a layer cannot decide by what it remembers. Running parity
# ([07 convolve or recur](07_convolve_or_recur.ipynb)) needs a factor of $-1$; $a_t$ lies between 0 and 1.
#
# ## 3. What a stream must remember
#
# A model that generates keeps its past: keys and values, or a state.
#
# **Exercise 3** (easy, 5 minutes). A Transformer of $L$ layers, width $D$, has read $T$ positions. How many bytes of keys and values
# in float32?

# %%
def cache_bytes(T, L, D):
    ...

exercises.cache_bytes(cache_bytes)

# %% [markdown]
# <details><summary>Hint</summary>
#
# In each layer, each position leaves a key *and* a value, of $D$ numbers each. How many bytes has one number of 32 bits?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def cache_bytes(T, L, D):
#     return 2 * L * T * D * 4
# ```
#
# </details>
#
# **Predict.** Which of these four grow without end: GRU, Transformer, R-Transformer, Griffin?
#
# <details><summary>Answer</summary>
#
# Those that attend to everything: the Transformer and the R-Transformer. A GRU keeps one state for each layer; Griffin keeps
# states, and windows that are full after 32 positions.
#
# </details>

# %%
def weigh(state):
    """Bytes of what a model keeps."""
    if torch.is_tensor(state):
        return state.numel() * state.element_size()
    return sum(map(weigh, state)) if isinstance(state, tuple) else 0

MODELS = {"Transformer": lambda: rtx.Transformer(32, 3, 2), "R-Transformer": lambda: rtx.RTransformer(32, 3, 2, 7),
          "Griffin": lambda: rtx.Griffin(32, 3, 2, 32), "GRU": lambda: rtx.RNN(32, 3)}

# %%
_ = torch.manual_seed(0)
models, states = {name: make().eval() for name, make in MODELS.items()}, dict.fromkeys(MODELS)
kept, cost, every = {name: [] for name in MODELS}, {name: [] for name in MODELS}, 50
for t in range(600):
    x = torch.randn(1, 32)
    for name, model in models.items():  # in turn, so that what else the machine does meets all alike
        start = time.process_time()
        with torch.no_grad():
            _, states[name] = model.step(x, states[name])
        cost[name].append(time.process_time() - start)
        kept[name].append(weigh(states[name]))

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8))
for name, dash in zip(MODELS, ("-", "--", "-", "-")):
    left.semilogy(range(1, 601), kept[name], dash, label=name)
    least = [1e3 * min(cost[name][t : t + every]) for t in range(0, 600, every)]
    right.plot(range(every, 601, every), least, dash)
left.set(xlabel="positions read", ylabel="bytes", title="kept: two level out, two grow", ylim=(100, 3e6))
left.legend(frameon=False, fontsize=8, ncols=2)
right.set(xlabel="positions read", ylabel="ms a step (least of 50)", title="time of a step: hardly grows", ylim=(0, None))
plt.show()
for name, sizes in kept.items():
    print(f"{name:13} {sizes[99]:7,} bytes after 100 positions, {sizes[-1]:7,} after 600")
print("Transformer as Exercise 3 says:", kept["Transformer"][-1] == 2 * 3 * 600 * 32 * 4)

# %% [markdown]
# Griffin's window fills, then nothing grows. R-Transformer pays twice: a window for each LocalRNN *and* all keys and values.
# At this size, on one core, time does not care: a step's products are few and its overheads many. At 8,192 positions and
# a width of thousands, the cache is what fills a graphics card:

# %%
gigabytes = 2 * 26 * 8192 * 2560 * 2 / 1e9
print(f"26 layers, 2,560 wide, 8,192 positions, half precision: {gigabytes:.1f} GB of keys and values for each stream")

# %% [markdown]
# (Round sizes of ours for a model of a few billion parameters; sharing keys among heads, as Griffin's attention does, divides
# this by their number.)
#
# ## 4. A small race
#
# The characters of the Python manual, 100 updates of 12 windows, the same for all, one seed, and models that are not quite
# equal in size. It says how fast the four *begin* to learn, at toy size.
#
# **Predict.** Who leads: local recurrence with far attention, or the reverse?
#
# <details><summary>Answer</summary>
#
# Local recurrence, after so few updates: the next letter hangs on the last few, and a GRU in a window is made for those.
#
# </details>

# %%
from rtx.tasks import task_by_name
from rtx.tasks.loader import loader

task = task_by_name("characters", context=32, scored=96)
test = next(iter(loader(task, "test", 60)))

def race(backbone, updates=100, rate=8e-3):
    """Bits per character on the test windows after so many updates, and the parameters."""
    model = rtx.LanguageModel(backbone, task.inputs)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.05, total_iters=updates)
    for _, batch in zip(range(updates), loader(task, "train", 12)):
        loss = task.loss(task.predict(model, batch), batch)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step(), slower.step()
    with torch.no_grad():
        return task.score(task.predict(model.eval(), test), test), sum(p.numel() for p in model.parameters())

# %%
RACE = {"R-Transformer": lambda: rtx.RTransformer(48, 1, 2, 8, norm="pre"), "Griffin": lambda: rtx.Griffin(32, 3, 2, 16),
        "GRU": lambda: rtx.RNN(72), "Transformer": lambda: rtx.Transformer(48, 2, 2, norm="pre")}
bits = {}
for name, make in RACE.items():
    _ = torch.manual_seed(0)
    bits[name], parameters = race(make())
    print(f"{name:13} {parameters:6,} parameters; fewer bits than letter frequencies alone: {bits[name] < task.baseline()}")
fig, ax = plt.subplots(figsize=(6, 2.4))
ax.barh(list(bits), list(bits.values()), color=plots.COLOURS[0])
ax.axvline(task.baseline(), color="0.4", linestyle=":")
ax.text(task.baseline() + 0.05, 3.3, "letter\nfrequencies", fontsize=8)
ax.set(xlabel="bits per character after 100 updates (less is better)", title="whoever recurs is ahead of attention alone")
ax.set_xlim(0, 5.6)
ax.invert_yaxis()
plt.show()
print("all three with recurrence before the Transformer:", max(bits[name] for name in list(RACE)[:3]) < bits["Transformer"])
print("R-Transformer before Griffin:", bits["R-Transformer"] < bits["Griffin"])

# %% [markdown]
# At this size recurrence of either kind helps, and the window's GRU most: the next letter depends on the last few. None of that
# decides between the designs. Griffin's case is made elsewhere: where streams are long, memory is scarce, and training must use
# thousands of cores at once; its paper begins at 100 million parameters, which `rtx` does not reach.
#
# So was R-Transformer wrong? It asked the right question early: which tool for near, which for far. Its recurrence had to
# be local *because* it was non-linear: a window was the only way to compute all positions at once. Once a linear one could be scanned, the
# window was no longer needed there, and moved to the part that had become the most expensive: attention.
#
# ## Recap
#
# - R-Transformer: near by recurrence, far by attention. Griffin: far by recurrence, near by attention.
# - Linear in the state: $\lceil \log_2 T \rceil$ rounds, long memory from the start, and no decisions by what is remembered.
# - A state and a window stay the same size; keys and values grow with the stream.
#
# **Quiz.** 1. Why can a GRU not be scanned? 2. What would R-Transformer with local attention keep in a stream, and what would it lose?
# 3. Give a task that Griffin's design must find hard, and one that suits it.
#
# <details><summary>Answers</summary>
#
# 1. Its gates depend on $h_{t-1}$ through a non-linear function: two steps together are no step of the same kind. 2. It keeps two windows a block, and loses all that lies
# further back than these windows, summed over the blocks. 3. Hard: find one exact item among thousands, as the state is of fixed size and the window is
# past. Suits: text whose far past matters as a gist, at great length.
#
# </details>
#
# **Back:** [Weigh the evidence](15_weigh_the_evidence.ipynb) · **Index:** [README](../README.md) · **On:**
# [Start here](00_start_here.ipynb), with your own data
