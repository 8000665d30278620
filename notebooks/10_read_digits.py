# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does 99.1 against 99.0 say?
#
# The first table of the R-Transformer paper has handwritten digits, read pixel by pixel. The R-Transformer names 99.1 % of them
# rightly, and a TCN 99.0 %. (A **TCN** is a temporal convolutional network, [notebook 07](07_convolve_or_recur.ipynb).) Here
# are small versions of both, trained for some seconds by the next two cells. Press play, and choose another model or another digit.

# %%
import torch
import rtx
from rtx.lab import explore
from rtx.tasks import task_by_name
from rtx.tasks.build import SequenceModel
from rtx.tasks.task import collate

torch.set_num_threads(1)
task = task_by_name("digits")
train, test = (collate(list(task.split(split)), "sequence") for split in ("train", "test"))

def trained(network, seed, updates=120):
    model = SequenceModel(network, inputs=1, outputs=10, per="sequence")
    adam, draws = torch.optim.Adam(model.parameters(), lr=0.01), torch.Generator().manual_seed(seed)
    for _ in range(updates):
        some = torch.randint(len(train.inputs), (32,), generator=draws)
        torch.nn.functional.cross_entropy(model(train.inputs[some]), train.targets[some]).backward()
        adam.step(), adam.zero_grad()
    return model.eval()

# %%
_ = torch.manual_seed(0)
models = {"TCN": trained(rtx.TCN(22, layers=4, kernel=3), 0)}
models["R-Transformer"] = trained(rtx.RTransformer(18, layers=2, heads=2, window=8, norm="pre"), 0)
explore.digits(models, task.split("test")[:5])

# %% [markdown]
# **Try.** After how many of the 64 pixels does the right class take the lead for good? Is it the same for both models?
#
# <details><summary>Answer</summary>
#
# The sentence under the picture says it for each digit and model. The training asks for an answer only after the last pixel,
# so no belief before it was trained.
#
# </details>
#
# - **You will** write an interval for an accuracy, a reordering, and (optional) a test for two models on the same images.
# - **You learn** how much of a difference is chance, and what happens to models when neighbouring pixels are torn apart.
# - **You need** tensors, and what a [block of the R-Transformer](04_stack_the_block.ipynb) is.
# - **Time:** 40 minutes, with 15 for the first two exercises. The third takes 15 more. The cells run in half a minute.

# %%
import math
from pathlib import Path
from statistics import mean, stdev
import matplotlib.pyplot as plt
from rtx.lab import exercises, plots

plots.style()

# %% [markdown]
# ## 1. An image as a sequence
#
# What does a model read? The image is read row by row. So a pixel's right neighbour comes one step later, and the pixel below it
# comes eight steps later. MNIST, the data of the paper, has $28 \times 28 = 784$ steps.

# %%
inputs, label = task.split("train")[1]
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.1), width_ratios=(1, 3))
left.imshow(inputs.view(8, 8), cmap="Greys")
left.set(title=f"a {label} is ...", xticks=[], yticks=[])
right.bar(range(1, 65), inputs[:, 0], color=plots.COLOURS[0])
right.set(title="... 64 numbers, row after row", xlabel="step", ylabel="darkness (0 to 1)", xticks=range(8, 65, 8))
plt.show()
print(f"{len(train.inputs):,} training images, {len(test.inputs)} test images; always naming the commonest class: {task.baseline():.0f} %")

# %% [markdown]
# ## 2. How much is chance?
#
# A test split is a random sample of images. Another sample would give another accuracy. How different can it be?
#
# **Predict.** A model is right in exactly 99 % of all cases. We test it on 10,000 images, five times. Which accuracies do we
# see? And on 179 images?

# %%
draws = torch.Generator().manual_seed(0)
for images in (10_000, 179):
    accuracies = [100 * (torch.rand(images, generator=draws) < 0.99).float().mean().item() for _ in range(5)]
    print(f"{images:6,} images, right with probability 0.99:", *(f"{accuracy:6.2f} %" for accuracy in accuracies))

# %% [markdown]
# <details><summary>Answer</summary>
#
# With 10,000 images, the accuracies differ by about 0.1 points. With 179 images, they differ by a point or more.
#
# </details>
#
# We see only one accuracy. Which true probabilities fit it? Take a small example: 9 of 10 answers are right. A
# probability $p$ fits if the share 0.9 lies within $z = 1.96$ standard errors of $p$. A **standard error** is the standard deviation
# of a share, $\sqrt{p(1-p)/n}$. Chance exceeds 1.96 of them in about 5 % of samples.

# %%
for p in (0.55, 0.60, 0.80, 0.95, 0.98, 0.99):
    error = math.sqrt(p * (1 - p) / 10)
    away = abs(0.9 - p) / error
    print(f"p = {p:.2f}: standard error {error:.3f}, so 0.9 is {away:4.2f} standard errors away: {'fits' if away < 1.96 else 'does not fit'}")

