# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attend to the past
#
# **How does a position fetch what it needs, however far back it lies?**
#
# A window sees what is near. A recurrent network carries the rest along, and forgets. Attention does neither: it keeps
# all that was, and looks it up.
#
# - **You will** build a soft dictionary, turn it into causal multi-head attention, hold it against `rtx`, and look into
#   the heads of a model that you train to look things up.
# - **You learn** what queries, keys and values are, where $\sqrt{d_k}$ comes from, what the mask hides, and what a
#   second head is for.
# - **You need** Python, tensors, softmax. [02 slide a window](02_slide_a_window.ipynb) helps.
# - **Time:** 35 minutes to read and try; the cells run in about 20 seconds.
#
# ## Paper map
#
# Wang et al. (2019), *R-Transformer*, section 3.2; it follows Vaswani et al. (2017), section 3.2.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | attention, Eq. 5 | $\alpha_i$, $v_i$ | sections 1, 2 | `MultiHeadAttention.weights`, `gather` |
# | the factor in Eq. 5 | $\sqrt{d_k}$ | section 3 | `MultiHeadAttention.scores` |
# | "all the positions in the past" | $h_1, \dots, h_t$ | section 4 | `causal_mask` |
# | heads, Eq. 4 and 6 | $W^q, W^k, W^v, W^o$ | section 5 | `MultiHeadAttention(heads=…)` |
#
# One slip on paper: the sum in Eq. 5 runs to an $n$ that is nowhere defined. It has to be $t$, the present position.

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots, xray
from rtx.nn import MultiHeadAttention, causal_mask
plots.style()
_ = torch.set_num_threads(1), torch.manual_seed(0)

# %% [markdown]
# ## 1. A dictionary that blends
#
# A dictionary stores a value under each key. Asked with a query, it gives the value whose key is *equal*. Attention is
# softer: it compares the query with *every* key, turns the matches into shares, and blends the values.
#
# $$\text{answer} = \sum_i \alpha_i v_i, \qquad \alpha_i = \frac{\exp(\beta \langle q, k_i \rangle)}
# {\sum_j \exp(\beta \langle q, k_j \rangle)}$$
#
# Here are four words with a number each. The keys are one-hot, so a query matches one key and no other.

# %%
words, v = ["Ann", "Bob", "Cat", "Dan"], torch.tensor([1.0, 2.0, 3.0, 4.0])
k = torch.eye(4)

def ask(q, beta):
    return (beta * k @ q).softmax(0) @ v

# %% [markdown]
# **Predict.** Ask for Dan, whose value is 4. What comes back for $\beta = 0$? And for a very large $\beta$?
#
# <details><summary>Answer</summary>
#
# At $\beta = 0$ all scores are 0, all shares ¼: the mean, 2.5. For a large $\beta$, Dan's share goes to 1: the
# dictionary of old, 4.
#
# </details>

# %%
for beta in (0, 1, 3, 10):
    print(f"beta = {beta:2}: {ask(k[3], beta):.3f}")

# %% [markdown]
# All of it is smooth, so gradients can teach a model what to store under which key, and what to ask for. That is
# the whole trick. In a model, queries, keys and values are three linear maps of the same vectors: $q_t = W^q h_t$,
# $k_t = W^k h_t$, $v_t = W^v h_t$ (Eq. 6).
#
# ## 2. Every position asks
#
# In a sequence every position is both: an entry of the dictionary, and someone who asks. Position $t$ asks the past,
# itself included:
#
# $$u_t = \sum_{i=1}^{t} \alpha_i v_i, \qquad \alpha_i = \frac{\exp(\langle q_t, k_i \rangle / \sqrt{d_k})}
# {\sum_{j=1}^{t} \exp(\langle q_t, k_j \rangle / \sqrt{d_k})} \qquad (5)$$
#
# As a loop, from the equation:

# %%
def naive_attention(q, k, v):
    """(T, K) each, to (T, K)."""
    rows = []
    for t in range(len(q)):
        scores = torch.stack([q[t] @ k[i] / len(k[i]) ** 0.5 for i in range(t + 1)])
        rows.append(sum(a * v[i] for i, a in enumerate(scores.softmax(0))))  # Eq. (5)
    return torch.stack(rows)

# %% [markdown]
# **Exercise 1** (medium, 10 minutes). Write it without loops, for a batch: `q`, `k`, `v` are $(B, T, K)$. The scores
# of all pairs are one product. Hide the future with `scores.masked_fill(~mask, float("-inf"))`, for
# $e^{-\infty} = 0$.

# %%
def causal_attention(q, k, v):
    ...  # Eq. (5)

exercises.causal_attention(causal_attention)

# %% [markdown]
# <details><summary>Hint</summary>
#
# `q @ k.mT` is $(B, T, T)$: a row for each query, a column for each key. `causal_mask(T)` is True on and below the
# diagonal. Which axis has to sum to 1?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def causal_attention(q, k, v):
#     scores = q @ k.mT / q.shape[-1] ** 0.5
#     return scores.masked_fill(~causal_mask(q.shape[1]), float("-inf")).softmax(-1) @ v
# ```
#
# </details>
#
# The loop against the layer in `rtx`, with one head:

# %%
layer = MultiHeadAttention(8, heads=1)
x = torch.randn(1, 12, 8)
parts = layer.query(x[0]), layer.key(x[0]), layer.value(x[0])
torch.testing.assert_close(layer.output(naive_attention(*parts)), layer(x)[0])
print("Eq. 5 and rtx agree; shares of each row sum to 1:", bool((layer.weights(x).sum(-1) - 1).abs().max() < 1e-6))

# %% [markdown]
# ## 3. Why $\sqrt{d_k}$?
#
# A score is a sum of $d_k$ products. Let the numbers in $q$ and $k$ be independent, with mean 0 and variance 1.
#
# **Predict.** How large is a typical score for $d_k = 64$? What does the softmax make of 50 such scores?
#
# <details><summary>Answer</summary>
#
# Variances add up: $d_k$ in all, so a typical score is $\sqrt{64} = 8$. Between scores of 8 and -8 lies a factor of
# $e^{16}$, nine million: one key takes nearly everything. Divided by $\sqrt{d_k}$, scores are about 1 for any width.
#
# </details>

# %%
widths, keys = [4, 16, 64, 256, 1024], 50
found = {"plain": [], "scaled": []}
for K in widths:
    query, drawn = torch.randn(400, K), torch.randn(400, keys, K)
    plain = (drawn @ query[..., None]).squeeze(-1)
    for name, scores in {"plain": plain, "scaled": plain / K**0.5}.items():
        scores = scores.detach().requires_grad_()
        a = scores.softmax(-1)
        slope = torch.autograd.grad(a.square().sum(), scores)[0]
        found[name].append((scores.std().item(), a.max(-1).values.mean().item(), slope.norm(dim=-1).median().item()))
for K, (size, *_), (scaled, *_) in zip(widths, *found.values()):
    print(f"d_k = {K:4}: typical score {size:4.1f}, root of d_k {K**0.5:4.1f}, scaled {scaled:.1f}")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
for colour, (name, rows) in zip(plots.COLOURS, found.items()):
    _, share, slope = zip(*rows)
    left.plot(widths, share, "o-", color=colour, label=name)
    right.plot(widths, slope, "o-", color=colour)
left.set(xscale="log", xlabel="$d_k$", ylabel="largest share", ylim=(0, 1), title="plain: one key takes nearly all")
right.set(xscale="log", yscale="log", xlabel="$d_k$", ylabel="norm of the gradient")
right.set(title="... and then no gradient passes")
_ = left.axhline(1 / keys, color="0.6", linestyle=":"), left.legend(frameon=False)
plt.show()

