# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Read digits
#
# **What does a score of 99.1 % against 99.0 % say?**
#
# The paper's first experiment reads a handwritten digit as a long sequence, one pixel after the other, and names it at the end. It is
# an odd task, and a good test: what matters is spread over all steps. MNIST has 784 of them; here the digits bundled with
# scikit-learn have 64, so four models can be trained while you read.
#
# - **You will** train four models, watch them make up their mind, tear neighbours apart, and test a table's claim.
# - **You learn** what sequential MNIST asks of a model, what permuting does, and how to read a difference of 0.1 %.
# - **You need** Python, tensors. [04 stack the block](04_stack_the_block.ipynb) and [07 convolve or
#   recur](07_convolve_or_recur.ipynb) tell how the models work.
# - **Time:** 30 minutes to read and try; the cells run in about 35 seconds.
#
# ## Paper map
#
# Wang et al. (2019), *R-Transformer*, §4.1 and Table 1; the permuted task is from Le, Jaitly & Hinton (2015).
#
# | in the paper | here | in `rtx` |
# | --- | --- | --- |
# | pixel-by-pixel MNIST | sections 1, 5 | tasks `digits`, `mnist` |
# | RNN … R-Transformer | section 2 | `rtx.build(task, name)` |
# | Table 1 | section 4 | recipe `mnist` |
# | permuted pixels (not in the paper) | section 3 | tasks `permuted-digits`, `permuted-mnist` |

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots
from rtx.tasks import task_by_name
from rtx.tasks.loader import loader

plots.style()
torch.set_num_threads(1)

# %% [markdown]
# ## 1. An image as a sequence
#
# Row by row, so a pixel's right neighbour comes one step later, the one below it eight steps later.

# %%
task = task_by_name("digits")
inputs, label = task.split("train")[1]
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.2), width_ratios=(1, 3))
left.imshow(inputs.view(8, 8), cmap="Greys")
left.set(title=f"a {label} …", xticks=[], yticks=[])
right.bar(range(1, 65), inputs[:, 0], color=plots.COLOURS[0])
right.set(title="… and what a model reads", xlabel="step", ylabel="darkness", xticks=range(8, 65, 8))
plt.show()
print(len(task.split("train")), "images to train on,", tuple(inputs.shape), "each; the commonest class:", f"{task.baseline():.0f} %")

# %% [markdown]
# **Predict.** A model with a window of 7 pixels, and no other way to look back, reads these images. Which strokes can it not
# see?
#
# <details><summary>Answer</summary>
#
# Upright ones: the pixel above is eight steps back, outside the window. With MNIST's rows of 28 the published window of 7
# sees a quarter of a row. Whatever runs downwards needs several such windows stacked, or attention.
#
# </details>
#
# ## 2. Four models, the same few passes

# %%
MODELS = {
    "TCN": ("tcn", dict(d_model=20, layers=4, kernel=3)),
    "Transformer": ("transformer", dict(d_model=24, layers=2, heads=2, norm="pre")),
    "R-Transformer": ("r-transformer", dict(d_model=16, layers=2, heads=2, window=8, norm="pre")),
    "GRU": ("gru", dict(d_model=32)),
}
DASHES = ("-", "--", ":", "-.")  # a line of its own for each

# %%
def train(task, name, hyperparameters, epochs=3, seed=0):
    """A trained model, and its accuracy on the test split after each epoch."""
    torch.manual_seed(seed)
    model, batches = rtx.build(task, name, **hyperparameters), loader(task, "train", 32)
    optimizer, scores = torch.optim.Adam(model.parameters(), lr=0.02 if name == "gru" else 0.01), []
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.05, total_iters=epochs * len(batches))
    for epoch in range(epochs):
        batches.batch_sampler.set_epoch(epoch)
        for batch in batches:
            loss = task.loss(task.predict(model, batch), batch)
            optimizer.zero_grad()
            (loss.total / loss.count).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step(), slower.step()
        scores.append(accuracy(model, task))
    return model.eval(), scores

# %%
def accuracy(model, task):
    test = next(iter(loader(task, "test", 200)))
    with torch.no_grad():
        return task.score(task.predict(model, test), test)

