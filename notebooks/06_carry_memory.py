# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Carry memory
#
# **How can attention read a text that is longer than what it reads at once?**
#
# Attention compares all pairs, so a long text is cut into segments. Then each segment starts with amnesia, or the same
# positions are computed again and again. Transformer-XL carries a memory from segment to segment, and needs neither.
#
# - **You will** see the cuts in a model's reach, write one layer with memory, train both kinds on a text, and measure
#   where in a segment each is good, what an evaluation costs, and how much context is used.
# - **You learn** what context fragmentation costs, why the memory gets no gradients, and how depth lengthens reach.
# - **You need** attention ([03 attend to the past](03_attend_to_the_past.ipynb)) and relative positions
#   ([05 encode position](05_encode_position.ipynb)).
# - **Time:** 30 minutes to read and try; the cells run in about 25 seconds.
#
# ## Paper map
#
# | paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | Al-Rfou et al. (2019): separate segments, sliding evaluation | | sections 1, 4 | `CharacterTransformer`, `slide` |
# | Dai et al. (2019), Transformer-XL, section 3.1: fragmentation | | section 3 | |
# | the same, section 3.2: segment-level recurrence | $\text{SG}(h) \circ h$ | section 2 | `SegmentMemory` |
# | the same: reach $O(N \times L)$, $N$ layers, segments of $L$ | | section 1 | `TransformerXL(segment=…, memory=…)` |

# %%
import math
import time
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots, receptive_field
from rtx.nn import causal_mask
from rtx.nn.relative import XLAttention
from rtx.nn.segment_memory import SegmentMemory
from rtx.tasks import task_by_name
from rtx.tasks.loader import loader
plots.style()
_ = torch.set_num_threads(1), torch.manual_seed(0)

# %% [markdown]
# ## 1. Cuts
#
# Two layers each, segments of $S = 8$. Replace one input by another, and note which outputs change:

# %%
def who_sees_whom(model, T=32):
    x = torch.randn(1, T, model.d_model, dtype=torch.double)
    y, seen = model.double()(x), torch.zeros(T, T)
    for s in range(T):
        other = x.clone()
        other[:, s] = torch.randn(model.d_model)
        seen[:, s] = (model(other) - y)[0].abs().amax(-1) > 1e-9
    return seen

cut = rtx.CharacterTransformer(16, layers=2, heads=2, segment=8)
carried = rtx.TransformerXL(16, layers=2, heads=2, segment=8, memory=8)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6))
for ax, (name, model) in zip(axes, {"separate segments": cut, "Transformer-XL": carried}.items()):
    seen = who_sees_whom(model)
    ax.imshow(seen, cmap="Blues", vmax=1.4, extent=(0.5, 32.5, 32.5, 0.5))
    ax.set(title=f"{name}: output 25 sees {int(seen[24].sum())}", xlabel="input position s", ylabel="output position t")
    ax.set(xticks=(8, 16, 24, 32), yticks=(8, 16, 24, 32))
    print(f"{name:18} output 24 sees {int(seen[23].sum())} inputs, output 25 sees {int(seen[24].sum())}")
plt.show()

# %% [markdown]
# On the left, output 25 begins anew: it sees itself, and nothing of the text before. That is *context fragmentation*.
# On the right nobody begins anew.
#
# **Exercise 1** (medium, 5 minutes). With a memory as long as a segment, $M = S$: on how many inputs does the last
# output of a segment depend, through $L$ layers? Count in the picture first.

# %%
def xl_reach(L, S):
    ...

exercises.xl_reach(xl_reach)

# %% [markdown]
# <details><summary>Hint</summary>
#
# One layer sees its segment and the one before. What did that one see, in the layer below?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def xl_reach(L, S):
#     return (L + 1) * S
# ```
#
# </details>
#
# ## 2. What is remembered
#
# For segment $\tau$, a layer reads what it read in segment $\tau - 1$ as well. SG stops gradients,
# and $\circ$ puts one behind the other:
#
# $$\tilde h_\tau = \text{SG}(h_{\tau-1}) \circ h_\tau, \qquad q = W^q h_\tau, \quad k = W^k \tilde h_\tau, \quad v =
# W^v \tilde h_\tau$$
#
# Queries come from the segment only; keys and values from the memory, too. One head, as a loop over segments:

# %%
def naive_memory(x, layer, S, M):
    """(T, D) to (T, D), one head."""
    found = []
    for start in range(0, len(x), S):
        segment, memory = x[start : start + S], x[max(0, start - M) : start].detach()  # SG
        context = torch.cat([memory, segment])
        q, k, v = layer.query(segment), layer.key(context), layer.value(context)
        scores = layer.scores(q[None, None], k[None, None])[0, 0]
        a = scores.masked_fill(~causal_mask(len(q), len(k)), -torch.inf).softmax(-1)
        found.append(layer.output(a @ v))
    return torch.cat(found)

