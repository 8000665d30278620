# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Model music
#
# **Can a model learn a chorale, and what does an NLL of 2.37 per frame mean?**
#
# In Table 2 of the R-Transformer paper, models of music are compared by a number of nats per frame. Here you find out
# what is counted, what the number is to be held against, and how such a model sounds.
#
# - **You will** turn Bach's chorales into piano rolls, score predictions of the next frame, train a small
#   R-Transformer while you wait, look at what it expects, and listen to what it writes.
# - **You learn** to read a negative log-likelihood (NLL), to build reference points for it, and what it costs to
#   predict every note independently.
# - **You need** probabilities, logarithms, and a PyTorch training loop. R-Transformer itself is a box here; it is
#   opened in [Slide a window](02_slide_a_window.ipynb) and [Stack the block](04_stack_the_block.ipynb).
# - **Time:** 30 minutes to read and try; the cells run in half a minute. The first run reads the chorales out of the
#   installed music21, which takes up to half a minute more; then they are kept.
#
# ## Paper map
#
# Wang et al. (2019), *R-Transformer*, section 4.2. $T$ frames, 88 keys.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | a tune's frames | $x_t \in \{0, 1\}^{88}$ | section 1 | `example.inputs`, `example.target` |
# | Nottingham, 694/173/170 tunes | | section 8 | `task_by_name("nottingham")`; here `"chorales"`, at hand |
# | NLL | $\mathrm{NLL}$ | section 2 | `task.loss` |
# | the model, Eq. 2-8 | | section 4 | `rtx.build(task, "r-transformer", …)` |
# | Table 2 | 2.37, … | section 8 | `rtx.evidence.tables` |

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots
torch.set_num_threads(1)
plots.style()

# %% [markdown]
# ## 1. A tune is a piano roll
#
# A chorale is a hymn for four voices. A **piano roll** has a row per frame and a column per key of the piano: 1 where
# the key sounds. Here a frame lasts an eighth note. Whether a note is held or struck again, a roll does not tell.
# Figures lay it on its side: time to the right, pitch upwards, as MIDI numbers (60 is middle C).
#
# The task is to predict each frame from those before it. So an example's `inputs` are all frames but the last,
# its `target` all frames but the first. Chorales are split by piece: no piece is in two splits.

# %%
task = rtx.tasks.task_by_name("chorales")
for split in ("train", "validation", "test"):
    examples = task.split(split)
    print(f"{split}: {len(examples)} chorales, {sum(len(e.target) for e in examples)} frames to predict")

# %%
def whole(example):
    return torch.cat([example.inputs, example.target[-1:]])


bach = whole(task.split("test")[0])
figure, ax = plt.subplots(figsize=(7.6, 3))
plots.piano_roll(ax, bach[:64], "A chorale of the test split: the bass moves, the upper voices hold")
plt.show()
print(f"{len(bach)} frames of {bach.shape[1]} keys, on average {bach.sum(1).mean():.2f} of them sound")

# %% [markdown]
# *The figure:* the first 64 frames; four voices, one above the other. The upper ones move by small steps and hold notes;
# the bass moves more, and leaps.
#
# ## 2. The probability of a tune
#
# A tune's probability is a product over its frames, each given its whole past (the first frame is given):
#
# $$p(x_2, \dots, x_T \mid x_1) = \prod_{t=2}^{T} p(x_t \mid x_1, \dots, x_{t-1})$$
#
# There are $2^{88}$ possible frames, too many to list. The published models predict 88 numbers instead,
# one probability $p_{t,k}$ per key, and take the keys of a frame to be **independent Bernoulli variables** given the
# past:
#
# $$p(x_t \mid x_{<t}) = \prod_{k=1}^{88} p_{t,k}^{\,x_{t,k}}\,(1 - p_{t,k})^{1 - x_{t,k}}$$
#
# The negative log-likelihood per frame is a **sum over notes** and a **mean over frames**. Its unit is the **nat**, that
# of the natural logarithm:
#
# $$\mathrm{NLL} = -\frac{1}{T-1}\sum_{t=2}^{T}\sum_{k=1}^{88}
# \Big[x_{t,k}\log p_{t,k} + (1 - x_{t,k})\log(1 - p_{t,k})\Big]$$

# %%
import math


def naive_nll(p, x):
    total = 0.0
    for p_t, x_t in zip(p.tolist(), x.tolist(), strict=True):
        for p_tk, x_tk in zip(p_t, x_t, strict=True):
            total -= math.log(p_tk if x_tk else 1 - p_tk)
    return total / len(x)