found = {name: train(task, *row) for name, row in MODELS.items()}
fig, ax = plt.subplots(figsize=(6.4, 3))
for (name, (model, scores)), dash in zip(found.items(), DASHES):
    ax.plot(range(1, 4), scores, dash, label=f"{name}, {sum(p.numel() for p in model.parameters()):,} parameters")
ax.axhline(task.baseline(), color="0.4", linestyle=":", linewidth=1)
ax.set(xlabel="epoch of 1,439 images", ylabel="accuracy (%)", ylim=(0, 100), xticks=range(1, 4))
ax.set(title="digits, one seed, three passes: all learn")
ax.legend(frameon=False, fontsize=9)
plt.show()
print("each names more than two in five digits:", all(scores[-1] > 40 for _, scores in found.values()))

# %% [markdown]
# One seed, three epochs, widths chosen for speed, 179 test images: this ranking says next to nothing about MNIST. What it would take
# to say something is the subject of section 4. First, let us watch them read.

# %%
model = found["R-Transformer"][0]
x, state, belief = inputs[None], None, []
with torch.no_grad():
    for t in range(64):
        logits, state = model.step(x[:, t], state)  # one pixel, and what was kept of those before
        belief.append(logits)
    torch.testing.assert_close(belief[-1], model(x), rtol=1e-4, atol=1e-4)
print("pixel by pixel, or all at once: the same answer")

# %% [markdown]
# A stream has a belief after every pixel, though training asked only after the last.
#
# **Exercise 1** (easy, 5 minutes). From logits (B, T, 10) and labels (B,), the percentage of right answers at each step, (T,).

# %%
def accuracy_so_far(logits, labels):
    ...

exercises.accuracy_so_far(accuracy_so_far)

# %% [markdown]
# <details><summary>Hint</summary>
#
# The answer at a step is the place of its largest logit: (B, T) in all. An image has one label for all steps, so `labels`
# needs an axis for them. Which axis does the mean take away, if (T,) is to be left?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def accuracy_so_far(logits, labels):
#     return 100 * (logits.argmax(-1) == labels[:, None]).float().mean(0)
# ```
#
# </details>
#
# **Predict.** Half of the image is read. Does a model name the digit better than by guessing? Where will its accuracy rise
# most?
#
# <details><summary>Answer</summary>
#
# Hardly: it was never asked there, so its answer is what the last layer happens to say of an unfinished state. The rise comes
# in the last row, where training wanted it; and, in the run stored here, for a moment a whole row before, for the Transformer
# even three. There the pixels just read stand where the last ones do in their row, and the model takes this for the end.
#
# </details>

# %%
test = next(iter(loader(task, "test", 200)))
fig, ax = plt.subplots(figsize=(6.4, 2.8))
for (name, (model, _)), dash in zip(found.items(), DASHES):
    with torch.no_grad():
        logits = model.head(model.backbone(model.embedding(test.inputs)))  # every prefix at once: the models are causal
    over_time = 100 * (logits.argmax(-1) == test.targets[:, None]).float().mean(0)
    ax.plot(range(1, 65), over_time, dash, label=name)
    print(f"{name:13} after half of the pixels at least 20 points below the end: {bool(over_time[-1] - over_time[31] > 20)}")
ax.set(xlabel="pixels read", ylabel="accuracy (%)", ylim=(0, 100), xticks=range(0, 65, 8), title="they know it at the end")
ax.legend(frameon=False, fontsize=9)
plt.show()

# %%
explore.digits({name: model for name, (model, _) in found.items()}, task.split("test")[:40])

# %% [markdown]
# **Try.** Find a digit that ends up wrong. Which pixels would have given it away? Then compare models on it.
#
# ## 3. Tear neighbours apart
#
# Read the pixels of all images in one random order, always the same. No information is lost; only "near in the image" is
# no longer "near in the sequence".
#
# **Exercise 2** (easy, 5 minutes). `order[i]` says which pixel is read at step `i`. Reorder `x` (B, T, 1).

# %%
def reordered(x, order):
    ...

exercises.reordered(reordered)

