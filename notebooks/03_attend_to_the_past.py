# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How does a position fetch what it needs?
#
# Each letter has a digit. The question `f?` asks for the digit of `f`, and a small trained Transformer answers. Change the text.
# Then switch off one head after the other.

# %%
from rtx.lab import explore

explore.lookup()

# %% [markdown]
# Each box is a token (a letter, a digit or `?`). An arc shows from which earlier token a token takes information. The model has two
# layers with two **heads** each; a head is one attention with its own weights. Each position fetches what it needs
# from earlier positions. This is **attention**.
#
# **Predict.** Which heads does the answer need? Section 7 measures it.
#
# - **You will** compute attention by hand, write a causal head, compare it with `rtx`, and look inside the model above.
# - **You learn** what queries, keys and values are, what $\sqrt{d_k}$ and the mask do, and which models can look things up.
# - **You need** PyTorch tensors and the softmax. [Notebook 02](02_slide_a_window.ipynb) helps.
# - **Time:** 40 minutes to read and try. The cells run in about 20 seconds.
#
# ## 1. Three positions, by hand
#
# How does a position choose where to look? It makes three vectors from its input $h$. Its **query** says what it looks for. Its
# **key** is what queries are compared with. Its **value** is what others get from it. Here are three positions with two numbers.

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, plots, xray
plots.style()
_ = torch.set_num_threads(1), torch.manual_seed(0)

def shown(numbers):
    return "(" + ", ".join(f"{n:.2f}" for n in numbers) + ")"

h3 = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])  # three positions
q3 = h3 @ torch.tensor([[0.0, 1.0], [1.0, 0.0]])  # queries: the two numbers swapped
k3, v3 = h3, 10 * h3  # keys: as they are; values: ten times as large

# %%
for t in range(3):
    print(f"position {t + 1}: input {shown(h3[t])}, query {shown(q3[t])}, key {shown(k3[t])}, value {shown(v3[t])}")
for t in range(3):
    scores = k3[: t + 1] @ q3[t] / 2**0.5  # products with the keys so far, divided by the root of the width
    weights = scores.softmax(0)
    print(f"position {t + 1}: scores {shown(scores)}, weights {shown(weights)}, output {shown(weights @ v3[: t + 1])}")

# %% [markdown]
# Read the last line. The query (1, 1) has the products 1, 2 and 2 with the three keys. Divided by $\sqrt 2$, they are the scores. The
# softmax turns scores into weights with sum 1. The output mixes the values with these weights.
#
# **Predict.** We multiply the query of position 3 by 10. What happens to its weights?
#
# <details><summary>Answer</summary>
#
# All scores become ten times larger. Keys 2 and 3 get nearly 0.5 each, and key 1 gets nearly 0: the choice is sharper.
#
# </details>
#
# ## 2. Write the head
#
# In general, position $t$ compares its query with all keys up to its own. This is Eq. 5 of the paper:
#
# $$u_t = \sum_{i=1}^{t} \alpha_i v_i, \qquad \alpha_i = \frac{\exp(\langle q_t, k_i \rangle / \sqrt{d_k})}
# {\sum_{j=1}^{t} \exp(\langle q_t, k_j \rangle / \sqrt{d_k})}$$
#
# Here $d_k$ is the width of queries and keys. In a layer, $q_t = W^q h_t$, $k_t = W^k h_t$ and $v_t = W^v h_t$ (Eq. 6).
#
# **Exercise 1** (medium, 10 minutes). Write Eq. 5 for all positions at once, with `q`, `k` and `v` (B, T, K). Before the softmax,
# replace the scores of the future by $-\infty$, because $e^{-\infty} = 0$.

# %%
def my_causal_attention(q, k, v):
    ...  # (B, T, K)

