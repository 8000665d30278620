# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Weigh the evidence
#
# **Which of the numbers in these papers can you trust, and how would you know?**
#
# A table in a paper is a claim: this model, this data, this number. Here you meet the claims of the three papers beside
# what was run for this project, and find out where the papers contradict themselves.
#
# - **You will** read a ledger, choose a run as one should, measure how much seeds matter, and play detective.
# - **You learn** to tell a difference from a spread, a result from a budget, and a misprint from a finding.
# - **You need** a mean and a standard deviation. The other notebooks help, none is required.
# - **Time:** 35 minutes to read and try; the cells run in about 30 seconds.
#
# ## Paper map
#
# | in the papers | here | in `rtx` |
# | --- | --- | --- |
# | Tables 1-4 (Wang et al. 2019), 2-5 (Xu et al. 2019), 1 (Raffel & Ellis 2015) | sections 2 and 5 | `rtx table`, `explore.ledger` |
# | the learning rate, chosen by validation | section 3 | `rtx sweep` |
# | one number a cell, no spread | sections 4 and 5 | `--seed`, `rtx.evidence.claim` |
# | Nottingham, 2.37 (Wang et al. 2019, Table 2) | section 6 | `studies/nottingham_repeats.py` |
# | misprints, and code that differs | section 7 | `studies/errata.py` |

# %%
from pathlib import Path
from statistics import mean, stdev
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots

torch.set_num_threads(1)
plots.style()
RESULTS = Path("../results")

# %% [markdown]
# ## 1. What a number must bring along
#
# Every finished run of `rtx train` leaves one file in the **ledger**, the folder `results/`. Here is what one of them
# says, long lines left out. A `budget` of None means that it was not cut short.

# %%
from rtx.evidence.ledger import read_results

runs = list(read_results("nottingham", RESULTS))
for key in ("recipe", "model", "variant", "scale", "seed", "epoch", "validation", "test", "budget", "command"):
    print(f"{key:>10}: {getattr(runs[1], key)}")

# %% [markdown]
# With the `command`, the `commit` of the code, the checksum of the data and the versions of the libraries, anyone may run it
# again. `rtx ledger check` holds every file to that; this is what it calls:

# %%
from rtx.evidence.audit import audit

print("faults in the ledger:", audit(RESULTS))

# %% [markdown]
# **Predict.** What is missing from a table in a paper that has one number a cell?
#
# <details><summary>Answer</summary>
#
# Nearly all of it: which seed, how many seeds, how the epoch and the learning rate were chosen, how long it ran and on what,
# which form of the data, how many parameters got a gradient.
#
# </details>
#
# ## 2. All tables
#
# Here are all recipes with the papers' numbers and ours. "not run" is an honest cell: nothing was measured yet. A **budget**
# other than "full" means that less was trained than the recipe asks for, so a number there is no answer to the paper's. A
# **variant** with "cpu" or "quick" behind its comma is of a smaller scale, and no answer either. Behind a `+` stands what was
# set by hand.

# %%
explore.ledger("nottingham", RESULTS)

# %% [markdown]
# **Try.** Choose a number of ours. What does its line tell you that the paper's does not? Find a cell that is not run: its
# line holds the command.
#
# ## 3. Choose, then look once
#
# A model is trained with several learning rates and for many epochs; in the end one run is reported. If the *test* score
# chooses, it is the best of many draws: too good. So data of their own, for **validation**, choose; the test score
# is looked at once.
#
# **Exercise 1** (easy, 5 minutes). You have the validation and the test losses of several runs. What do you report?

# %%
def reported(validation, test):
    ...  # two lists of losses, less is better; one number

exercises.reported(reported)

# %% [markdown]
# <details><summary>Hint</summary>
#
# `validation.index(min(validation))` is the place of the run that validated best.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def reported(validation, test):
#     return test[validation.index(min(validation))]
# ```
#
# </details>
#
# How much does it matter? Let there be 20 runs that are all *equally good*: their scores differ by luck alone.

