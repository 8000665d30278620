# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Convolve or recur
#
# **Which past can a model use: the past it can see, or the past it can learn from?**
#
# Bai, Kolter & Koltun put plain convolutions, stacked and dilated, against recurrent networks, and concluded that
# convolution should be the starting point for sequences. R-Transformer copies its baselines from them, and answers
# with recurrence in a window. Here you measure what each design sees, what reaches it in training, what it costs, and
# let three tasks decide.
#
# - **You will** write a dilated convolution, count receptive fields, find a leak, and watch two tasks name two winners.
# - **You learn** the difference between seeing, learning and remembering; what "longer memory" means and what it does not.
# - **You need** Python, tensors, a recurrent cell. [02 slide a window](02_slide_a_window.ipynb) helps.
# - **Time:** 35 minutes to read and try; the cells run in about 40 seconds.
#
# ## Paper map
#
# Bai et al. (2018), *An Empirical Evaluation of Generic Convolutional and Recurrent Networks for Sequence Modeling*; Wang et
# al. (2019), *R-Transformer*.
#
# | in the papers | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | dilated causal convolution (Bai §3) | $k$, $d$ | section 1 | `rtx.nn.convolution`, `TCN` |
# | recurrent baselines (Wang, Tables 1-4) | | sections 2-4 | `RNN` |
# | LocalRNN (Wang, Eq. 2) | $M$ | sections 2-4 | `rtx.nn.LocalRNN` |
# | copy memory (Bai §5) | $T$ | section 4 | task `copy-memory`, recipe `copy-memory` |
# | both dependencies at once (Wang §1) | | section 5 | task `locality-dial` |

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots, xray

plots.style()
torch.set_num_threads(1)

# %% [markdown]
# ## 1. A convolution that looks back
#
# Each output is a weighted sum of inputs $d$ steps apart, all of them in the past; zeros stand before the start:
#
# $$y_t = \sum_{i=0}^{k-1} w_i \, x_{t - d i}$$
#
# **Exercise 1** (easy, 5 minutes). Write it for a sequence `x` (T,), a kernel `w` (k,) and a dilation `d`.

# %%
def dilated_convolution(x, w, d):
    ...

exercises.dilated_convolution(dilated_convolution)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Put `d * (len(w) - 1)` zeros in front, then every index is there.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def dilated_convolution(x, w, d):
#     before = d * (len(w) - 1)
#     padded = torch.cat([torch.zeros(before), x])
#     return sum(w[i] * padded[before - d * i : before - d * i + len(x)] for i in range(len(w)))
# ```
#
# </details>
#
# torch does the same with padding on the left only; its kernel is stored oldest first.

# %%
def causal(x, w, d):
    left = torch.nn.functional.pad(x, (d * (len(w) - 1), 0))
    return torch.nn.functional.conv1d(left[None, None], w.flip(0)[None, None], dilation=d)[0, 0]

x, w = torch.randn(10, generator=torch.Generator().manual_seed(0)), torch.tensor([1.0, 0.5, -2.0])
by_hand = [sum(w[i] * x[t - 2 * i] for i in range(3) if t >= 2 * i) for t in range(10)]
torch.testing.assert_close(causal(x, w, 2), torch.stack(by_hand))
swapped = x[[0, 1, 2, 3, 4, 5, 6, 9, 8, 7]]
print("the sum and torch agree; order inside the kernel matters:", bool(causal(swapped, w, 2)[9] != causal(x, w, 2)[9]))

# %% [markdown]
# The R-Transformer paper says that convolutions ignore "the sequential information" inside their receptive field. Strictly
# they do not: each delay has a weight of its own, and swapped inputs give another sum. What they lack is a state that one
# input *changes* before it meets the next: the sum is linear before its one non-linearity. Section 4 shows a task where
# that decides.
#
# A TCN block has two such convolutions and a residual around them. The dilation doubles from block to block.
#
# **Exercise 2** (medium, 5 minutes). How many positions does the last output of $L$ blocks with kernel $k$ see?

# %%
def tcn_reach(L, k):
    ...

exercises.tcn_reach(tcn_reach)