causal_attention = exercises.yours(my_causal_attention, "causal_attention")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `q @ k.mT` is (B, T, T): a row for each query, a column for each key. `torch.ones(T, T).triu(1)` is 1 in the future.
# `scores.masked_fill(mask, float("-inf"))` replaces the scores where the mask is `True`.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_causal_attention(q, k, v):
#     T = q.shape[1]
#     scores = q @ k.mT / q.shape[-1] ** 0.5
#     future = torch.ones(T, T).triu(1).bool()
#     return scores.masked_fill(future, float("-inf")).softmax(-1) @ v
# ```
#
# </details>
#
# ## 3. Why several heads?
#
# When is one mixture not enough? Four names have a number each: Ann 1, Bob 2, Cat 3, Dan 4. Their keys are different unit vectors.
# We ask for two names at once: the query is the sum of their keys.
#
# **Predict.** Can you tell from the answer whether we asked for Ann and Dan, or for Bob and Cat?
#
# <details><summary>Answer</summary>
#
# No. Here a value is a single number. The answer is the mean of two numbers, and $1 + 4 = 2 + 3$. Two heads ask two questions and return two answers.
#
# </details>

# %%
names, keys, numbers = ["Ann", "Bob", "Cat", "Dan"], torch.eye(4), torch.tensor([1.0, 2.0, 3.0, 4.0])

def ask(query):
    return (20 * keys @ query).softmax(0) @ numbers

for a, b in ((0, 3), (1, 2)):
    print(f"{names[a]} and {names[b]}: one head {ask(keys[a] + keys[b]):.2f}, two heads {ask(keys[a]):.2f} and {ask(keys[b]):.2f}")

# %% [markdown]
# A layer with $H$ heads splits its width $D$: each head has $d_k = D / H$ numbers for its queries, keys and values. The matrix
# $W^o$ mixes what the heads bring (Eq. 4). We build this layer around your head, and compare it with the layer in `rtx`.

# %%
def multi_head(layer, x):
    H = layer.heads
    split = lambda y: y.unflatten(-1, (H, -1)).transpose(1, 2).flatten(0, 1)  # (B, T, D) to (B H, T, K)
    u = causal_attention(split(layer.query(x)), split(layer.key(x)), split(layer.value(x)))
    return layer.output(u.unflatten(0, (-1, H)).transpose(1, 2).flatten(2))  # Eq. 4

x = torch.randn(1, 12, 8)
for H in (1, 2, 4, 8):
    layer = rtx.nn.MultiHeadAttention(8, heads=H)
    apart, size = (multi_head(layer, x) - layer(x)).abs().max(), sum(p.numel() for p in layer.parameters())
    print(f"H = {H}: {size} parameters; outputs are up to {layer(x).abs().max():.2f}, the difference at most {apart:.5f}")

# %% [markdown]
# More heads cost no parameters, but each head is narrower.
#
# ## 4. Why divide by $\sqrt{d_k}$?
#
# A score is a sum of $d_k$ products. If queries and keys are random with variance 1, the variance of a score is $d_k$. So wide
# heads get large scores. We call a query **saturated** if one key has more than 99 % of the weight.
#
# **Predict.** There are 50 keys, $d_k = 64$, and no scaling. Which share of the queries is saturated? Does a gradient
# flow through the others?
#
# <details><summary>Answer</summary>
#
# About one fifth. The others pass most of the gradient that scaled queries pass.
#
# </details>

# %%
def measured(K, scaled, queries=200, keys=50):
    """Typical score, share of saturated queries, gradients of an output at these and at the others."""
    q, k, v = torch.randn(queries, 1, K), torch.randn(queries, keys, K), torch.randn(queries, keys)
    scores = ((q @ k.mT).squeeze(1) / (K**0.5 if scaled else 1)).requires_grad_()
    weights = scores.softmax(-1)
    gradient = torch.autograd.grad((weights * v).sum(), scores)[0].norm(dim=-1)
    full = weights.amax(-1) > 0.99
    return torch.stack([scores.std(), 100 * full.float().mean(), gradient.median(), gradient[full].median(), gradient[~full].median()])

widths = (4, 16, 64, 256)
drawn = {scaled: torch.stack([torch.stack([measured(K, scaled) for _ in range(5)]) for K in widths]).detach() for scaled in (False, True)}

