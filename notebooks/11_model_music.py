# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Can a model learn a chorale?
#
# In this Bach room, a small [R-Transformer](../docs/glossary.md#r-transformer) reads a chorale. A **frame** is an eighth note. The bars show how much each frame **surprised** the model. Bach wrote the notes left of the border, and the model wrote the others. Bach's frames 35 to 42 repeat frames 3 to 10, but their bars hardly shrink. (Section 5 says why.)
# On the website and in JupyterLab you can play the tune and change its notes.

# %%
from rtx.lab import explore

explore.bach()

# %% [markdown]
# The model reads the past with two parts ([notebook 04](04_stack_the_block.ipynb)). A **LocalRNN** is a recurrent network that
# reads the last few frames, its **window**. **Attention** reads a weighted mean of all frames so far.
#
# **Try.** (1) Press *Only Bach*, and click one note away. Which bars change? (2) Press *Without LocalRNN*, then *Without
# attention*. When do the bars grow more?
#
# <details><summary>Answers</summary>
#
# (1) The changed frame's bar and bars after it: the model only reads the past. (2) Without LocalRNN. Section 5 measures this for our own model.
#
# </details>
#
# The R-Transformer paper reports a mean surprise of 2.37 for folk music. By its code, the unit is **nats** (natural logarithms) per frame. Is this
# good?
#
# - **You will** write the loss that measures surprise, a simple model, and (optional) the cost of independent keys.
# - **You learn** what to compare a loss with, and which faults of a model you can hear.
# - **You need** probabilities, logarithms, and a PyTorch training loop.
# - **Time:** 60 minutes, with 20 for two exercises. The third takes 15 more. The cells run in half a minute.

# %%
import json
from pathlib import Path
from statistics import mean, stdev
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.evidence import tables
from rtx.lab import exercises, plots
from rtx.lab.pretrained import pretrained
torch.set_num_threads(1)
plots.style()

# %% [markdown]
# ## 1. A tune is a piano roll
#
# A **piano roll** has one row per frame. A row has 88 numbers, one per key of the piano: 1 if the key sounds, 0 if it is silent. A
# **chorale** is a hymn for four voices. Ours come with music21, a Python package.

# %%
task = rtx.tasks.task_by_name("chorales")
# 64-bit numbers: rounding differs between processors, but is then too small to matter
tunes = {split: [torch.cat([e.inputs, e.target[-1:]]).double() for e in task.split(split)] for split in ("train", "validation", "test")}
for split, rolls in tunes.items():
    print(f"{split:10} {len(rolls):3} chorales, {sum(len(roll) - 1 for roll in rolls):6,} frames to predict")
bach = tunes["test"][0]
print(f"the first test chorale has {len(bach)} frames; on average {bach.sum(1).mean():.2f} keys sound")

# %%
figure, ax = plt.subplots(figsize=(7.6, 2.8))
plots.piano_roll(ax, bach[:64], "a chorale is four lines of notes (64 frames of a test chorale)")
plt.show()

# %% [markdown]
# ## 2. The surprise of a frame
#
# How do we score a prediction? Here are two frames of a piano with three keys. The model gives each key a
# probability $p$ that it sounds. A key that sounds costs $-\log p$. A key that is silent costs $-\log(1 - p)$.

# %%
p = torch.tensor([[0.9, 0.2, 0.1], [0.8, 0.5, 0.3]])
x = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
cost = -torch.where(x == 1, p, 1 - p).log()
for t in range(2):
    keys = [f"p {p[t, k]:.1f}, {'sounds' if x[t, k] else 'silent'}: {cost[t, k]:.2f}" for k in range(3)]
    print(f"frame {t + 1}:  " + "   ".join(keys) + f"   sum {cost[t].sum():.2f}")
print(f"mean of the two sums: {cost.sum(1).mean():.2f} nats per frame")