# %% [markdown]
# On the left, the mean over 400 queries to 50 keys; dotted, an even share. On the right, the median norm of the
# gradient of $\sum_i \alpha_i^2$ with respect to the scores. While the softmax still hesitates, plain scores get the
# larger gradients. Once it has made up its mind, none passes; and it has, before a model of that width has learnt
# anything. Scaled, all widths start alike. (Vaswani et al. give this reason in section 3.2.1.)
#
# ## 4. Only the past
#
# Training predicts all $T$ next symbols at once. If position $t$ could see position $t + 1$, it would copy the answer.
# The X-ray of `rtx` finds such leaks in any module, by exact derivatives:

# %%
class Unmasked(MultiHeadAttention):
    def forward(self, x):
        return super().forward(x, torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))

fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.2))
for ax, kind in zip(axes, (MultiHeadAttention, Unmasked)):
    seen = xray(kind(8, heads=2), x)
    image = plots.receptive_field_map(ax, seen.derivatives / seen.derivatives.sum(1, keepdim=True), f"{kind.__name__}: {len(seen.leaks)} leaks", low=0.003)
    ax.set(xticks=range(2, 13, 2), yticks=range(2, 13, 2))
    print(f"{kind.__name__}: future seen in {len(seen.leaks)} places of {12 * 11 // 2}; looks back over {seen.span}")
fig.colorbar(image, ax=axes, shrink=0.8, label="share of what moves the output")
plt.show()

# %% [markdown]
# No distance counts here: the first input is as near as the last. That is attention's strength, and its blindness.
# Shuffle the inputs, and without a mask the outputs are shuffled alike; nothing else changes:

# %%
order = torch.randperm(12)
free = Unmasked(8, heads=2)
torch.testing.assert_close(free(x[:, order]), free(x)[:, order])
masked, swapped = layer(x), layer(torch.cat([x[:, :11].flip(1), x[:, 11:]], 1))
torch.testing.assert_close(masked[:, -1], swapped[:, -1])
print("unmasked: outputs are shuffled as the inputs; masked: the last output does not see the order of its past")

# %% [markdown]
# A set, not a sequence! Something else must tell the order: R-Transformer's LocalRNN
# ([04 stack the block](04_stack_the_block.ipynb)), or positions ([05 encode position](05_encode_position.ipynb)).
#
# ## 5. Heads
#
# Ask the dictionary of section 1 for two words at once, with the query $k_a + k_b$.
#
# **Predict.** Can you tell from the answer whether it was Ann and Dan, or Bob and Cat?
#
# <details><summary>Answer</summary>
#
# No. The answer is the mean of the two values, and $1 + 4 = 2 + 3$. One softmax gives one blend. Two heads ask two
# questions, and put the answers side by side.
#
# </details>

# %%
for a, b in ((0, 3), (1, 2)):
    print(f"{words[a]} and {words[b]}: one head {ask(k[a] + k[b], 20):.2f}", end="   ")
    print(f"two heads {ask(k[a], 20):.2f}, {ask(k[b], 20):.2f}")

# %% [markdown]
# $H$ heads share the width: each has $d_k = D / H$ numbers for its queries, keys and values. $W^o$ mixes what they
# bring:
#
# $$\text{MultiHead}(h_1, \dots, h_t) = \text{Concat}(\text{head}_1(h_t), \dots, \text{head}_H(h_t))\, W^o \qquad (4)$$
#
# **Exercise 2** (easy, 5 minutes). Split $(B, T, D)$ into heads, $(B, H, T, K)$: head 1 takes the first $K$ numbers.

# %%
def split_heads(x, H):
    ...

exercises.split_heads(split_heads)

# %% [markdown]
# <details><summary>Hint</summary>
#
# A plain `reshape` to $(B, H, T, K)$ has the right shape and the wrong numbers. First $(B, T, H, K)$, then swap.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def split_heads(x, H):
#     return x.unflatten(-1, (H, -1)).transpose(1, 2)
# ```
#
# </details>

