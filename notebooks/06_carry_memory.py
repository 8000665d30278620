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
# [Attention](../docs/glossary.md#attention) compares all pairs of positions: twice the length needs four times as many comparisons. So we cut a long text into
# pieces, called **segments**. But then the first character of a segment is read without the text before it. The picture shows this
# problem and two cures.
#
# ![The first output of a segment sees one character; with memory nine, sliding eight](../figures/transformer_xl_1.png)
#
# Each output predicts the next character. The output at the framed character predicts the "?". An output **sees** an input if a
# change of this input can change the output. The model in the picture has one layer.
#
# - **Memory** (second row): the layer remembers its inputs from the segment before (orange). This is the idea of *Transformer-XL* by
#   Dai et al. (2019), called "the paper" below.
# - **Sliding** (third row, Al-Rfou et al. 2019): each output gets its own segment, which ends at the output.
#
# **Predict.** Which cure predicts better (section 4)? Which cure is cheaper (section 5)?
#
# - **You will** write a layer with memory, train it, and compare the cures.
# - **You learn** what separate segments cost, and what each cure saves.
# - **You need** attention ([03](03_attend_to_the_past.ipynb)) and relative positions ([05](05_encode_position.ipynb)).
# - **Time:** 60 minutes, 35 of them for exercises. The cells run in about 30 seconds.
#
# <details><summary>Words</summary>
#
# - $S$ is the number of positions in a segment, $P$ the number of positions in the memory.
# - A **place** is a number from 1 to $S$. It counts positions from the start of their segment.
# - Position $t$ **attends to** position $s$ if $t$ has a weight for $s$ in *one* attention layer.
# - $(B, T, D)$ is a shape: $B$ texts, $T$ positions, $D$ numbers at each position.
# - `rtx` is this project's package.
#
# </details>
#
# ## 1. Six numbers, by hand
#
# What does an output see in each row of the picture? Here is a text of six numbers, in segments of two. The "attention" is the mean of
# all numbers that an output sees. The memory has two positions.

# %%
import json
import math
from pathlib import Path
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots
from rtx.lab.jacobian import changed
plots.style()
_ = torch.set_num_threads(1), torch.manual_seed(0)

numbers = [1, 2, 3, 4, 5, 6]
for t in range(6):
    start = t - t % 2  # of this segment
    seen = {"separate": numbers[start : t + 1], "memory": numbers[max(0, start - 2) : t + 1], "sliding": numbers[max(0, t - 1) : t + 1]}
    print(f"position {t + 1}  ", *(f"{name}: mean of {str(part):12} = {sum(part) / len(part):.1f}   " for name, part in seen.items()))

# %% [markdown]
# Position 5 is the first of a segment. Its output sees one number, or three with a memory, or two if the segment slides.
#
# ## 2. Write the layer
#
# Now we use real attention. Segment number $\tau$ has the inputs $h_\tau$. The layer also keeps a memory $m_\tau$: the inputs that this
# layer had at the last $P$ positions before the segment.
#
# $$\tilde h_\tau = \text{SG}(m_\tau) \circ h_\tau, \qquad q = W^q h_\tau, \quad k = W^k \tilde h_\tau, \quad v = W^v \tilde h_\tau$$
#
# - $\text{SG}$ means "stop gradient". In PyTorch it is `detach()`.
# - $\circ$ concatenates along the positions. So $\tilde h_\tau$ is the memory, followed by the segment.
# - $q$, $k$ and $v$ are queries, [keys](../docs/glossary.md#query-key-value) and values. $W^q$, $W^k$ and $W^v$ are their matrices.
#
# So the memory has keys and values, but needs no queries. (Our solution computes these queries, too, and drops their outputs.)
#
# **Exercise 1** (medium, 15 minutes). `layer` is [causal](../docs/glossary.md#causal) attention: it maps $(B, N, D)$ to $(B, N, D)$, and each position attends to
# itself and to earlier positions. Call it once per segment of length `S`, with `P` positions of memory. The last segment may be shorter.

# %%
def my_with_memory(x, layer, S, P):
    ...  # (B, T, D) to (B, T, D)

