# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How can attention read a long text in pieces?
#
# Attention compares all pairs of positions, so a long text is too costly. We cut it into pieces, called **segments**. But then the
# first character of a segment knows nothing of the text before. The picture shows this problem and two cures.
#
# ![Three rows of characters: with separate segments the first output sees one character, with memory nine, sliding eight](../figures/transformer_xl_1.png)
#
# The frame marks an output, which predicts the next character. Colours mark the inputs that this output depends on.
#
# - **Memory** (second row): the layer remembers what it read in the segment before. No gradient flows into the orange inputs.
# - **Sliding** (third row): the segment moves on by one character and is computed again. Only its last output is used.
#
# **Predict.** Which cure is cheaper? Which one predicts better? Sections 4 and 5 measure it.
#
# - **You will** write a layer with memory, train it, and compare the cures.
# - **You learn** what separate segments cost, what each cure buys, and what "uses a long context" can mean.
# - **You need** attention ([03](03_attend_to_the_past.ipynb)) and relative positions ([05](05_encode_position.ipynb)).
# - **Time:** 45 minutes to read and try, exercises included. The cells run in about 20 seconds. Longer trainings are stored.
#
# ## 1. Six numbers, by hand
#
# What does an output know in each of the three rows? Here is a text of six numbers, in segments of two. The "attention" is
# the mean of all inputs that it sees. The memory has two positions.

# %%
import math
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots, xray
from rtx.lab.jacobian import changed
plots.style()
_ = torch.set_num_threads(1), torch.manual_seed(0)

numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
for t in range(6):
    start = t - t % 2  # of this segment
    seen = {"separate": numbers[start : t + 1], "memory": numbers[max(0, start - 2) : t + 1], "sliding": numbers[max(0, t - 1) : t + 1]}
    print(f"position {t + 1}  ", *(f"{name}: mean of {str(part):21} = {sum(part) / len(part):.1f}   " for name, part in seen.items()))

# %% [markdown]
# Position 5 is the first of the third segment. In a separate segment it knows only itself. With a memory it knows the
# segment before, too. If the segment slides, it knows one earlier number.
#
# ## 2. Write the layer
#
# Now with real attention. Let $h_\tau$ be the inputs of a layer in segment number $\tau$. Let $m_\tau$ be the inputs of the *same* layer at the
# last $P$ positions before this segment. (The paper calls this length $M$. In this course $M$ is the window of a LocalRNN.)
#
# $$\tilde h_\tau = \text{SG}(m_\tau) \circ h_\tau, \qquad q = W^q h_\tau, \quad k = W^k \tilde h_\tau, \quad v = W^v \tilde h_\tau$$
#
# The sign $\circ$ puts one behind the other. SG means "stop gradient", in PyTorch `detach()`. Queries come from the segment only.
# Keys and values come from the memory, too.
#
# **Exercise 1** (medium, 15 minutes). `layer` is causal attention: it maps $(B, N, D)$ to $(B, N, D)$, and each output looks only at
# itself and earlier positions. Call it once per segment of length `S`, with `P` positions of memory.

# %%
def my_with_memory(x, layer, S, P):
    ...  # (B, T, D) to (B, T, D)

with_memory = exercises.yours(my_with_memory, "with_memory")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Give the layer memory and segment in a row, and keep the outputs of the segment. At the first segment, the memory
# `x[:, max(0, start - P) : start]` is empty.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_with_memory(x, layer, S, P):
#     found = []
#     for start in range(0, x.shape[1], S):
#         memory, segment = x[:, max(0, start - P) : start].detach(), x[:, start : start + S]
#         found.append(layer(torch.cat([memory, segment], 1))[:, memory.shape[1] :])
#     return torch.cat(found, 1)
# ```
#
# </details>
#
# This computes outputs of the memory, too, and throws them away. `rtx` computes all segments at once. We compare the numbers, and
# use your function inside the `rtx` layer from here on.

# %%
from rtx.nn.relative import XLAttention
from rtx.nn.segment_memory import SegmentMemory

class Yours(SegmentMemory):
    def forward(self, x, state=None):
        return with_memory(x, self.attention, self.segment, self.memory)

attention, x = XLAttention(16, heads=2), torch.randn(1, 24, 16)
for S, P in ((8, 8), (8, 3), (4, 12), (8, 0)):
    theirs, yours = SegmentMemory(attention, S, P)(x), Yours(attention, S, P)(x)
    print(f"S = {S}, P = {P:2}: outputs up to {theirs.abs().max():.2f}, difference at most {(theirs - yours).abs().max():.5f}")