# %% [markdown]
# The cost of a frame is the **sum over its keys**. The score is the **mean over frames**. It is called the negative
# log-likelihood (NLL) per frame:
#
# $$\mathrm{NLL} = -\frac{1}{T}\sum_{t=1}^{T}\sum_{k=1}^{K} \big[x_{t,k}\log p_{t,k} + (1 - x_{t,k})\log(1 - p_{t,k})\big]$$
#
# $T$ is the number of predicted frames, and $K = 88$ is the number of keys. $x_{t,k}$ is 1 if key $k$ sounds in frame $t$, and
# $p_{t,k}$ is its probability. The first frame of a tune is given and not counted.
#
# **Exercise 1** (medium, 10 minutes). Write this score. Both tensors have the shape $(T, 88)$. `targets` is $x$. The **logits** $z$
# of the model give $p = \mathrm{sigmoid}(z)$. The result must stay finite for logits of ±500.

# %%
def my_nll_per_frame(logits, targets):
    ...  # one number

nll_per_frame = exercises.yours(my_nll_per_frame, "nll_per_frame")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `torch.nn.functional.logsigmoid(z)` is $\log p$ for $z$ of any size. And $1 - \mathrm{sigmoid}(z) = \mathrm{sigmoid}(-z)$.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_nll_per_frame(logits, targets):
#     log_p, log_not_p = torch.nn.functional.logsigmoid(logits), torch.nn.functional.logsigmoid(-logits)
#     return -(targets * log_p + (1 - targets) * log_not_p).sum(1).mean()
# ```
#
# </details>
#
# **Predict.** A model knows nothing and gives every key $p = ½$. What is its NLL? Does it depend on the music?
#
# <details><summary>Answer</summary>
#
# Every key costs $\log 2 = 0.69$ nats, sounding or silent. So each frame costs $88 \log 2 = 61.0$ nats.
#
# </details>

# %%
import math

print(f"all p = 1/2: {nll_per_frame(torch.zeros(len(bach), 88), bach):.1f} nats per frame")
for nats in (61.0, 10.0, 7.0, 2.37):
    print(f"{nats:5.2f} nats: like a choice among {math.exp(nats):.3g} equally likely frames")

# %% [markdown]
# ## 3. Two reference points
#
# The **marginal** reads nothing. It gives each key the share of training frames in which the key sounds. **Markov per key** reads only
# the frame before. It has two probabilities for each key: one if the key was silent before, and one if it sounded before.
#
# **Exercise 2** (medium, 10 minutes). Write the second model. `before` has $N$ frames, and `after` has the frames that follow them:
# both are $(N, K)$. Return two rows of $K$ probabilities that a key sounds: row 0 if it was silent before, row 1 if it sounded
# before. Each probability is $(n + ½)/(c + 1)$. For row 0, the key was silent in $c$ frames, and after $n$ of them it sounds. For row 1, the key sounded in $c$ frames, and after $n$ of them it sounds again. The added ½ and 1 keep every
# probability strictly between 0 and 1. At 0 or 1, one note could cost infinitely much.

# %%
def my_markov_per_key(before, after):
    ...  # (2, K)

markov_per_key = exercises.yours(my_markov_per_key, "markov_per_key")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `(before * after).sum(0)` counts for each key how often it sounded before *and* after.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_markov_per_key(before, after):
#     rows = [((was * after).sum(0) + 0.5) / (was.sum(0) + 1) for was in (1 - before, before)]
#     return torch.stack(rows)
# ```
#
# </details>
#
# **Predict.** How many nats does the marginal have: 50, 30 or 12? How many fewer does
# Markov per key have?

# %%
before = torch.cat([roll[:-1] for roll in tunes["train"]])
after = torch.cat([roll[1:] for roll in tunes["train"]])
marginal, markov = (after.sum(0) + 0.5) / (len(after) + 1), markov_per_key(before, after)
models = {
    "marginal": lambda roll: marginal.logit().expand(len(roll) - 1, -1),
    "Markov per key": lambda roll: torch.where(roll[:-1] == 1, markov[1], markov[0]).logit(),
}

@torch.no_grad()
def by_tune(predict):
    return [nll_per_frame(predict(roll), roll[1:]).item() for roll in tunes["test"]]

