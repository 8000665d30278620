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
# Each letter has a digit. The question `f?` asks for the digit of `f`, and a small trained [Transformer](../docs/glossary.md#transformer) answers. In the living
# version, change the text. Then switch off one head after the other.

# %%
from rtx.lab import explore

explore.lookup()

# %% [markdown]
# A **token** is a letter, a digit or `?`. **Attention** lets each token take information from itself and from earlier tokens.
# The model has two layers, one after the other. Each layer has two **heads**; a head is one attention with its own weights. An arc joins a token to an earlier token that it reads: above the tokens for layer 1, below them for layer 2. In JupyterLab and on
# the website the picture is alive: you type pairs and switch heads off.
#
# - **You will** compute attention by hand, write a head that cannot see the future, and look inside the model above.
# - **You learn** what queries, keys and values are, what $\sqrt{d_k}$ and the mask do, and which models learn to look things up.
# - **You need** PyTorch tensors and the softmax. [Notebook 02](02_slide_a_window.ipynb) helps.
# - **Time:** 50 minutes with the exercises. The cells run in about 20 seconds.
#
# ## 1. Three positions, by hand
#
# How does a position choose where to look? It makes three vectors from its input $h$. Its **query** says what it looks for.
# Its **key** says what it offers. Its **value** is what a position that looks at it takes. Here are three positions with two
# numbers each.

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
# Read the last line. The query (1, 1) has the products 1, 2 and 2 with the three keys. Divided by $\sqrt 2$, they are the
# scores. The softmax turns the scores into weights with sum 1. The output is the weighted mean of the values.
#
# **Predict.** We multiply the query of position 3 by 10. What happens to its weights?
#
# <details><summary>Answer</summary>
#
# All scores become ten times larger. Keys 2 and 3 get nearly 0.5 each, and key 1 gets nearly 0.
#
# </details>
#
# ## 2. Write the head
#
# In general, position $t$ compares its query with all keys up to its own. This is Eq. 5 of the [R-Transformer](../docs/glossary.md#r-transformer) paper:
#
# $$u_t = \sum_{i=1}^{t} \alpha_i v_i, \qquad \alpha_i = \frac{\exp(\langle q_t, k_i \rangle / \sqrt{d_k})}
# {\sum_{j=1}^{t} \exp(\langle q_t, k_j \rangle / \sqrt{d_k})}$$
#
# Here $d_k$ is the **width** of queries and keys: how many numbers they have. In a layer, $q_t = W^q h_t$, $k_t = W^k h_t$ and
# $v_t = W^v h_t$ (Eq. 6).
#
# **Exercise 1** (medium, 10 minutes). Write Eq. 5 for $B$ sequences of $T$ positions at once. `q` and `k` have the shape
# (B, T, K), so $d_k = K$. `v` is (B, T, V), because values may have another width. Before the softmax, replace the scores of the future by $-\infty$, because $e^{-\infty} = 0$.

# %%
def my_causal_attention(q, k, v):
    ...  # (B, T, V)

causal_attention = exercises.yours(my_causal_attention, "causal_attention")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `q @ k.mT` is (B, T, T): a row for each query, a column for each key. `triu` selects the future, and `masked_fill` replaces it.
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
# When is one weighted mean not enough? Four names have a number each: Ann 1, Bob 2, Cat 3, Dan 4. We ask for two names at once: the query
# is the sum of their keys.
#
# **Predict.** Can you tell from the answer whether we asked for Ann and Dan, or for Bob and Cat?
#
# <details><summary>Answer</summary>
#
# No. The answer is the mean of two numbers, and $1 + 4 = 2 + 3$. Two heads can ask for one name each, and return two answers.
#
# </details>

# %%
names, keys, numbers = ["Ann", "Bob", "Cat", "Dan"], torch.eye(4), torch.tensor([1.0, 2.0, 3.0, 4.0])

def ask(query):
    return (20 * keys @ query).softmax(0) @ numbers  # 20: large scores, so that other names get no weight