# %% [markdown]
# The probabilities that fit form **Wilson's interval**. For $r$ right answers of $n$, and $\hat p = r / n$, it is
#
# $$\frac{\hat p + \frac{z^2}{2n}}{1 + \frac{z^2}{n}} \;\pm\; \frac{z}{1 + \frac{z^2}{n}} \sqrt{\frac{\hat p (1 - \hat p)}{n} + \frac{z^2}{4n^2}}$$
#
# The simpler $\hat p \pm z \sqrt{\hat p (1 - \hat p) / n}$ fails near 100 %. If all answers are right, its width is zero.
#
# **Exercise 1** (medium, 10 minutes). Write the interval. `right` and `total` are numbers of images. Return the lower and the
# upper end as shares between 0 and 1. All intervals below come from your function.

# %%
def my_wilson(right, total, z):
    ...  # low, high

wilson = exercises.yours(my_wilson, "wilson")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Compute $\hat p$ first, then the centre, then the half-width. Watch the bracket: the root contains a sum.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_wilson(right, total, z):
#     p = right / total
#     stretch = 1 + z**2 / total
#     centre = (p + z**2 / (2 * total)) / stretch
#     half = z * (p * (1 - p) / total + z**2 / (4 * total**2)) ** 0.5 / stretch
#     return centre - half, centre + half
# ```
#
# </details>

# %%
def interval(percent, images):
    low, high = wilson(round(percent / 100 * images), images, 1.96)
    return 100 * float(low), 100 * float(high)

print("9 of 10: {:.0f} to {:.0f} %".format(*interval(90, 10)))
for name, percent in (("R-Transformer", 99.1), ("TCN", 99.0), ("Transformer", 98.2), ("GRU", 96.2)):
    print("{:13} {:.1f} % of 10,000: {:.2f} to {:.2f} %".format(name, percent, *interval(percent, 10_000)))

# %% [markdown]
# The intervals of 99.1 and 99.0 overlap for the most part. Either model may be the better one. The Transformer's interval lies below both.
#
# ## 3. Neighbours torn apart
#
# The paper explains its gain by local structure. So a control is to remove this structure: read the pixels of *all* images in
# one random order, always the same. No information is lost. But near in the image is no longer near in the sequence.
#
# **Exercise 2** (easy, 5 minutes). `order[i]` says which pixel is read at step $i$. Reorder `x` $(B, T, 1)$.

# %%
def my_reordered(x, order):
    ...  # (B, T, 1)

reordered = exercises.yours(my_reordered, "reordered")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `a[order]` picks along the first axis, which counts images here. Pixels are counted by the second axis.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_reordered(x, order):
#     return x[:, order]
# ```
#
# </details>

# %%
from rtx.tasks.images import permutation

order = permutation(64)
torn = reordered(train.inputs[:1000], order)
for name, x in (("row by row", train.inputs[:1000]), ("permuted", torn)):
    step = (x[:, 1:] - x[:, :-1]).abs().mean()
    print(f"{name:11} mean difference of two neighbouring steps: {step:.2f} (pixels range from 0 to 1)")

# %% [markdown]
# **Predict.** Which models lose accuracy by it: a TCN, a GRU (a recurrent network), a Transformer with sinusoids, an
# R-Transformer? Which model loses most?
#
# We trained six models of 12,000 to 15,000 parameters, each from three seeds (random starts). An update is one step
# of the optimiser, on 32 images. 540 updates are 12 passes over the training images. Each model's learning rate is the best of three
# on validation images. **Post-norm** and **pre-norm** are the two places of the norm ([notebook 04](04_stack_the_block.ipynb)).
# `studies/digits_in_order.py` has the details.

# %%
from rtx.lab.studies import chosen_runs

AFTER, ORDERS = (45, 135, 270, 540), ("row by row", "permuted")
studied = {kind: chosen_runs("../studies/digits_in_order.json", kind) for kind in ORDERS}

def accuracy(run, at=-1):
    return 100 * run["test"][at]["right"][0]

def told(values):
    return f"{mean(values):5.1f} ± {stdev(values):3.1f}" if len(values) > 1 else f"{values[0]:5.1f}      "

print("right answers in %, mean ± standard deviation over seeds")
for at, updates in ((1, 135), (3, 540)):
    print(f"\nafter {updates:3} updates            row by row      permuted     lost  seeds")
    for name in studied["permuted"]:
        level, permuted = ([accuracy(run, at) for run in studied[kind][name]] for kind in ORDERS)
        print(f"{name:26} {told(level)}  {told(permuted)} {mean(level) - mean(permuted):8.1f} {len(permuted):6}")

