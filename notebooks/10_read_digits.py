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
# In the R-Transformer paper, models read a handwritten digit (MNIST) pixel by pixel and name it after the last pixel. The
# R-Transformer is right for 99.1 % of the test images, and the TCN, a convolutional network, for 99.0 %. Is the R-Transformer
# better? The next cells train a small version of each, on the 8 × 8 images of scikit-learn.
#
# <details><summary>Words</summary>
#
# - **RNN, GRU, LSTM**: recurrent networks, which read step by step and keep a [state](../docs/glossary.md#state).
# - **TCN**: a temporal convolutional network. Each layer reads a few past steps ([notebook 07](07_convolve_or_recur.ipynb)).
# - **Transformer**: each step takes a weighted mean of all steps so far.
# - **R-Transformer**: a Transformer whose blocks first read a **window** (the last few steps) with a small recurrent network.
# - **Post-norm, pre-norm**: a block normalises after, or before, each of its parts ([notebook 04](04_stack_the_block.ipynb)).
# - **Update**: one step of the optimiser.
# - **Seed**: a number that fixes the random start of the weights and the random order of the training images.
# - **Validation images**: images that choose settings, such as the [learning rate](../docs/glossary.md#learning-rate).
#
# </details>

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
    # 64-bit numbers: rounding differs between processors, but is then too small to matter
    model = SequenceModel(network, inputs=1, outputs=10, per="sequence").double()
    adam, draws = torch.optim.Adam(model.parameters(), lr=0.01), torch.Generator().manual_seed(seed)
    for _ in range(updates):
        some = torch.randint(len(train.inputs), (32,), generator=draws)
        torch.nn.functional.cross_entropy(model(train.inputs[some].double()), train.targets[some]).backward()
        adam.step(), adam.zero_grad()
    return model.float().eval()

# %%
_ = torch.manual_seed(0)
models = {"TCN": trained(rtx.TCN(22, layers=4, kernel=3), 0)}
models["R-Transformer"] = trained(rtx.RTransformer(18, layers=2, heads=2, window=8, norm="pre"), 0)
images = [task.split("test")[number] for number in (1, 2, 8, 10, 4)]
view = explore.digits(dict(reversed(models.items())), images)
print(f"R-Transformer, first image. {view.text}")
view

# %% [markdown]
# **Left:** the pixels read so far. The darker the orange of a pixel, the darker it is in the image. Light blue pixels are not read yet. **Middle:** the model's **belief**, which is
# its probability for each digit. **Right:** the belief in the right digit (class), and in the best other digit. 
#
# **Try.** From which pixel on does the right digit always have the largest probability? Compare both models.
#
# <details><summary>Answer</summary>
#
# For the first image, the R-Transformer needs about 60 of 64 pixels, and the TCN nearly all. Only the belief after the last pixel was
# trained. Before the last row, the belief in a wrong digit is sometimes high.
#
# </details>
#
# - **You will** write an interval for an accuracy, a new order of pixels, and (optional) a test for two models.
# - **You learn** how much of a difference is chance, and what models lose without neighbouring pixels at neighbouring steps.
# - **You need** PyTorch tensors.
# - **Time:** 45 minutes, with 15 for the first two exercises. The third takes 15 more. The cells run in less than a minute.

# %%
import json
import math
from pathlib import Path
from statistics import mean, stdev
import matplotlib.pyplot as plt
from rtx.lab import exercises, plots

plots.style()

# %% [markdown]
# ## 1. An image as a sequence
#
# The image is read row by row. A pixel's right neighbour comes one step later, and the pixel below comes eight steps later.
# An MNIST image has $28 \times 28 = 784$ steps.

# %%
inputs, label = task.split("train")[1]
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.1), width_ratios=(1, 3))
left.imshow(inputs.view(8, 8), cmap="Greys")
left.set(title=f"a {label} is ...", xticks=[], yticks=[])
right.bar(range(1, 65), inputs[:, 0], color=plots.COLOURS[0])
right.set(title="... 64 numbers, row after row", xlabel="step", ylabel="darkness (0 to 1)", xticks=range(8, 65, 8))
plt.show()
print(f"{len(train.inputs):,} training images, {len(task.split('validation'))} validation images, {len(test.inputs)} test images")
print(f"if the answer is always the most frequent digit: {task.baseline():.0f} % right")