with_memory = exercises.yours(my_with_memory, "with_memory")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Concatenate memory and segment, call `layer`, and keep the outputs of the segment. The first memory,
# `x[:, max(0, start - P) : start]`, is empty.
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
# `SegmentMemory` is the same layer in `rtx`, and `XLAttention` is attention with the relative positions of lesson 05. From here on,
# the class `Yours` uses `with_memory`.

# %%
from rtx.nn.relative import XLAttention
from rtx.nn.segment_memory import SegmentMemory

class Yours(SegmentMemory):
    def forward(self, x, state=None):  # rtx can pass a state; it is None here
        return with_memory(x, self.attention, self.segment, self.memory)

attention, x = XLAttention(16, heads=2), torch.randn(1, 24, 16)
for S, P in ((8, 8), (8, 3), (4, 12), (8, 0)):
    theirs, yours = SegmentMemory(attention, S, P)(x), Yours(attention, S, P)(x)
    print(f"S = {S}, P = {P:2}: outputs up to {theirs.abs().max():.2f}, difference at most {(theirs - yours).abs().max():.5f}")

# %% [markdown]
# **Predict.** $S = P = 8$. Position 17 is the first of the third segment. Which positions can it attend to? To how many inputs does
# a gradient flow?
#
# <details><summary>Answer</summary>
#
# It attends to its memory, positions 9 to 16, and to itself. A gradient flows to input 17 only.
#
# </details>
#
# The picture shows the weights of this untrained layer. White means no weight: no position attends to later positions, and
# positions 17 to 24 do not attend to positions 1 to 8. (The layer is untrained, so each head spreads its weight.) In JupyterLab or
# on the website, choose position 16, then 17: which inputs lose their weight?

# %%
layers = torch.nn.Sequential()
layers.add_module("one layer with memory", SegmentMemory(attention, 8, 8))  # its name is the title of the picture
explore.attention(layers, x, caption="choose position 16, then 17: which inputs lose their weight? (This layer is untrained.)")

# %%
def count(module, x, t):
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(module(x)[0, t - 1].sum(), x)
    sees = changed(module, x.detach())[t - 1].sum()  # changes one input after another
    print(f"output {t} sees {sees:2} inputs, a gradient flows to {gradient[0].any(-1).sum()}")

count(Yours(attention, 8, 8), x, 17)
count(Yours(attention, 8, 8), x, 24)

# %% [markdown]
# The output sees the memory, but a gradient flows only to inputs of its own segment. So a backward pass can follow each segment, and its computations need not be kept. (For simplicity, section 4 runs one backward pass for four segments.)
#
# **Exercise 2** (easy, 5 minutes). A long text arrives segment by segment. After a segment, what is kept for the next one?
# `memory` $(B, n, D)$ is the memory so far, and $n$ may be 0. Keep the newest `P` positions, without gradients. If there are fewer, keep all.

# %%
def my_next_memory(memory, segment, P):
    ...  # (B, n, D) and (B, S, D) to (B, P or fewer, D)

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
    memory = next_memory(memory, segment, 12)
    print(f"S = 8, P = 12: read {8 * len(outputs):2} positions, kept {memory.shape[1]:2} of them")
print(f"difference from reading all at once: {(torch.cat(outputs, 1) - with_memory(x, attention, 8, 12)).abs().max():.5f}")

# %% [markdown]
# ## 3. How far back does a stack of layers see?
#
# Each layer has its own memory: the inputs of *this* layer. In the second layer, these inputs are outputs of the first layer.
#
# **Predict.** Two layers, segments of 8, and a memory of only $P = 2$. How many inputs does the last output of a segment see? Twelve?
#
# <details><summary>Answer</summary>
#
# Eighteen. Take output 32. It sees 8 positions of its own segment. The second layer remembers positions 23 and 24. In the first layer,
# position 24 saw the 8 positions of its segment, and 2 positions of the memory before.
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