# %% [markdown]
# **Predict.** A model knows nothing and says $p = ½$ for every key. What is its NLL per frame? Does it depend on the
# music?
#
# <details><summary>Answer</summary>
#
# Every note costs $\log 2 = 0.693$ nats, whether it sounds or not. So every frame costs $88 \log 2 = 61.0$ nats,
# whatever is played: all $2^{88}$ frames are equally likely.
# </details>

# %%
print(f"{naive_nll(torch.full((len(bach), 88), 0.5), bach):.1f}")

# %% [markdown]
# `task.loss` computes the same sum from **logits** $z$, with $p = \mathrm{sigmoid}(z)$, and leaves padding out. From
# here on we use it. It returns the total and the count, so that batches can be added up.

# %%
batch = rtx.tasks.task.collate([task.split("test")[0]], task.per)
logits = torch.randn(batch.targets.shape, generator=torch.Generator().manual_seed(0))
loss = task.loss(logits, batch)
naive = naive_nll(logits[0].sigmoid(), batch.targets[0])
torch.testing.assert_close(loss.total / loss.count, torch.tensor(naive))

# %% [markdown]
# What does a number of nats mean? $e^{-\mathrm{NLL}}$ is the (geometric) mean probability of the frame that came.
# Its inverse is the **perplexity**: the model was as unsure as if it chose among that many equally likely frames.

# %%
for nats in (61.0, 10.0, 5.0, 2.37):
    print(f"{nats:5.2f} nats: mean probability {math.exp(-nats):.2g}, one in {math.exp(nats):.3g} frames")

# %% [markdown]
# So 2.37 means: the frame that came had a probability of about 9 %, as if there were eleven frames to choose from.
# For tunes with chords, as in Table 2, that is little. How little, reference points must tell.
#
# ### Exercise: the NLL from logits
# *Medium, 10 minutes.* Write the NLL per frame of `logits` and `targets`, both (T, 88), without a loop. It must stay
# finite for logits of ±500.

# %%
def mine(logits, targets):
    ...


exercises.nll_per_frame(mine)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# $1 - \mathrm{sigmoid}(z) = \mathrm{sigmoid}(-z)$.
# </details>
# <details><summary>Hint 2</summary>
#
# `torch.nn.functional.logsigmoid(z)` is $\log p$, for $z$ of any size. What is $\log(1-p)$?
# </details>
# <details><summary>Solution</summary>
#
# ```python
# from torch.nn.functional import logsigmoid
#
# def mine(logits, targets):
#     log_likelihood = targets * logsigmoid(logits) + (1 - targets) * logsigmoid(-logits)
#     return -log_likelihood.sum(1).mean()
# ```
# `binary_cross_entropy_with_logits(logits, targets, reduction="sum") / len(targets)` is the same.
# </details>
#
# ## 3. Two reference points
#
# **Marginal.** Ignore the past. A key's probability is how often it sounds in the training split:
# $p_k = (n_k + ½)/(N + 1)$ if it sounds in $n_k$ of $N$ frames, the ½ so that a key never heard is not impossible.
#
# **Markov per key.** Look at the same key in the frame before: one probability for a key that was on, one for
# a key that was off. This knows that notes are held, and nothing of harmony, metre or melody.

# %%
from torch.nn.functional import binary_cross_entropy


def pairs(task, split):
    examples = task.split(split)
    return torch.cat([e.inputs for e in examples]), torch.cat([e.target for e in examples])


def baselines(task):
    (before, x), (test_before, test_x) = pairs(task, "train"), pairs(task, "test")
    always = (x.sum(0) + 0.5) / (len(x) + 1)
    on = ((before * x).sum(0) + 0.5) / (before.sum(0) + 1)
    off = (((1 - before) * x).sum(0) + 0.5) / ((1 - before).sum(0) + 1)
    p = {"marginal": always.expand_as(test_x), "Markov per key": torch.where(test_before > 0, on, off)}
    return {k: binary_cross_entropy(p[k], test_x, reduction="sum").item() / len(test_x) for k in p}

# %% [markdown]
# **Predict.** The marginal knows which keys are used: 61 nats shrink. How many remain: 50, 30 or 12? And how
# many does the frame before take away from that?
#
# <details><summary>Answer</summary>
#
# About 12 remain: most keys never sound in a chorale, and to know that saves most of the 61. The frame before takes
# away a quarter of the rest. Not more, because a chorale moves: only about one frame in four repeats
# the one before.
# </details>