# %%
draws = torch.randn(2000, 2, 20, generator=torch.Generator().manual_seed(0))  # trials, (validation, test), runs
by_validation = draws[:, 1].gather(1, draws[:, 0].argmin(1, keepdim=True)).mean()
by_test = draws[:, 1].amin(1).mean()
print(f"chosen by validation, the test loss is on average {abs(by_validation):.1f} standard deviations from the truth")
print(f"chosen by the test, it is {-by_test:.1f} below it: better than the truth, and made of luck")

# %% [markdown]
# Six models of the chorales were each trained with six learning rates; a chosen run
# holds all that it was chosen from.
#
# **Predict.** A paper gives all its models the same rate. Does it matter which one?
#
# <details><summary>Answer</summary>
#
# It decides who wins, here with seed 0. At 0.0005 R-Transformer is first of the six; at 0.002 it and the Transformer have
# learnt nothing, while the LSTM, last at 0.0005, is first. The TCN, the LSTM and the RNN want larger rates here than the
# models with attention. So each gets its own, out of the same list.
#
# </details>

# %%
from rtx.training.recipe import load_recipe, recipe_names

swept = {run.model: run.chosen_from for run in read_results("jsb", RESULTS) if run.chosen_from}
by_model = {
    name: {float(tried.split("=")[1]): nll for tried, nll in swept[name].items()}
    for name in load_recipe("jsb").models
}
fig, ax = plt.subplots(figsize=(6.4, 3))
for number, (name, tried_at) in enumerate(by_model.items()):
    ax.plot(list(tried_at), list(tried_at.values()), "o-", color=plots.COLOURS[number], label=name)
ax.set(xscale="log", xlabel="learning rate", ylabel="validation NLL (nats per frame)")
ax.set(title="each model has a rate of its own")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
for rate in (0.0005, 0.002):
    order = sorted(by_model, key=lambda name: by_model[name][rate])
    print(f"at {rate:g}, the best first:", ", ".join(order))
order = sorted(by_model, key=lambda name: min(by_model[name].values()))
print("each at its own best:", ", ".join(order))

# %% [markdown]
# ## 4. A difference and a spread
#
# Train a model twice with different seeds, and the scores differ. Let us measure by how much, on the digits of
# scikit-learn, 8 × 8 pixels, read row by row.

# %%
from sklearn.datasets import load_digits

pixels, labels = load_digits(return_X_y=True)
rows, labels = torch.tensor(pixels, dtype=torch.float32).view(-1, 8, 8) / 16, torch.tensor(labels)