# %%
def naive_multi_head(x, layer):
    """(T, D) to (T, D), Eq. 4 and 6."""
    q, k, v = (f(x).chunk(layer.heads, -1) for f in (layer.query, layer.key, layer.value))
    heads = [naive_attention(*parts) for parts in zip(q, k, v)]
    return layer.output(torch.cat(heads, -1))  # Eq. (4)

for H in (1, 2, 4, 8):
    several = MultiHeadAttention(8, heads=H)
    torch.testing.assert_close(naive_multi_head(x[0], several), several(x)[0])
    print(f"H = {H}: agrees with rtx; {sum(p.numel() for p in several.parameters())} parameters, 4 D² = {4 * 8**2}")

# %% [markdown]
# More heads cost no parameters. They cost width: with $H = D$ every head compares single numbers.
#
# ## 6. Look inside a model that has to look things up
#
# Six letters, each with a digit; then the same letters in another order. What digit follows each?
#
# ```
# k7d2x9a0m4c2 d2c2k7a0x9m4
#              ^ ^ ^ ^ ^ ^   the digits after these six are asked for
# ```

# %%
import string
from torch.nn.functional import cross_entropy
symbols = string.ascii_lowercase + string.digits

def draw(size, pairs=6):
    letters = torch.rand(size, 26).argsort(1)[:, :pairs]
    digits = torch.randint(26, 36, (size, pairs))
    order = torch.rand(size, pairs).argsort(1)
    again = [part.gather(1, order) for part in (letters, digits)]
    return torch.cat([torch.stack(two, 2) for two in ((letters, digits), again)], 1).flatten(1)