for a, b in ((0, 3), (1, 2)):
    print(f"{names[a]} and {names[b]}: one head {ask(keys[a] + keys[b]):.2f}, two heads {ask(keys[a]):.2f} and {ask(keys[b]):.2f}")

# %% [markdown]
# A layer with $H$ heads splits its $D$ numbers: each head gets $d_k = D / H$. The matrix $W^o$ mixes the outputs of the heads
# (Eq. 4). We build this layer around your head, and compare it with the layer in `rtx`, this project's package.

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
    print(f"{H} heads of width {8 // H}: {size} parameters; largest difference from rtx: {apart:.5f}")

# %% [markdown]
# More heads cost no parameters, but each head is narrower.
#
# ## 4. Why divide by $\sqrt{d_k}$?
#
# A product of query and key is a sum of $d_k$ terms. If their numbers are independent and random with mean 0 and variance 1,
# the product has variance $d_k$. So wide heads get large scores, and the softmax makes sharp choices. We call a query
# **saturated** if one key has more than 99 % of the weight.
#
# **Predict.** There are 50 random keys, $d_k = 64$, and no scaling. Which share of the queries is saturated?

# %%
def measured(width, scaled, queries=500, keys=50):
    """Scores, which queries are saturated, and the size of the gradient that arrives at each query."""
    q = torch.randn(queries, 1, width, requires_grad=True)
    k, v = torch.randn(queries, keys, width), torch.randn(queries, keys)
    scores = (q @ k.mT).squeeze(1) / (width**0.5 if scaled else 1)
    weights = scores.softmax(-1)
    gradient = torch.autograd.grad((weights * v).sum(), q)[0].norm(dim=(1, 2))
    return scores.std().detach(), weights.amax(-1) > 0.99, gradient

widths = (4, 16, 64, 256)
draws = {(scaled, width): [measured(width, scaled) for _ in range(5)] for scaled in (False, True) for width in widths}

# %%
print("5 draws             typical     saturated       median size of the gradient at a query")
print("scaling     width    score     queries in %      saturated queries    all other queries")
saturated = {}
for (scaled, width), found in draws.items():
    scores, full, gradient = (torch.stack(part) for part in zip(*found))
    saturated[scaled, width] = share = 100 * full.float().mean(1)
    line = f"{'1/√d_k' if scaled else 'none':8} {width:8} {scores.mean():8.1f} {share.mean():9.1f} ± {share.std():3.1f}"
    print(line, *(f"{gradient[which].median():18.2f}" if which.any() else f"{'none':>18}" for which in (full, ~full)))

# %%
fig, ax = plt.subplots(figsize=(6, 2.8))
for scaled, colour in ((False, plots.COLOURS[1]), (True, plots.COLOURS[0])):
    share = torch.stack([saturated[scaled, width] for width in widths])
    ax.errorbar(widths, share.mean(1), share.std(1), fmt="o-", color=colour, label="scaled" if scaled else "not scaled")
ax.set(xscale="log", xlabel="width $d_k$", ylabel="saturated queries (%)", title="random queries and keys: without scaling, many queries of wide heads saturate")
ax.set_xticks(widths, widths)
_ = ax.minorticks_off(), ax.legend(frameon=False)
plt.show()

# %% [markdown]
# Why divide? Without scaling, the share of saturated queries grows with the width, and these queries get almost no gradient.
# The other queries get a larger gradient than with scaling, and its size depends on the width. With scaling, no query is
# saturated, and the gradient is about the same at all widths. All this is for random queries and keys.
#
# ## 5. What the mask hides
#
# A model that predicts the next symbol must not see it. An output that depends on a later input is a **leak**. The function
# `xray` measures how much each output changes with each input. Here each row is divided by its sum.

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
    print(f"{name}: {len(seen.leaks)} leaks of {12 * 11 // 2} possible ones")
fig.colorbar(image, ax=axes, shrink=0.8, label="share of the row")
fig.suptitle("with the mask, no output depends on a later input (white)", fontsize=11)
plt.show()