# %% [markdown]
# ## 2. How much is chance?
#
# Test images are a random sample. Another sample would give another accuracy. How different can it be?
#
# **Predict.** A model is right with probability 0.99 for each image. We test it on 10,000 images, five times. How far apart are the
# five accuracies? And with 179 images?

# %%
draws = torch.Generator().manual_seed(0)
for count in (10_000, 179):
    accuracies = [100 * (torch.rand(count, generator=draws) < 0.99).float().mean().item() for _ in range(5)]
    print(f"{count:6,} images:", *(f"{accuracy:6.2f}" for accuracy in accuracies), "% right")

# %% [markdown]
# <details><summary>Answer</summary>
#
# With 10,000 images, the accuracies differ by less than 0.2 percentage points. With 179 images, they differ by up to 2.2 points.
#
# </details>
#
# A test gives one accuracy. Which probabilities $p$ of a right answer agree with it? In many samples of $n$ images, the share of
# right answers varies around $p$. The [standard deviation](../docs/glossary.md#standard-deviation) of the share is $\sqrt{p(1-p)/n}$, the **standard error**. If $n$ is large, the
# share is at most 1.96 standard errors away from $p$ in about 95 % of the samples. We say that $p$ **fits** a share if the share is that
# close to $p$. For example, 9 of 10 answers are right:

# %%
for p in (0.55, 0.60, 0.80, 0.95, 0.98, 0.99):
    error = math.sqrt(p * (1 - p) / 10)
    away = abs(0.9 - p) / error
    print(f"p = {p:.2f}: standard error {error:.3f}, 0.9 is {away:4.2f} standard errors away: {'fits' if away < 1.96 else 'does not fit'}")
for count in (10_000, 179, 10):
    shares = (torch.rand(1000, count, generator=draws) < 0.99).double().mean(1)
    near = (shares - 0.99).abs() < 1.96 * math.sqrt(0.99 * 0.01 / count)
    print(f"p = 0.99, 1,000 samples of {count:6,} images: p fits the shares of {near.double().mean():.0%} of the samples")

# %% [markdown]
# The probabilities that fit form **Wilson's interval**. At its two ends, the share is exactly 1.96 standard errors away from $p$. We solve
# this equation for $p$:
#
# $$\frac{\hat p + \frac{z^2}{2n}}{1 + \frac{z^2}{n}} \;\pm\; \frac{z}{1 + \frac{z^2}{n}} \sqrt{\frac{\hat p (1 - \hat p)}{n} + \frac{z^2}{4n^2}}$$
#
# - $n$ is the number of images, and $\hat p$ is the share of right answers.
# - $z$ is the allowed number of standard errors, here 1.96.
#
# **Exercise 1** (medium, 10 minutes). Write Wilson's interval. `right` and `total` are numbers of images. Return the lower and the
# upper end as shares between 0 and 1.

# %%
def my_wilson(right, total, z):
    ...  # low, high

wilson = exercises.yours(my_wilson, "wilson")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Compute $\hat p$ first, then the term before $\pm$, then the term after it. The root contains a sum.
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
def interval(percent, count):
    low, high = wilson(round(percent / 100 * count), count, 1.96)
    return 100 * float(low), 100 * float(high)

for name, percent in (("R-Transformer", 99.1), ("TCN", 99.0), ("Transformer", 98.2), ("GRU", 96.2)):
    print("paper, {:13} {:.1f} % of 10,000: {:.2f} to {:.2f} %".format(name, percent, *interval(percent, 10_000)))
print("9 of 10: {:.1f} to {:.1f} %".format(*interval(90, 10)))
for percent in (80, 95):
    print("{} % of 179 images: {:.1f} to {:.1f} %".format(percent, *interval(percent, 179)))

# %% [markdown]
# The interval for 9 of 10 agrees with our search above. The intervals of 99.1 and 99.0 mostly overlap. So either model may have the larger $p$. A comparison on the same images can say more (section 4).
#
# ## 3. Permuted pixels
#
# The paper says that an R-Transformer models neighbouring steps well, and that a Transformer does not (section 4.1 of the paper). Does
# a high accuracy need neighbours? As a [control](../docs/glossary.md#control), we read the pixels of *all* images in the same random order. The
# pixels are then **permuted**.
#
# **Exercise 2** (easy, 5 minutes). `order[i]` says which pixel is read at step $i$. Reorder `x` $(B, T, 1)$: $B$ images of $T$ pixels.

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