# %%
print("                               saturated            median gradient of an output (5 draws)")
print("scaling  d_k  typical score    queries in %     all queries     saturated       others")
for scaled, table in drawn.items():
    for K, draws in zip(widths, table):
        cells = [f"{m:5.3f} ± {s:5.3f}" if m == m else "      -      " for m, s in zip(draws[:, 2:].nanmean(0), draws[:, 2:].std(0).nan_to_num())]
        print(f"{'1/√d_k' if scaled else 'none':6} {K:5} {draws[:, 0].mean():10.1f}       {draws[:, 1].mean():5.1f} ± {draws[:, 1].std():4.1f}  ", *cells)

# %%
fig, ax = plt.subplots(figsize=(6, 2.8))
for scaled, colour in ((False, plots.COLOURS[1]), (True, plots.COLOURS[0])):
    share = drawn[scaled][:, :, 1]
    ax.errorbar(widths, share.mean(1), share.std(1), fmt="o-", color=colour, label="scaled" if scaled else "not scaled")
ax.set(xscale="log", xlabel="width $d_k$", ylabel="saturated queries (%)", title="without scaling, wide heads saturate at the start")
ax.set_xticks(widths, widths)
_ = ax.minorticks_off(), ax.legend(frameon=False)
plt.show()

# %% [markdown]
# Without scaling, the share of saturated queries grows with the width, and these queries pass almost no gradient. With scaling, no
# query is saturated. But "unscaled scores stop the gradient" would be wrong for the other queries. At widths 4 and 16, the median
# gradient is even larger without scaling. (All this is for random queries and keys.)
#
# ## 5. What the mask hides
#
# A model that predicts the next symbol must not see it. The X-ray of `rtx` finds such leaks in any module.

# %%
class Unmasked(rtx.nn.MultiHeadAttention):
    def forward(self, x):
        return super().forward(x, torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))

fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.2), sharey=True)
for ax, (name, kind) in zip(axes, {"causal mask": rtx.nn.MultiHeadAttention, "no mask": Unmasked}.items()):
    seen = xray(kind(8, heads=2), x)
    image = plots.receptive_field_map(ax, seen.derivatives / seen.derivatives.sum(1, keepdim=True), name, low=0.003)
    ax.set(xticks=range(2, 13, 2), yticks=range(2, 13, 2))
    ax.label_outer()
    print(f"{name}: the future is seen in {len(seen.leaks)} of {12 * 11 // 2} places")
fig.colorbar(image, ax=axes, shrink=0.8, label="share of what changes the output")
fig.suptitle("the mask empties the part right of the diagonal", fontsize=11)
plt.show()

# %% [markdown]
# Does attention know the order of its inputs? We reverse the past of the last position, and measure how much its output changes.
#
# **Predict.** One layer or two, with and without the mask: in which of the four cases does the output change?
#
# <details><summary>Answer</summary>
#
# Only with two layers and the mask.
#
# </details>

# %%
reversed_past = torch.cat([x[:, :11].flip(1), x[:, 11:]], 1)
for name, kind in {"causal mask": rtx.nn.MultiHeadAttention, "no mask": Unmasked}.items():
    for layers in (1, 2):
        changes = []
        for _ in range(5):
            model = torch.nn.Sequential(*[kind(8, heads=2) for _ in range(layers)])
            changes.append(((model(x) - model(reversed_past))[:, -1].norm() / model(x)[:, -1].norm()).item())
        changes = 100 * torch.tensor(changes)
        print(f"{name + ',':12} layers: {layers}; the last output changes by {changes.mean():5.1f} ± {changes.std():4.1f} %")

# %% [markdown]
# Without a mask, attention sees a **set**: which inputs there are, but not where. One layer with the mask sees the set of its past.
# But each of its outputs depends on what came *before* this position. A second layer reads these outputs, so it can know the order.
# (These are five draws of random weights.)
#
# ## 6. Who can look things up?
#
# Six letters, each with a digit. Then the same letters in another order. Which digit follows each of them?
#
# ```
# k7d2x9a0m4c2 d2c2k7a0x9m4
#              ^ ^ ^ ^ ^ ^   the digits after these letters are asked for
# ```
#
# The letter `d` can find the earlier `d` by its key. But the answer is at the position *after* it. We build a head by hand from your
# function. Queries and values are the symbols themselves. We try two keys: each position's own symbol, or the symbol before it.

# %%
from torch.nn.functional import one_hot, pad

