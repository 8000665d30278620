# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Split into channels
#
# **Can a recurrent network read phrases, without being told where they begin and end?**
#
# A recurrent network passes a sentence on word by word, each state to the next. MC-RNN keeps several chains at once.
# Each cuts the sentence into blocks at other places, inside a block every state reads all earlier ones, and attention
# chooses among the chains at every word. Here you build it, look at what it chooses, and measure what shortcuts do to
# gradients.
#
# - **You will** find the blocks, build the layer from six equations, train one, and break the paper's bound.
# - **You learn** how wiring alone encodes phrases, what a gradient's path length is, and how to read "channel 2" in a figure.
# - **You need** Python, tensors, a recurrent cell, softmax. [00 start here](00_start_here.ipynb) helps.
# - **Time:** 40 minutes to read and try; the cells run in about 30 seconds.
#
# ## Paper map
#
# Xu et al. (2019), *Modeling Local Dependence in Natural Language with Multi-Channel Recurrent Neural Networks*.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | in-degree (Eq. 1), Figures 1-3 | $m_t^k$, $n$ | section 1 | `MultiChannelRNN.in_degrees` |
# | the cell's input (Eq. 2-3) | $s_{t-1}^k$, $h_t^k$, $W_j$ | section 2 | `MultiChannelRNN.channels` |
# | attention over channels (Eq. 4-6) | $e_t^k$, $\alpha_t^k$ | sections 2, 3 | `trace`: `channel_weights` |
# | path lengths (§5.2) | $d_i(l)$ | section 4 | |
# | HO-RNN, HM-RNN, sizes (Tables 2-5) | | section 5 | `HORNN`, `HMRNN`, recipe `multi30k` |

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots, trace
from rtx.nn.multi_channel import MultiChannelRNN

plots.style()
torch.set_num_threads(1)

# %% [markdown]
# ## 1. Blocks
#
# A block has $n$ nodes; a node reads all earlier nodes of its block. Blocks of a channel join end to end: the last node of
# one is the first of the next. So a block begins every $n - 1$ steps, and there are $n - 1$ ways to place it: as many
# channels. How many nodes does step $t$ of channel $k$ read?
#
# $$m_t^k = (t - k - 1) \bmod (n - 1) + 1 \qquad (1)$$
#
# **Exercise 1** (easy, 5 minutes). Write it, and print the row of channel 2 for $n = 4$.

# %%
def in_degree(t, k, n):
    ...  # Eq. (1)

exercises.in_degree(in_degree)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Python's `%` is never negative for a positive divisor, as the paper's mod.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def in_degree(t, k, n):
#     return (t - k - 1) % (n - 1) + 1
# ```
#
# </details>
#
# **Predict.** Figure 3 of the paper has $n = 4$ and this sentence. At *between* channel 2 is said to join "few and far
# between", at *been* "champions have been", at *Open* "Italian Open". Which $m_t^2$ must stand there?
#
# <details><summary>Answer</summary>
#
# 3, 2 and 1: as many as the phrase has words before the one that ends it.
#
# </details>

# %%
sentence = "Home-grown champions have been few and far between at the Italian Open .".split()
by_equation = MultiChannelRNN(1, block=4).in_degrees(13)
by_text = MultiChannelRNN(1, block=4, phase="text").in_degrees(13)
print(f"{'step, word':15} Eq. 1  §3.1    (channel 2)")
for t in (4, 8, 12):
    print(f"{t:2} {sentence[t - 1]:12} {by_equation[t - 1, 1]:3} {by_text[t - 1, 1]:6}")

# %% [markdown]
# The paper says it twice, in two different ways. The text of §3.1 lets channel $k$ begin at step $2 - k$, Eq. 1 at $k$. Up to $n = 3$
# both give the same channels; at $n = 4$ channels 2 and 3 change places. The figures follow Eq. 1, and so does `rtx`
# (`phase="text"` is the other). A trained model does not depend on it, but your reading of Figure 3 does. The section also counts $n$
# channels where Table 1 has $n - 1$.

# %%
explore.channels()