def average(costs):  # over all frames, so long tunes count more
    lengths = [len(roll) - 1 for roll in tunes["test"]]
    return sum(cost * length for cost, length in zip(costs, lengths)) / sum(lengths)

# %%
costs = {name: by_tune(predict) for name, predict in models.items()}
for name, found in costs.items():
    print(f"{name:15} {average(found):5.2f} nats per frame on the test split")
repeats = torch.cat([(roll[1:] == roll[:-1]).all(1) for roll in tunes["test"]])
print(f"test frames that repeat the frame before: {repeats.float().mean():.0%}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The marginal has about 12 nats. Markov per key has 2.8 fewer.
#
# </details>
#
# ## 4. Train
#
# Each update (a step of the optimiser) reads eight excerpts of 48 frames.

# %%
_ = torch.manual_seed(0)
model = rtx.build(
    task, "r-transformer", d_model=128, layers=1,  # one block of width 128
    heads=4,  # four attentions side by side
    window=6, cell="gru",  # the LocalRNN reads six frames; it is a GRU, a recurrent network with gates
    norm="pre",  # each part first normalises what it reads
).double()
models["R-Transformer"] = lambda roll: model(roll[None, :-1])[0]
adam = torch.optim.Adam(model.parameters(), lr=3e-3)
falling = torch.optim.lr_scheduler.LinearLR(adam, 1, 0, total_iters=300)
long_enough = [roll for roll in tunes["train"] if len(roll) >= 48]

def excerpt():
    roll = long_enough[torch.randint(len(long_enough), ())]
    start = torch.randint(len(roll) - 47, ())
    return roll[start : start + 48]

# %%
test = []
for update in range(300):
    frames = torch.stack([excerpt() for _ in range(8)])
    loss = nll_per_frame(model(frames[:, :-1]).flatten(0, 1), frames[:, 1:].flatten(0, 1))
    adam.zero_grad()
    loss.backward()
    adam.step()
    falling.step()
    if update % 50 == 49:
        test.append(average(by_tune(models["R-Transformer"])))

# %%
figure, ax = plt.subplots(figsize=(7.2, 3))
ax.plot(range(50, 301, 50), test, "o-")
for name, found in costs.items():
    ax.axhline(average(found), color="0.6", linestyle=":")
    ax.text(300, average(found), name, va="bottom", ha="right", fontsize=9)
ax.set(title="after 100 updates, the R-Transformer is below both reference points", ylim=(0, 13))
ax.set(xlabel="updates", ylabel="test NLL per frame (nats)")
plt.show()
costs["R-Transformer"] = by_tune(models["R-Transformer"])
for name, found in costs.items():
    print(f"{name:15} {average(found):5.2f} nats per frame on the test split")

# %% [markdown]
# We stop after 300 updates, whatever the test curve shows. The **gain** is the NLL of Markov per key minus that of the
# R-Transformer. Is it similar for all tunes?

# %%
gains = [m - r for m, r in zip(costs["Markov per key"], costs["R-Transformer"])]
figure, ax = plt.subplots(figsize=(4.6, 4))
ax.plot(costs["Markov per key"], costs["R-Transformer"], "o", alpha=0.7)
ax.plot([5, 14], [5, 14], color="0.6", linestyle=":")
ax.text(9, 9.5, "equal", color="0.4", ha="right")
ax.set(title=f"{sum(gain > 0 for gain in gains)} of {len(gains)} chorales are below the line: the R-Transformer gains")
ax.set(xlabel="Markov per key (nats per frame)", ylabel="R-Transformer (nats per frame)", aspect="equal")
plt.show()
for name, found in {**costs, "gain over Markov": gains}.items():
    print(f"{name:16} standard deviation over chorales {stdev(found):.2f}, smallest {min(found):5.2f}, largest {max(found):5.2f}")

# %% [markdown]
# The R-Transformer's NLL differs more between chorales ([standard deviation](../docs/glossary.md#standard-deviation) 1.19) than the gain does (0.53). So if two models are tested on few and *different* chorales, the difference between the chorales can hide the gain. Compare two models on the same tunes only.
#
# ## 5. What does it expect?
#
# The model reads the first test chorale. For each frame but the first, it gives every key a probability.

# %%
with torch.no_grad():
    expected = models["R-Transformer"](bach).sigmoid()
    price = [nll_per_frame(models["R-Transformer"](bach)[t - 2 : t - 1], bach[t - 1 : t]).item() for t in (16, 17, 18)]
figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharey=True)
plots.piano_roll(axes[0], torch.cat([torch.zeros(1, 88), expected[:47]]), "probabilities, given the past (dark: 1)")
plots.piano_roll(axes[1], bach[:48], "the notes that came")
for ax in axes:
    ax.axvline(16.5, color="black", linestyle="--", linewidth=1)