layer, x = XLAttention(16, heads=1), torch.randn(30, 16)
for S, M in ((8, 8), (8, 3), (4, 12), (8, 0)):
    torch.testing.assert_close(naive_memory(x, layer, S, M), SegmentMemory(layer, S, M)(x[None])[0])
print("the loop and rtx agree, for memories shorter and longer than a segment, and none")

# %% [markdown]
# **Exercise 2** (easy, 5 minutes). After a segment, which positions are the memory of the next? Given the `memory` so
# far and the `segment` just read, both (positions, $D$), keep the newest $M$, or as many as there are.

# %%
def next_memory(memory, segment, M):
    ...

exercises.next_memory(next_memory)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Put both in a row, and cut. What does `[-M:]` give for `M = 0`?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def next_memory(memory, segment, M):
#     both = torch.cat([memory, segment])
#     return both[max(0, len(both) - M):]
# ```
#
# </details>
#
# **Predict.** `rtx.lab.receptive_field` measures by derivatives what we measured by replacing inputs. What will it say of
# output 24 of Transformer-XL?
#
# <details><summary>Answer</summary>
#
# That only its own segment moves it, 8 inputs: gradients stop at the memory. The model *uses* 24 inputs and
# *learns* from 8 of them. A training step stays cheap (here a quarter more multiply-adds than without
# memory), and what is stored is not taught to be useful later.
#
# </details>

# %%
moved = receptive_field(carried.float(), torch.randn(1, 32, 16))
print("inputs from which gradients reach output 24:", int((moved[23] > 0).sum()))

# %% [markdown]
# ## 3. What the cuts cost
#
# Both learn the characters of the Python reference manual, in segments of 16 and windows of 64. (Al-Rfou et al. read
# 512 at a time, and the papers' texts are larger.)

# %%
from torch.nn.functional import cross_entropy

S, task = 16, task_by_name("characters", context=0, scored=64)

def language_model(backbone):
    return rtx.LanguageModel(backbone, task.inputs, tied=False)

