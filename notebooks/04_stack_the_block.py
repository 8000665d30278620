# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does each part of the block add?
#
# A block of the R-Transformer has three parts, called **sublayers**: a LocalRNN, attention, and a feed-forward network. The
# explorer shows two blocks in its last model. Change an input. Then click the name of a sublayer to switch it off.

# %%
from rtx.lab import explore

explore.depends()

# %% [markdown]
# This is one block, drawn with all the paths by which information can pass from position to position:
#
# ![One block: LocalRNN reads three positions, attention reads all earlier ones, feed-forward reads its own](../figures/r_transformer_1.png)
#
# **Try.** Change input 6 in the explorer. (1) Switch both attentions off: how far does the change go? (2) Switch the LocalRNNs
# off instead: which positions change? (3) Switch off the feed-forward networks: which positions change now that did not before?
#
# <details><summary>Answers</summary>
#
# (1) Six positions. Each LocalRNN has a window of 4, so it carries the change over 3 positions, and there are two of them.
# (2) All later ones. Attention alone reaches them. (3) None. A feed-forward network treats each position by itself.
#
# </details>
#
# The picture shows what *can* pass. What does a trained model need? We take parts away, train the rest, and see what is lost.
#
# - **You will** write the step that a block repeats, a test for order, and (optional) a function that takes a stack apart.
# - **You learn** what each sublayer adds on a small task and on real music, and why the place of the norm can fool you.
# - **You need** [LocalRNN](02_slide_a_window.ipynb) and [attention](03_attend_to_the_past.ipynb).
# - **Time:** 30 minutes to read and try. The cells run in about 15 seconds. Longer trainings are stored.

# %%
from pathlib import Path
from statistics import mean, stdev
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, plots
torch.set_num_threads(1)
plots.style()

# %% [markdown]
# ## 1. One step, by hand
#
# The step around a sublayer is always the same. Here it is for three positions with three numbers each. The sublayer is
# very simple: the mean of the positions so far.

# %%
small = torch.tensor([[1.0, 2.0, 6.0], [3.0, 0.0, 0.0], [2.0, 4.0, 0.0]])
for t in range(3):
    sublayer = small[: t + 1].mean(0)
    total = small[t] + sublayer
    centre, variance = total.mean(), total.var(correction=0)
    normal = (total - centre) / variance.sqrt()
    rows = {"x": small[t], "mean so far": sublayer, "sum": total, "normalised": normal}
    print(f"position {t + 1} ", *(f"{name}: " + " ".join(f"{n:5.2f}" for n in row) + "  " for name, row in rows.items()))
    print(f"{'':11} the sum has mean {centre:.2f} and variance {variance:.2f}\n")

# %% [markdown]
# Two things happen around the sublayer. The input is added to its output; this path around the sublayer is the **residual
# connection**. Then **LayerNorm** shifts and scales the numbers of each position, so that their mean is 0 and their variance
# is 1. (A trained LayerNorm also multiplies them by a learnt gain and adds a learnt bias.) With $f$ for the sublayer:
#
# $$z_1, \dots, z_T = f(x_1, \dots, x_T) \qquad \hat z_t = \text{LayerNorm}(z_t + x_t) \qquad (8)$$
#
# The paper's Eq. 8 writes these two lines three times, once for each sublayer.
#
# **Predict.** What does LayerNorm make of the *two* numbers (3, 5)? And of (-100, 900)?
#
# <details><summary>Answer</summary>
#
# (-1, 1), both times. LayerNorm removes the mean and the size. Of two numbers, only the order is left. This is why the
# example above has three.
#
# </details>
#
# **Exercise 1** (easy, 5 minutes). Write one step of Eq. 8. `sublayer` and `norm` are functions from $(B, T, D)$ to
# $(B, T, D)$. The next cell builds a whole block from your function.

# %%
def my_residual(x, sublayer, norm):
    ...  # (B, T, D) to (B, T, D)

residual = exercises.yours(my_residual, "residual")

# %% [markdown]
# <details><summary>Hint</summary>
#
# What is in the brackets of LayerNorm in Eq. 8: the sublayer's output, or a sum?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_residual(x, sublayer, norm):
#     return norm(x + sublayer(x))
# ```
#
# </details>

# %%
def block(x, sublayers, norms):
    for f, norm in zip(sublayers, norms):
        x = residual(x, f, norm)
    return x