# %%
reference = baselines(task)
before, x = pairs(task, "train")
print({name: f"{nats:.1f}" for name, nats in reference.items()})
print(f"frames equal to the one before: {(before == x).all(1).float().mean():.0%}")

# %% [markdown]
# *Yours to try:* `baselines(rtx.tasks.task_by_name("nottingham"))` gives 10.26 and 5.15 (it downloads 0.4 MB, or
# reads the folder that `RTX_DATA` names). These are the two numbers to hold the paper's 2.37 against.
#
# ## 4. Train
#
# A small R-Transformer: one block of width 128, where the paper stacks three of width 160. `norm="pre"` is the order
# of the published code. It reads random crops of 48 frames, eight at a time, and learns to predict every next frame.

# %%
torch.manual_seed(0)
model = rtx.build(task, "r-transformer", d_model=128, layers=1, heads=4, window=6, cell="gru", norm="pre")
adam = torch.optim.Adam(model.parameters(), lr=3e-3)
tunes = [tune for tune in map(whole, task.split("train")) if len(tune) >= 48]


def crop(length=48):
    tune = tunes[torch.randint(len(tunes), ())]
    start = torch.randint(len(tune) - length + 1, ())
    return tune[start : start + length]

# %%
def nll(model, split):
    batch = rtx.tasks.task.collate(task.split(split), task.per)
    with torch.no_grad():
        loss = task.loss(model(batch.inputs), batch)
    return (loss.total / loss.count).item()

# %%
from torch.nn.functional import binary_cross_entropy_with_logits

curve = {"training": [], "validation": []}
for update in range(500):
    frames = torch.stack([crop() for _ in range(8)])
    logits, targets = model(frames[:, :-1]), frames[:, 1:]
    loss = binary_cross_entropy_with_logits(logits, targets, reduction="sum") / (8 * 47)
    adam.zero_grad()
    loss.backward()
    adam.step()
    curve["training"].append(loss.item())
    if update % 50 == 49:
        curve["training"][-50:] = [sum(curve["training"][-50:]) / 50]
        curve["validation"].append(nll(model, "validation"))

# %%
figure, ax = plt.subplots(figsize=(7.2, 3.2))
title = "within 200 steps below both reference points"
plots.curves(ax, curve, "training step", "NLL per frame (nats)", title, every=50)
for name, nats in reference.items():
    ax.axhline(nats, color="0.6", linestyle=":")
    ax.text(500, nats, name, va="bottom", ha="right", fontsize=9)
plt.show()
test = nll(model, "test")
print({name: test < nats for name, nats in reference.items()})

# %% [markdown]
# *The figure:* within 200 steps both curves fall below both dotted lines (of the test split). Then training goes on falling,
# and validation falls less and less: with so few tunes to read, the model begins to learn them by heart.
#
# Gradients were not clipped here; the paper's were meant to be. Its code for music calls `clip_grad_norm_` after
# `zero_grad` and *before* `backward`: there is no gradient yet, so it clips nothing.
#
# ### Exercise: clip in time
# *Easy, 5 minutes.* One step of gradient descent for a tensor `w`: go `rate` times against the gradient of `loss(w)`,
# which is first made no longer than `clip`. The step before left its gradient in `w.grad`. Return the new `w`.

# %%
def step(w, loss, rate, clip):
    ...


exercises.clipped_step(step)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Forget, go backward, clip, step: `w.grad = None`, and `torch.nn.utils.clip_grad_norm_(w, clip)`.
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def step(w, loss, rate, clip):
#     w.grad = None
#     loss(w).backward()
#     torch.nn.utils.clip_grad_norm_(w, clip)
#     return w - rate * w.grad
# ```
# </details>
#
# ## 5. See what it expects
#
# The model reads the chorale of section 1, and after every frame gives each note of the next one a probability.

# %%
with torch.no_grad():
    p = model(bach[None, :-1])[0].sigmoid()
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
plots.piano_roll(axes[0], p[:48], "expected: dark where a note is held")
plots.piano_roll(axes[1], bach[1:49], "what came")
axes[0].set_ylim(36, 82)
axes[1].set_ylabel("")
plt.show()
print("probabilities between 0 and 1:", bool(0 <= p.min() and p.max() <= 1))