def accuracy(backbone, seed, epochs=6):
    """Test accuracy (%) after a few epochs on 1,200 digits."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 24), backbone(), torch.nn.Flatten(), torch.nn.Linear(8 * 24, 10))
    adam = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(epochs):
        for part in torch.randperm(1200).split(50):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(model(rows[part]), labels[part]).backward()
            adam.step()
    with torch.no_grad():
        return 100 * (model(rows[1200:]).argmax(1) == labels[1200:]).float().mean().item()

# %% [markdown]
# **Predict.** Five seeds each of a GRU and of an R-Transformer of one layer. Will the worst R-Transformer be better than the
# best GRU?
#
# <details><summary>Answer</summary>
#
# Hardly: the means differ, but the ends meet, or nearly do.
#
# </details>

# %%
backbones = {"GRU": lambda: rtx.RNN(24, 1, "gru"), "R-Transformer": lambda: rtx.RTransformer(24, 1, 2, 3)}
scores = {name: [accuracy(make, seed) for seed in range(5)] for name, make in backbones.items()}
fig, ax = plt.subplots(figsize=(6, 1.6))
for place, (name, values) in enumerate(scores.items()):
    ax.plot(values, [place] * 5, "o", color=plots.COLOURS[place], alpha=0.7)
    ax.plot([mean(values)] * 2, [place - 0.25, place + 0.25], color="0.3")
ax.set(yticks=[0, 1], yticklabels=list(scores), ylim=(-0.5, 1.5), xlabel="test accuracy (%), a dot for each seed; line: mean")
ax.set(title="one run of each: a gap of several points, or hardly any")
plt.show()
print("the spread over seeds is more than a tenth of a point:", min(map(stdev, scores.values())) > 0.1)

# %% [markdown]
# **Exercise 2** (medium, 10 minutes). Measure a difference in units of spread: the distance between two means, over the sum of
# the two standard deviations. Below 1, mean ± spread of the two overlap, and one run of each says little. More seeds do not change
# that; what they tell apart are the *means*, whose own error is the spread over $\sqrt{n}$. Then call it with the two lists in
# `scores`.

# %%
def spreads_apart(a, b):
    ...  # two lists of scores, to one number

exercises.spreads_apart(spreads_apart)

# %% [markdown]
# <details><summary>Hint</summary>
#
# `statistics.mean` and `statistics.stdev`; the latter divides by $n - 1$, as the mean was taken from the same numbers.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def spreads_apart(a, b):
#     return abs(mean(a) - mean(b)) / (stdev(a) + stdev(b))
# ```
#
# </details>
#
# ## 5. Claims on trial
#
# When may we say that a claim of a paper holds? One page of code decides, `rtx/evidence/verdict.py`:
#
# - A claim about **one model**, such as "it solves the problem within three epochs", holds if every seed confirms it, and
#   fails if no seed does. We ask for at least three seeds.
# - A claim that one model is **ahead** of another needs a test. Suppose that both are equally good. Then each way to deal
#   the scores out to the two models is equally likely. The p-value says how often a deal is as good for the first model as
#   the real one (a permutation test).
# - A paper makes **many claims**, and some look clear by chance. Holm's correction accounts for their number.
#
# **Predict.** All three seeds of model A are better than all three seeds of model B. What is the smallest possible p?
#
# <details><summary>Answer</summary>
#
# Six scores can be dealt to two models in 20 ways. Only one way gives A the best three, and only one gives B the best three.
# So p is 2/20 = 0.1, and three seeds never settle a comparison. Six seeds of each model can reach 2/924.
#
# </details>
#
# All other claims stay **open**. Then the table only says what the runs *suggest*: for the claim, against it, or both ways.
# Only full runs are tested. Paths are settled by arithmetic. Times are measured by `make bench`.

# %%
from collections import Counter
from html import escape
from IPython.display import HTML
from rtx.evidence.claim import judged

findings = judged(RESULTS)
print(*Counter(f.verdict for _, f in findings).most_common(), sep="\n")
order = sorted(findings, key=lambda found: ("holds", "fails", "open").index(found[1].verdict))
cells = [(c.name, c.text, c.source, f.verdict, f.suggests, f.sentence, c.settled_by) for c, f in order]
names = ("", "claim", "in", "verdict", "runs suggest", "in the ledger", "what would settle it")
head = "".join(f"<th>{name}</th>" for name in names)
body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in cells)
style = "<style>table.claims th, table.claims td { text-align: left !important; }</style>"
HTML(f"{style}<table class='claims'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

# %% [markdown]
# Elsewhere: convolutions and order in [02](02_slide_a_window.ipynb), all windows at once in
# [12](12_make_it_fast.ipynb).
#
# Four groups of claims deserve a second look.
#
# **Nottingham.** Every seed of the R-Transformer is better than every seed of every other model (`music-all`). This is
# also true for models of its size (`music-size-all`). The lead is many times the spread, and a t-test would call it
# significant. But a t-test assumes that scores have a normal distribution, and three seeds cannot show that. So the claim
# stays open. Most other models were still learning in their last epoch. On the other hand, validation chose their learning
# rate among two or three, and the R-Transformer had one. Section 6 asks what the R-Transformer knows.
#
# **The chorales.** Here the R-Transformer and the LSTM have eight seeds. The R-Transformer is ahead of the TCN and of the
# Transformer (`chorales-tcn-transformer`, p = 0.048). It is level with the LSTM. Its runs are better without sinusoids, as
# the paper says, but also better without attention (`attention-chorales`). What is attention good for? Section 6 finds it.
#
# **Equal budgets.** Is the margin "large … consistently in most of the tasks" (§4.4) when all models get the same? With as
# many parameters, the runs suggest so on Nottingham and on words (`words-size`, two epochs only). With as many seconds on
# one core, they do not. In 150 seconds the R-Transformer gets through 4 epochs of Nottingham. A TCN gets through 8 or 9 and
# is ahead (`music-seconds`). On characters, the TCN and all recurrent networks are ahead after 200 seconds
# (`characters-seconds`).
#
# **Adding** looked like a failure at first. With attention, sums of 50 to 1,000 steps took two to eight epochs instead of
# one. The tolerance of the authors' code does not explain this (`add-attention-50-official`), and neither do new sequences
# in each epoch (`add-attention-50-fresh`). The cause is the zero padding at the end of each sequence. Eq. 2 divides by the
# length of the sequence, 50 to 55 steps. The authors' code counts the padding too and always divides by 56
# ([09](09_add_and_multiply.ipynb), section 3). With the padding counted, attention and the mean are done after one epoch at
# 50, 100 and 500 steps, as printed (`add-attention-50-padded` and its neighbours). Longer sequences and products do not
# all follow.
#
# When all lengths are trained together, 5 epochs at a learning rate of 0.01 solve 73 % of the sums. 24 epochs at 0.003 solve
# 98 % (three seeds).
#
# Epochs until all validation sequences were solved, a dot for each seed, beside the paper's. A seed cut before has no dot: of
# sums by Eq. 2's mean, one at 500 steps, two at 1,000, of products two.

# %%
from rtx.evidence.selection import of_chosen_rates
from rtx.evidence.ledger import variant_of
from rtx.evidence.tables import cells as ledger_cells

def epochs_of(recipe, model, variant):
    """The epochs of a row's runs of a variant, a seed each, by the rates that were chosen."""
    groups = [runs for runs in ledger_cells(recipe, RESULTS)[model] if not runs[0].budget]
    return [run.epoch for run in of_chosen_rates([runs for runs in groups if variant_of(runs[0]) == variant])]