_ = torch.manual_seed(0)
D = 32
x = torch.randn(4, 24, D)
one = rtx.RTransformer(D, layers=1, heads=2, window=4)
steps = one.blocks[0]
mine = block(x, [step.sublayer for step in steps], [step.norm for step in steps])
print(f"largest difference from rtx: {(mine - one(x)).abs().max():.0e}; largest output: {one(x).abs().max():.1f}")
for step in steps:
    print(f"{type(step.sublayer).__name__:18} {sum(p.numel() for p in step.sublayer.parameters()):5} parameters")

# %% [markdown]
# The block of your steps is the block of `rtx`. The feed-forward network has the largest share of the parameters.
#
# ## 2. Who notices order?
#
# "Dog bites man" and "man bites dog" have the same words. Which sublayer makes it possible to notice the difference?
#
# **Predict.** Two early inputs change places. Which of these models can change its *last* output? (a) One block of attention
# and feed-forward. (b) Two such blocks. (c) One such block, with sinusoids (position numbers, [notebook
# 05](05_encode_position.ipynb)) added to the input. (d) One block of the R-Transformer.
#
# <details><summary>Answer</summary>
#
# (a) cannot. Its last output is a weighted mean of all inputs, and the weight of an input depends on its content only. A sum
# does not depend on the order of its terms. (c) and (d) can, as intended. And (b) can, too. In its first block, position
# $s$ sees only positions 1 to $s$. So the output of the first block at $s$ depends on what came before $s$, and the second
# block reads that output. So a causal mask tells a second block something about order.
#
# </details>
#
# **Exercise 2** (medium, 5 minutes). Write the test. It returns `True` if the last output of a causal `model` changes when
# the first two positions of `x` (B, T, D) change places. A change in the last digits is rounding and does not count.

# %%
def my_notices_order(model, x):
    ...  # True or False

notices_order = exercises.yours(my_notices_order, "notices_order")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `x[:, [1, 0, 2, 3]]` swaps the first two of four positions. `torch.allclose(a, b, atol=1e-5)` ignores rounding.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_notices_order(model, x):
#     places = [1, 0, *range(2, x.shape[1])]
#     return not torch.allclose(model(x)[:, -1], model(x[:, places])[:, -1], atol=1e-5)
# ```
#
# </details>

# %%
models = {
    "(a) attention, 1 block": lambda: rtx.Transformer(D, layers=1, heads=2, position="none"),
    "(b) attention, 2 blocks": lambda: rtx.Transformer(D, layers=2, heads=2, position="none"),
    "(c) attention, 1 block, sinusoids": lambda: rtx.Transformer(D, layers=1, heads=2, position="sinusoidal"),
    "(d) R-Transformer, 1 block": lambda: rtx.RTransformer(D, layers=1, heads=2, window=4),
}
for name, make in models.items():
    noticed = 0
    for seed in range(10):
        _ = torch.manual_seed(seed)
        noticed += notices_order(make(), x)
    print(f"{name:34} notices the swap with {noticed:2} of 10 random weights")

# %% [markdown]
# The 0 of (a) comes from the wiring. So no training can change it. All the others *can* notice order. Do they learn to?
#
# ## 3. Leave one out: a task that needs near and far
#
# Each sequence has a **key**, A or B, in its first half, and a **pair**, XY or YX, just before its end. The rest is
# noise. At the last symbol, the model says which key and which order it was.
#
# ```
# . . . . A . . . . . . . . . . . . . . . . X Y ?      →  key A, X first
# . B . . . . . . . . . . . . . . . . . . . Y X ?      →  key B, Y first
# ```
#
# We trained seven models on 24 symbols, each of them with two orders of the norm. **Post-norm** is Eq. 8. **Pre-norm**, the
# order of the authors' own code, is $x + f(\text{LayerNorm}(x))$. Every model got the same 400 batches. Its learning rate is
# the best of three on validation data. (`studies/parts_of_a_block.py` has the details.)
#
# **Predict.** A blind guess is right in 50 % of all cases. Which models stay at 50 % for the key? Which for the order?

# %%
from rtx.lab.studies import chosen_runs

runs = chosen_runs("../studies/parts_of_a_block.json", "parts")
names = list(dict.fromkeys(name.rsplit(", ", 1)[0] for name in runs))

def percent(shares):
    return f"{100 * mean(shares):6.0f} ± {100 * stdev(shares):2.0f}"