# %% [markdown]
# *The figure:* frames 2 to 49, which the axes count from 1, expected and played; the darker, the more probable. Where a
# note is held, the left is dark, too: the model is sure of it. Where a voice moves, paler colour is spread over several
# notes near by.
#
# **Predict.** Count the keys of a four-note frame from below: bass, tenor, alto, soprano. Whose note costs the model
# most nats?
#
# <details><summary>Answer</summary>
#
# The bass. It leaps, and it chooses the harmony. The upper voices mostly step, or fill the chord in.
# </details>

# %%
batch = rtx.tasks.task.collate(task.split("test"), task.per)
with torch.no_grad():
    cost = binary_cross_entropy_with_logits(model(batch.inputs), batch.targets, reduction="none")
four = batch.targets.sum(-1) == 4
voices = cost[four][batch.targets[four] == 1].view(-1, 4).mean(0)  # keys rise: bass first
print("the bass costs most:", voices.argmax().item() == 0)

# %% [markdown]
# The Bach room shows this for every frame, with a model that is small enough to run in the page: two blocks of width 40
# (`rtx train bach r-transformer`). Press *Only Bach* and tick *what it expected*. Then click a note away.

# %%
explore.bach()

# %% [markdown]
# It takes your own tune and model, too: `explore.bach(bach[:64], model)`.
#
# **Predict.** LocalRNN and attention can be switched off. Without which of them does a frame cost more?
#
# <details><summary>Answer</summary>
#
# Without LocalRNN, by far. The next frame depends mostly on the last few frames and on their order.
# </details>
#
# Green marks a passage that repeats an earlier one.
#
# ## 6. What independence costs
#
# Suppose that after some past there are two equally likely frames, a C major chord and an F major chord:
# C–E–G or C–F–A. A model of whole frames pays $\log 2 = 0.69$ nats. Ours must give each *note* a probability.
#
# **Predict.** What are the best independent probabilities of C, E, F, G, A? What does a frame cost then? And how
# often is a frame drawn from them one of the two chords?
#
# <details><summary>Answer</summary>
#
# C is certain, the other four have ½ each: $4 \log 2 = 2.77$ nats, four times as much. A draw is one of sixteen
# equally likely note sets, and two of these are the chords: one in eight.
# </details>

# %%
chords = torch.tensor([[1.0, 1, 0, 1, 0], [1, 0, 1, 0, 1]])  # C E F G A
p = chords.mean(0)
draws = torch.rand(100_000, 5, generator=torch.Generator().manual_seed(0)) < p
right = (draws == chords[0].bool()).all(1) | (draws == chords[1].bool()).all(1)
print(f"{binary_cross_entropy(p.expand_as(chords), chords, reduction='sum') / 2:.2f} nats a frame")
print(f"chords among the draws: one in {1 / right.float().mean():.0f}")

# %% [markdown]
# So the NLL of independent notes has a floor that better training cannot break: the sum of the notes' own
# uncertainties, which is never below the uncertainty of the frame as a whole. Models such as RNN-NADE draw a frame's
# notes one after the other, each given those before it, and have no such floor.
#
# ## 7. Let it write, and listen
#
# `continue_roll` gives the model 16 frames of Bach, draws each note of the next frame by itself, appends the frame, and
# asks again.

# %%
from rtx.tasks.generate import continue_roll

written = continue_roll(model, bach[:16], frames=48, temperature=0.75, seed=1)
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
plots.piano_roll(axes[0], bach[:64], "Bach: four voices")
plots.piano_roll(axes[1], written, "16 frames of Bach, then voices come and go")
axes[0].set_ylim(36, 82)
axes[1].set_ylabel("")
axes[1].axvline(16.5, color=plots.COLOURS[1])
plt.show()
print("the first 16 frames are Bach's:", torch.equal(written[:16], bach[:16]))

# %% [markdown]
# *Listen.* The Bach room plays any roll. Click below the roll to choose a frame, then press *Play*. The bars are the
# costs for the small model of the page.

# %%
explore.bach(written, begin=len(written) + 1)

# %% [markdown]
# The continuation holds some notes, and its voices often move by small steps. But it is no chorale: there are no four
# voices, the bass stops and starts, and neighbouring keys sound together. Section 6 names one reason: a draw mixes the
# chords that it could have been. Another is that the model goes on from its own odd frames, which it was never taught.

# %%
def four_notes(roll):
    return (roll.sum(1) == 4).float().mean()