# %% [markdown]
# <details><summary>Hint</summary>
#
# A convolution adds $(k - 1) d$ positions; there are two for each dilation 1, 2, 4, …
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def tcn_reach(L, k):
#     return 1 + 2 * (k - 1) * (2**L - 1)
# ```
#
# </details>
#
# ## 2. What is seen
#
# `rtx.lab.xray` takes exact derivatives: which input can move which output at all. Formula against measurement:

# %%
from torch import nn
from rtx.models import CausalModel
from rtx.models.tcn import receptive_field as formula
from rtx.nn import LocalRNN
from rtx.nn.streaming import step_through

class LocalRNNs(CausalModel):
    """LocalRNNs on one another, as in R-Transformer, without its attention."""
    def __init__(self, width, layers, window):
        super().__init__()
        self.d_model, self.layers = width, nn.Sequential(*(LocalRNN(width, window) for _ in range(layers)))

    def forward(self, x, state=None):
        return self.layers(x)

    def step(self, x, state=None):
        return step_through(self.layers, x, state)

# %%
noise = torch.randn(1, 40, 4, generator=torch.Generator().manual_seed(0))
_ = torch.manual_seed(0)
for L, k in ((1, 3), (2, 3), (3, 3), (2, 6)):
    print(f"TCN, L = {L}, kernel {k}:       formula {formula(L, k):3}, measured {xray(rtx.TCN(4, L, k), noise).span:3}")
for L, M in ((1, 7), (3, 7)):
    print(f"LocalRNN, L = {L}, window {M}:  formula {L * (M - 1) + 1:3}, measured {xray(LocalRNNs(4, L, M), noise).span:3}")
print(f"GRU:                                    measured {xray(rtx.RNN(4), noise).span:3} of 40")

# %% [markdown]
# A recurrent network sees everything, windows add up, dilations double. To see 784 pixels with a kernel of 7, a TCN needs
# 7 blocks (1,525 positions; 6 see 757); the paper's for MNIST has 8.
#
# Causality is easily lost on the way: `padding=1` instead of padding on the left, one missing mask. The X-ray shows which
# part lets the future in. Here is a module with such a bug:

# %%
class Mixer(nn.Module):
    """A recurrent network with a convolution around it. Something is wrong."""
    d_model = 8

    def __init__(self):
        super().__init__()
        self.recurrent = nn.GRU(8, 8, batch_first=True)
        self.convolution = nn.Conv1d(8, 8, 3, padding=1)
        self.forward_network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, x):
        h, _ = self.recurrent(x)
        return self.forward_network(h + self.convolution(h.mT).mT)

_ = torch.manual_seed(0)
explore.xray(Mixer())

# %% [markdown]
# **Try.** Which parts are innocent? How far does the guilty one look ahead? Then give the explorer a module of your own:
# `explore.xray(mine, x)`. On a training set, such a leak looks like a wonderful model.
#
# ## 3. What comes back, and what it costs
#
# To see is not to learn. What a model learns from a distant input is decided by the gradient that comes back from there.
#
# **Predict.** Rank GRU, LSTM, plain RNN, TCN and LocalRNNs by the gradient over 40 steps, untrained.
#
# <details><summary>Answer</summary>
#
# The TCN first: from its last output to any input it sees there are a few convolutions, never 40 steps. Then LSTM and GRU, whose
# gates at their start let about half of a state through at each step; the plain RNN. The LocalRNNs have exactly none
# beyond their reach.
#
# </details>

# %%
MODELS = {"TCN": lambda: rtx.TCN(24, 4, 6), "GRU": lambda: rtx.RNN(24, cell="gru"),
          "LSTM": lambda: rtx.RNN(24, cell="lstm"), "RNN": lambda: rtx.RNN(24, cell="rnn"),
          "LocalRNNs": lambda: LocalRNNs(24, 3, 7)}