# %% [markdown]
# Why stop the gradient? `xray` measures two things: which inputs *change* an output, and from which inputs a *gradient* arrives there.
#
# **Predict.** $S = P = 8$. Output 17 is the first of the third segment, output 24 is the last. How many inputs change each of them? To how
# many inputs does a gradient flow?
#
# <details><summary>Answer</summary>
#
# Output 17: nine inputs change it, and one gets a gradient. Output 24: sixteen inputs change it, and eight get a gradient.
#
# </details>

# %%
seen = xray(Yours(attention, 8, 8), x)
for t in (17, 24):
    print(f"output {t}: changed by {int(seen.changed[t - 1].sum()):2} inputs, gradient to {int((seen.derivatives[t - 1] > 0).sum())} inputs")

# %% [markdown]
# The model *uses* the memory, but no loss of this segment teaches the earlier one what to store. In return, a backward pass ends at the
# start of a segment, and its cost does not grow with the text.
#
# **Exercise 2** (easy, 5 minutes). A long text arrives segment by segment. After a segment, what is kept for the next one?
# `memory` $(B, n, D)$ is the memory so far, and $n$ may be 0. Keep the newest `P` positions, or all if there are fewer.

# %%
def my_next_memory(memory, segment, P):
    ...  # (B, n, D) and (B, S, D) to (B, P, D)

next_memory = exercises.yours(my_next_memory, "next_memory")

# %% [markdown]
# <details><summary>Hint</summary>
#
# What does the slice `[:, -P:]` give for `P = 0`?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_next_memory(memory, segment, P):
#     both = torch.cat([memory, segment], 1)
#     return both[:, max(0, both.shape[1] - P) :].detach()
# ```
#
# </details>

# %%
memory, outputs = x[:, :0], []
for segment in x.split(8, 1):
    outputs.append(attention(torch.cat([memory, segment], 1))[:, memory.shape[1] :])
    memory = next_memory(memory, segment, 8)
    print(f"read {8 * len(outputs):2} positions, kept {memory.shape[1]} of them: {memory.numel()} numbers")
print(f"difference from reading all at once: {(torch.cat(outputs, 1) - with_memory(x, attention, 8, 8)).abs().max():.5f}")

# %% [markdown]
# ## 3. How far back does a stack of layers see?
#
# Each layer has its own memory: the inputs of *this* layer. They are outputs of the layer below, which had a memory, too.
#
# **Predict.** Two layers, segments of 8, and a memory of only $P = 2$. How many inputs does the last output of a segment depend on? Twelve?
#
# <details><summary>Answer</summary>
#
# Eighteen. The upper layer remembers two positions of the segment before. They have seen their own segment, and two positions more.
#
# </details>

# %%
class Stack(torch.nn.Module):
    def __init__(self, P):
        super().__init__()
        self.P, self.layers = P, torch.nn.ModuleList([XLAttention(8, heads=1), XLAttention(8, heads=1)])

    def forward(self, x):
        for layer in self.layers:
            x = with_memory(x, layer, 8, self.P)
        return x

fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.5), sharey=True)
for ax, P in zip(axes, (0, 2, 8)):
    table = changed(Stack(P), torch.randn(1, 32, 8))
    ax.imshow(table, cmap="Blues", vmax=1.4, extent=(0.5, 32.5, 32.5, 0.5))
    ax.set(title=f"P = {P}: output 32 sees {int(table[-1].sum())}", xlabel="input", xticks=(8, 16, 24, 32), yticks=(8, 16, 24, 32))
axes[0].set(ylabel="output")
fig.suptitle("two layers, S = 8: a memory of two positions more than doubles what output 32 sees", fontsize=11)
plt.show()

# %% [markdown]
# **Exercise 3** (hard, optional, 15 minutes). Count the inputs that the last output of a segment depends on, with `L` layers, segments of
# `S` and a memory of `P`. The text before is long enough.

# %%
def my_xl_reach(L, S, P):
    ...  # a whole number