# %%
fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.7), sharey=True, layout="constrained")
for ax, P in zip(axes, (0, 2, 8)):
    table = changed(Stack(P), torch.randn(1, 32, 8))
    ax.imshow(table, cmap="Blues", vmax=1.4, extent=(0.5, 32.5, 32.5, 0.5))
    ax.set(title=f"P = {P}: output 32 sees {int(table[-1].sum())}", xlabel="input", xticks=(8, 16, 24, 32), yticks=(8, 16, 24, 32))
    ax.vlines((8.5, 16.5, 24.5), 0.5, 32.5, color="0.7", lw=0.8)
    ax.hlines((8.5, 16.5, 24.5), 0.5, 32.5, color="0.7", lw=0.8)
axes[0].set(ylabel="output")
fig.suptitle("two layers, segments of 8 (lines): with two remembered positions, output 32 sees 18 inputs, not 8", fontsize=11)
plt.show()
count(Stack(8), torch.randn(1, 32, 8), 32)

# %% [markdown]
# Blue means that the output sees the input. In this stack, too, a gradient flows only to the output's segment (printed for $P = 8$).
#
# **Exercise 3** (hard, optional, 15 minutes). Count the inputs that the last output of a segment sees, with `L` layers, segments of
# `S` and a memory of `P`. The text before is long enough.

# %%
def my_xl_reach(L, S, P):
    ...  # a whole number

xl_reach = exercises.yours(my_xl_reach, "xl_reach")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The oldest position in the top layer's memory lies $P$ positions before the first position of the segment. In which segment does this
# oldest position lie? There, the layer below sees back to the first position of that segment, and $P$ positions further.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_xl_reach(L, S, P):
#     return S + (L - 1) * S * math.ceil(P / S) + P
# ```
#
# Each upper layer goes back by $\lceil P / S \rceil$ whole segments, the lowest layer by $P$ positions.
#
# </details>

# %%
with torch.random.fork_rng():  # later cells do not depend on the numbers drawn here
    for P in (2, 12):
        counted = changed(Stack(P), torch.randn(1, 40, 8))[-1].sum()
        print(f"two layers, S = 8, P = {P:2}: xl_reach gives {xl_reach(2, 8, P)}, and we count {counted}")

# %% [markdown]
# ## 4. What does each cure save?
#
# Models learn to predict the next character of the Python reference manual. The loss is in **bits per character**: $-\log_2$ of the probability of
# the right character. First we train a small model with the layer `Yours`. It reads 64 characters at a time, as four segments of 16.

# %%
task = rtx.tasks.task_by_name("characters", context=0, scored=64)  # pieces of 64 characters
text = {split: [one for one in task.split(split) if len(one.inputs) == 64] for split in ("train", "test")}
inputs, following = ({split: torch.stack([getattr(one, name) for one in ones]) for split, ones in text.items()} for name in ("inputs", "target"))

def bits(model, x, y):
    return torch.nn.functional.cross_entropy(model(x).mT, y, reduction="none") / math.log(2)

backbone = rtx.TransformerXL(32, layers=2, heads=2, segment=16, memory=16)
for block in backbone.blocks:  # put your layer where the attention is
    block[0].sublayer = Yours(block[0].sublayer.attention, segment=16, memory=16)
model = rtx.LanguageModel(backbone, task.inputs)  # with an embedding and an output for each character
_ = model.double()  # 64 bits: so exact that every processor learns the same