axes[0].set_ylim(36, 82)
axes[1].set_ylabel("")
plt.show()
print("cost of frames 16, 17, 18:", ", ".join(f"{nats:.1f}" for nats in price), "nats")

# %% [markdown]
# At frame 17, right of the dashed line, all four voices move. The model expected frame 16 again, and was surprised.
#
# Which part does the model need? A stored study trained it with three [seeds](../docs/glossary.md#seed) (random starts). It *switched off* a part: it set
# the part's output to zero. It also *trained* new models *without* the part.

# %%
study = json.loads(Path("../studies/music_controls.json").read_text(encoding="utf-8"))
print("whole model:", tables.spread([run["whole"] for run in study["parts"]], 2), "nats per frame")
for part in ("LocalRNN", "attention"):
    off, without = (tables.spread([run[how][part] for run in study["parts"]], 2) for how in ("switched off", "trained without"))
    print(f"{part:9} switched off {off:>12}, trained without it {without} nats per frame")

room = pretrained("bach").double()  # the model of the Bach room
print(f"Bach room {average(by_tune(lambda roll: room(roll[None, :-1])[0])):.2f} nats per frame", end=", ")
with torch.no_grad():
    for block in room.backbone.blocks:
        block[1].sublayer.query.weight.zero_()  # all scores are 0, so all weights are equal
print(f"with equal attention weights {average(by_tune(lambda roll: room(roll[None, :-1])[0])):.2f}")

# %% [markdown]
# Switching off a part costs much more than training without it. So switching off exaggerates how much a model needs a part. Trained without attention, our model loses little (7.39 against 7.31 nats). Without LocalRNN, and so without order, it loses more.
#
# With equal weights, attention is a plain mean of the past. The model of the Bach room hardly notices (last line). So its attention hardly looks for repeats.
#
# ## 6. What does independence cost?
#
# All models here add one cost per key. This assumes that the keys of a frame are independent, given the past.
# Suppose that two frames are equally likely: C–E–G or C–F–A. A model of whole frames pays $\log 2 = 0.69$ nats.
# Independent keys pay more. C is certain, and E, F, G and A have $p = ½$ each: $4 \log 2 = 2.77$ nats. A draw of independent keys gives
# one of 16 equally likely frames. Only two of the 16 are the chords.
#
# **Exercise 3** (hard, optional, 15 minutes). Suppose that all rows of `frames` $(N, K)$ followed the same past. Return the mean cost
# of independent keys minus the mean cost of whole frames. If we predict an event with its true probabilities $q_i$, the mean cost is $-\sum_i q_i \log q_i$. The event is one key, or one whole frame. A key has two outcomes: it sounds, or it is silent. The outcomes of a whole frame are the
# different rows. Every probability is a share of the $N$ rows.

# %%
def my_independence_gap(frames):
    ...  # one number

independence_gap = exercises.yours(my_independence_gap, "independence_gap")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `torch.xlogy(p, p)` is $p \log p$, and 0 for $p = 0$. `frames.unique(dim=0, return_counts=True)[1]` counts equal rows.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_independence_gap(frames):
#     p = frames.mean(0)
#     q = frames.unique(dim=0, return_counts=True)[1] / len(frames)
#     return torch.xlogy(q, q).sum() - (torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p)).sum()
# ```
#
# </details>