# %% [markdown]
# **Try.** At every step, each number from 1 to $n - 1$ stands in one channel. Which channel joins "the Italian Open"? Which $n$
# gives "Home-grown champions have been" a block of its own?
#
# ## 2. One step
#
# The cell reads the mean of its predecessors, each through a matrix that depends on the distance alone. All
# channels share all parameters.
#
# $$s_{t-1}^k = \frac{1}{m_t^k} \sum_{j=1}^{m_t^k} W_j h_{t-j}^k \quad (2) \qquad h_t^k = f(s_{t-1}^k, x_t) \quad (3)$$
#
# $$e_t^k = r^\top \tanh(V [h_t^k; x_t]) \quad (6) \qquad \alpha_t = \text{softmax}_k(e_t) \quad (5) \qquad
# h_t = \sum_k \alpha_t^k h_t^k \quad (4)$$
#
# Only $h_t$ goes to the next layer. It never comes back into the channels: their chains stay apart.

# %%
def channel(x, layer, k, n):
    """h^k of one channel, (T, H), for x (T, D) and the plain cell; states before the start are zero."""
    states = {}
    for t in range(1, len(x) + 1):
        m = (t - k - 1) % (n - 1) + 1  # Eq. (1)
        past = [layer.weight_block[j - 1] @ states[t - j] for j in range(1, m + 1) if t > j]
        s = sum(past) / m if past else x.new_zeros(layer.d_hidden)  # Eq. (2)
        new = layer.weight_ih_l0 @ x[t - 1] + layer.bias_ih_l0 + layer.weight_hh_l0 @ s + layer.bias_hh_l0
        states[t] = torch.tanh(new)  # Eq. (3)
    return torch.stack(list(states.values()))

_ = torch.manual_seed(0)
layer = MultiChannelRNN(5, 6, block=4, cell="rnn", mapping_start="uniform")
x = torch.randn(9, 5)
h = torch.stack([channel(x, layer, k, 4) for k in (1, 2, 3)], 1)  # (T, C, H)
torch.testing.assert_close(h, layer.channels(x[None])[0])
print("Eq. 1-3 and rtx agree:", tuple(h.shape))

# %% [markdown]
# The mean divides by $m$ even where predecessors lie before the start: the first steps are damped, here down to a third.
# The paper does not say whether that is meant; `start="clipped"` counts only those that exist.
#
# **Exercise 2** (easy, 5 minutes). Scores (B, T, C) of C channels and their states (B, T, C, H), each H wide, to
# $h_t$, (B, T, H): Eq. 4 and 5.

# %%
def join_channels(e, h):
    ...  # Eq. (5), then Eq. (4)

exercises.join_channels(join_channels)

# %% [markdown]
# <details><summary>Hint</summary>
#
# The weights of a step sum to 1 over the channels, the last axis of `e`. To multiply whole states they need one more axis.
# Which axis of the product does Eq. 4 sum over?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def join_channels(e, h):
#     return (e.softmax(-1)[..., None] * h).sum(2)
# ```
#
# </details>
#
# With it, the whole layer:

# %%
both = torch.cat([h, x[:, None].expand(-1, 3, -1)], -1)
e = layer.attention_r(torch.tanh(layer.attention_v(both))).squeeze(-1)  # Eq. (6)
alpha = e.softmax(-1)  # Eq. (5)
torch.testing.assert_close((alpha[..., None] * h).sum(1), layer(x[None])[0][0])  # Eq. (4)

pair = MultiChannelRNN(5, 6, block=2, cell="rnn")
pair(x[None])[0].sum().backward()
dead = [w for w in pair.parameters() if not w.grad.any()]
print("Eq. 1-6 and rtx agree; n = 2:", sum(w.numel() for w in dead), "of", sum(w.numel() for w in pair.parameters()),
      "parameters get no gradient")

# %% [markdown]
# With $n = 2$ there is one channel and nothing to choose: a softmax over one number is 1, and $V$ and $r$ are dead weight. With
# $W_1$ at its start, the identity, that layer is a plain recurrent network: our yardstick below.
#
# ## 3. What does it choose?
#
# We train one layer on the words of the Python reference manual, which ships with Python (the paper has Gigaword's
# headlines). The 370 commonest words stay, the rest is `<unk>`; the cell is a GRU, which learns fastest here.

# %%
from rtx.tasks import task_by_name
from rtx.tasks.loader import loader

task = task_by_name("words", least=30, context=8, scored=32)
words = task.texts[0]
_ = torch.manual_seed(1)
model = rtx.LanguageModel(rtx.MCRNN(24, block=4, cell="gru"), task.inputs)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
batches = loader(task, "train", 32)
for epoch in range(4):
    batches.batch_sampler.set_epoch(epoch)
    for batch in batches:
        loss = task.loss(task.predict(model, batch), batch)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        optimizer.step()