xl_reach = exercises.yours(my_xl_reach, "xl_reach")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The oldest position that the top layer sees is $P$ before the segment. In which segment is it? The layer below sees from the start of
# *that* segment, and its memory.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_xl_reach(L, S, P):
#     return S + (L - 1) * S * math.ceil(P / S) + P
# ```
#
# </details>
#
# ## 4. What does each cure buy?
#
# Models learn to predict the next character of the Python reference manual. The loss is in **bits per character**: $-\log_2$ of the probability of
# the right character. First a small model with your layer.

# %%
task = rtx.tasks.task_by_name("characters", context=0, scored=64)
text = {split: [one for one in task.split(split) if len(one.inputs) == 64] for split in ("train", "test")}
inputs, following = ({split: torch.stack([getattr(one, name) for one in ones]) for split, ones in text.items()} for name in ("inputs", "target"))

def bits(model, x, y):
    return torch.nn.functional.cross_entropy(model(x).mT, y, reduction="none") / math.log(2)

backbone = rtx.TransformerXL(32, layers=2, heads=2, segment=16, memory=16)
for block in backbone.blocks:
    block[0].sublayer = Yours(block[0].sublayer.attention, segment=16, memory=16)
model = rtx.LanguageModel(backbone, task.inputs, tied=False)

# %%
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for update in range(101):
    if update % 50 == 0:
        with torch.no_grad():
            print(f"{update:3} updates: {bits(model, inputs['test'][:80], following['test'][:80])[:, 16:].mean():.2f} bits per character")
    drawn = torch.randint(len(inputs["train"]), (16,))
    loss = bits(model, inputs["train"][drawn], following["train"][drawn]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
share = torch.bincount(inputs["train"].flatten(), minlength=task.inputs) / inputs["train"].numel()
print(f"a guess by the share of each character: {-share[following['test'][:80, 16:]].log2().mean():.2f} bits per character")

# %% [markdown]
# Your layer trains. The comparison needs longer training: `studies/text_in_pieces.py` trains models of two layers and width 64 with 800 updates
# (steps of Adam). From one model to the next, one thing changes. The first has **separate segments** with a **learnt** vector for each
# of the 16 places, as in Al-Rfou et al. (2019). The next has **relative** positions, as in Transformer-XL, but no memory. The last has a **memory** of 16.
#
# All get the same batches. Each has the best of three learning rates, chosen on validation text. Each is trained three times; a **seed** sets the
# initial weights and the batches. In **post-norm**, a LayerNorm follows each residual sum. In **pre-norm**, it stands before each sublayer.
#
# **Predict.** Learnt positions, separate segments: is the loss the same at all 16 places of a segment? And with a memory?

# %%
from rtx.lab.studies import chosen_runs

runs = chosen_runs("../studies/text_in_pieces.json", "characters")

models = ("separate segments, learnt positions", "separate segments, relative positions", "memory, relative positions")

def scores(name, norm, kind="bits", at=-1):
    return torch.tensor([run["test"][at][kind] for run in runs[f"{name}, {norm}-norm"]])  # (seeds, numbers)

fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.2), sharey=True)
for ax, norm in zip(axes, ("post", "pre")):
    for name, colour, style in zip(models, plots.COLOURS, ("-", "--", ":")):
        part = scores(name, norm, "by place")
        ax.plot(range(1, 17), part.mean(0), style, color=colour, label=name)
        ax.fill_between(range(1, 17), part.amin(0), part.amax(0), color=colour, alpha=0.2, lw=0)
    ax.set(title=f"{norm}-norm", xlabel="place in the segment", xticks=(1, 4, 8, 12, 16))
axes[0].set(ylabel="bits per character", ylim=(0, None))
axes[0].legend(frameon=False, fontsize=9, loc="lower left")
fig.suptitle("without a memory, the first characters of a segment cost more (band: lowest to highest seed)", fontsize=11)
plt.show()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Without a memory, place 1 costs about 1.2 bits more than the places from 5 on: its output knows one character only. With a memory the
# curve has no such peak.
#
# </details>

# %%
LEARNT, RELATIVE, MEMORY = models
rows = {"separate, learnt": (LEARNT, "bits"), "separate, relative": (RELATIVE, "bits"), "memory": (MEMORY, "bits"),
        "sliding, learnt": (LEARNT, "sliding"), "sliding, relative": (RELATIVE, "sliding")}
columns = [(norm, at) for norm in ("post", "pre") for at in (0, -1)]  # after 200 and after 800 updates