# %%
chords = torch.tensor([[1.0, 1, 0, 1, 0], [1, 0, 1, 0, 1]])  # C E F G A
print(f"two chords: independent keys cost {independence_gap(chords):.2f} nats more than whole frames")
kinds, number, times = before.unique(dim=0, return_inverse=True, return_counts=True)
following = after[number == times.argmax()]
shuffled = torch.stack([column[torch.randperm(len(column))] for column in following.T], 1)
shares = following.mean(0).clamp(1e-6, 1 - 1e-6).logit().expand_as(following)
print("the commonest training frame has the keys", (kinds[times.argmax()].nonzero()[:, 0] + 21).tolist(), "(MIDI numbers)")
print(f"after it ({len(following)} times), independent keys cost {nll_per_frame(shares, following):.2f} nats")
print(f"this is {independence_gap(following):.2f} more than whole frames; in the control {independence_gap(shuffled):.2f} more")

# %% [markdown]
# In the [control](../docs/glossary.md#control), each key's column is shuffled by itself. Then the keys *are* independent, and the true gap is 0. The estimate is
# about 1.5, because 480 frames are too few: rare frames are missing, so whole frames seem to cost too little. The gap of the real frames is
# about 2.5 nats larger. This is rough: the error may differ for the real frames, and their pasts agree only in the last frame.
#
# ## 7. Let it write, and listen
#
# The model reads 16 frames of Bach. Then it draws each key of the next frame independently, reads the new frame, and goes on.
# The cursor is on the first frame that the model wrote, frame 17. (The picture calls all 64 frames "the tune".) The bars show the surprise of the Bach room's model, not of ours.

# %%
from rtx.tasks.generate import continue_roll

written = [continue_roll(model, roll[:16], frames=48) for roll in tunes["test"][:10]]
page = explore.bach(written[0], begin=len(written[0]) + 1)  # the room's model begins after the end: it writes nothing
page.set(frame=17)
page

# %% [markdown]
# **Predict.** It is no chorale: voices appear and vanish. Three suspects: (a) Keys are drawn independently. (b) The
# model reads its own odd frames, which it never saw in training. (c) The model is too weak. How can you test (a) and (b)?

# %%
def describe(name, frames):  # shares of frames with four notes
    print(f"{name:60} four notes in {(frames.sum(1) == 4).float().mean():3.0%} of {len(frames):,} frames")

keys = torch.cat([roll[1:] for roll in tunes["test"]])
with torch.no_grad():
    p = torch.cat([models["R-Transformer"](roll) for roll in tunes["test"]]).sigmoid()
describe("Bach, test split", keys)
describe("our model, each frame drawn after Bach's past", (torch.rand(p.shape) < p).float())
describe("our model, drawn after its own past", torch.cat([roll[16:] for roll in written]))
describe("Bach, after the commonest frame (section 6)", following)
describe("the same, each key shuffled by itself", shuffled)

# %% [markdown]
# <details><summary>Answer</summary>
#
# (b) Give the model Bach's past, and draw one frame. Four notes are about as rare as after its own past. So odd frames are not needed to
# lose the four notes. (a) In the last line, each key keeps exactly Bach's share, but the keys are independent. Four notes become
# rare. So independent keys alone can cause it. We did not test (c), or how voices move over time.
#
# </details>
#
# **Bach or machine?** In each pair, one tune is by Bach. The model of the Bach room drew the other. It drew each frame again
# until the frame had as many notes as Bach's.

# %%
explore.bach_or_machine()

# %% [markdown]
# ## 8. The paper's 2.37, and ours
#
# Nottingham is a set of folk tunes with chords. JSB is another edition of Bach's chorales, with one frame per *quarter* note. [RNN](../docs/glossary.md#rnn),
# [GRU](../docs/glossary.md#gru-lstm) and LSTM are recurrent networks. A [TCN](../docs/glossary.md#tcn) uses convolutions. A [Transformer](../docs/glossary.md#transformer) has attention, but no LocalRNN. Our numbers are mean ± standard deviation over three seeds, or as many as a table says. A star marks our best model of a column.
#
# - *Adam* is our [recipe](../docs/glossary.md#recipe): the optimiser Adam, 15 epochs. On Nottingham the R-Transformer had one
#   [learning rate](../docs/glossary.md#learning-rate). For the paper's other models, validation chose among two or three. On JSB, all six models had six rates to choose from. With relative positions, the Transformer had one rate.
# - *Same size*: 1.42 million parameters for each model, all at the rate 5e-4, not chosen.