print(f"{'right answers in %, 24 symbols':34} parameters {'key: post':>12} {'pre':>11} {'order: post':>13} {'pre':>11}")
for name in names:
    seeds = [runs[f"{name}, {norm}-norm"] for norm in ("post", "pre")]
    columns = [percent([run["test"][-1][part][0] for run in s]) for part in ("key", "order") for s in seeds]
    print(f"{name:34} {seeds[0][0]['parameters']:10,}", *columns, f" ({len(seeds[0])} seeds)")

# %% [markdown]
# <details><summary>Answer</summary>
#
# For the key: the model without attention. For the order: the single block without LocalRNN, which is model (a). One other
# model stays at 50 % with one norm only.
#
# </details>
#
# - **Attention** adds what is far. Without attention, the key stays at 50 % with both norms. The wiring has no path to the key.
# - **LocalRNN** adds order in a single block. Without LocalRNN and positions, the order stays at 50 %.
# - **The feed-forward network** adds nothing that we can see on *this* task, where the others reach 100 %. The answers can be read from what the other two have found.
#
# Now look at "no LocalRNN, 2 blocks". Section 2 says that it can notice order. With post-norm it does not learn to do so in
# 400 updates. An earlier version of this notebook had only that column, and it concluded: without LocalRNN, attention
# does not learn order. The control moves the norm and chooses the learning rate again. With pre-norm, the same two
# blocks solve the task with all three seeds. So the conclusion was wrong: post-norm, at these rates and updates, was a cause.
#
# What about sequences that are longer than those in training? The next figure shows the order alone.

# %%
shown = {"all sublayers": 0, "no LocalRNN, 2 blocks": 1, "sinusoids, no LocalRNN": 2}
lengths = (24, 28, 32, 36, 40, 48, 56, 64, 72, 84, 96, 120)
fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), sharey=True)
for ax, norm in zip(axes, ("post", "pre")):
    for name, colour in shown.items():
        for number, run in enumerate(runs[f"{name}, {norm}-norm"]):
            label = name if number == 0 else None
            shares = [100 * share for share in run["test"][-1]["order"]]
            ax.plot(lengths, shares, "o-", color=plots.COLOURS[colour], markersize=3, linewidth=3 - colour, label=label)
    ax.axhline(50, color="0.6", linewidth=1)
    ax.set(title=f"{norm}-norm", xlabel="length of the sequence (training: 24)", xticks=(24, 48, 72, 96, 120), ylim=(-3, 105))
axes[0].set(ylabel="orders that are right (%), grey: a guess")
axes[1].legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1, 0.12))
fig.suptitle("with LocalRNN the order is right at all lengths; with two pre-norm blocks, for two of three seeds", fontsize=11)
plt.show()

# %%
for name in ("sinusoids, no LocalRNN", "sinusoids, no LocalRNN, 2 blocks"):
    beyond = [share for norm in ("post", "pre") for run in runs[f"{name}, {norm}-norm"] for share in run["test"][-1]["order"][1:]]
    print(f"{name:34} order at lengths 28 to 120: {100 * min(beyond):.0f} to {100 * max(beyond):.0f} %")
for norm in ("post", "pre"):
    last = [100 * run["test"][-1]["key"][-1] for run in runs[f"all sublayers, {norm}-norm"]]
    print(f"{'all sublayers, ' + norm + '-norm':34} key at length 120, each seed:", *(f"{share:.0f} %" for share in last))

# %% [markdown]
# Each line is one seed. With LocalRNN, the order is right at all lengths. With two pre-norm blocks, one seed of three loses it
# beyond length 48. With sinusoids, the pair is at places where it never was in training. The result can be far
# *below* 50 %: then the model mistakes X first for Y first. Training on mixed lengths may help; we did not try it. The key
# is not safe either: one seed of the full pre-norm model forgets it at length 120.
#
# ## 4. Norm after, or norm before?
#
# The norm changed a conclusion in section 3. What does its place do? Under pre-norm, nothing scales the sum down. So the
# output of a stack is its input plus what each sublayer has added, its **contribution**.
#
# **Exercise 3** (hard, optional, 10 minutes). Return the contributions of a pre-norm stack. `sublayers` and `norms` are two
# lists of equal length $S$.

# %%
def my_contributions(x, sublayers, norms):
    ...  # (S, B, T, D)

contributions = exercises.yours(my_contributions, "contributions")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Keep the sum so far in a variable. Each sublayer reads the normalised sum, and its output is added to the sum that is *not*
# normalised.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_contributions(x, sublayers, norms):
#     found = []
#     for sublayer, norm in zip(sublayers, norms):
#         found.append(sublayer(norm(x)))
#         x = x + found[-1]
#     return torch.stack(found)
# ```
#
# </details>
#
# We measure sizes as root mean squares. If all contributions point in unrelated directions, their squared sizes add up.