WAYS = {"sloped": "over its own steps (Eq. 1, 2)", "padded": "over the zeros behind it, too (the code)"}
for variant, way in WAYS.items():
    print(f"addition, 50 steps, {way}:", epochs_of(load_recipe("ffa-add"), "attention-50", variant))

# %%
fig, axes = plt.subplots(2, 2, figsize=(7.4, 4.6), sharex=True, sharey=True)
for recipe, row in zip(map(load_recipe, ("ffa-add", "ffa-multiply")), axes):
    for ax, pooling in zip(row, ("attention", "mean")):
        models = [model for model in recipe.models if model.startswith(pooling)]
        for place, model in enumerate(models):
            if recipe.paper(model) == 1:  # the others were not solved
                ax.plot([place - 0.35, place + 0.35], [recipe.paper_epochs(model)] * 2, color="0.4")
            for way, variant in enumerate(WAYS):
                dots = epochs_of(recipe, model, variant)
                ax.plot([place - 0.15 + 0.3 * way] * len(dots), dots, "o", color=plots.COLOURS[way], alpha=0.6)
        ax.set(yscale="log", yticks=(1, 2, 5, 10, 20), yticklabels=(1, 2, 5, 10, 20), title=f"{recipe.task}, {pooling}")
        ax.set(xticks=range(len(models)), xticklabels=[model.split("-")[1] for model in models])
for way, label in enumerate(WAYS.values()):
    axes[0, 1].plot([], [], "o", color=plots.COLOURS[way], label=label)
axes[0, 1].plot([], [], color="0.4", label="the paper's")
axes[0, 1].legend(frameon=False, fontsize=8, loc="upper left")
fig.supxlabel("$T_0$, steps of the shortest sequence", fontsize=10)
fig.supylabel("epochs until solved", fontsize=10)
plt.show()

# %% [markdown]
# What would you run next, in a night?
#
# The same ledger as a picture: each number of ours, as a share of the paper's. Two dots beside one name had other
# settings. Sums and products that the paper solved are left out: such a run of ours stops there, too, by design.