# %%
import re
from rtx.training import recipe

plan, RATE = recipe.load_recipe("nottingham"), r"(\+learning_rate=[^+]*)?"
ADAM, RELATIVE = f"adam{RATE}", rf"adam{RATE}(\+max_distance=\d+)?\+position=relative"
ledger = {name: tables.cells(recipe.load_recipe(name), Path("../results")) for name in ("nottingham", "jsb")}

def runs(row, pattern, name="nottingham"):  # at the learning rate that validation chose
    groups = [group for group in ledger[name][row] if re.fullmatch(pattern, group[0].variant) and len(group) > 1]
    return tables.chosen(groups, min) if groups else []

def told(group):
    seeds = f" ({len(group)} seeds)" if len(group) != 3 else ""
    return tables.spread([run.test for run in group], 2) + seeds if group else ""

# %%
order = sorted(filter(plan.paper, plan.models), key=plan.paper)
asked = ("nottingham", ADAM), ("nottingham", "same-parameters"), ("jsb", ADAM)
columns = [{row: runs(row, pattern, name) for row in order} for name, pattern in asked]
columns[1]["r-transformer"] = columns[0]["r-transformer"]  # the others have its size
for column, name in zip(columns, ("nottingham", "", "jsb")):
    column["Transformer, relative positions"] = runs("transformer", RELATIVE, name) if name else []
best = [min(filter(None, column.values()), key=lambda group: mean(run.test for run in group)) for column in columns]
print(f"{'NLL per frame (nats)':33}{'paper':7}{'Adam':15}{'same size':15}JSB, Adam")
for name in ("marginal", "Markov per key"):
    print(f"{name:40}{study['simple']['nottingham'][name]:<30.2f}{study['simple']['jsb'][name]:.2f}")
for row in columns[0]:
    paper = f"{plan.paper(row):.2f}" if row in order else ""
    if any(column[row] for column in columns):
        print(f"{row:33}{paper:7}" + "".join(f"{told(c[row]) + '*' * (c[row] is b):15}" for c, b in zip(columns, best)))
print("frames that repeat the frame before:", *(f"{name} {found['repeats']:.0%}" for name, found in study["simple"].items()))
print("Nottingham, authors' settings, 15 of 100 epochs:", *(f"{row:14}{told(runs(row, 'official.*'))}" for row in order), sep="\n  ")

# %% [markdown]
# - **Is 2.37 good?** It is better than a simple model: Markov per key has 5.15 nats.
# - **Did we reproduce 2.37?** With the authors' settings we did not reach it in 15 of 100 epochs. The GRU is first (3.81 nats). The R-Transformer has 4.06, and one of three seeds diverged. The rates are in [findings](../docs/findings.md). With Adam, it has 2.21.
# - **Is it first?** On Nottingham with Adam, it is first of the paper's six models, also at equal size. On JSB, the LSTM is ahead if both train longer ([15](15_weigh_the_evidence.ipynb)).
# - **JSB is not our chorales.** Fewer frames repeat the frame before. Its numbers differ from section 4.
# - **This Transformer has sinusoids**: waves that mark positions ([notebook 05](05_encode_position.ipynb)). The R-Transformer's lead over it is 1.3 nats on Nottingham. With **relative positions** and the same recipe, two of its seeds are level with the R-Transformer, and one is ahead (see the next picture). So the kind of positions explains the lead over [sinusoids](../docs/glossary.md#sinusoids). On JSB relative positions are better, too, but by only about 0.04 nats, and not with every seed.
#
# Which part gives the lead? These runs trained the R-Transformer without a part, or with another window.