# %%
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for update in range(101):
    if update % 50 == 0:
        with torch.no_grad():  # on segments 2 to 4, which have a memory
            print(f"{update:3} updates: {bits(model, inputs['test'][:80], following['test'][:80])[:, 16:].mean():.2f} bits per character")
    drawn = torch.randint(len(inputs["train"]), (16,))
    loss = bits(model, inputs["train"][drawn], following["train"][drawn]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
share = torch.bincount(inputs["train"].flatten(), minlength=task.inputs) / inputs["train"].numel()
print(f"a guess by the share of each character: {-share[following['test'][:80, 16:]].log2().mean():.2f} bits per character")

# %% [markdown]
# For a comparison, `studies/text_in_pieces.py` trained larger models (two layers, width 64) for longer:
#
# 1. **separate segments, learnt positions**: a learnt vector for each place in every layer, as in Al-Rfou et al.;
# 2. **separate segments, relative positions**, as in Transformer-XL;
# 3. **memory, relative positions**: $P = 16$.
#
# The learnt vectors of model 1 do not fit a memory: place 5 of the memory would have the same vector as place 5 of the segment. So models
# 1 and 3 differ in positions and in memory (and by 5 % in parameters). Model 2 is the [control](../docs/glossary.md#control): it has relative positions, but no memory.
#
# Each model was tested after 200 and after 800 [updates](../docs/glossary.md#update) (steps of Adam), each time with the best of three [learning rates](../docs/glossary.md#learning-rate) on validation
# text. There are three **seeds**: a seed decides the initial weights and which pieces are drawn. We show [post-norm](../docs/glossary.md#post-norm-pre-norm) and
# pre-norm, because this choice changed a conclusion in [lesson 04](04_stack_the_block.ipynb). The test uses segments 2 to 4 of each
# piece.
#
# **Predict.** Without a memory, is the loss the same at all 16 places of a segment? And with a memory?

# %%
stored = json.loads(Path("../studies/text_in_pieces.json").read_text(encoding="utf-8"))["runs"]
LEARNT, RELATIVE, MEMORY = models = ("separate segments, learnt positions", "separate segments, relative positions", "memory, relative positions")

def chosen(model, norm, updates=800):  # the three runs with the best rate on validation text
    by_rate = [[run for run in stored if run["model"] == f"{model}, {norm}-norm" and run["rate"] == rate] for rate in (0.001, 0.003, 0.01)]
    return min(by_rate, key=lambda runs: sum(run["validation"][updates == 800] for run in runs))

def scores(model, norm, kind="bits", updates=800):  # (seeds, numbers)
    return torch.tensor([run["test"][updates == 800][kind] for run in chosen(model, norm, updates)])

def spread(numbers):
    return f"{numbers.mean():5.2f} ± {numbers.std():.2f}"

# %%
fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), sharey=True, layout="constrained")
for ax, norm in zip(axes, ("post", "pre")):
    for name, colour, style in zip(models, plots.COLOURS, ("-", "--", ":")):
        part = scores(name, norm, "by place")
        ax.plot(range(1, 17), part.mean(0), style, color=colour, label=name)
        ax.fill_between(range(1, 17), part.amin(0), part.amax(0), color=colour, alpha=0.2, lw=0)
    ax.set(title=f"{norm}-norm", xlabel="place in the segment", xticks=(1, 4, 8, 12, 16), ylim=(1.5, 3.5))
axes[0].set(ylabel="bits per character")
axes[0].legend(frameon=False, fontsize=9, loc="upper right")
fig.suptitle("after 800 updates: without a memory, the first characters of a segment cost more (band: lowest to highest seed)", fontsize=11)
plt.show()