def draw(size, pairs):
    """Texts (B, 4 pairs) of letters (0 to 25) and digits (26 to 35), and the digits that are asked for."""
    letters = torch.rand(size, 26).argsort(1)[:, :pairs]
    digits = torch.randint(26, 36, (size, pairs))
    order = torch.rand(size, pairs).argsort(1)
    again = [part.gather(1, order) for part in (letters, digits)]
    return torch.cat([torch.stack(two, 2) for two in ((letters, digits), again)], 1).flatten(1), again[1]

# %%
guess = {}
for pairs in (6, 24):
    texts, digits = draw(500, pairs)
    own, wanted = one_hot(texts, 36).float(), one_hot(digits, 36)
    for name, key in {"its own symbol": own, "the symbol before": pad(own[:, :-1], (0, 0, 1, 0))}.items():
        answers = causal_attention(200 * own, key, own)[:, 2 * pairs :: 2].argmax(-1)
        print(f"{pairs:2} pairs, the key is {name:17} {100 * (answers == digits).float().mean():6.1f} % right")
    missing = wanted.sum(1, keepdim=True) - wanted.cumsum(1) + wanted  # how often each digit is still to come
    guess[pairs] = 100 * (missing.argmax(-1) == digits).float().mean().item()
    print(f"{pairs:2} pairs, guess the commonest missing digit {guess[pairs]:5.1f} % right")

# %% [markdown]
# With the neighbour in its key, one head solves the task without training. So something must first **bind** each digit to the letter
# before it. (The guess is a strict baseline. It knows which digits are still to come, but not to which letters they belong.)
#
# Can a model *learn* this? We train a small one around your head, for 200 updates. It adds to each input a linear map of the input
# before. The control adds a linear map of the input itself, so both have the same number of weights.

# %%
class Reader(torch.nn.Module):
    def __init__(self, back):
        super().__init__()
        self.embed, self.head, self.back = torch.nn.Embedding(36, 32), torch.nn.Linear(32, 36), back
        self.mix, self.attention = torch.nn.Linear(32, 32, bias=False), rtx.nn.MultiHeadAttention(32, heads=2)

    def forward(self, x):
        h = self.embed(x)
        earlier = pad(h, (0, 0, self.back, 0))[:, : h.shape[1]]  # h, moved to the right by so many positions
        h = h + self.mix(earlier)
        return self.head(h + multi_head(self.attention, h))