# %%
from rtx.evidence.selection import unchanged

found = []
for name in recipe_names():
    recipe = load_recipe(name)
    for model, groups in ledger_cells(recipe, RESULTS).items():
        for group in groups:
            equalised = group[0].variant.startswith("same-")  # not the paper's model
            solved = bool(recipe.paper_epochs(model)) and recipe.paper(model) == 1  # ours ends at 100 %, too
            if recipe.paper(model) and unchanged(group[0]) and not solved and not equalised:
                share = 100 * mean(run.test for run in group) / recipe.paper(model)
                variant = group[0].variant.split("+")[0]
                label = f"{name}: {model}" + (f" ({variant})" if variant != recipe.default_variant else "")
                found.append((label, share, group[0].scale == "full" and not group[0].budget))

# %%
names = list(dict.fromkeys(name for name, *_ in found))
fig, ax = plt.subplots(figsize=(7, 0.19 * len(names) + 0.9))
for name, share, full in found:
    ax.plot(share, names.index(name), "o", color=plots.COLOURS[0], fillstyle="full" if full else "none")
ax.axvline(100, color="0.4", linewidth=1)
ax.set(yticks=range(len(names)), yticklabels=names, xlabel="ours, % of the paper's number")
near = [75 < share < 125 for _, share, full in found if full]
title = f"{sum(near)} of {len(near)} numbers at full budget (filled) lie\nwithin a quarter of the paper's; open: less was trained"
ax.set(title=title)
ax.tick_params(axis="y", labelsize=9)
ax.set_ylim(len(names) - 0.4, -0.6)
plt.show()
print(f"{len(found)} numbers of ours stand beside one of a paper's")

# %% [markdown]
# For perplexities, bits and losses less is better; for accuracy, BLEU and solved shares more. An open dot
# had less time or data, or a smaller model, than its recipe asks for: its distance tells of that first.
# The filled ones are all of music, the one far off at a rate too large for it.
#
# ## 6. Follow a surprise
#
# On Nottingham, R-Transformer is far ahead: 2.2 nats a frame here and 2.37 in the paper, where the next one has 3.1. It
# is even ahead of 2.31, by a model that knows which notes go together, as ours does not (notebook 11, section 8). A number
# too good to be true often is not: a model that sees the future looks just like this. Tests say ours sees none:
# change a later frame, and no earlier prediction moves. So what does it know that the others do not?
#
# Folk tunes repeat themselves. Take the last $w$ frames: did this passage come before in the tune? And is it followed now by
# what followed it the last time? Letters instead of chords, $w = 2$:

# %%
def kinds(tune, w):
    """For each frame from the w-th to the last but one: was its passage here before, and did it go on as then?"""
    last, found = {}, []
    for t in range(w - 1, len(tune) - 1):
        passage, following = tune[t + 1 - w : t + 1], tune[t + 1]
        before = last.get(passage)
        found.append("new" if before is None else "as before" if before == following else "otherwise")
        last[passage] = following
    return found


print(*kinds("abcdabcdabce", w=2), sep=", ")

# %% [markdown]
# The script `studies/nottingham_repeats.py` does the same with real frames, with $w = 6$, the R-Transformer's window. Half of the
# frames of Nottingham's test split go on as before. 2 % are at a tune's beginning, before the first whole passage; they are not
# shown below. The script measured models of the ledger on each kind, the R-Transformer also without one of its parts.
#
# **Predict.** A model loses 3.4 nats on a new frame. What could it lose on one that goes on as before, if it used that? Which
# part does it need, LocalRNN or attention? And what happens where the tune goes on otherwise?
#
# <details><summary>Answer</summary>
#
# Little. It needs both: a summary of the last frames, to know which passage this is, and a look at the whole past,
# to find where it was. Where the tune goes on otherwise, copying does not help: there it should be as bad as others, or
# worse. One that saw the future would be better there, too.
#
# </details>

# %%
import json