# %%
def stack(norm, seed, layers=16):
    torch.manual_seed(seed)
    return rtx.RTransformer(D, layers, heads=2, window=4, norm=norm).blocks

deep = [step for each in stack("pre", 0) for step in each]
with torch.no_grad():
    added = contributions(x, [step.sublayer for step in deep], [step.norm for step in deep])  # (48, B, T, D)
squares = added.square().mean((1, 2, 3))
for place, name in enumerate(("LocalRNN", "attention", "feed-forward")):
    print(f"{name:12} mean size of a contribution: {squares[place::3].mean().sqrt():.2f}")
whole = (x + added.sum(0)).square().mean()
print(f"squared size of the input: {x.square().mean():.2f}, plus all squared contributions: {x.square().mean() + squares.sum():.2f}")
print(f"squared size of the output: {whole:.2f}")

# %% [markdown]
# **Predict.** Stack 16 untrained blocks. How large is the output of block $l$ under post-norm, and under pre-norm? Which
# block's weights get the largest gradient?
#
# <details><summary>Answer</summary>
#
# Post-norm: the size is 1 after each block, because an untrained LayerNorm makes it 1. Pre-norm: the size grows
# with each block. The gradients are in the right panel.
#
# </details>

# %%
def sizes_and_gradients(blocks):
    outputs = [x]
    for each in blocks:
        outputs.append(each(outputs[-1]))
    direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    (outputs[-1] * direction).mean().backward()
    gradients = [torch.stack([p.grad.norm() for p in each.parameters()]).norm() for each in blocks]
    return [h.detach().square().mean().sqrt() for h in outputs[1:]], [g / gradients[-1] for g in gradients]

# %%
fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.4))
for norm, line, colour in (("post", "-", plots.COLOURS[0]), ("pre", "--", plots.COLOURS[1])):
    for seed in range(5):
        for ax, values in zip(axes, sizes_and_gradients(stack(norm, seed))):
            ax.plot(range(1, 17), values, line, color=colour, linewidth=1.2, label=f"{norm}-norm" if seed == 0 else None)
axes[0].set(title="size: pre-norm grows with depth", ylabel="root mean square of the output", ylim=(0, None))
axes[1].set(title="gradients: all within a factor of 3", ylabel="gradient, relative to block 16", ylim=(0, None))
for ax in axes:
    ax.set(xlabel="block", xticks=(1, 4, 8, 12, 16))
axes[0].legend(frameon=False)
plt.show()

# %% [markdown]
# Each line is one of five random starts. At the start, the blocks of a stack have gradients of similar size, with either norm. So the start does not
# tell us which stack trains well. Here are trained stacks of 8 whole blocks, on the task of section 3, at each of the three rates.

# %%
import json

print("8 blocks, 250 updates: right answers in %, key and order together (a guess: 50); one number per seed")
stored = json.loads(Path("../studies/parts_of_a_block.json").read_text())["runs"]
for name in ("8 blocks, post-norm", "8 blocks, pre-norm"):
    for rate in (0.001, 0.003, 0.01):
        found = [run["test"][-1]["both"][0] for run in stored if (run["model"], run["rate"]) == (name, rate)]
        print(f"{name:20} learning rate {rate:<6}", *(f"{100 * share:4.0f}" for share in found))

# %% [markdown]
# With the rate chosen for each norm, both stacks solve the task. The difference is in the choice: pre-norm trains well at all
# three rates, post-norm at the smallest one only. If we had compared both at 0.003, we would have said that deep
# post-norm stacks cannot learn this task. With our task and depth, the place of the norm decides *which rates work*.
#
# ## 5. Real music
#
# A small task shows what parts *can* do. What do they add on real data? In the Nottingham tunes, the model predicts the
# next frame of notes. We trained the R-Transformer of the paper (3 blocks, $D = 160$, window 6) and took parts away. All
# these runs are in the project's ledger, the folder `results/`. They use post-norm, Adam, and one learning rate for all.
#
# **Predict.** Which loss is larger: the loss without attention, or the loss without LocalRNN? And what does a
# LocalRNN do whose window is 1, so that it sees only its own position?

# %%
from rtx.evidence.ledger import read_results