# %%
test = next(iter(loader(task, "test", 200)))
with torch.no_grad():
    perplexity = task.score(task.predict(model.eval(), test), test)
print("perplexity below 20:", perplexity < 20, "  and below half of word frequencies alone:", perplexity < task.baseline() / 2)
explore.channels(model, words, "the value of the expression is not a list of the class , and so on")

# %% [markdown]
# **Try.** Find a word where one channel has nearly all of the weight. Is what it joins a phrase?
#
# It often looks like one; in the run stored here a channel stays dark for a whole block. But mind how easy that is: at every step *some* channel has the largest weight, and whatever it
# joins, we are quick to call a phrase. So let us ask sharper questions.
#
# **Predict.** Put one more word in front of the sentence. Which channel takes over what channel $k$ has chosen?
#
# <details><summary>Answer</summary>
#
# Channel $k + 1$, and channel 1 what channel $n - 1$ had: $m_t^k$ depends on $t - k$ alone, and the channels share their
# parameters. "Channel 2" in a figure is nothing that the model knows. What stays is the number of words joined, $m$.
#
# </details>

# %%
def weights_by_words(text):
    """Channel weights of a text, (T, 3), in the order of the words joined: after 1, 2 or 3 others."""
    found = trace(model, torch.tensor([words.encode(text)]))
    place, alpha = "backbone.layers.0.", found["backbone.layers.0.channel_weights"][0]
    return alpha.gather(1, found[place + "in_degrees"].argsort(1))

text = "the value of the expression is not a list of the class , and so on"
plain, shifted = weights_by_words(text), weights_by_words("if " + text)[1:]
fig, axes = plt.subplots(2, 1, figsize=(6.4, 3), sharex=True)
for ax, alpha, title in zip(axes, (plain, shifted), ("the sentence", "with “if” in front")):
    image = ax.imshow(alpha.T, aspect="auto", cmap="Blues", vmin=0, vmax=1)
    ax.set(title=title, yticks=range(3), yticklabels=[1, 2, 3], ylabel="words before")
axes[1].set_xticks(range(len(text.split())), text.split(), rotation=40, ha="right")
fig.colorbar(image, ax=axes, label="channel weight")
fig.suptitle("a word more in front: the weights stay with the number of words joined", fontsize=11)
plt.show()
same = (plain.argmax(1) == shifted.argmax(1))[4:]
print("the same choice at more than half of the words from the fifth on:", bool(same.float().mean() > 0.5))

# %% [markdown]
# Second question: does the *choice* matter, or would any mixture do? Multiply the scores of the trained model by 0, so that
# all channels weigh the same, and by -1, so that the channel liked best becomes the one liked least.
#
# **Predict.** By how much does the perplexity rise in each case?
#
# <details><summary>Answer</summary>
#
# With all channels alike, by less than a tenth: most of what a word needs is in every channel. With the order reversed, by
# more: what the model likes least is what its last layer has met least.
#
# </details>

# %%
scores = model.backbone.layers[0].attention_r.weight
kept = scores.detach().clone()
try:
    with torch.no_grad():
        for factor, name in ((0, "all channels alike"), (-1, "the least liked first")):
            scores.copy_(factor * kept)  # e = r·tanh(…): the factor is that of the scores
            changed = task.score(task.predict(model, test), test)
            print(f"{name}: worse: {changed > perplexity}; by more than a tenth: {changed > 1.1 * perplexity}")
finally:  # an interrupted cell, too, leaves the model as it was
    scores.data.copy_(kept)

# %% [markdown]
# The weights carry information, but little: without any choice this model is less than a tenth worse. That the weights
# follow *phrases* is yet another claim, which would take annotated phrases to test. The paper shows one sentence. Its
# tables test whether the whole model is better; [15 weigh the evidence](15_weigh_the_evidence.ipynb) has our numbers
# beside theirs.
#
# ## 4. Shortcuts for gradients
#
# From step $t$ back to $t - l$ a plain network has $l$ edges. A block is one edge long, whatever it spans. §5.2 says the
# shortest path has at most $\lfloor l / (n-1) \rfloor + 1$ edges. Let the computer look, in every channel:

# %%
def shortest_path(t, k, n, distance):
    """Edges from step t back over a distance, in channel k: tries all of them."""
    edges = {t: 0}
    for step in range(t, t - distance, -1):
        for s in range(max(step - ((step - k - 1) % (n - 1) + 1), t - distance), step):
            edges[s] = min(edges.get(s, distance), edges[step] + 1)
    return edges[t - distance]

n, t = 4, 41
print("l    best  worst  the paper's bound")
for distance in (1, 2, 3, 4, 5, 6, 8, 11):
    found = [shortest_path(t, k, n, distance) for k in range(1, n)]
    bound = distance // (n - 1) + 1
    print(f"{distance:2} {min(found):6} {max(found):6} {bound:8}", "  broken" * (max(found) > bound))

# %% [markdown]
# At $n = 4$ and $l = 2$ the bound promises one edge. If a block ends in between, it takes two. As attention joins the channels,
# *some* channel always keeps the promise, at times with one edge to spare: the best one needs $\lceil l / (n-1) \rceil$. The idea
# stands; the formula is for neither the best channel nor the worst.
#
# **Exercise 3** (medium, 10 minutes). Write the worst channel's path length for a distance $l \ge 1$.

# %%
def longest_path(length, n):
    ...

exercises.longest_path(longest_path)

# %% [markdown]
# <details><summary>Hint</summary>
#
# The unluckiest step begins just behind a block's end: one edge for a single step, then whole blocks, then the rest.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def longest_path(length, n):
#     return (length - 2) // (n - 1) + 2
# ```
#
# </details>
#
# **Predict.** With each edge a gradient of an untrained network shrinks by about the same factor. How will the gradient
# over distance look for one channel with $n = 7$?
#
# <details><summary>Answer</summary>
#
# Like stairs: about level as long as the path has the same number of edges, a step down where it takes one more.
#
# </details>