# %%
def train(backbone, steps=200):
    model = rtx.LanguageModel(backbone, len(symbols), tied=False)
    torch.nn.init.normal_(model.embedding.weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        x = draw(64)
        loss = cross_entropy(model(x)[:, 12::2].flatten(0, 1), x[:, 13::2].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model

def right(model, pairs=6):
    x = draw(500, pairs)
    with torch.no_grad():
        found = model(x)[:, 2 * pairs :: 2].argmax(-1)
    return (found == x[:, 2 * pairs + 1 :: 2]).float().mean().item()

# %% [markdown]
# **Predict.** Three models of one layer, 200 steps each: attention and feed-forward without positions; a GRU; and
# R-Transformer, whose window of 2 symbols lies below the attention. Who solves it? And who still does with 24
# letters, 96 symbols, after training on 6 letters, 24 symbols?
#
# <details><summary>Answer</summary>
#
# R-Transformer, both. Attention alone sees the digits of the past as a set, and cannot tell whose they are. The GRU
# would have to carry all pairs in its state; in 200 steps it does not learn to. The window binds a letter to its
# digit, and attention looks the letter up: wherever it stands, among however many.
#
# </details>

# %%
_ = torch.manual_seed(0)
backbones = {"attention": rtx.Transformer(32, layers=1, heads=2, position="none")}
backbones["GRU"] = rtx.RNN(32, layers=1, cell="gru")
backbones["R-Transformer"] = rtx.RTransformer(32, layers=1, heads=2, window=2)
models = {name: train(backbone) for name, backbone in backbones.items()}
for name, model in models.items():
    print(f"{name:13} nine in ten right: {right(model) > 0.9!s:5}   with 24 letters: {right(model, 24) > 0.9}")

# %% [markdown]
# Attention alone can do it too, if it has a second layer. The next explorer computes with a small Transformer without a
# recurrent network, which `rtx` brings along. We trained it on drawn sequences of 2 to 8 pairs (recipe `look-up`). Type
# pairs and a question. The arcs show where each head looks: above the tokens in layer 1, below them in layer 2.

# %%
explore.lookup()

# %% [markdown]
# **Try.** Switch off one head after the other. Which head of each layer does the answer need?
#
# The heads work in two steps:
#
# 1. **Match** (layer 1). Each digit attends to the token before it, which is its letter. The question mark attends to
#    the letter before it, too. Now both carry a letter with them.
# 2. **Copy** (layer 2). The question mark attends to the digit that carries the same letter. The head's value is the
#    digit itself, so it becomes the answer.
#
# The head of step 2 is called an induction head (Olsson et al., 2022). Large language models have many of them.
#
# Weights show where a head *looks*. Only an experiment shows what that is good for. So we measure both, on sequences
# that the model has not seen: where each head looks, and how many answers stay right without this head. (A head is
# silent if its part of $W^o$ is zero: $K$ rows in Eq. 4, and $K$ columns of the layer's weight, which torch stores
# transposed.)

# %%
from copy import deepcopy
from rtx.lab import trace
from rtx.lab.pretrained import pretrained
from rtx.tasks import task_by_name

model = pretrained("lookup")
examples = [one for one in task_by_name("look-up").split("test") if len(one.inputs) == 24]  # six pairs, six questions
texts, answers = (torch.stack(part) for part in zip(*examples))
letters, digits, asks = torch.arange(0, 12, 2), torch.arange(1, 12, 2), torch.arange(13, 24, 2)
place = 2 * (texts[:, asks - 1, None] == texts[:, None, letters]).int().argmax(-1) + 1  # of the right digits

# %%
def right_without(block, head):
    cut = deepcopy(model)
    cut.backbone.blocks[block][0].sublayer.output.weight.data.unflatten(1, (2, -1))[:, head] = 0
    with torch.no_grad():
        return (cut(texts)[:, asks].argmax(-1) == answers[:, asks]).float().mean().item()

for block in (0, 1):
    maps = trace(model, texts)[f"backbone.blocks.{block}.0.sublayer.weights"]  # (B, H, T, T)
    for head in range(2):
        match, own = maps[:, head, digits, letters].mean(), maps[:, head, asks, asks - 1].mean()
        copy = maps[:, head, asks].gather(-1, place[..., None]).mean()
        print(f"layer {block + 1}, head {head + 1}: digit to its letter {match:4.0%}, ? to its letter {own:4.0%}, "
              f"? to the right digit {copy:4.0%}; right without this head {right_without(block, head):4.0%}")

# %% [markdown]
# Step 1 is done by both heads of layer 1: one puts 94 % of a digit's attention on its letter, the other 90 % of a question
# mark's. Step 2 is done by the second head of layer 2: it puts 98 % on the right digit, one of six. Without any of these three
# the model is right as rarely as a guess among the six digits (about 17 %). The first head of layer 2 is not needed at all:
# without it every answer stays right, though it looks at the letter of the question with 89 %. Where a head looks does not say
# what it is good for.
#
# Another explorer shows the heads of your own model, with labels for letters, notes or pixels:
# `explore.attention(model, x, labels)`. For the 64 pixels of a digit, `columns=8` draws them as a square.
#
# ## Recap
#
# - Attention compares a query with all keys, and blends the values by how well they match: a dictionary with gradients.
# - $1/\sqrt{d_k}$ keeps scores at the size of 1, whatever the width, so that the softmax does not freeze.
# - The mask hides the future. Every earlier position is one step away, and none is nearer than another: attention sees a set.
# - A head gives one blend. $H$ heads give $H$, at no more parameters.
#
# ## Quiz
#
# 1. You mask with 0 instead of $-\infty$. Which positions notice most, the first or the last?
# 2. All keys are equal. What does attention return?
# 3. The weights of all heads in a model of 8 layers and 2 heads, for 784 pixels: how many numbers?
#
# <details><summary>Answers</summary>
#
# 1. The first: $e^0 = 1$ for each of $T - 1$ hidden keys, against one that is seen. The last has none to hide.
# 2. The mean of the values so far, whatever the query.
# 3. $8 \cdot 2 \cdot 784^2 \approx 9.8$ million, half of them hidden. For training, `rtx` keeps none of them
#    ([12 make it fast](12_make_it_fast.ipynb)).
#
# </details>
#
# **Back:** [Slide a window](02_slide_a_window.ipynb) · **Index:** [README](../README.md) · **On:**
# [Stack the block](04_stack_the_block.ipynb)