permuted = reordered(train.inputs, permutation(64))
for name, x in (("row by row", train.inputs), ("permuted", permuted)):
    step = (x[:, 1:] - x[:, :-1]).abs().mean()
    print(f"{name:11} mean difference of two neighbouring steps: {step:.2f} (pixels range from 0 to 1)")

# %% [markdown]
# We trained six models with both orders of the pixels, each with three seeds. A training has 540 updates of 32 images. For each model, validation images chose one of four learning rates, and both orders use it.
# (Script: `studies/digits_in_order.py`.)
#
# For each seed, the two trainings start from the same weights and read the same images. So each seed gives one **drop**: the accuracy
# row by row, minus the accuracy with permuted pixels.
#
# **Predict.** The models are a [GRU](../docs/glossary.md#gru-lstm), a TCN, a Transformer and an R-Transformer, the last two with [post-norm](../docs/glossary.md#post-norm-pre-norm) and with pre-norm. Which of the six has the largest drop, and which the smallest?

# %%
AFTER, RATES = (45, 135, 270, 540), (0.001, 0.003, 0.01, 0.03)
stored = json.loads(Path("../studies/digits_in_order.json").read_text(encoding="utf-8"))["runs"]

def of_rate(name, rate, *orders):
    return [run for run in stored if (run["model"], run["rate"]) == (name, rate) and run["problem"] in orders]

def best_rate(name):
    return max(RATES, key=lambda rate: mean(run["validation"][-1] for run in of_rate(name, rate, "row by row", "permuted")))

names = list(dict.fromkeys(run["model"] for run in stored))
level, mixed = ({name: of_rate(name, best_rate(name), order) for name in names} for order in ("row by row", "permuted"))

def accuracies_at(runs, updates):
    return [100 * run["test"][AFTER.index(updates)]["right"][0] for run in runs]

def drops(name, updates):
    return [a - b for a, b in zip(accuracies_at(level[name], updates), accuracies_at(mixed[name], updates))]

# %%
print("after 540 updates        parameters   rate   row by row     permuted    mean drop   drop with seed 0, 1, 2")
for name in mixed:
    a, b = (accuracies_at(runs[name], 540) for runs in (level, mixed))
    print(f"{name:25} {level[name][0]['parameters']:8,}  {best_rate(name):5}   {mean(a):.1f} ± {stdev(a):.1f}   {mean(b):.1f} ± {stdev(b):.1f} "
          f"{mean(a) - mean(b):10.1f}  ", *(f"{drop:6.1f}" for drop in drops(name, 540)))
print("accuracies in %: mean ± standard deviation of three seeds; drops in percentage points; each number is rounded on its own")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The post-norm R-Transformer and the GRU have the largest mean drops, 12 to 13 points. The TCN has the smallest, about 2 points.
#
# </details>
#
# Perhaps a model can learn both orders equally well, but needs more updates for the permuted one. Then its drop shrinks with more updates.

# %%
from rtx.models.tcn import receptive_field

fig, axes = plt.subplots(1, 6, figsize=(10, 2.8), sharey=True)
for ax, name in zip(axes, mixed):
    each = [drops(name, updates) for updates in AFTER[1:]]
    ax.axhline(0, color="black", linewidth=0.8)
    ax.plot(AFTER[1:], [mean(seeds) for seeds in each], color=plots.COLOURS[0])
    ax.plot(AFTER[1:], each, "o", color=plots.COLOURS[1], markersize=4)
    ax.set(xlabel="updates", xticks=AFTER[1:], xlim=(80, 600))
    ax.set_title(name.replace(", ", ",\n"), fontsize=10)
    ax.tick_params(labelsize=8)
axes[0].set_ylabel("drop (points)")
fig.suptitle("after 540 updates, five models have a drop with each seed (dots: seeds; line: mean)", fontsize=11)
plt.show()
print("mean accuracy after 135 and 540 updates, and change of the drop with seed 0, 1, 2:")
for name in mixed:
    changes = [after - before for before, after in zip(drops(name, 135), drops(name, 540))]
    a, b = ([mean(accuracies_at(runs[name], updates)) for updates in (135, 540)] for runs in (level, mixed))
    print(f"{name:25} row by row {a[0]:.1f} to {a[1]:.1f} %, permuted {b[0]:.1f} to {b[1]:.1f} %, drop", *(f"{change:6.1f}" for change in changes))
print(f"the last output of the TCN sees {receptive_field(4, kernel=3)} steps")

