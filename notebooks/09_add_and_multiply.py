# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Add and multiply
#
# **Can a model without any recurrence remember over thousands of steps?**
#
# Recurrent networks struggle to keep two numbers in mind while a long noise passes. Raffel & Ellis drop the
# recurrence: each step is mapped by itself, and attention takes a weighted mean of all steps. It solves two
# of the problems on which LSTMs were first tested. Here you train it, find out how it does that, and what it can never do.
#
# - **You will** build the model from three equations, train it in seconds, watch where it looks, and break it.
# - **You learn** what attention over time is, what a mean can hold, and why order is lost.
# - **You need** Python, tensors, softmax. [00 start here](00_start_here.ipynb) helps.
# - **Time:** 30 minutes to read and try; the cells run in under a minute.
#
# ## Paper map
#
# Raffel & Ellis (2015), *Feed-Forward Networks with Attention Can Solve Some Long-Term Memory Problems*.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | addition, multiplication (§2) | | section 1 | tasks `add`, `multiply` |
# | states, scores, weights (Eq. 1) | $h_t$, $e_t$, $\alpha_t$ | section 2 | `FeedForwardAttention` |
# | Table 1, attention against the mean (Eq. 2) | $c$ | section 3 | `pooling="attention"`, `"mean"` |
# | lengths up to 10,000 | $T_0$ | section 4 | recipes `ffa-add`, `ffa-multiply` |
# | temporal order (§3) | | section 5 | task `temporal-order` |

# %%
import math
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots
from rtx.tasks import task_by_name
from rtx.tasks.loader import loader

plots.style()
torch.set_num_threads(1)

# %% [markdown]
# ## 1. The problem
#
# A sequence holds $T$ steps of two numbers: a value, drawn from $[0, 1)$, and a mask. The mask is 1 at two steps, one
# of the first ten and one before the middle; -1 at both ends; 0 elsewhere. Add the two marked values, or multiply
# them. A sequence counts as solved if the answer is less than 0.04 off.

# %%
add = task_by_name("add", length=50, size=20_000)
inputs, target = add.split("test")[0]
marked = inputs[:, 1] == 1
fig, ax = plt.subplots(figsize=(7, 2.2))
steps = torch.arange(1, len(inputs) + 1)
ax.vlines(steps, 0, inputs[:, 0], color="0.7")
ax.plot(steps[marked], inputs[marked, 0], "o", color=plots.COLOURS[1])
ax.set(title="a sequence: the two marked values in orange", xlabel="step", ylabel="value", ylim=(0, 1.05))
plt.show()
print("marked:", *(f"{v:.3f}" for v in inputs[marked, 0]), "  their sum, the target:", f"{target.item():.3f}")

# %% [markdown]
# **Predict.** Always answer the mean of all targets. How many sequences are solved?
#
# <details><summary>Answer</summary>
#
# The sum of two uniform numbers has the density $1 - |y - 1|$: highest at 1, the mean. Within 0.04 of it lie
# $1 - 0.96^2 \approx 8\,\%$.
#
# </details>

# %%
print(f"solved by the mean answer: {100 * add.baseline():.0f} % of these test sequences, for 8 % of all there are")

# %% [markdown]
# ## 2. Three equations
#
# Each step by itself becomes a state; a score says how much it counts; the context is the weighted mean:
#
# $$h_t = \text{LReLU}(W_{xh} x_t + b_{xh}), \qquad e_t = \tanh(w_{hc} \cdot h_t + b_{hc})$$
#
# $$\alpha_t = \frac{\exp(e_t)}{\sum_{k=1}^{T} \exp(e_k)}, \qquad c = \sum_{t=1}^{T} \alpha_t h_t \qquad (1)$$
#
# Two more layers read the answer from $c$. No step waits for another, so all are computed at once.
#
# **Exercise 1** (easy, 5 minutes). Write the second line: states (B, T, D) and scores (B, T) to contexts (B, D).

# %%
def attention_pool(h, e):
    ...  # Eq. (1)

exercises.attention_pool(attention_pool)

# %% [markdown]
# <details><summary>Hint</summary>
#
# `e.softmax(1)` is (B, T). Give it a last axis of one, and it multiplies all D numbers of a state.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def attention_pool(h, e):
#     return (e.softmax(1)[..., None] * h).sum(1)
# ```
#
# </details>
#
# The whole model in six lines, against `rtx`:

# %%
def naive_model(x, model, leak):
    """(B, T, 2) to (B, 1)."""
    h = leak(model.hidden(x))
    e = torch.tanh(model.score(h)).squeeze(-1)
    c = (e.softmax(1)[..., None] * h).sum(1)  # Eq. (1)
    return leak(model.output(leak(model.context(c))))

_ = torch.manual_seed(0)
model = rtx.FeedForwardAttention(leak="coded")
x = torch.randn(4, 50, 2)
torch.testing.assert_close(naive_model(x, model, lambda v: torch.maximum(v, 0.01 * v)), model(x))
print("the equations and rtx agree;", f"{sum(p.numel() for p in model.parameters()):,} parameters, as the paper says")

# %% [markdown]
# `leak="coded"` is the leaky ReLU of the authors' code, $\max(x, 0.01x)$. The paper prints $\max(x, 0.01)$, which has no
# gradient below 0.01: an output that starts there never moves.
#
# ## 3. Train it; and without attention
#
# The mean of Eq. 2, $c = \frac{1}{T} \sum_t h_t$, has no scores at all.
#
# **Predict.** Two steps out of fifty count. Can the plain mean find them?
#
# <details><summary>Answer</summary>
#
# Yes! The state sees the mask. With a large weight on the mask and a negative bias, $h_t$ is about zero wherever the mask
# is not 1: unmarked steps add nothing to the mean. What is left is the sum of the marked ones over $T$.
#
# </details>

# %%
def train(task, pooling, epochs=4, seed=0):
    """A trained model, and the share of the test set that it solves after each epoch."""
    torch.manual_seed(seed)
    model = rtx.FeedForwardAttention(task.inputs, task.outputs, pooling=pooling, leak="coded")
    optimizer, solved = torch.optim.Adam(model.parameters(), lr=0.01), []
    batches, test = loader(task, "train", 100, seed), next(iter(loader(task, "test", 1000)))
    for epoch in range(epochs):
        batches.batch_sampler.set_epoch(epoch)
        for batch in batches:
            loss = task.loss(task.predict(model, batch), batch)
            optimizer.zero_grad()
            (loss.total / loss.count).backward()
            optimizer.step()
        with torch.no_grad():
            solved.append(task.score(task.predict(model, test), test))
    return model, solved

# %%
found = {pooling: train(add, pooling) for pooling in ("attention", "mean")}
fig, ax = plt.subplots(figsize=(6, 2.8))
plots.curves(ax, {name: solved for name, (_, solved) in found.items()}, "epoch of 20,000 sequences", "share solved")
ax.set(ylim=(0, 1.02), xlim=(0.9, 4.7), xticks=range(1, 5), title="addition over about 50 steps: both learn it")
plt.show()
for name, (_, solved) in found.items():
    print(f"{name}: more than three in four solved at the end: {solved[-1] > 0.75}")

# %% [markdown]
# Both learn it in seconds. The mean has one more thing to find out: what is left in its context is the marked sum *over
# $T$*, and $T$ is 50 to 55. The authors' code makes that easier than Eq. 2 does. It fills each sequence up to 56 steps with
# zeros, and counts these, too. (Why 56? It rounds 1.1 · 50 up, which is 55.00000000000001 in floating point.)
#
# **Predict.** What does that change, after an epoch?
#
# <details><summary>Answer</summary>
#
# The mean is now the sum over 56, the same factor for all: a straight line reads it off. By Eq. 2 no line can, and the two
# layers behind the mean have to learn a division.
#
# </details>

# %%
filled = task_by_name("add", length=50, size=20_000, read_padding=True)
divided = {"by its own length": found["mean"][1], "by 56": train(filled, "mean")[1]}
fig, ax = plt.subplots(figsize=(6, 2.8))
plots.curves(ax, divided, "epoch of 20,000 sequences", "share solved")
ax.set(ylim=(0, 1.02), xlim=(0.9, 5.2), xticks=range(1, 5), title="a sum divided by the same number is learnt sooner")
plt.show()
for name, solved in divided.items():
    print(f"{name}: more than nine in ten solved after one epoch: {solved[0] > 0.9}")