def gradient_over_distance(model, length=60):
    """The size of ∂y_T/∂x_{T-l} for l = 0, 1, …, as a share of that at l = 0: a copy of x for each output number."""
    x = torch.randn(1, length, 24, generator=torch.Generator().manual_seed(0)).repeat(24, 1, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(model(x)[:, -1].diagonal().sum(), x)
    size = gradient.square().sum((0, 2)).sqrt().flip(0)
    return size / size[0]

# %%
_ = torch.manual_seed(0)
back = {name: gradient_over_distance(make()) for name, make in MODELS.items()}
fig, ax = plt.subplots(figsize=(7, 3))
for (name, size), dash in zip(back.items(), ("-", "--", ":", "-.", "-")):
    ax.semilogy(size.where(size > 1e-9, torch.nan), dash, label=name)
ax.set(xlabel="distance l (steps)", ylabel="gradient, share of that at l = 0")
ax.set(title="untrained, 24 wide: over 40 steps only the TCN's gradient is alive")
ax.legend(frameon=False, ncols=3, fontsize=9)
plt.show()
for name, size in back.items():
    print(f"{name:10} over 40 steps: more than a thousandth: {bool(size[40] > 1e-3)};  exactly zero: {bool(size[40] == 0)}")

# %% [markdown]
# And the price. Multiply-adds are counted by torch in a forward pass of 64 steps; "one after the other" is what no
# hardware can do at the same time.

# %%
from torch.utils.flop_counter import FlopCounterMode
from rtx.nn import implementation

def numbers(state):
    """How many numbers a stream has to keep."""
    return state.numel() if torch.is_tensor(state) else sum(map(numbers, state)) if isinstance(state, tuple) else 0

waits = {"TCN": 8, "GRU": 64, "LSTM": 64, "RNN": 64, "LocalRNNs": 3 * 7}
print(f"{'':10} parameters  multiply-adds a step  one after the other  kept in a stream")
for name, make in MODELS.items():
    model = make()
    kept = numbers(model.step(torch.randn(1, 24))[1])
    model = model.to("meta")  # shapes without numbers: all that counting needs
    with implementation("torch"), FlopCounterMode(display=False) as counter:
        model(torch.randn(1, 64, 24, device="meta"))
    parameters, products = sum(p.numel() for p in model.parameters()), counter.get_total_flops() // 2 // 64
    print(f"{name:10} {parameters:10,} {products:21,} {waits[name]:20} {kept:17,}")

# %% [markdown]
# A TCN reads all steps at once, in as many rounds as it has convolutions; a recurrent network waits at every step; a
# LocalRNN waits only within its window. In a stream the tables are turned: the recurrent network keeps one state, a LocalRNN
# those of the $M - 1$ windows that go on, the TCN the past of each of its convolutions.
#
# ## 4. Two tasks, two winners
#
# **Copy memory**: ten letters, a silence, then say them. Bai et al. use it to show that TCNs remember longer. Every letter
# is wanted after the same delay, here 30 steps.
#
# **Predict.** Of a TCN that sees 151 positions, one that sees 25, and a GRU that sees all: who learns it in 280 updates?
#
# <details><summary>Answer</summary>
#
# The first alone. The second cannot, whatever the training. The GRU could; nothing comes back to it over 30 steps.
#
# </details>

# %%
from rtx.tasks import task_by_name
from rtx.tasks.build import SequenceModel
from rtx.tasks.loader import loader

def learn(task, backbone, every=40):
    """Percent of the letters told, every so many updates."""
    model = SequenceModel(backbone, task.inputs, task.outputs, task.per)
    optimizer, found = torch.optim.Adam(model.parameters(), lr=8e-3), []
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.05, total_iters=280)
    test = next(iter(loader(task, "test", 200)))
    for update, batch in enumerate(loader(task, "train", 32), 1):
        loss = task.loss(task.predict(model, batch), batch)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step(), slower.step()
        if update % every == 0:
            with torch.no_grad():
                found.append(task.score(task.predict(model, test), test))
    return found

# %%
RACE = {"TCN, sees 151": lambda: rtx.TCN(24, 4, 6), "TCN, sees 25": lambda: rtx.TCN(24, 2, 5), "GRU": lambda: rtx.RNN(48)}
copy, told = task_by_name("copy-memory", length=20, size=280 * 32), {}
for name, make in RACE.items():
    _ = torch.manual_seed(0)
    told[name] = learn(copy, make())
fig, ax = plt.subplots(figsize=(6.4, 2.8))
for (name, found), dash in zip(told.items(), ("-", "--", ":")):
    ax.plot(range(40, 281, 40), found, dash, label=name)