def train(model, steps=180):
    torch.nn.init.normal_(model.embedding.weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _, batch in zip(range(steps), loader(task, "train", 24)):
        loss = cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model

# %%
_ = torch.manual_seed(0)
xl = lambda memory: rtx.TransformerXL(64, layers=2, heads=4, segment=S, memory=memory)
vanilla = train(language_model(rtx.CharacterTransformer(64, layers=2, heads=4, segment=S)))
remembering = train(language_model(xl(memory=S)))

# %% [markdown]
# **Predict.** The loss at each of the 16 places within a segment, from the second segment on: what does the curve of
# each model look like?
#
# <details><summary>Answer</summary>
#
# With separate segments, it starts high, for at the first place the next character is guessed from a single one, and
# falls within a few characters. With memory it is flat: a cut is no cut.
#
# </details>

# %%
test = torch.cat([batch.inputs for batch in loader(task, "test", 64)])[:120]

def bits(logits):
    """(B, T, V) to (B, T - 1): what each next character costs."""
    return cross_entropy(logits[:, :-1].mT, test[:, 1:], reduction="none") / math.log(2)

with torch.no_grad():
    cost = {"separate segments": bits(vanilla(test)), "with memory": bits(remembering(test))}
fig, ax = plt.subplots(figsize=(6.6, 3))
by_place = {name: part[:, 16:48].view(-1, 2, 16).mean((0, 1)).tolist() for name, part in cost.items()}
plots.curves(ax, by_place, "place in the segment", "bits per character", "each cut costs its first characters dearly")
ax.set(xlim=(1, 22), xticks=(1, 4, 8, 12, 16), ylim=(0, None))
plt.show()
for name, part in by_place.items():
    print(f"{name:18} first place dearer than the rest by more than half a bit: {part[0] - sum(part[1:]) / 15 > 0.5}")

# %% [markdown]
# ## 4. The price of an evaluation
#
# There is another cure: **slide**. Al-Rfou et al. compute, for each character, the whole segment that ends there, and
# keep its last output. So every prediction reads the last $S$ characters, and every position is computed $S$ times.
#
# **Predict.** For segments of 16: how many times longer does sliding take than reading on with a memory?
#
# <details><summary>Answer</summary>
#
# It computes 16 times as many positions. The memory has a price, too: its keys and values are computed anew for each
# segment. So the factor is below 16, and it grows with the segment. Dai et al. say up to 1,800 times and more (abstract),
# where their vanilla model sees thousands of characters.
#
# </details>

# %%
def seconds(run, times=3):
    def once():
        start = time.process_time()
        run()
        return time.process_time() - start
    with torch.no_grad():
        return sorted(once() for _ in range(times))[times // 2]

embedded = vanilla.embed(test[:8].flatten()[None]).detach()  # one text of 512 characters
slow = seconds(lambda: vanilla.backbone.slide(embedded))
fast = seconds(lambda: remembering.backbone(embedded))
T = embedded.shape[1]
print(f"positions computed for {T}: sliding {S + (T - S) * S}, carrying on {T}")
print(f"sliding took {slow / fast:.1f} × the time: more than twice: {slow / fast > 2}")

# %%
with torch.no_grad():
    slid = bits(vanilla.decoder(vanilla.backbone.slide(vanilla.embed(test))))
cutting, carrying, sliding = (part[:, S:] for part in (*cost.values(), slid))
first = cutting[:, ::S].mean()  # of each segment
print("at the first places, better than cutting by 0.2 bits and more:")
for name, part in {"sliding": sliding, "a memory": carrying}.items():
    print(f"    {name:8} {bool(part[:, ::S].mean() < first - 0.2)}")
print("over all places, by 0.1 bits and more:")
for name, part in {"sliding": sliding, "a memory": carrying}.items():
    print(f"    {name:8} {bool(part.mean() < cutting.mean() - 0.1)}")

# %% [markdown]
# Sliding mends the first places, as it should. Over all places it gains little or nothing here: every prediction is
# now made from place 16, and in the figure above that is not this model's best. It has a learnt vector for each place
# and was trained for seconds; how it would be after long training, this run does not tell. The memory gains everywhere, at a
# fraction of the price.
#
# ## 5. How much context does it use?
#
# No parameter depends on $M$: the same weights run with any memory. So test the trained model with a shorter and a longer
# memory than it was trained with.

# %%
def with_memory(memory):
    model = language_model(xl(memory))
    model.load_state_dict(remembering.state_dict())
    return model

lengths = (0, 2, 4, 8, 16, 32, 48)
with torch.no_grad():
    found = [bits(with_memory(M)(test))[:, 48:].mean().item() for M in lengths]
fig, ax = plt.subplots(figsize=(6, 2.8))
ax.plot(lengths, found, "o-")
ax.axvline(S, color="0.6", linewidth=1)
ax.set(xlabel="characters remembered at the test (grey: in training)", ylabel="bits per character")
ax.set_title("the last characters before the cut are worth most")
plt.show()
print("a memory of 4 gains more over none than 48 over 4:", found[0] - found[2] > found[2] - found[-1])

# %%
text = "A memory is carried from one segment to the next"
explore.attention(with_memory(16), torch.tensor([task.texts[0].encode(text)]), list(text))

# %% [markdown]
# **Try.** Put the position at 17, the first of the second segment, then at 16. Whom do they see? Which heads cross the
# cut, and how far back do they look?
#
# A short training on a short text uses a short context: this model knows spelling, and little more. Dai et al. call the
# length from which more context no longer helps the *relative effective context length*; for their model of
# words with 151 million parameters they find 900. The recipe `rtx train memory xl` trains this comparison at length.
#
# ## Recap
#
# - Separate segments start with amnesia: the first characters of each are dear.
# - Sliding cures that at $S$ times the positions. A memory cures it by keeping what was computed.
# - $L$ layers with a memory of one segment see $L + 1$ segments, and learn from one: gradients stop at the memory.
# - With absolute positions the memory would stand at places that collide with the segment's own. That is why
#   Transformer-XL scores distances.
#
# ## Quiz
#
# 1. Why must the keys of the memory not carry absolute positions 1 to $S$?
# 2. An LSTM carries its state through the whole text. Why is its memory different from Transformer-XL's?
# 3. $L = 12$, $S = M = 128$: how far back can an output see at most?
#
# <details><summary>Answers</summary>
#
# 1. The segment's own keys have the same: position 5 of memory and position 5 of the segment would look equally far
#    away.
# 2. Its state has one size, whatever came before, and each step overwrites. The memory keeps each position as it was,
#    then drops it entirely.
# 3. $(12 + 1) \cdot 128 = 1664$ inputs, its own among them.
#
# </details>
#
# **Back:** [Encode position](05_encode_position.ipynb) · **Index:** [README](../README.md) · **On:**
# [Convolve or recur](07_convolve_or_recur.ipynb)