# %% [markdown]
# Does attention know the order of its inputs? We reverse the past of the last position. How much does its output change?
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
        changed = f"{100 * min(changes):.0f} to {100 * max(changes):.0f} % of its norm"
        print(f"{name + ',':12} layers: {layers}; the last output changes by {changed} (5 random models)")

# %% [markdown]
# Without a mask and without marks of position, attention sees a **set**: which inputs there are and in which proportions, but not where.
# With the mask, each output of a single layer sees the set of the inputs so far. Two layers with the mask see more. Take the texts `ab` and
# `ba`, and the first layer's output at the letter `a`. In `ab` it depends on `a` only. In `ba` it depends on both letters. The
# second layer reads the outputs of the first, so it can know which letter came first.
#
# ## 6. Who can look things up?
#
# A text has six letters, each with a digit. Then the same pairs come again in another order. Which digit follows each letter?
#
# ```
# k7d2x9a0m4c2 d2c2k7a0x9m4
#              ^ ^ ^ ^ ^ ^   the digits after these letters are asked for
# ```
#
# The letter `d` can find the earlier `d` by its key. But the answer is at the position *after* it. We build a head by hand.
# Each position's query and value are its own symbol. We try two keys: its own symbol, and the symbol before it. With the
# second key, the position of the digit `7` has the key `k`.
#
# We compare with a **guess** that knows which digits are still to come, but not their letters. It names the
# most frequent of these digits.

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
        answers = causal_attention(200 * own, key, own)[:, 2 * pairs :: 2].argmax(-1)  # 200: sharp choices
        print(f"{pairs:2} pairs, the key is {name:17} {100 * (answers == digits).float().mean():6.1f} % right")
    missing = wanted.sum(1, keepdim=True) - wanted.cumsum(1) + wanted  # how often each digit is still to come
    guess[pairs] = 100 * (missing.argmax(-1) == digits).float().mean().item()
    print(f"{pairs:2} pairs, a guess                           {guess[pairs]:5.1f} % right")

# %% [markdown]
# With the symbol before as the key, one head solves the task without training. So this solution takes two steps: shifting the keys, then attention. First, something
# **binds** each digit to the letter before it. Then attention **finds** the digit that is bound to the letter.
#
# Can a model *learn* this? We train a small model around your head, for 200 [updates](../docs/glossary.md#update). Before attention, each position multiplies
# the previous position's input by a learnt matrix, and adds the result to its own input. The [control](../docs/glossary.md#control) multiplies the position's
# own input instead.

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

for back, name in {1: "adds the previous input", 0: "adds its own input"}.items():
    small = [trained(Reader(back).double()) for _ in range(3)]  # 64 bits: every processor learns the same
    for pairs in (6, 24):
        shares = torch.tensor([right(model, pairs) for model in small])
        print(f"{name:23}, {pairs:2} pairs: {shares.mean():5.1f} ± {shares.std():3.1f} % right")

# %% [markdown]
# With the previous position's input, one layer of attention learns the task. This model is right even with 24 pairs.
#
# **Predict.** Which of the usual models learn it in 800 updates: a [GRU](../docs/glossary.md#gru-lstm), Transformers of one and two layers, an R-Transformer?
#
# `studies/recall_by_content.py` trains them. All have width 32. Each has the [learning rate](../docs/glossary.md#learning-rate) that was best on [validation data](../docs/glossary.md#validation-data),
# out of 0.001, 0.003 and 0.01. The R-Transformer has one [block](../docs/glossary.md#block) with three parts: a **LocalRNN**,
# attention, and a feed-forward network. The LocalRNN reads the last two positions. "LocalRNN alone" has no attention. "Sinusoidal" and "relative" are ways to
# mark positions ([notebook 05](05_encode_position.ipynb)). [Post-norm](../docs/glossary.md#post-norm-pre-norm) and pre-norm are two places of a normalisation
# ([notebook 04](04_stack_the_block.ipynb)).

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
    ax.set_yticks(range(len(runs)), [name.replace("Transformer, ", "Tr., ").replace("R-Tr., ", "R-Transformer, ") for name in runs])