# %% [markdown]
# A detail of the code, not in the paper, and it moves Table 1: [15](15_weigh_the_evidence.ipynb) has the numbers. So what is
# attention for? Let us see where it looks.

# %%
trained = found["attention"][0]
fig, axes = plt.subplots(1, 3, figsize=(10, 2.4), sharey=True)
for ax, one in zip(axes, add.split("test")[:3]):
    share = trained.weights(one.inputs[None])[0].detach()
    marked = one.inputs[:, 1] == 1
    ax.bar(range(1, len(share) + 1), share, color=["tab:orange" if here else "tab:blue" for here in marked])
    ax.set(title=f"the two marked steps get {share[marked].sum():.2f}", xlabel="step")
axes[0].set(ylabel="share of attention")
plt.show()

# %% [markdown]
# The marked steps stand out, and yet even both together do not get a quarter of the attention. That is no accident: a score is
# a tanh, between -1 and 1.
#
# **Exercise 2** (medium, 10 minutes). What is the largest share that *one* of $T$ steps can have?

# %%
def largest_share(T):
    ...

exercises.largest_share(largest_share)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Its own score is at most 1; the others' are at least -1.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# import math
#
# def largest_share(T):
#     return math.e / (math.e + (T - 1) / math.e)
# ```
#
# </details>

# %%
def bound(T):
    return math.e / (math.e + (T - 1) / math.e)

test = next(iter(loader(add, "test", 1000)))
with torch.no_grad():
    shares = trained.weights(test.inputs, test.lengths)
is_marked = test.inputs[..., 1] == 1
print(f"even share: {1 / 50:.3f}   bound: {bound(50):.3f}")
print("a marked step has more than an even share:", bool(shares[is_marked].mean() > 1 / 50))
print("no step has more than the bound:", bool(shares.max() <= bound(50)))
for T in (50, 500, 10_000):
    both = 2 * math.e / (2 * math.e + (T - 2) / math.e)
    print(f"T = {T:6,}: the two marked steps can have at most {100 * both:5.2f} % together")

# %% [markdown]
# At ten thousand steps the two marked ones can have next to nothing. Attention here does not *select*: it lends weight.
# What keeps the noise out is the state, as with the mean. The paper's Table 1 agrees: on addition the mean is
# hardly slower up to $T_0 = 1{,}000$. What attention buys is a larger signal: up to $e^2 \approx 7.4$ times that of the mean.
#
# ## 4. Longer
#
# **Predict.** The model was trained at 50 steps. Is it right at 100? At 400? Remember that $c$ is a *mean*.
#
# <details><summary>Answer</summary>
#
# No. Two marked values among 100 steps move the mean half as far as among 50. The model learnt one factor for
# sequences of about 50. The ends, marked by -1, would tell it the length, but nothing taught it to look. Among 400, its answers
# hardly move.
#
# </details>

# %%
def answers(model, length):
    batch = next(iter(loader(task_by_name("add", length=length, longest=length), "test", 200)))
    with torch.no_grad():
        return batch.targets[:, 0], model(batch.inputs, batch.lengths)[:, 0]

fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
for ax, length in zip(axes, (52, 100, 400)):
    targets, given = answers(trained, length)
    ax.plot([0, 2], [0, 2], ":", color="0.4")
    ax.plot(targets, given, ".", color=plots.COLOURS[0], markersize=4)
    ax.set(title=f"T = {length}", xlabel="target", xlim=(0, 2), ylim=(-0.2, 2.2))
    slope = torch.cov(torch.stack([targets, given]))
    print(f"T = {length}: answers follow targets with a slope above 0.8: {bool(slope[0, 1] / slope[0, 0] > 0.8)}")
axes[0].set(ylabel="answer")
fig.suptitle("trained at 50 steps: the longer the sequence, the less its answers move", fontsize=11)
plt.show()