# %% [markdown]
# - **Five models have a drop with each seed.** With four of them it is at least 5.6 points, which is 10 of 179 images. So for these four,
#   the order of the pixels seems to matter. The TCN's are 1, 2 and 10 images. Two seeds of the pre-norm Transformer have none.
# - **A drop does not need a window.** The GRU and the post-norm Transformer have no window. We tested only windows
#   of 8 steps.
# - **The TCN reads near steps, but its drop is small.** Its four layers together see 61 of the 64 steps. We did not test a TCN that sees fewer.
# - **Some drops shrink with more updates.** The drop of the post-norm R-Transformer shrinks by at least 6 points with each seed. Each
#   other model has a seed whose drop grows or hardly shrinks.
# - **Open:** Do the other drops vanish after more updates? Three seeds, one random order and 179 images are few: the interval around 80 % is 12 points wide.
#
# ## 4. Two models, the same images
#
# Both models answer the *same* test images. An image on which both are right, or both wrong, does not show which model is
# better. Only an image on which the models **differ** shows it: one model is right, and the other is wrong.

# %%
def right_or_wrong(model):
    with torch.no_grad():
        return model(test.inputs).argmax(1) == test.targets

correct = {name: right_or_wrong(model) for name, model in models.items()}
a, b = correct["TCN"], correct["R-Transformer"]
print(f"right: TCN {100 * a.float().mean():.1f} %, R-Transformer {100 * b.float().mean():.1f} %")
print(f"both right {(a & b).sum()}, both wrong {(~a & ~b).sum()}, only the TCN right {(a & ~b).sum()}, only the R-Transformer right {(~a & b).sum()}")

# %% [markdown]
# Suppose that both models are equally good. Then each image on which they differ is like the throw of a fair coin: heads if the first
# model is right, tails if the second is. We throw one coin for each of these images. The **p value** is the probability that
# the coins split at least as unevenly as the images did.
#
# For example, the models differ on 6 images, and the first model is right on 5 of them. Six coins can fall in $2^6 = 64$ ways. Six ways
# have five heads, and one way has six heads. Seven more ways have five or six tails. So $p = 2 \cdot (6 + 1) / 64 = 0.22$. Many
# papers call a difference **significant** if $p < 0.05$.
#
# **Exercise 3** (hard, optional, 15 minutes). Write the p value. `a` $(N,)$ is `True` for the images on which the first model is right, and `b` for those on which the second is.
# Return a number of at most 1. It is 1 if the models never differ.

# %%
def my_paired_p(a, b):
    ...  # one number

paired_p = exercises.yours(my_paired_p, "paired_p")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `(a & ~b).sum()` counts the images on which only the first model is right. `math.comb(n, k)` is the number of ways to have
# $k$ heads in $n$ throws. Sum from the larger count up to $n$, and double the sum.
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
#
# In the paper, the models have about 90 and 100 wrong answers of 10,000. Because of rounding, the difference is between 0 and 20. Suppose that it is exactly 10. If all 90 errors are among the 100, the models differ on 10 images. If they share no error, they differ on 190.

# %%
for differ in (10, 20, 50, 100, 190):
    first = torch.arange(differ) < differ / 2 + 5  # ten more for the first model
    print(f"99.1 against 99.0, {differ:3} images on which the models differ: p = {paired_p(first, ~first):.3f}")

# %% [markdown]
# If the models differ on 10 or 20 images, the difference is significant. If they differ on 50 or more, it is not. The paper does not
# print this number, so we cannot know $p$.
#
# **Predict.** We train the *same* TCN from five seeds, and compare each pair. How many of the ten pairs have $p < 0.05$?

# %%
from itertools import combinations

print(f"TCN against R-Transformer: p = {paired_p(a, b):.5f}")
seeds = [a]
for seed in (1, 2, 3, 4):
    _ = torch.manual_seed(seed)
    seeds.append(right_or_wrong(trained(rtx.TCN(22, layers=4, kernel=3), seed)))
print("five TCNs, right:", *(f"{100 * one.float().mean():.1f} %" for one in seeds))
print("ten pairs of TCNs, p:", *(f"{p:.5f}" for p in sorted(paired_p(x, y) for x, y in combinations(seeds, 2))))