axes[0].invert_yaxis()
fig.suptitle("after 800 updates, 6 pairs: R-Transformers solve it with all seeds, Transformers (Tr.) with few", fontsize=11)
plt.show()

# %%
from pathlib import Path
from rtx.evidence.ledger import read_results

print(f"{'right in % after 800 updates, one number per seed':48} 6 pairs       24 pairs    parameters   rate")
for name, seeds in runs.items():
    scores = [" ".join(f"{100 * run['test'][-1][pairs][0]:3.0f}" for run in seeds) for pairs in ("6 pairs", "24 pairs")]
    print(f"{name:44} {scores[0]:>14} {scores[1]:>14} {seeds[0]['parameters']:10,} {seeds[0]['rate']:9}")
print(f"{'a guess':44} {guess[6]:6.0f} {guess[24]:14.0f}")
(first,) = read_results("look-up", Path("../results"))  # an epoch has 64,000 sequences, an update 64
print(f"\nthe Transformer of the first screen: {first.validation:.0f} % right for the first time in its {first.epoch}th thousand of updates")

# %% [markdown]
# The R-Transformers learn the task with every [seed](../docs/glossary.md#seed). At the chosen rates, two kinds of Transformers learn it with one seed of three: two layers,
# pre-norm, with sinusoidal or [relative positions](../docs/glossary.md#relative-positions). With 24 pairs, these two runs are much worse. All other runs are below the
# guess.
#
# Does this show that recurrence is needed? No: our small model has no recurrence and learns the task. And "not after 800
# updates" is not "never". The Transformer of the first screen also has two layers. In a similar task, one run had all
# validation answers right for the first time after 4,000 to 5,000 updates (the last line of the table).
#
# One layer of attention that gets only each position's own symbol can never solve the task. Let two digits of the first half
# change places. Such a layer sees the same set of symbols, but the right answers are different.
#
# ## 7. Look inside the model of the first screen
#
# How does the trained Transformer of the first screen bind and find? It has relative positions. Its texts have a `?` in place of
# the digit that is asked for: `d?`, not `d2`. The pictures suggest two steps:
#
# 1. **Bind** (layer 1). Digits and question marks look at the token before them, their letter.
# 2. **Find** (layer 2). The question mark looks at the digit of the same letter, and takes its value.
#
# This is where heads *look*. To see what a head is *good for*, switch it off and count the right answers.
#
# **Predict.** Which of the four heads does the answer need?

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

def right_answers(model):
    with torch.no_grad():
        return f"{100 * (model(tokens)[:, question].argmax(-1) == targets[:, question]).float().mean():4.0f} %"

guessed = tokens[:, 1:12:2][:, torch.randint(6, (6,))]  # a guess: one of the six digits
print(f"{len(tokens)} new sequences of six pairs and six questions; all heads: {right_answers(lookup)} right")
print(f"a guess, one of the six digits: {100 * (guessed == targets[:, question]).float().mean():.0f} % right")

# %%
def without(block, head):
    cut = deepcopy(lookup)
    cut.backbone.blocks[block][0].sublayer.output.weight.data.unflatten(1, (2, -1))[:, head] = 0  # this head's part of W^o
    return cut

print("                  mean weight (%) of                                  right without")
print("                  digit to its letter  ? to its letter  ? to the digit   this head")
for block in (0, 1):
    maps = trace(lookup, tokens)[f"backbone.blocks.{block}.0.sublayer.weights"]  # (B, H, T, T)
    for head in range(2):
        binds, asks = maps[:, head, digit, letter].mean(), maps[:, head, question, question - 1].mean()
        finds = maps[:, head, question].gather(-1, place[..., None]).mean()
        columns = "".join(f"{100 * weight:17.0f}" for weight in (binds, asks, finds))
        print(f"layer {block + 1}, head {head + 1} {columns}       {right_answers(without(block, head))}")