# %% [markdown]
# So a model of fixed length is a model for that length. The paper trains anew for each $T_0$, up to 10,000 steps, and on
# lengths from 50 to 10,000 mixed, where attention solves 99.9 % and the mean 77.4 %. `rtx train ffa-add attention-10000`
# and `rtx train ffa-variable add-attention` run that; an epoch at $T_0 = 5{,}000$ took the paper's GPU about two minutes.
# [12 make it fast](12_make_it_fast.ipynb) shows why it takes less here, on one core.
#
# Train one anew yourself: the toy solver learns while you watch. On the left, how much is solved; on the right a row of
# weights for each dot on the left.
#
# **Predict.** The paper's attention takes one epoch to add two numbers out of 1,000 steps, and three at 10,000. The mean takes
# two at 1,000. And at 10,000?
#
# <details><summary>Answer</summary>
#
# 17 epochs. A marked step's part in $c$ shrinks as $1/T$ in both, and with it the gradient that learns from it; at 10,000
# steps the factor of up to $e^2$ that attention gives it tells.
#
# </details>

# %%
explore.toy().run()

# %% [markdown]
# **Try.** The rows are bright at the marked steps while most sequences are still unsolved: first the model finds them, then
# it learns to add. Move the slider of updates, or click in the curve. With a kernel, switch to the mean and press “Train”;
# then take $T = 400$, or another learning rate. What was trained before stays beside it.
#
# ## 5. What it can never do
#
# In the temporal order problem, two of the symbols X and Y stand somewhere among distractors. Was it XX, XY, YX or YY?
#
# **Predict.** How many in a hundred can the model get right at best?
#
# <details><summary>Answer</summary>
#
# 75. A sum does not depend on the order of its terms: XY and YX with the same distractors give the same context, up to
# rounding. XX and YY it can tell from those; of the mixed ones it must guess.
#
# </details>

# %%
order = task_by_name("temporal-order", length=20, size=10_000)
pooled, accuracy = train(order, "attention", epochs=5)
batch = next(iter(loader(order, "test", 1000)))
shuffled = batch.inputs[:, torch.randperm(batch.inputs.shape[1], generator=torch.Generator().manual_seed(1))]
whole = batch.lengths == batch.inputs.shape[1]  # those without padding, which a shuffle would move
with torch.no_grad():
    torch.testing.assert_close(pooled(shuffled[whole]), pooled(batch.inputs[whole]), rtol=1e-3, atol=1e-4)
print("shuffled steps, same answers")
print("accuracy between 65 and 80 %:", 65 < accuracy[-1] < 80)

# %%
from rtx.tasks.toy.temporal_order import CLASSES

with torch.no_grad():
    guesses = order.predict(pooled, batch).argmax(1)
table = torch.stack([torch.bincount(guesses[batch.targets == k], minlength=4) for k in range(4)])
fig, ax = plt.subplots(figsize=(3.6, 3))
plots.heat_map(ax, table, "answered", "was", "XY and YX are one to it", "sequences")
ax.set(xticks=range(4), xticklabels=CLASSES, yticks=range(4), yticklabels=CLASSES)
plt.show()
right = table.diagonal() / table.sum(1)
print("XX and YY are nearly always right:", bool(min(right[0], right[3]) > 0.9))
print("of XY and YX, about half in all:", bool(0.35 < (table[1, 1] + table[2, 2]) / table[1:3].sum() < 0.65))

# %% [markdown]
# The two mixed rows look alike: to this model XY and YX are one thing. A recurrent layer, a convolution or a position
# encoding below the attention would mend it. That is R-Transformer's idea, and the question of
# [02 slide a window](02_slide_a_window.ipynb).
#
# ## Recap
#
# - Attention over time is a weighted mean, so any step is one step away, however long the sequence.
# - With scores from a tanh, shares differ by a factor of $e^2$ at most: here attention weighs, and the states select.
# - A mean forgets how many there were, and in which order. The first takes training on many lengths, the second another
#   layer.
#
# **Quiz.** 1. Why is the mean slower than attention at long lengths? 2. Would a sum instead of a mean generalise from 50 steps to
# 400? 3. What would change if the score had no tanh?
#
# <details><summary>Answers</summary>
#
# 1. In both the marked steps' part in $c$ shrinks as $1/T$, and with it the gradients; attention lends it up to $e^2$ times more. 2. Yes, if the states of
# unmarked steps are exactly zero; each small rest would add up 400 times. 3. Shares could come close to 1: attention
# could select, and small differences in the scores could starve all other steps of gradient.
#
# </details>
#
# **Back:** [Split into channels](08_split_into_channels.ipynb) · **Index:** [README](../README.md) · **On:**
# [Read digits](10_read_digits.ipynb)