# %% [markdown]
# <details><summary>Answer</summary>
#
# Five.
#
# </details>
#
# Half of the pairs have $p < 0.05$, although all networks are TCNs after 120 updates. So $p$ compares two *trained networks*. It does not say that one kind of model is better. This is also true for the TCN and the
# R-Transformer above.
#
# ## 5. The other chance: the seed
#
# How much does the seed matter on MNIST? This project trained six models with three seeds each, under reduced conditions: one learning rate (not chosen), 10,000
# training and 10,000 test images of $14 \times 14$ pixels, and five [epochs](../docs/glossary.md#epoch) (passes), after which most were still improving. The R-Transformer, the Transformer and the TCN have fewer layers
# than at full size.
#
# **Predict.** Is the range of the R-Transformer's three seeds wider than Wilson's interval for one seed?

# %%
from rtx.evidence import tables
from rtx.training import recipe

plan = recipe.load_recipe("mnist")
for row, (runs,) in tables.cells(plan, Path("../results")).items():
    ours = [run.test for run in runs]
    low, high = interval(ours[0], 10_000)
    each = " ".join(f"{accuracy:.2f}" for accuracy in ours)
    print(f"{row:14} paper {plan.paper(row):4.1f} %; ours, three seeds: {each}, mean {mean(ours):4.1f} %; "
          f"range {max(ours) - min(ours):3.1f} points, interval {high - low:3.1f} points wide")
small = plan.scales["cpu"]["rows"]
print("layers:", *(f"{row} {small[row]['layers']} instead of {plan.models[row]['layers']};" for row in small))
print(f"p if the kinds separate: three seeds each {2 / math.comb(6, 3):.3f}, five seeds each {2 / math.comb(10, 5):.3f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Yes: 2.1 points, against 1.2.
#
# </details>
#
# The ranges differ: 0.2 points for the TCN, but 5.5 points for the Transformer. We know a model's range only after training it with several seeds. The paper's Table 1 has one number per model. All but the two Transformers' are from Bai et al. (2018).
#
# How can we compare two kinds of model? Here, all three TCNs are better than all three R-Transformers: the kinds **separate**. If the
# kinds were equally good, any three of the six networks could be the best three. There are 20 such choices, and the kinds separate in two
# of them. So $p = 2/20 = 0.1$. If they separate with five seeds each, $p = 2/252 = 0.008$. Even then, our result would not
# refute the paper, which has deeper models, and more and larger images.
#
# The paper's two models also differ in size:

# %%
parameters = json.loads(Path("../studies/original_code.json").read_text(encoding="utf-8"))["parameters on MNIST"]
print(f"trained parameters in the published code: R-Transformer {parameters['r-transformer, theirs, with gradients']:,}, TCN {parameters['tcn, theirs']:,}")

# %% [markdown]
# **What does 99.1 against 99.0 say?** The R-Transformer made at most 20 errors fewer on 10,000 images. This does not say which kind is better.
#
# ## Recap
#
# - The p value of section 4 compares two trained networks. To compare two kinds of model, we need several seeds.
# - With permuted pixels, the R-Transformers lose accuracy (540 updates, three seeds, one order). A GRU, without a window, loses accuracy, too.
# - After 540 updates, the TCN loses 0.6 to 5.6 points. So high accuracy did not need neighbouring pixels at neighbouring steps.
# - In our small runs the TCN is ahead of the R-Transformer. Open: MNIST at full size (`rtx train mnist r-transformer`, on a graphics card).
#
# ## Quiz
#
# 1. A model is tested on the test images after each of 50 [epochs](../docs/glossary.md#epoch) (passes), and the best accuracy is reported. What is wrong?
# 2. One network of a new kind is right for 80 % of our 179 test images, after 120 updates. Is its kind better than the TCN?
#
# <details><summary>Answers</summary>
#
# 1. The best of 50 accuracies is partly luck. New images do not bring the same luck.
# 2. One network cannot say it. The five TCNs have 72 % to 89 %, so 80 % is in between.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# - Wang et al. (2019), *R-Transformer*, section 4.1: tasks `digits` and `mnist` of this project. Table 1: `rtx table mnist`.
# - Permuted pixels are from Le, Jaitly & Hinton (2015): tasks `permuted-digits` and `permuted-mnist`.
#
# </details>
#
# **Back:** [Can a model without recurrence remember thousands of steps?](09_add_and_multiply.ipynb) · **Index:** [README](../README.md) · **Words:** [glossary](../docs/glossary.md) · **On:**
# [Can a model learn a chorale?](11_model_music.ipynb)