print("Bach has four notes in most frames:", bool(four_notes(bach) > 0.75))
print("the model has them less often:", bool(four_notes(written[16:]) < four_notes(bach[16:64])))

# %% [markdown]
# *Yours to try:* continue with `temperature=0.3` and with `1.5`, and listen again.
#
# **Bach or machine?** In each pair one tune is by Bach. The other is by the model of the Bach room, drawn with as many
# notes in each frame as Bach's has.

# %%
explore.bach_or_machine()

# %% [markdown]
# ## 8. Table 2, and the 2.37
#
# Nottingham are British and American folk tunes with chords: 694 for training, 173 for validation, 170 for test. The
# table below is read from the files in `results/`, one per finished run, and from nowhere else. "not run" stands
# where there is none.

# %%
from pathlib import Path
from IPython.display import HTML
from rtx.evidence import tables
from rtx.training import recipe

HTML(tables.to_html(tables.rows(recipe.load_recipe("nottingham"), Path("../results"))))

# %% [markdown]
# How to read it:
#
# - **Reference points.** On the same test split the marginal gets 10.26, Markov per key 5.15 (section 3). All the
#   paper's numbers lie below both: these models have learned more than that notes are held.
# - **Independence.** All of them take notes as independent. RNN-NADE (Boulanger-Lewandowski et al., 2012), which does
#   not, has 2.31 on Nottingham. That a model of independent notes comes as near as 2.37 is surprising, since it has
#   a floor that RNN-NADE has not. So take 2.37 as a claim under test: *ours* is the test. It comes out below 2.31, so
#   reading the past better can outweigh the floor; notebook 15, section 6, finds what it is that R-Transformer reads.
# - **Validation chooses.** The epoch is chosen by validation, and the test split is looked at once. Where a row was run
#   with several learning rates, the one with the lowest *validation* counts.
# - **Epochs.** The authors' code has 100, variant `adam` at most 15. A model whose best *epoch* is the last may not have
#   been done.
# - **Sizes.** The paper's models differ in *parameters*. The variants `same-…` make them equal in these, in
#   multiply-adds (`same-flops`) or in time (`same-seconds`).
# - **Clipping.** The paper clips gradients, and its code sets the norm to 0.15; so does variant `paper`. That code clips
#   *before* `backward()`, when there are no gradients yet, so it never clips; variant `official` follows it. Without
#   clipping R-Transformer diverges at 5e-4. At 5e-5, the code's default, most seeds stay finite over the first 40 tunes
#   (`studies/sgd_rates.py`). Our runs have 5e-6, because seed 0 diverged at 5e-5. After 15 of that recipe's 100 epochs
#   R-Transformer is not ahead: all others have larger rates. The `adam` variants clip after `backward()`, where it acts,
#   at a norm of 1.
#
# To run it yourself, which takes about as long as the table says: `rtx train nottingham r-transformer`.
#
# ## Recap
#
# - A tune is a sequence of frames, each of 88 zeros and ones. The model gives each note a probability, from the whole
#   past.
# - NLL per frame: a sum over notes, a mean over frames. $e^{\mathrm{NLL}}$ is a number of frames to choose from.
# - 61.0 is knowing nothing. Marginal and Markov per key are what any model must beat. 200 steps of training do.
# - Independent notes are simple to model, and put a floor under the NLL. You can hear it.
#
# ## Quiz
#
# 1. A paper reports 0.027 nats for the same model and data as another's 2.37. What may have happened?
#    <details><summary>Answer</summary>A mean over the 88 notes instead of a sum: 2.37 / 88 = 0.027.</details>
# 2. Model A has 4.0 nats on chorales, model B 3.0 on Nottingham. Is B better?
#    <details><summary>Answer</summary>Nobody can tell: other music, other frame length, other reference
#    points. Numbers compare on the same test split only.</details>
# 3. You cut frames in half, two per eighth note. What happens to the NLL per frame?
#    <details><summary>Answer</summary>It falls, as every second frame mostly repeats the one before and costs
#    little. The NLL of the whole tune need not fall.</details>
# 4. `clip_grad_norm_` stands between `zero_grad()` and `backward()`. What does it clip?
#    <details><summary>Answer</summary>Nothing: gradients are empty there, and `backward()` fills them
#    afterwards.</details>
#
# **Back:** [Read digits](10_read_digits.ipynb) · **Index:** [README](../README.md) · **On:**
# [Make it fast](12_make_it_fast.ipynb)