# %% [markdown]
# <details><summary>Hint</summary>
#
# A tensor of whole numbers can stand between the brackets: `a[order]` holds `a[order[0]]`, `a[order[1]]` and so on. That picks
# along the first axis, which counts images here. Pixels are counted by the second.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def reordered(x, order):
#     return x[:, order]
# ```
#
# </details>
#
# **Predict.** Which loses more by it, the TCN or R-Transformer? And an attention that knew nothing of order at all?
#
# <details><summary>Answer</summary>
#
# R-Transformer bets on local structure; a window over random pixels reads noise, and most of what it is made of is
# wasted. The TCN's kernels lose their strokes, too, but each has a weight for each delay and the stack sees 61 of
# the 64 steps either way. Attention without any order would lose nothing: it sees which values there are, never where.
#
# </details>

# %%
from rtx.tasks.images import permutation

shuffled = task_by_name("permuted-digits")
order = permutation(64)
assert torch.equal(shuffled.split("train")[1].inputs, inputs[order])
permuted = {name: train(shuffled, *MODELS[name])[1][-1] for name in ("TCN", "R-Transformer")}
fig, ax = plt.subplots(figsize=(5, 2.6))
for shift, colour, which in ((-0.2, 0, "row by row"), (0.2, 1, "permuted")):
    heights = [found[name][1][-1] if shift < 0 else permuted[name] for name in permuted]
    ax.bar([i + shift for i in range(2)], heights, 0.38, color=plots.COLOURS[colour], label=which)
ax.set(xticks=range(2), xticklabels=permuted, ylabel="accuracy (%)", title="the same pixels in another order: R-Transformer loses")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
loss = {name: found[name][1][-1] - score for name, score in permuted.items()}
print("R-Transformer loses more than five points:", loss["R-Transformer"] > 5)
print("and more than the TCN:", loss["R-Transformer"] > loss["TCN"])

# %% [markdown]
# So "captures locality" may be no praise but a description: good where neighbours belong together, a burden where not. One
# seed on few images cannot settle that. The paper does not show permuted MNIST; `rtx train permuted-mnist r-transformer`
# would.
#
# ## 4. Table 1, read slowly
#
# | | RNN | GRU | LSTM | TCN | Transformer | R-Transformer |
# | --- | --- | --- | --- | --- | --- | --- |
# | accuracy (%) | 21.5 | 96.2 | 87.2 | 99.0 | 98.2 | **99.1** |
#
# What stands beside these numbers, in the paper and in its published code:
#
# - The first four were copied from Bai et al. (2018), trained by others with other settings.
# - R-Transformer has three times the TCN's parameters. Its code's model holds 229,738 numbers, of which 204,426 get
#   gradients. The TCN of TCN's code has 66,910. (In `rtx` they have 203,402 and 71,110.)
# - The code has no validation split: nothing but the test images was there to choose by. The training images are not
#   shuffled. The learning rate falls tenfold every ten epochs.
# - The LSTM's size is printed as "11/130" in one version of the paper: a misprint of 1 layer, 130 wide.
# - There is one number each: no seeds, no spread.
#
# **Predict.** MNIST has 10,000 test images. By how much can two models that are equally good, right in 99 % of cases, differ there by chance?
#
# <details><summary>Answer</summary>
#
# A share $p$ of $N$ images has a standard error of $\sqrt{p(1-p)/N}$, here 0.1 points for each: as large as the difference between 99.0 and 99.1. And
# that is the luck of the test images alone, without that of the weights' seed.
#
# </details>

# %%
def standard_error(percent, images):
    share = percent / 100
    return 100 * (share * (1 - share) / images) ** 0.5

a, b = standard_error(99.1, 10_000), standard_error(99.0, 10_000)
print(f"99.1 ± {a:.2f} against 99.0 ± {b:.2f}: a difference of 0.10 ± {(a**2 + b**2) ** 0.5:.2f}")
print(f"Transformer, 98.2 ± {standard_error(98.2, 10_000):.2f}: clearly below, as far as chance among test images goes")
print(f"and our 179 digits: 80 ± {standard_error(80, 179):.0f}")