# %%
without = {"window 12": r"\+window=12", "window 6": "", "window 3": r"\+window=3", "window 1": r"\+window=1", "no attention": r"\+heads=0", "no LocalRNN": r"\+local_layers=0"}
found = {f"R-Transformer, {name}": runs("r-transformer", f"adam{change}") for name, change in without.items()}
found["R-Transformer, convolution, 60 epochs"] = runs("r-transformer", r"strong\+cell=convolution")
found |= {"TCN": runs("tcn", ADAM), "Transformer, no positions": runs("transformer", r"adam\+position=none")}
found |= {"Transformer, sinusoids": runs("transformer", ADAM), "Transformer, relative positions": runs("transformer", RELATIVE)}
found = {name: group for name, group in found.items() if group}
figure, ax = plt.subplots(figsize=(7.6, 3.2))
for place, (name, group) in enumerate(found.items()):
    ax.plot([run.test for run in group], [place] * len(group), "o", color=plots.COLOURS[0 if place < 7 else 1], alpha=0.7)
    print(f"{name:37} {told(group)} nats per frame, {group[0].parameters:9,} parameters")
ax.set(yticks=range(len(found)), yticklabels=list(found), xlabel="test NLL per frame (nats), one dot per seed", xlim=(1.8, 4.5))
ax.set_title("Nottingham: a window of 6 or relative positions give a low NLL", x=-0.2)
ax.invert_yaxis()
plt.show()

# %% [markdown]
# - **Window 1** has all parameters of window 6, but its LocalRNN reads only one frame, so its 3 × 480 × 160 recurrent weights do nothing. The others are still more than
#   the Transformer has. The lead is gone. So the number of parameters does not explain it.
# - **Window 12** has 2.05 nats. This is between the seeds of the Transformer with relative positions.
# - **No LocalRNN** leaves a Transformer without positions (only its dropout on the input is missing). So these two numbers should agree, and they do. The NLL is 2.0 nats higher than with LocalRNN. Compared with no positions, sinusoids lower the Transformer's NLL by 0.7 nats, and relative positions by 2.1. So either a window or relative
#   positions give the low NLL. With up to 60 epochs, a model with both has 1.76 ± 0.02 nats, and a Transformer with relative positions 1.92 ± 0.10 ([findings](../docs/findings.md)). So LocalRNN, or 48 % more parameters, seems to help.
# - **A convolution** that reads the same six frames comes close (up to 60 epochs; within 15 it is behind with every seed). So without positions, most of the gain needs no recurrence. With relative positions and up to 60 epochs, it has 1.89 ± 0.04 nats, and the R-Transformer is better with every seed. So there, recurrence seems to help (three seeds).
# - **No attention** costs 1.4 nats, more than on our chorales. A likely reason: folk tunes repeat passages, which attention helps to copy ([notebook 15](15_weigh_the_evidence.ipynb)). This model also has fewer parameters.
#
# ## Recap
#
# - Switching off a part costs more than training without it (three seeds).
# - Independent keys alone can make frames with four notes rare.
# - With Adam, the R-Transformer is first of the paper's six models on Nottingham, but not clearly ahead of a Transformer with relative positions. With such positions for both and more epochs, it is ahead with every seed (three), but 48 % larger.
# - Open: the authors' 100 epochs, and a model of whole frames.
#
# ## Quiz
#
# 1. One paper reports 2.37 nats. Another reports 0.027 for the same model and data. Why?
# 2. You cut each frame into two sixteenth notes. What happens to the NLL per frame?
#
# <details><summary>Answers</summary>
#
# 1. A mean over the 88 keys instead of a sum: 2.37 / 88 = 0.027.
# 2. It falls. The second half of a frame always repeats the first half, and a model can learn this.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Wang et al. (2019), *R-Transformer*, section 4.2.
#
# | in the paper | value | here | in `rtx`, this project's package |
# | --- | --- | --- | --- |
# | Table 2, Nottingham | 2.37, … | section 8 | `rtx.evidence.tables`, `rtx table nottingham` |
#
# </details>
#
# **Back:** [What does 99.1 against 99.0 say?](10_read_digits.ipynb) · **Index:** [README](../README.md) · **Words:** [glossary](../docs/glossary.md) · **On:**
# [Where does the time go?](12_make_it_fast.ipynb)