asked = {
    "window 12": ("r-transformer", "adam+window=12"),
    "window 6, as in the paper": ("r-transformer", "adam"),
    "window 3": ("r-transformer", "adam+window=3"),
    "window 1": ("r-transformer", "adam+window=1"),
    "without attention": ("r-transformer", "adam+heads=0"),
    "without LocalRNN": ("r-transformer", "adam+local_layers=0"),
    "Transformer with sinusoids": ("transformer", "adam"),
    "GRU": ("gru", "adam"),
}
ledger = [run for run in read_results("nottingham", Path("../results")) if run.budget is None]
music = {name: [run for run in ledger if (run.model, run.variant) == line] for name, line in asked.items()}

# %%
fig, ax = plt.subplots(figsize=(8, 3.2))
for row, (name, seeds) in enumerate(music.items()):
    scores = [run.test for run in seeds]
    print(f"{name:28} {mean(scores):.2f} ± {stdev(scores):.2f} nats per frame, {len(scores)} seeds, {seeds[0].parameters:9,} parameters")
    ax.plot(scores, [row] * len(scores), "o", color=plots.COLOURS[0 if row < 4 else 1], alpha=0.7)
ax.set(yticks=range(len(music)), yticklabels=list(music), xlabel="test loss (nats per frame; smaller is better)", xlim=(1.8, 4.5))
ax.set_title("music: both LocalRNN and attention matter, and so does the window")
ax.invert_yaxis()
plt.show()

# %% [markdown]
# <details><summary>Answer</summary>
#
# The loss without LocalRNN is larger. A window of 1 is as bad as no LocalRNN at all.
#
# </details>
#
# - Without **LocalRNN**, the loss rises most. The row "window 1" is an important control: it has all parameters of the full
#   model, and still it is no better. So what LocalRNN adds here is not parameters. It is the view of neighbours.
# - Without **attention**, the loss rises as well. Then three LocalRNNs see 16 frames, and nothing before.
# - A **longer window** helps up to 12, the longest that we tried.
#
# What is not controlled? The models without a part have fewer parameters, as printed. All share one learning rate and
# post-norm, and section 3 showed how much a norm can matter. The row without LocalRNN has no positions at all. A
# Transformer with sinusoids has the same parameters and is better, but it is far behind the full model. Relative positions
# ([notebook 05](05_encode_position.ipynb)) are not in this table. So the table does not show that LocalRNN is the *only* way
# to get this gain, and it does not show what attention adds to a much longer window.
#
# ## Recap
#
# - A block repeats one step three times: a sublayer, a residual connection, a norm.
# - Attention adds what is far. LocalRNN adds near neighbours and their order. A feed-forward network works on one position.
# - One block of attention without positions cannot notice order. Two can, and with pre-norm they learned it.
# - "It did not learn" is a statement about a training, with its norm, rates and updates. "It cannot learn" needs a
#   proof, such as a missing path.
# - On Nottingham, both parts matter, under the conditions above. Open: relative positions, longer windows, pre-norm.
#
# ## Quiz
#
# 1. Three blocks without attention have a LocalRNN of window 7 each. How many positions does an output depend on?
# 2. Under pre-norm, all weights and biases of all sublayers are zero. What does the stack compute? And under post-norm?
# 3. A model with a part removed does not learn a task. Name two things to check before you say that it needs this part.
#
# <details><summary>Answers</summary>
#
# 1. $3 \cdot (7 - 1) + 1 = 19$.
# 2. Pre-norm: its input, unchanged. Post-norm: its input, normalised.
# 3. For example: does it learn with other learning rates, more updates or the other norm? Does a model with the same
#    parameters, but without the function of the part, do better (as "window 1" was used here)?
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Wang et al. (2019), *R-Transformer: Recurrent Neural Network Enhanced Transformer*.
#
# | in the paper | equation | here | in `rtx` |
# | --- | --- | --- | --- |
# | §3.3: LocalRNN, attention, feed-forward, each with residual and norm | 8 | section 1 | `rtx.nn.Residual` |
# | "does not rely on any position embeddings" | | sections 2, 3 | `Transformer(position=…)` |
# | Eq. 8's order, and the order of the authors' code | 8 | sections 3, 4 | `norm="post"`, `norm="pre"` |
# | Table 2: Nottingham | | section 5 | `rtx train nottingham` |
#
# [docs/original-code.md](../docs/original-code.md) lists what else differs between the paper and the authors' code.
#
# </details>
#
# **Back:** [How does a position fetch what it needs?](03_attend_to_the_past.ipynb) · **Index:** [README](../README.md) ·
# **On:** [How can attention know where things are?](05_encode_position.ipynb)