# %% [markdown]
# "R-Transformer and TCN are alike on MNIST" is what the table supports. (Both were scored on the same images, so a paired comparison
# could see finer; it would need the answers image by image.) The gap to the Transformer is real in this
# sense, for the one training run that each had.
#
# ## 5. The real thing
#
# **Predict.** MNIST has 12 times as many steps. How many times as much work is one image, for R-Transformer and for the TCN?
#
# <details><summary>Answer</summary>
#
# For convolutions and windows 12 times, as every step costs the same. Attention compares all pairs: that part grows 150-fold.
# So the TCN takes 12 times the work, and R-Transformer more.
#
# </details>

# %%
from torch.utils.flop_counter import FlopCounterMode
from rtx.nn import implementation

def multiply_adds(name, steps, **sizes):
    model = rtx.build(task, name, **sizes).to("meta")  # shapes only
    with implementation("torch"), FlopCounterMode(display=False) as counter:
        model(torch.empty(1, steps, 1, device="meta"))
    return counter.get_total_flops() / 2

PAPER = {"r-transformer": dict(d_model=32, layers=8, heads=2, window=7, local_layers=2),
         "transformer": dict(d_model=32, layers=8, heads=2), "tcn": dict(d_model=25, layers=8, kernel=7)}
for name, sizes in PAPER.items():
    short, long = (multiply_adds(name, steps, **sizes) for steps in (64, 784))
    print(f"{name:13} at the paper's size: {short / 1e6:5.1f} million at 64 steps, {long / 1e6:5.0f} at 784: {long / short:.1f}-fold")

# %%
import time

_ = torch.manual_seed(0)
large, images = rtx.build(task, "r-transformer", **PAPER["r-transformer"]), torch.randn(4, 784, 1)
large(images[:1]).sum().backward()  # the first call prepares
start = time.process_time()
large(images).sum().backward()
each = (time.process_time() - start) / 4
print(f"an image forward and back, on one core: {each:.2f} s; the published 50 epochs, of our 55,000 training images: {each * 55_000 * 50 / 60:.0f} min")

# %% [markdown]
# The counter takes all pairs of positions. Half of these lie in the future, and `rtx` leaves them out: R-Transformer's 662 million
# become 504, the number in the recipe.
#
# So the full run belongs on a graphics card. These lines run it, stop at any time and go on with `--resume`:
#
# ```bash
# rtx data fetch mnist
# rtx train mnist r-transformer                             # Table 1: blocks by Eq. 8, the code's training
# rtx train mnist tcn --variant same-parameters             # all models with R-Transformer's 203,402
# rtx train mnist r-transformer --variant official          # the published code's block order, not shuffled
# rtx train mnist r-transformer --scale cpu --seed 1        # fewer and smaller images, 8 to 32 minutes on one core
# rtx train mnist gru --scale quick                         # these 64-step digits, a minute
# rtx table mnist
# ```
#
# Each finished run writes one file into the ledger, with its seed, commit and hardware;
# [15 weigh the evidence](15_weigh_the_evidence.ipynb) reads it.
#
# ## Recap
#
# - Pixel by pixel, an image becomes a test of memory: what is below stands a row's length later.
# - Causal models have a belief after each pixel, at no extra cost; it is worth what training asked for.
# - Permuting keeps all information and takes locality away; whoever bet on it pays.
# - 0.1 points on 10,000 images are within one standard error. Look for seeds, sizes and validation before the bold type.
#
# **Quiz.** 1. How would you train a model that names the digit as early as possible? 2. Why is judging epochs on the test images
# wrong even if nobody cheats? 3. Would reading column by column change the models' scores?
#
# <details><summary>Answers</summary>
#
# 1. Ask at every step: a loss at each prefix, perhaps growing with time. 2. The best of fifty epochs on the test set is better
# there by luck; on new images that part is gone. 3. A little: other strokes become local, upright ones. For the GRU and TCN the distance
# of neighbours stays one and eight, only exchanged.
#
# </details>
#
# **Back:** [Add and multiply](09_add_and_multiply.ipynb) · **Index:** [README](../README.md) · **On:**
# [Model music](11_model_music.ipynb)