def cells(parts):
    return "   ".join(f"{part.mean():6.3f} ± {part.std():.3f}" for part in parts)

heads = "   ".join(f"{f'{norm}-norm, {(200, 800)[at]}':>14}" for norm, at in columns)
print(f"{'bits per character, updates':32}{heads}   parameters")
bits_of = {label: [scores(name, norm, kind, at)[:, 0] for norm, at in columns] for label, (name, kind) in rows.items()}
for label, (name, _) in rows.items():
    print(f"{label:31} {cells(bits_of[label])}   {runs[f'{name}, post-norm'][0]['parameters']:10,}")

# %%
steps = {"learnt to relative positions": ("separate, learnt", "separate, relative"), "then add a memory": ("separate, relative", "memory"),
         "learnt positions: slide": ("separate, learnt", "sliding, learnt"), "relative positions: slide": ("separate, relative", "sliding, relative"),
         "from sliding (relative) to memory": ("sliding, relative", "memory")}
print(f"{'bits saved by one step':35}{heads}")
for label, (before, after) in steps.items():
    print(f"{label:34} {cells([b - a for b, a in zip(bits_of[before], bits_of[after])])}")
for norm in ("post", "pre"):
    saved = (scores(RELATIVE, norm, "by place") - scores(MEMORY, norm, "by place")).mean(0)
    shares = [part.sum() / saved.sum() for part in (saved[:1], saved[1:4], saved[4:])]
    print(f"{norm}-norm, what the memory saves: {shares[0]:.0%} at place 1, {shares[1]:.0%} at places 2 to 4, {shares[2]:.0%} at places 5 to 16")

# %% [markdown]
# The number after ± is the standard deviation over the seeds. Read the lower table from left to right.
#
# - **Relative positions** save bits after 200 updates, above all with post-norm. After 800 updates they save nothing.
# - **The memory** saves 0.2 to 0.3 bits after 800 updates. About two thirds of it are saved at the first four places of a segment. The paper
#   calls this cost of a cut **context fragmentation**.
# - **Sliding** helps after 800 updates, but less than the memory.
#
# A short comparison would have misled us. After 200 updates with post-norm, the model with memory is 0.34 bits ahead of the model with learnt positions. It is
# tempting to say that the cut costs 0.34 bits. But the model in between shows that more than half of it comes from the positions. And this
# part disappears with longer training.
#
# Why is the memory ahead of sliding? A sliding output sees 16 characters, and an output with memory sees up to 48. The model with memory
# was also trained with it. This study does not separate the two reasons.
#
# ## 5. What does an evaluation cost?
#
# Sliding needs no new training, but each position is computed again and again. We count multiplications.
#
# **Predict.** Segments of 16: how many times more multiplications per character does sliding need than separate segments? And a
# memory of 16?
#
# <details><summary>Answer</summary>
#
# Sliding needs nearly 16 times as many: it computes 16 positions for each character. A memory needs about a quarter more, for the keys and
# values of the memory.
#
# </details>

# %%
from rtx.nn import implementation
from torch.utils.flop_counter import FlopCounterMode

def per_character(read, T=512):
    with torch.no_grad(), implementation("torch"), FlopCounterMode(display=False) as counter:
        read(torch.randn(1, T, 64))
    return counter.get_total_flops() / 2 / T

for S in (16, 64):
    separate, memory = rtx.CharacterTransformer(64, 2, 4, S), rtx.TransformerXL(64, 2, 4, S, memory=S)
    cost = {"separate": per_character(separate), "memory": per_character(memory), "sliding": per_character(separate.slide)}
    print(f"S = {S}:", ", ".join(f"{name} {n:,.0f} ({n / cost['separate']:.1f} times)" for name, n in cost.items()), "multiplications per character")

# %% [markdown]
# The price of sliding grows with the segment. Dai et al. (Table 9) measure time: with an attention length of 3,800, their model evaluates 1,874
# times faster than one that slides.
#
# ## 6. How much context does a model use?
#
# No parameter depends on $P$. So we can test a trained model with other memories than in training, here 16 positions.

# %%
lengths = (0, 1, 2, 4, 8, 16, 32, 48)
fig, ax = plt.subplots(figsize=(6.6, 3))
for norm, colour, style in zip(("post", "pre"), plots.COLOURS, ("o-", "s--")):
    part = scores("memory, relative positions", norm, "by memory")
    ax.errorbar(range(8), part.mean(0), part.std(0), fmt=style, color=colour, label=f"{norm}-norm, mean ± standard deviation")
    print(f"{norm}-norm:", ", ".join(f"P = {P}: {cost:.3f}" for P, cost in zip(lengths, part.mean(0))))