# %% [markdown]
# Three heads are needed: without any one of them, the model is worse than naming one of the six digits at random (24 %). In
# layer 1, head 1 binds question marks to letters, and head 2 binds digits. In layer 2, head 2 finds the right digit. In head 1
# of layer 2, the question mark mostly looks at its letter. But with this head off, the answers stay right.
#
# A head that finds an earlier occurrence of a symbol and copies what followed is called an **induction head** (Elhage et al.,
# 2021; Olsson et al., 2022).
#
# **Exercise 2** (hard, optional, 15 minutes). Make an induction head by hand. `x` (B, T) are symbols. Return attention weights
# (B, T, T). In row $t$, find the last earlier occurrence of $x_t$. The position after it gets weight 1. If $x_t$ is new,
# $t$ itself gets weight 1.

# %%
def my_induction(x):
    ...  # (B, T, T)

induction = exercises.yours(my_induction, "induction")

# %% [markdown]
# <details><summary>Hint</summary>
#
# A score can have two parts: $T$ if the symbol before position $s$ is $x_t$, and $s$ itself. Then the right key has the
# largest score, at least 1 more than any other; if $x_t$ is new, this is $t$. Multiply the scores by 100, so that the right key gets all weight.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_induction(x):
#     T = x.shape[1]
#     before = torch.nn.functional.pad(x[:, :-1], (1, 0), value=-1)  # the first position has no symbol before it
#     found = before[:, None, :] == x[:, :, None]  # (B, query, key)
#     scores = 100.0 * (T * found + torch.arange(T))
#     return scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf")).softmax(-1)
# ```
#
# </details>
#
# The usual test repeats random symbols. How often does the head copy the right next symbol?

# %%
for alphabet in (26, 1000):
    half = torch.randint(alphabet, (200, 20))
    twice = torch.cat([half, half], 1)
    copied = twice.gather(1, induction(twice).argmax(-1))
    good = 100 * (copied[:, :-1] == twice[:, 1:]).float().mean(0)  # at positions 1 to 39
    halves = f"first half {good[:19].mean():4.1f} %, second half {good[20:].mean():5.1f} % right"
    print(f"{alphabet:4} symbols: {halves} (a guess: {100 / alphabet:.1f} %)")

# %% [markdown]
# With 26 symbols, many occur twice in 20 draws. Then another symbol may follow the last occurrence.
#
# ## Recap
#
# **How does a position fetch what it needs?** It compares its query with all keys so far, and takes a weighted mean of the
# values.
#
# - Several heads give several means, with the same number of parameters.
# - Without $1/\sqrt{d_k}$, many random queries of wide heads are saturated. They get almost no gradient.
# - The mask hides the future. Without the mask, attention sees a set. With the mask, a second layer can know the order.
# - Two steps are enough for look-up: bind and find. An R-Transformer of window 2 learnt the task with every seed, and so did a layer that
#   also reads the previous input. Of 18 runs of Transformers with two layers at chosen rates (at most 0.01), two learnt the task in 800
#   updates.
# - Where a head looks does not say what it is good for. Switch it off and measure.
#
# ## Quiz
#
# 1. You mask with 0 instead of $-\infty$. Which position is affected most, the first or the last?
# 2. All keys are equal. What does [causal](../docs/glossary.md#causal) attention return?
# 3. A head looks at commas. Does this show that the model needs the head to handle commas?
#
# <details><summary>Answers</summary>
#
# 1. The first: its $T - 1$ hidden keys get a weight. The last position has no hidden keys.
# 2. The mean of the values so far, for every query.
# 3. No. Switch the head off and measure.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Wang et al. (2019), *R-Transformer*, section 3.2; it follows Vaswani et al. (2017), section 3.2. In the paper's Eq. 5, the
# sums run to an $n$ that is not defined there. We write $t$, because the paper attends to "all the positions in the past".
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
# **Back:** [What does a window see?](02_slide_a_window.ipynb) · **Index:** [README](../README.md) · **Words:**
# [glossary](../docs/glossary.md) · **On:** [What does each part of the block add?](04_stack_the_block.ipynb)