# %%
for norm in ("post", "pre"):
    print(f"{norm}-norm, bits at place 1 minus the mean of places 5 to 16:")
    for name in models:
        part = scores(name, norm, "by place")
        print(f"    {name:38} {spread(part[:, 0] - part[:, 4:].mean(1))}")
    saved = (scores(RELATIVE, norm, "by place") - scores(MEMORY, norm, "by place")).mean(0)
    print(f"    {saved[:4].sum() / saved.sum():.0%} of what the memory saves is saved at places 1 to 4")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Without a memory (models 1 and 2), place 1 costs about 1.2 [bits](../docs/glossary.md#bit-nat) more than places 5 to 16: its output sees one character only. With a
# memory, place 1 does not cost more.
#
# </details>
#
# The paper calls this cost of a cut **context fragmentation**. All models are tested on the same characters, and from about place 5 on their curves mostly rise and fall together.
#
# In the tables, ± is the [standard deviation](../docs/glossary.md#standard-deviation) over the seeds. Positive saved bits mean that the change helps.

# %%
print(f"{'bits per character, 800 updates':38}   post-norm      pre-norm   parameters   rates (post, pre)")
for name in models:
    post, pre = (chosen(name, norm)[0] for norm in ("post", "pre"))
    print(f"{name:38} {spread(scores(name, 'post'))}  {spread(scores(name, 'pre'))}   {post['parameters']:10,}   {post['rate']}, {pre['rate']}")

steps = {"from learnt to relative positions": (LEARNT, "bits", RELATIVE, "bits"), "relative positions: add a memory": (RELATIVE, "bits", MEMORY, "bits"),
         "relative positions: slide": (RELATIVE, "bits", RELATIVE, "sliding"), "learnt positions: slide": (LEARNT, "bits", LEARNT, "sliding")}
for updates in (800, 200):
    print(f"\n{f'bits saved, {updates} updates':38}   post-norm      pre-norm")
    for step, (old, old_kind, new, new_kind) in steps.items():
        saved = [scores(old, norm, old_kind, updates) - scores(new, norm, new_kind, updates) for norm in ("post", "pre")]
        print(f"{step:38}", "  ".join(spread(part) for part in saved))

# %% [markdown]
# After 800 updates:
#
# - **Relative positions** without a memory save nothing clear: here they cost 0.03 or 0.04 bits, and on the validation text they save 0.03 or cost 0.01.
# - **The memory** saves 0.24 bits (post-norm) and 0.27 bits (pre-norm), about two thirds of them at places 1 to 4.
# - **Sliding** with model 2 saves less: 0.18 and 0.19 bits.
#
# The control matters. After 200 updates with post-norm, model 3 is 0.31 bits ahead of model 1. Relative positions
# save 0.13 ± 0.03 of these bits, so the memory saves only the rest. With pre-norm they save 0.07 ± 0.04. (All of them chose 0.01, our largest rate.)
#
# Why is the memory ahead of sliding? A sliding output sees 16 characters, and an output with memory sees up to 48. Training differs, too:
# sliding uses only place 16, but model 2 learns at all 16 places. This study does not separate the two reasons.
#
# ## 5. What does an evaluation cost?
#
# Sliding computes each position again and again. We count the multiplications in matrix products for one more character of a long
# text.
#
# **Predict.** Segments of 16: how many times more multiplications does sliding need than separate segments? And a
# memory of 16?

# %%
from rtx.nn import implementation
from torch.utils.flop_counter import FlopCounterMode

def multiplications(read, T):
    with torch.no_grad(), implementation("torch"), FlopCounterMode(display=False) as counter:  # operations that can be counted
        read(torch.randn(1, T, 64))
    return counter.get_total_flops() / 2  # it counts additions, too

def one_more(read, S):
    return (multiplications(read, 4 * S) - multiplications(read, 2 * S)) / (2 * S)

def slide(model, S):  # a segment for each character
    return lambda x: model(x.unfold(1, S, 1)[0].mT)

for S in (16, 64):
    learnt, relative, memory = rtx.CharacterTransformer(64, 2, 4, S), rtx.TransformerXL(64, 2, 4, S, memory=0), rtx.TransformerXL(64, 2, 4, S, memory=S)
    cures = ("learnt", learnt, "sliding", slide(learnt, S)), ("relative", relative, "sliding", slide(relative, S)), ("relative", relative, "memory", memory)
    for positions, separate, cure, read in cures:
        before, after = one_more(separate, S), one_more(read, S)
        print(f"S = {S}, {positions + ' positions':18}: separate {before:,.0f}, {cure} {after:9,.0f} ({after / before:.1f} times)")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Sliding, as we wrote it, needs 16 times as many: it computes a segment of 16 for each character. (The top layer needs only the last output. Without the others, it would be about 10 times.) The memory needs 1.2 times as many: keys and values of the
# memory are computed, too, and each query is compared with more keys.
#
# </details>
#
# In Table 9 of Dai et al., with an attention length of 3,800, their model evaluates 1,874 times faster than a model that slides.
#
# ## 6. How much memory does a trained model use?
#
# No parameter depends on $P$. So we can test model 3 with a smaller or larger memory than in training, where $P$ was 16 (dotted line). We
# score only the last of the four segments, because 48 characters come before it. The number in brackets counts the inputs that the last
# output sees, at most 64.

# %%
lengths = (0, 1, 2, 4, 8, 16, 32, 48)
fig, ax = plt.subplots(figsize=(6.6, 3.2))
for norm, colour, style in zip(("post", "pre"), plots.COLOURS, ("o-", "s--")):
    part = scores(MEMORY, norm, "by memory")
    ax.errorbar(range(8), part.mean(0), part.std(0), fmt=style, color=colour, label=f"{norm}-norm, mean ± standard deviation")
    for shorter, longer in ((0, 8), (8, 16), (16, 48)):
        saved = part[:, lengths.index(shorter)] - part[:, lengths.index(longer)]
        print(f"{norm}-norm, from P = {shorter:2} to P = {longer:2}: saves {spread(saved)} bits per character")
ax.axvline(lengths.index(16), color="0.6", linestyle=":", ymax=0.7)
ax.set_xticks(range(8), [f"{P}\n({min(64, xl_reach(2, 16, P))})" for P in lengths])
ax.set(xlabel="memory P in the test (inputs that the last output sees)", ylabel="bits per character", title="the eight nearest remembered positions save most")
_ = ax.legend(frameon=False, fontsize=9)
plt.show()

# %% [markdown]
# The eight nearest remembered positions save about 0.3 bits. The other 40 together save less than 0.05 bits. Three warnings:
#
# - In training, only the first segment had an empty memory; the others remembered 16 positions. Other sizes are new to the model.
# - Model 3 never learnt to read the last segment without a memory, and model 2 of section 4 did. So do not compare the 0.3 bits with that section.
# - Each remembered position has read earlier inputs, so eight positions can carry more than eight inputs.
#
# Dai et al. measure the **relative effective context length** (RECL, section 4.3) of a group of models. The [baseline](../docs/glossary.md#baseline) at each word is the best of the models
# with context $c$. As long as a model with a longer context lowers the [perplexity](../docs/glossary.md#perplexity) (2 to the power of the bits) by at least 1 %, $c$ grows.
# The first $c$ where this fails is the RECL. Only a share of the words counts, the hardest ones. Our curve has one model, so it is not an RECL.
#
# ## Recap
#
# - Attention can carry a memory of its inputs from segment to segment, without gradients.
# - In one layer, the last output of a segment sees this segment and $P$ positions more. In a stack of $L$ layers with $P = S$, it sees
#   $L + 1$ segments.
# - In our study (characters, segments of 16, two layers, 800 updates, three seeds) the memory saves 0.24 to 0.27 bits, mostly at the
#   first four places. Relative positions alone save about 0.1 bits after 200 updates, but none after 800.
# - Sliding saves less here, and needs up to $S$ times as many multiplications.
# - Open: separate segments of 32; larger models; longer training; a memory with gradients.
#
# ## Quiz
#
# 1. Why does the study need model 2?
# 2. You remove `detach()`. What changes in the outputs of a trained layer? What changes in training?
# 3. $L = 12$ layers, $S = P = 128$: how many inputs can an output see at most?
#
# <details><summary>Answers</summary>
#
# 1. Models 1 and 3 differ in positions and memory. Model 2 differs from each in one of the two.
# 2. The outputs stay the same. In training, gradients flow into earlier segments, so their computations must be kept.
# 3. $(12 + 1) \cdot 128 = 1664$.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Al-Rfou et al. (2019), *Character-Level Language Modeling with Deeper Self-Attention*; Dai et al. (2019), *Transformer-XL*.
#
# | in the papers | symbols there | here | in `rtx` |
# | --- | --- | --- | --- |
# | separate segments, sliding evaluation (Al-Rfou et al.) | | sections 1, 4, 5 | `CharacterTransformer`, `slide` |
# | context fragmentation (Dai et al., section 3.1) | | section 4 | |
# | segment-level recurrence (section 3.2) | memory $M$ (here $P$) | section 2 | `rtx.nn.segment_memory.SegmentMemory` |
# | longest dependency $O(N \times L)$ (section 3.2) | $N$ layers (here $L$), segment $L$ (here $S$) | section 3 | `TransformerXL(segment=…, memory=…)` |
# | relative effective context length (section 4.3, appendix C) | RECL | section 6, not measured | |
#
# </details>
#
# **Back:** [How can attention know where things are?](05_encode_position.ipynb) · **Index:** [README](../README.md) · **Words:** [glossary](../docs/glossary.md) · **On:**
# [Convolution, recurrence or attention: which tool for which past?](07_convolve_or_recur.ipynb)