ax.set(xlabel="updates", ylabel="letters told (%)", ylim=(0, 103))
ax.set(title="copy memory over 30 steps: the TCN that sees them learns")
ax.legend(frameon=False)
plt.show()
for name, found in told.items():
    print(f"{name:13} more than three in four letters: {found[-1] > 75};  hardly more than a guess, 1 in 8: {found[-1] < 25}")

# %% [markdown]
# A clear win. But for what? The delay never changes, so a fixed weight at a fixed delay *is* the answer. Now draw the
# silence anew for each sequence, 15 to 25 steps (and stop after 200 updates):

# %%
_ = torch.manual_seed(0)
varied = learn(task_by_name("copy-memory", length=15, longest=25, size=200 * 32), rtx.TCN(24, 4, 6))
print("the same TCN, silences of 15 to 25 steps: more than three in four:", varied[-1] > 75, "  as many as with a fixed delay by then:", varied[-1] >= told["TCN, sees 151"][4])

# %% [markdown]
# "Longer memory" was a longer ruler. To find the letters after a silence of unknown length, one would have to count, or
# to look for them: that is attention's trade ([03 attend to the past](03_attend_to_the_past.ipynb)).
#
# **Running parity**: is the number of ones so far odd? No distance at all: the last answer and one new bit suffice.
#
# **Predict.** Trained at 24 steps, tested at 24 and at 96. Who is right?
#
# <details><summary>Answer</summary>
#
# The GRU, which is recurrent throughout, at both lengths: two states and a rule to change them. For a convolution, and for a
# window without the last answer, every bit of the past counts, and flipping any one flips the answer: there is no shortcut.
#
# </details>

# %%
def parity(backbone, updates=160, length=24):
    """Percent right at 24 and at 96 steps, after training at 24."""
    model = SequenceModel(backbone, 1, 2, "step")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    def draw(many, steps):
        bits = torch.randint(0, 2, (many, steps, 1)).float()
        return bits, bits.cumsum(1)[..., 0].long() % 2
    for _ in range(updates):
        bits, odd = draw(32, length)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(bits).flatten(0, 1), odd.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        return [100 * (model(bits).argmax(-1) == odd).float().mean().item() for bits, odd in (draw(200, length), draw(200, 96))]

# %%
right = {}
for name in ("GRU", "TCN", "LocalRNNs"):
    _ = torch.manual_seed(0)
    right[name] = parity(MODELS[name]())
fig, ax = plt.subplots(figsize=(6, 2.6))
for shift, colour, label, which in ((-0.2, 0, "24 steps, as in training", 0), (0.2, 1, "96 steps", 1)):
    ax.bar([i + shift for i in range(3)], [both[which] for both in right.values()], 0.38, color=plots.COLOURS[colour], label=label)
ax.axhline(50, color="0.4", linestyle=":", linewidth=1)
ax.set(xticks=range(3), xticklabels=right, ylabel="right (%)", ylim=(0, 105), title="running parity: who keeps a state wins")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
for name, (short, long) in right.items():
    print(f"{name:10} right at both lengths (over 95 %): {min(short, long) > 95};  near guessing at 96: {long < 70}")

# %% [markdown]
# What the LocalRNNs get right stands at the start, where their 19 positions still reach back to the first bit: in this run,
# all up to step 13, and from step 19 on no more than a guess.
#
# So "convolve or recur" has no answer without a task. Bai et al. found the TCN ahead on most of theirs, and say of words that
# a tuned LSTM beats it there; in R-Transformer's Table 4, copied from them, it is 78.93 against 88.68 in perplexity. Sizes differ,
# too: on MNIST the paper's R-Transformer has three times the parameters of its TCN (204k that learn, against 67k), on words the TCN has more than
# six times R-Transformer's (14.7M against 2.3M). `rtx train copy-memory` runs such a comparison;
# [15 weigh the evidence](15_weigh_the_evidence.ipynb) has what was run: one seed of each, most of them cut short.
#
# ## 5. Two dials
#
# R-Transformer's bet is to have it all: state in a window, attention beyond it, and parallel windows. Is that worth anything
# where one of the tools would do? Here is a task with a dial for each. A text begins with a book of five pairs of symbols. Then
# every symbol follows either from a fixed *rule* over the last two, or from the *book*: the partner of the last one. A
# flag tells which; a coin decides. The dials say how often rule and book are obeyed: at 0 never, at 1 always.
#
# Four models with about 39,000 parameters each learn it from 300 updates. The script `studies/locality_dial.py` has trained
# them in advance, with three seeds each, and stored their losses. The best possible loss is known, so we count from there.
#
# **Predict.** Rule alone, book alone, both: who is near the best in each?
#
# <details><summary>Answer</summary>
#
# Rule alone: after 150 updates three of the four are within 0.02 nats of the best, the Transformer is not there yet: it has to
# find its neighbours by their positions first. After 300 all four are within 0.011, with every seed. Book alone, or both: the
# R-Transformer is far ahead; with both, one Transformer of three catches up. One attention could look a symbol up in both
# attention models; that R-Transformer's learns it sooner is what was measured, and why is not.
#
# </details>