# %%
def gradient_back(n, farthest=24):
    """The gradient of channel 1's last state, over the distance, as a share of that at distance 0. Mean of eight layers."""
    shares = []
    for seed in range(8):
        _ = torch.manual_seed(seed)
        layer = MultiChannelRNN(16, block=n, cell="rnn")
        T = 1 + 6 * (n - 1) * (farthest // (n - 1))  # a step that ends a block of channel 1
        x = torch.randn(1, T, 16).repeat(16, 1, 1).requires_grad_()
        last = layer.channels(x)[:, -1, 0]  # (16, 16): one copy of the sequence for each number of the state
        (gradient,) = torch.autograd.grad(last.diagonal().sum(), x)
        size = gradient.square().sum((0, 2)).sqrt().flip(0)[: farthest + 1]
        shares.append(size / size[0])
    return torch.stack(shares).log().mean(0).exp()  # the geometric mean

# %%
measured = {n: gradient_back(n) for n in (2, 4, 7)}
fig, ax = plt.subplots(figsize=(6, 2.8))
ax.semilogy(measured[7], label="n = 7, channel 1")
ax.semilogy(measured[2], "k:", label="n = 2, a plain RNN")
ax.set(xlabel="distance l (steps)", ylabel="gradient, share of that at l = 0", xticks=range(0, 25, 6))
ax.set(title="at n = 7 the gradient comes down in stairs of six steps")
ax.legend(frameon=False)
plt.show()
for size in (4, 7):
    times = measured[size][24] / measured[2][24]
    print(f"n = {size}: over 24 steps more than 100 times the plain network's:", bool(times > 100))

# %% [markdown]
# So the shortcuts do what they should: less vanishing. They do not end it. Every edge still passes the cell, and inside a
# block a near word weighs only $1/m$: at $l = 1$ large blocks have *less* gradient than the plain network.
#
# ## 5. Two relatives, and the price
#
# HO-RNN feeds the last $N$ states into every next one, always: no blocks, no channels, no choice. HM-RNN learns where
# segments end: at each step a layer updates, copies its state unchanged, or is flushed.

# %%
_ = torch.manual_seed(0)
higher, hierarchical = rtx.HORNN(16, order=3, cell="rnn"), rtx.HMRNN(16, layers=3)
found = trace(hierarchical, torch.randn(1, 30, 16))
fig, (ax, map_) = plt.subplots(1, 2, figsize=(7, 2.5))
inputs = torch.randn(1, 40, 16).repeat(16, 1, 1).requires_grad_()
(gradient,) = torch.autograd.grad(higher(inputs)[:, -1].diagonal().sum(), inputs)
size = gradient.square().sum((0, 2)).sqrt().flip(0)[:25]
for name, line in {"HO-RNN, N = 3": size / size[0], "MC-RNN, n = 4": measured[4].mean(0), "RNN": measured[2][0]}.items():
    ax.semilogy(line, label=name)
ax.set(xlabel="distance l (steps)", ylabel="gradient, share of l = 0", title="HO-RNN sums, MC-RNN averages")
ax.legend(frameon=False, fontsize=8)
operations = map_.imshow(found["operations"][0].T, aspect="auto", cmap="cividis", vmin=0, vmax=2, extent=(0.5, 30.5, 3.5, 0.5))
map_.set(yticks=[1, 2, 3], xlabel="step", ylabel="layer", title="HM-RNN: what each layer does")
fig.colorbar(operations, ax=map_, ticks=[0, 1, 2]).ax.set_yticklabels(["update", "copy", "flush"])
plt.show()
copies, states = found["operations"][0, 1:] == 1, found["states"][0]
print("where a layer copies, its state stays bit for bit:", bool((states[1:][copies] == states[:-1][copies]).all()))

# %% [markdown]
# Both are untrained here. HO-RNN's gradients are larger because its products are summed, not averaged; in exchange it has one more matrix for each
# order. What does MC-RNN cost? The paper's Table 2 says 25 M parameters for the baseline and 29 M with three channels, and the
# text "almost the same time cost". Count the one, time the other.

# %%
import time

def count(*networks):
    return sum(p.numel() for network in networks for p in network.parameters())

baseline = count(*(torch.nn.LSTM(256, 256, 2) for _ in range(2)))  # encoder and decoder
for mapping in ("shared", "per-gate"):
    more = count(*(rtx.MCRNN(256, layers=2, mapping=mapping) for _ in range(2))) - baseline
    print(f"W_j {mapping:8}: {more / 1e6:.1f} M more than LSTM; the table has 4 M more")

def seconds(network, x=torch.randn(16, 50, 256)):
    start = time.process_time()
    for _ in range(3):
        network(x)[0].sum().backward()
    return time.process_time() - start

channels, lstm = MultiChannelRNN(256), torch.nn.LSTM(256, 256, batch_first=True)
ratios = sorted(seconds(channels) / seconds(lstm) for _ in range(3))
print(f"forward and backward on one core: {ratios[1]:.0f} × the time of torch's LSTM")

# %% [markdown]
# One $W_j$ for all gates, as Eq. 2 has it, gives 1.3 M, not 4 M; one for each gate comes near. The paper does not say. Nor
# does it measure time: three channels step the cell three times, with the input's part shared, and the $W_j$ come on top. On
# hardware with room to spare, channels in parallel may hide that cost; on one core they do not.
#
# ## Recap
#
# - $n - 1$ channels place blocks of $n$ at every offset, so each step has one channel for each number of words to join.
# - Channels share all parameters: a channel's number means nothing by itself, the number of words it joins does.
# - Paths: $\lceil l/(n-1) \rceil$ in the best channel, $\lfloor (l-2)/(n-1) \rfloor + 2$ in the worst; the paper's bound fails for some.
# - Shorter paths are seen in gradients as stairs. The price, for small $n$, is a little more than $n - 1$ times
#   the work ([12](12_make_it_fast.ipynb) counts it).
#
# **Quiz.** 1. Why can $m_t^k$ never be 0? 2. Would you rather have $n = 20$ than $n = 4$ for a language model? 3. Why does $h_t$ not
# feed the channels at $t + 1$?
#
# <details><summary>Answers</summary>
#
# 1. A block's first node is the last one of the block before, where it has $n - 1$ predecessors. 2. Gradients would reach farther, but
# there would be 19 channels to compute, 19 matrices $W_j$, and near words would drown in a mean of up to 19; the paper's best is
# $n = 4$. 3. Then every channel would see every block: the channels would no longer stand for different cuts.
#
# </details>
#
# **Back:** [Convolve or recur](07_convolve_or_recur.ipynb) · **Index:** [README](../README.md) · **On:**
# [Add and multiply](09_add_and_multiply.ipynb)