# %%
def trained(model):
    optimizer = torch.optim.Adam(model.parameters(), 0.003)
    for _ in range(200):
        inputs, wanted = draw(32, 6)
        loss = torch.nn.functional.cross_entropy(model(inputs)[:, 12::2].flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model

def right(model, pairs):
    inputs, wanted = draw(500, pairs)
    with torch.no_grad():
        return 100 * (model(inputs)[:, 2 * pairs :: 2].argmax(-1) == wanted).float().mean().item()

for back, name in {1: "adds the input before", 0: "adds the input itself"}.items():
    small = [trained(Reader(back)) for _ in range(3)]
    for pairs in (6, 24):
        shares = torch.tensor([right(model, pairs) for model in small])
        print(f"{name}, {pairs:2} pairs: {shares.mean():5.1f} ± {shares.std():3.1f} % right")

# %% [markdown]
# One layer of attention learns the task if something binds, even for four times as many pairs as in training.
#
# **Predict.** Which of the usual models learn it in 800 updates: a GRU, Transformers of one and two layers, an R-Transformer?
#
# `studies/recall_by_content.py` trains them. All have width 32 and get the same batches. Each has the best of three learning rates,
# chosen on other data. "None", "sinusoidal" and "relative" are kinds of positions ([notebook 05](05_encode_position.ipynb)).

# %%
from rtx.lab.studies import chosen_runs

runs = chosen_runs("../studies/recall_by_content.json", "recall")
fig, axes = plt.subplots(1, 2, figsize=(9.5, 4.4), sharey=True)
for ax, (number, title) in zip(axes, {6: "6 pairs, as in training", 24: "24 pairs"}.items()):
    for row, model_runs in enumerate(runs.values()):
        share = [100 * run["test"][-1][f"{number} pairs"][0] for run in model_runs]
        ax.plot(share, [row] * len(share), "o", color=plots.COLOURS[0], alpha=0.7)
    ax.axvline(guess[number], color="0.5", linestyle=":")
    ax.set(title=title, xlabel="right in % (dotted: guess)", xlim=(0, 103))
    ax.set_yticks(range(len(runs)), runs)
axes[0].invert_yaxis()
fig.suptitle("800 updates: R-Transformers learn it with every seed, Transformers of two layers with some", fontsize=11)
plt.show()

# %%
print(f"{'right in % after':44} 200 updates        800 updates   24 pairs, 800 updates   seeds")
for name, model_runs in runs.items():
    scores = 100 * torch.tensor([[r["test"][0]["6 pairs"], r["test"][-1]["6 pairs"], r["test"][-1]["24 pairs"]] for r in model_runs])[..., 0]
    spread = scores.std(0) if len(scores) > 1 else torch.zeros(3)
    print(f"{name:44}", *(f"{m:6.1f} ± {s:4.1f}     " for m, s in zip(scores.mean(0), spread)), f"{len(scores):4}")

# %% [markdown]
# The R-Transformers learn the task with either norm, and they are still right with 24 pairs. Their window of 2 binds, and their
# attention finds. A LocalRNN alone binds, too, but sees only two positions. Transformers with two layers, positions and
# pre-norm learn the task with one seed of three; with 24 pairs the best of these runs has 76 %. No other model is above the guess.
#
# Does this show that recurrence is needed? No: our small model has no recurrence and learns the task, too. A model needs both
# steps, binding and finding. And "not after 800 updates" does not mean "never". For one kind of model we do know that it
# never can: one layer without positions sees a set (section 5), and the set is the same whichever letter a digit belongs to.
#
# ## 7. Look inside the model of the first screen
#
# How does a Transformer bind and find? The arcs of the explorer at the top suggest two steps. (Bind and find
# are called match and copy here, as in the literature.)
#
# 1. **Match** (layer 1). A digit looks at the token before it, its letter. The question mark does the same.
# 2. **Copy** (layer 2). The question mark looks at the digit that carries the same letter, and takes its value.
#
# Arcs show where a head *looks*. To see what it is *good for*, switch it off and count the right answers. We do both for each head,
# on sequences that the model has not seen.

# %%
from copy import deepcopy
from rtx.lab import trace
from rtx.lab.pretrained import pretrained
from rtx.tasks import task_by_name

lookup = pretrained("lookup")
examples = [one for one in task_by_name("look-up").split("test") if len(one.inputs) == 24]  # six pairs, six questions
tokens, targets = (torch.stack(part) for part in zip(*examples))
letter, digit, question = torch.arange(0, 12, 2), torch.arange(1, 12, 2), torch.arange(13, 24, 2)
place = 2 * (tokens[:, question - 1, None] == tokens[:, None, letter]).int().argmax(-1) + 1  # of the right digits

# %%
def right_without(block, head):
    cut = deepcopy(lookup)
    cut.backbone.blocks[block][0].sublayer.output.weight.data.unflatten(1, (2, -1))[:, head] = 0  # this head's part of W^o
    with torch.no_grad():
        return (cut(tokens)[:, question].argmax(-1) == targets[:, question]).float().mean().item()

for block in (0, 1):
    maps = trace(lookup, tokens)[f"backbone.blocks.{block}.0.sublayer.weights"]  # (B, H, T, T)
    for head in range(2):
        match, asks = maps[:, head, digit, letter].mean(), maps[:, head, question, question - 1].mean()
        copy = maps[:, head, question].gather(-1, place[..., None]).mean()
        print(f"layer {block + 1}, head {head + 1}: digit to its letter {match:4.0%}, ? to its letter {asks:4.0%}, "
              f"? to the right digit {copy:4.0%}; right without this head {right_without(block, head):4.0%}")

# %% [markdown]
# Three heads are needed. Both heads of layer 1 match: one for the question marks, the other for the digits. The second head of layer
# 2 copies. Without any of the three, the model is right in 11 to 16 %; a guess among six digits is right in 17 %. The first head of layer 2 looks at the
# letter of the question most of the time. But without this head every answer stays right.
#
# A head that finds the last occurrence of a symbol and copies what followed is called an **induction head** (Olsson et al., 2022).
#
# **Exercise 2** (hard, optional, 15 minutes). Make an induction head by hand. `x` (B, T) are symbols. Return attention weights
# (B, T, T). Row $t$ has weight 1 at the position after the last earlier occurrence of $x_t$, or at $t$ itself if $x_t$ is new.

# %%
def my_induction(x):
    ...  # (B, T, T)

induction = exercises.yours(my_induction, "induction")

# %% [markdown]
# <details><summary>Hint</summary>
#
# A score can have two parts: a large one if the symbol before position $s$ is $x_t$, and a small one that grows with $s$. If you
# multiply the scores by 100, the softmax gives nearly all weight to the largest one.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_induction(x):
#     T = x.shape[1]
#     before = torch.nn.functional.pad(x[:, :-1], (1, 0), value=-1)  # the first position has no symbol before it
#     match = before[:, None, :] == x[:, :, None]  # (B, query, key)
#     scores = 100.0 * (T * match + torch.arange(T))
#     return scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf")).softmax(-1)
# ```
#
# </details>
#
# The usual test: random symbols, then the same symbols again. How often does the head copy the right next symbol?

# %%
for alphabet in (26, 1000):
    half = torch.randint(alphabet, (200, 20))
    twice = torch.cat([half, half], 1)
    copied = twice.gather(1, induction(twice).argmax(-1))
    good = 100 * (copied[:, :-1] == twice[:, 1:]).float().mean(0)
    print(f"{alphabet:4} symbols: first half {good[:19].mean():4.1f} %, second half {good[20:].mean():5.1f} % right (a guess: {100 / alphabet:.1f} %)")

# %% [markdown]
# **Try.** Why is the second half worse with 26 symbols?
#
# <details><summary>Answer</summary>
#
# In 20 draws from 26 symbols, many symbols occur twice. Then the last occurrence may have another follower.
#
# </details>
#
# ## Recap
#
# **How does a position fetch what it needs?** It compares its query with all keys so far, and mixes the values by how well they match.
#
# - Several heads give several mixtures, with the same number of parameters.
# - Without $1/\sqrt{d_k}$, wide heads have many saturated queries at the start. These pass almost no gradient.
# - The mask hides the future. Without it, attention sees a set. With it, a second layer can know the order.
# - To look up by content, something must bind neighbours: a window of 2, a linear map of the input before, or a first layer of
#   attention. Open: what the other models of the study learn with more than 800 updates.
# - Where a head looks does not say what it is good for. Switch it off and measure.
#
# ## Quiz
#
# 1. You mask with 0 instead of $-\infty$. Which position is affected most, the first or the last?
# 2. All keys are equal. What does causal attention return?
# 3. The arcs of a head point at commas. Does the model need this head for commas?
#
# <details><summary>Answers</summary>
#
# 1. The first: all its $T - 1$ hidden keys get a weight. The last position has no hidden key.
# 2. The mean of the values so far, for every query.
# 3. The arcs cannot say. Switch the head off and measure.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Wang et al. (2019), *R-Transformer*, section 3.2; it follows Vaswani et al. (2017), section 3.2. The sum in the paper's Eq. 5 runs to
# an $n$ that is not defined there. It has to be $t$.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | attention, Eq. 5 | $\alpha_i$, $v_i$ | sections 1, 2 | `MultiHeadAttention.weights`, `gather` |
# | heads, Eq. 4 and 6 | $W^q, W^k, W^v, W^o$ | section 3 | `MultiHeadAttention(heads=…)` |
# | the factor in Eq. 5 | $\sqrt{d_k}$ | section 4 | `MultiHeadAttention.scores` |
# | "all the positions in the past" | $h_1, \dots, h_t$ | section 5 | `rtx.nn.causal_mask` |
#
# </details>
#
# **Back:** [What does a window see?](02_slide_a_window.ipynb) · **Index:** [README](../README.md) · **On:**
# [What does each part of the block add?](04_stack_the_block.ipynb)