ax.axvline(lengths.index(16), color="0.6", linestyle=":")
ax.set_xticks(range(8), [f"{P}\n({min(64, xl_reach(2, 16, P))})" for P in lengths])
ax.set(xlabel="memory P in the test (inputs that the last output sees)", ylabel="bits per character", title="one remembered position gives the largest single step")
_ = ax.legend(frameon=False, fontsize=9)
plt.show()

# %% [markdown]
# Beyond the 16 positions of the training (dotted line), more memory changes little. The loss is measured on the last of four segments, so an
# output sees at most 64 inputs.
#
# The paper has a measure for the context that a model uses: the **relative effective context length** (RECL, section 4.4). It is defined for a *group* of
# models. For each context length $c$, the best loss of the group is the baseline. A longer context counts only where a model is better than this
# baseline. The RECL is the first $c$ from which more context improves the perplexity by less than 1 %. For words, the paper's largest model has an
# RECL of 900 on the hardest tenth of the positions.
#
# Our curve is not an RECL. It has no group of models. And its axis is not the context: with a memory of 1, the last output depends on 33 inputs,
# because the remembered position has read its own segment.
#
# *Where* does a model look? Here is the small model from section 4.

# %%
small = rtx.LanguageModel(rtx.TransformerXL(32, layers=2, heads=2, segment=16, memory=16), task.inputs, tied=False)
small.load_state_dict(model.state_dict())
line = "A memory is carried from one segment to the next"
explore.attention(small, torch.tensor([task.texts[0].encode(line)]), list(line))

# %% [markdown]
# **Try.** Put the position at 17, the first of the second segment, then at 16. Which positions can they look at?
#
# <details><summary>Answer</summary>
#
# Position 17 looks at itself and at the 16 positions of its memory. Position 16 looks at positions 1 to 16, its own segment.
#
# </details>
#
# ## Recap
#
# **How can attention read a long text in pieces?** It carries a memory of its inputs from segment to segment, without gradients.
#
# - One layer sees its segment and $P$ positions more. With $P = S$, a stack of $L$ layers sees $L + 1$ segments, and learns from one.
# - In our study (characters, segments of 16, two layers, 800 updates, three seeds) the memory saves 0.2 to 0.3 bits. About two thirds are saved at the first four places
#   of a segment. Relative positions alone help early in training, but save nothing in the end.
# - Sliding saves less here, and needs about $S$ times as many multiplications.
# - Open: larger models, longer training, and a memory into which gradients flow.
#
# ## Quiz
#
# 1. Why may the keys of the memory not carry the places 1 to $S$, as learnt positions do?
# 2. You remove `detach()`. What changes in the outputs of a trained layer? What changes in training?
# 3. $L = 12$ layers, $S = P = 128$: how many inputs can an output see at most?
#
# <details><summary>Answers</summary>
#
# 1. The segment has the places 1 to $S$, too. The model could not tell place 5 of the memory from place 5 of the segment.
# 2. The outputs stay the same. In training, gradients flow into earlier segments, so their graphs must be kept.
# 3. $(12 + 1) \cdot 128 = 1664$.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Al-Rfou et al. (2019), *Character-Level Language Modeling with Deeper Self-Attention*; Dai et al. (2019), *Transformer-XL*.
#
# | in the papers | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | separate segments, sliding evaluation (Al-Rfou et al.) | | sections 1, 4, 5 | `CharacterTransformer`, `slide` |
# | context fragmentation (Dai et al., section 3.1) | | section 4 | |
# | segment-level recurrence (section 3.2) | $\text{SG}(h) \circ h$; $M$, here $P$ | section 2 | `rtx.nn.segment_memory.SegmentMemory` |
# | longest dependency $O(N \times L)$ | $N$, $L$, here $L$, $S$ | section 3 | `TransformerXL(segment=…, memory=…)` |
# | relative effective context length (section 4.4) | RECL | section 6 | |
#
# </details>
#
# **Back:** [Where in the sequence am I?](05_encode_position.ipynb) · **Index:** [README](../README.md) · **On:**
# [Which tool for which past?](07_convolve_or_recur.ipynb)