# %%
import json
from pathlib import Path

stored = json.loads(Path("../studies/locality_dial.json").read_text())["runs"]
names = list(dict.fromkeys(run["model"] for run in stored))

def above_best(model, cell):
    """(seeds, tests): nats above the best possible loss, the mean over both kinds of symbols."""
    runs = [run for run in stored if run["model"] == model and (run["local"], run["long"]) == cell]
    return torch.tensor([[run["after_local"], run["after_recalled"]] for run in runs]).mean(1)

# %%
fig, axes = plt.subplots(1, 3, figsize=(10, 2.8), sharey=True)
cells = {"rule alone": (1.0, 0.0), "book alone": (0.0, 1.0), "both": (1.0, 1.0)}
for ax, (title, cell) in zip(axes, cells.items()):
    for name, dash in zip(names, ("-", "--", ":", "-.")):
        above = above_best(name, cell)
        (line,) = ax.plot(range(0, 301, 50), above.mean(0), dash, label=name)
        ax.fill_between(range(0, 301, 50), above.amin(0), above.amax(0), color=line.get_color(), alpha=0.2, lw=0)
        print(f"{title}: {name:13} {above[:, -1].mean():.3f} ± {above[:, -1].std():.3f} nats above the best there is")
    ax.set(title=title, xlabel="updates")
axes[0].set(ylabel="nats above the best there is")
fig.suptitle("a rule all four learn; where something is looked up, the R-Transformer is first", fontsize=11)
axes[0].legend(frameon=False, fontsize=8)
plt.show()

# %% [markdown]
# The bands reach from the best seed to the worst. That is 300 updates, with sizes and rates that nobody tuned; an update costs
# the R-Transformer 1.2 to 1.4 times the multiply-adds of the others. What a model has not learnt by then it may still learn.
# The file `studies/locality_dial.json` has all strengths that were run, and `python studies/locality_dial.py` trains them
# again. `rtx train locality-dial ROW` trains one of its rows, or a model of your choice, on the same task.
#
# ## Recap
#
# - Reach: $1 + 2(k-1)(2^L - 1)$ for a TCN, $L(M-1)+1$ for LocalRNNs, everything for recurrence. Measured, not believed.
# - What is seen is not yet learnt: gradients decide, and a TCN's have few steps to go.
# - A TCN knows delays by heart; a recurrent network keeps a state. Copy memory and parity are the two extremes.
# - Where a rule over neighbours was all there was, all four designs came out even; where it was obeyed half the time,
#   all but the Transformer, which was behind still. Where something had to be looked up, the R-Transformer learnt it
#   first.
# - Leaks of the future are found by derivatives, part by part.
#
# **Quiz.** 1. Why does a deeper TCN not simply learn parity of 24 bits? 2. Your model's validation loss is far better than all
# published ones. First thing to do? 3. What would you choose for a sensor that must answer at each step, on a small chip?
#
# <details><summary>Answers</summary>
#
# 1. It could represent it, but no part of the answer is visible in fewer than all bits: the gradient has nothing to hold on to. 2. Look for a
# leak: `explore.xray(model, x)`. 3. A recurrent network: one small state, the same work at every step.
#
# </details>
#
# **Back:** [Carry memory](06_carry_memory.ipynb) · **Index:** [README](../README.md) · **On:**
# [Split into channels](08_split_into_channels.ipynb)