# %%
styles = {"GRU": (0, "-"), "TCN": (1, "-"), "Transformer": (2, "--"), "R-Transformer": (4, ":")}
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
for ax, kind in zip(axes, ORDERS):
    for name in studied["permuted"]:
        colour, line = styles[name.split(",")[0]]
        points = [mean(accuracy(run, at) for run in studied[kind][name]) for at in range(4)]
        ax.plot(AFTER, points, line, marker="o" if "post" in name else "s", markersize=4, color=plots.COLOURS[colour], label=name)
    ax.set(title=kind, xlabel="updates", xticks=AFTER, ylim=(0, 100))
axes[0].set_ylabel("right answers (%)")
axes[1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
fig.suptitle("with permuted pixels, most models learn more slowly", fontsize=11)
plt.show()

# %%
fig, ax = plt.subplots(figsize=(8, 3.4))
for place, name in enumerate(studied["permuted"]):
    for kind, shift, colour in zip(ORDERS, (-0.18, 0.18), (0, 1)):
        for number, run in enumerate(studied[kind][name]):
            low, high = interval(accuracy(run), len(test.inputs))
            y = place + shift + 0.08 * (number - 1)
            ax.plot([low, high], [y, y], color=plots.COLOURS[colour], linewidth=1.5, label=kind if place + number == 0 else None)
            ax.plot(accuracy(run), y, "o", color=plots.COLOURS[colour], markersize=4)
ax.set(yticks=range(place + 1), yticklabels=list(studied["permuted"]), xlabel="right answers after 540 updates (%), with Wilson's interval for 179 images")
ax.set_title("on average the TCN is ahead, with both orders of the pixels (each line: one seed)")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
ax.invert_yaxis()
plt.show()

# %% [markdown]
# <details><summary>Answer</summary>
#
# After 540 updates, all six have lost accuracy, on average over the seeds. The GRU, the post-norm Transformer and both
# R-Transformers lose 8 to 13 points. The TCN loses least. The seeds differ by several points, so a finer order is not certain.
#
# </details>
#
# An earlier version of this notebook trained only the TCN and the R-Transformer, with one seed, for 135 updates. It
# concluded: the R-Transformer loses because its window expects neighbours. The other models are the controls that were missing.
#
# - **Models without a window lose as much.** The GRU and the post-norm Transformer have no window. So a window of
#   neighbours is not needed for such a loss.
# - **The loss depends on the updates.** For both R-Transformers and the TCN, it is clearly smaller after 540 updates than after 135.
#   So a part of it was slow learning. Does the rest vanish? The R-Transformers still improve, so 540 updates cannot say.
# - **179 images are few.** An interval is 5 to 13 points wide.
#
# ## 4. Two models, the same images
#
# Two intervals compare models as if each had seen other images. But models are tested on the *same* images. Then
# we can look closer. Images that both name rightly, or both wrongly, say nothing about which model is better. Only images on which the
# models differ do.

# %%
_ = torch.manual_seed(1)
models["TCN, other seed"] = trained(rtx.TCN(22, layers=4, kernel=3), 1)
with torch.no_grad():
    correct = {name: model(test.inputs).argmax(1) == test.targets for name, model in models.items()}
for other in ("R-Transformer", "TCN, other seed"):
    a, b = correct["TCN"], correct[other]
    print(f"TCN {a.float().mean():.1%}, {other} {b.float().mean():.1%}: both right {(a & b).sum()}, both wrong {(~a & ~b).sum()}, "
          f"only the TCN {(a & ~b).sum()}, only the other {(~a & b).sum()}")

# %% [markdown]
# If both models are equally good, each of these images is like the throw of a fair coin: heads for one model, tails for the
# other. The **p value** is the probability that $n$ fair coins split at least as unevenly as we saw. For example, 5 : 1 has
# $2 \cdot \frac{6 + 1}{2^6} = 0.22$. There are six ways to have five heads and one way to have six. The factor 2 adds the tails.
#
# **Exercise 3** (hard, optional, 15 minutes). Write it. `a` and `b` $(N,)$ are `True` where a model is right. Return a
# number of at most 1. It is 1 if the models never differ.

# %%
def my_paired_p(a, b):
    ...  # one number

paired_p = exercises.yours(my_paired_p, "paired_p")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `(a & ~b).sum()` counts images that only the first model names rightly. `math.comb(n, k)` is the number of ways to have
# $k$ heads in $n$ throws. Sum from the larger count up to $n$, and double.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_paired_p(a, b):
#     from math import comb
#
#     one, other = int((a & ~b).sum()), int((~a & b).sum())
#     n = one + other
#     tail = sum(comb(n, k) for k in range(max(one, other), n + 1)) / 2**n
#     return min(1.0, 2 * tail)
# ```
#
# </details>

# %%
for apart in (20, 50, 100, 180):  # images on which two models of MNIST differ, ten more won than lost
    a = torch.arange(apart) < apart / 2 + 5
    print(f"99.1 against 99.0 on 10,000 images, {apart:3} of them different: p = {paired_p(a, ~a):.2f}")
for other in ("R-Transformer", "TCN, other seed"):
    print(f"TCN against {other:16} on our 179 images: p = {paired_p(correct['TCN'], correct[other]):.2g}")

# %% [markdown]
# The last comparison above is a warning. Both networks are the same TCN, trained from two seeds, and still $p$ is below 0.05. So
# $p$ is about two *trained networks*. It does not say that one kind of model is better.
#
# 99.1 against 99.0 means ten more right answers of 10,000. What this says depends on how many answers differ. With 20, chance
# seldom gives such a lead. With 50 or more, it often does. The paper does not print this number, so we cannot know.
#
# ## 5. The other chance: the seed
#
# An interval covers the choice of test images only. A training has another source of chance: the random start of the weights and the
# order of the images. Our results have three seeds for six models, on a smaller MNIST: 10,000
# training images, $14 \times 14$ pixels, five epochs (passes over the data), and half of the paper's layers.

# %%
from rtx.evidence import tables
from rtx.training import recipe

plan = recipe.load_recipe("mnist")
for row, (runs,) in tables.cells(plan, Path("../results")).items():
    low, high = interval(runs[0].test, 10_000)
    seeds = "  ".join(f"{run.test:4.1f}" for run in runs)
    print(f"{row:14} paper {plan.paper(row):4.1f}; ours, three seeds: {seeds}; the first seed's interval: {low:4.1f} to {high:4.1f}")

# %% [markdown]
# **Predict.** Look at the R-Transformer's row. Which is larger: the spread of the seeds, or the interval of one of them?
#
# <details><summary>Answer</summary>
#
# The spread of its seeds. The TCN's seeds are closer together than its interval is wide. So each model needs its own seeds.
#
# </details>
#
# The paper prints one number per model, without seeds. Under our reduced conditions, the TCN is five points ahead of the
# R-Transformer. This does not refute the paper, whose models are larger and train on 60,000 larger images for 50 epochs.
#
# What else do we know about the 99.1, from the paper and its code?
#
# - The numbers of RNN, GRU, LSTM and TCN are copied from Bai et al. (2018), who trained with other settings.
# - The R-Transformer has three times the parameters of the TCN: 204,426 that get gradients, against 66,910.
# - The code has no validation split. Only test images were there to choose by. This favours the chosen model a little.
#
# So the table supports this sentence: one trained R-Transformer and one trained TCN were about equally good on MNIST.
#
# ## Recap
#
# - Wilson's interval says which true accuracies fit a score. For 99 % of 10,000 images it is about 0.4 points wide.
# - Networks on the same images are compared where they differ. The seed is a second source of chance.
# - Permuted pixels cost the R-Transformer accuracy, and a GRU without a window, too. The loss became smaller with more updates.
# - In our small runs the TCN is ahead of the R-Transformer (179 digits, and reduced MNIST).
# - Open: MNIST at the paper's full size. `rtx train mnist r-transformer` runs it, on a graphics card.
#
# ## Quiz
#
# 1. Two models have 97.0 % and 98.0 % on the same 200 images. They differ on 2 images. What is $p$?
# 2. Why is choosing the best of 50 epochs on the test images wrong, even if nobody cheats?
# 3. All images are read column by column. Does a TCN lose as much as with a random order?
#
# <details><summary>Answers</summary>
#
# 1. The second model is right on both images, 2 : 0. So $p = 2 \cdot \frac{1}{2^2} = 0.5$.
# 2. The best of 50 scores is partly luck with these images. On new images, the luck is gone.
# 3. Probably not; we did not try. Upright neighbours become near in the sequence, and level ones are eight steps apart.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Wang et al. (2019), *R-Transformer*, section 4.1 and Table 1. The permuted task is from Le, Jaitly & Hinton (2015).
#
# | in the paper | here | in `rtx` |
# | --- | --- | --- |
# | pixel-by-pixel MNIST | sections 1, 5 | tasks `digits`, `mnist` |
# | Table 1 | sections 2, 5 | recipe `mnist`, `rtx table mnist` |
# | permuted pixels (not in the paper) | section 3 | tasks `permuted-digits`, `permuted-mnist` |
#
# `rtx train mnist r-transformer --scale cpu` repeats a run of section 5, in 8 to 32 minutes on one core.
#
# </details>
#
# **Back:** [Add and multiply](09_add_and_multiply.ipynb) · **Index:** [README](../README.md) · **On:**
# [Can a model learn a chorale?](11_model_music.ipynb)