study = json.loads(Path("../studies/nottingham_repeats.json").read_text())  # two seeds each
PARTS = {"adam+heads=0": "… no attention", "adam+local_layers=0": "… no LocalRNN"}
# the TCN's better rate comes last and replaces the other
nll = {PARTS.get(one["variant"], one["model"]): one["nll"] for one in study["means"]}
frames = study["conditions"]["frames"]["nottingham"]
fig, axes = plt.subplots(1, 3, figsize=(7, 2.5), sharex=True, sharey=True, layout="constrained")
for ax, kind in zip(axes, ("new", "as before", "otherwise")):
    colours = [plots.COLOURS[0 if name == "r-transformer" else 7] for name in nll]
    ax.barh(list(nll), [of_kind[kind] for of_kind in nll.values()], color=colours)
    ax.set(title=f"{kind}: {frames[kind] / sum(frames.values()):.0%}", xlabel="nats per frame")
axes[0].invert_yaxis()
plt.show()
mine = nll.pop("r-transformer")["as before"]
others = [of_kind["as before"] for of_kind in nll.values()]
print(f"as before: R-Transformer {mine:.2f}, the next best {min(others):.2f}")

# %% [markdown]
# Most of the lead is there, and all of that over the TCN, which on new frames is level. Where the tune goes on as before,
# R-Transformer loses less than a quarter of what any other does; where it goes on otherwise, like LSTM, GRU and RNN, and
# more than Transformer and TCN: it copies, and sees no future. Neither part does that alone, and the summary must be long enough:
# windows of 1, 3, 6 and 12 frames lose 4.22, 2.73, 2.21 and 2.05 nats (three seeds each). Such a pair, one part that marks
# each position with what stood before it and one that looks the mark up, is known from language models as an *induction head*
# (Olsson et al., 2022). For what is copied, the floor of independent notes (notebook 11) is zero: where a frame is
# certain, each note is.
#
# It also says where to expect no lead. Of JSB's frames only one in thirteen goes on as before; there an LSTM is level with
# R-Transformer, which does better without attention. Of Piano-midi's it is one in three, and R-Transformer is ahead, narrowly.
# This fits, and is no law yet: what would break it?
#
# ## 7. Errata
#
# Papers have errors; so does code. Each case below is a claim and a question. `python -m studies.errata` computed the
# evidence, with the models of this project.

# %%
explore.errata()

# %% [markdown]
# **Try.** Guess first. Which of the cases would change a number in a table, and which only a reader's picture?
#
# <details><summary>Answer</summary>
#
# Clipping that never clips, the leak, the mean's divisor, the three corpora and the pads change numbers. So may the equal
# copies and the epsilon, which change where training starts. Dead modules change the number of parameters that is reported.
# Where a block starts only exchanges the names of channels, from n = 4 on: they share all parameters, so no score moves. The
# bound, the survey's remark, the unequal sizes and the "similar trends" change what one believes.
#
# </details>

# %%
for case in explore.errata().data["cases"]:
    print(f"{case['title']}: {case['verdict']}")

# %% [markdown]
# ## Recap
#
# - A number is worth what stands behind it: command, commit, data, seed, budget, and how it was chosen.
# - Validation chooses; the test set is looked at once.
# - One seed is an anecdote. A difference counts in spreads.
# - What was not run is "not run", and a claim without enough runs is open.
# - Check a paper against itself, its arithmetic and its code.
#
# **Quiz.** 1. A table marks the best number in bold: 99.1 against 99.0 %. What do you ask? 2. Two papers report characters of
# the Penn Treebank, 1.24 and 1.31 bits. Which is the better model? 3. A model was tuned over 40 settings, its baseline was
# copied from another paper. What is compared?
#
# <details><summary>Answers</summary>
#
# 1. How many seeds, and their spread; who chose the epoch. 2. Nobody can tell before knowing which of the three forms each
# used. 3. Not only two models, but two budgets of search: give the baseline its 40 settings.
#
# </details>
#
# **Back:** [Translate and summarise](14_translate_and_summarise.ipynb) · **Index:** [README](../README.md) · **On:**
# [What came after](16_what_came_after.ipynb)
