# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Can a recurrent network read phrases?
#
# A recurrent network reads a sentence word by word and passes a state on. MC-RNN (multi-channel RNN, Xu et al. 2019) passes on
# several states side by side, in **channels**. Each channel divides the sentence into **blocks**, and the blocks of each channel begin at
# different words. Inside a block, a state reads all earlier states of the block directly: it **joins** these words. The explorer
# draws the channels for blocks of $n = 4$ words. A number says how many earlier words are joined there.

# %%
from rtx.lab import explore

explore.channels()

# %% [markdown]
# **Try.** (1) Which channel joins "the Italian Open"? (2) Look at one step in all channels. Which
# numbers do you see?
#
# <details><summary>Answers</summary>
#
# (1) Channel 1: at "Open" it joins the two words before. (2) Each number from 1 to $n - 1$, each of them once.
#
# </details>
#
# At each step, learnt weights (an **attention**) choose among the channels. The paper's idea: the chosen channel joins the
# words of a phrase.
#
# - **You will** find the blocks, write what a state reads, and (optional) find the longest way back through a channel.
# - **You learn** how wiring can put phrases one edge apart, what this adds on a small text, and what it does to gradients.
# - **You need** a recurrent network with its state, softmax, and PyTorch tensors.
# - **Time:** 45 minutes, of which 25 are for the exercises. The cells run in about 20 seconds. Longer trainings are stored.

# %%
from pathlib import Path
from statistics import mean
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, plots
from rtx.nn.multi_channel import MultiChannelRNN
torch.set_num_threads(1)
plots.style()

# %% [markdown]
# ## 1. Where are the blocks?
#
# Which steps does a state read? We write down channel 1 for $n = 4$. Its blocks have four steps, and the last step of a block is
# also the first step of the next block. So a block ends at every third step:
#
# ```
# blocks      [1  2  3  4]                step 4 reads steps 3, 2, 1
#                      [4  5  6  7]       step 5 reads step 4; step 6 reads 5, 4; step 7 reads 6, 5, 4
# ```
#
# Channels 2 and 3 have the same blocks, one and two steps later. A fourth channel would be channel 1 again. So there are
# $n - 1$ channels. Step $t$ of channel $k$ reads this many states, its **in-degree**:
#
# $$m_t^k = (t - k - 1) \bmod (n - 1) + 1 \qquad (1)$$
#
# **Exercise 1** (easy, 5 minutes). Write Eq. 1.

# %%
def my_in_degree(t, k, n):
    ...  # a number from 1 to n - 1

in_degree = exercises.yours(my_in_degree, "in_degree")

# %% [markdown]
# <details><summary>Hint</summary>
#
# In Python, `%` is the remainder. For a positive divisor it is never negative, as mod in the paper.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_in_degree(t, k, n):
#     return (t - k - 1) % (n - 1) + 1
# ```
#
# </details>
#
# **Predict.** Figure 3 of the paper says that channel 2 joins "few and far between" at *between*, "champions have been" at
# *been*, and "Italian Open" at *Open*. Which in-degrees must these words have?
#
# <details><summary>Answer</summary>
#
# 3, 2 and 1: the number of words in the phrase before its last word.
#
# </details>

# %%
sentence = "Home-grown champions have been few and far between at the Italian Open .".split()
print("in-degrees, n = 4: channel  1  2  3   channel 2 by the text of §3.1")
by_text = MultiChannelRNN(1, block=4, phase="text").in_degrees(13)
for t in (4, 8, 12):
    row = "  ".join(str(in_degree(t, k, 4)) for k in (1, 2, 3))
    print(f"step {t:2}, {sentence[t - 1]:18} {row}   {by_text[t - 1, 1]}")

# %% [markdown]
# The paper describes the blocks twice: by Eq. 1, and by the text of §3.1, where channel $k$ begins at step $2 - k$. For $n = 4$
# they swap channels 2 and 3. Figure 3 follows Eq. 1, and so do we.
#
# ## 2. What does a state read?
#
# A state reads the mean of its predecessors. Each predecessor first passes a matrix $W_j$ for its distance $j$. Here is a step
# with $m = 2$ and states of two numbers. $W_1$ keeps a state as it is, and $W_2$ swaps its two numbers:

# %%
last, before = torch.tensor([1.0, 0.0]), torch.tensor([4.0, 2.0])  # the states at distances 1 and 2
W_1, W_2 = torch.eye(2), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
print("W_1 · last state:  ", (W_1 @ last).tolist())
print("W_2 · state before:", (W_2 @ before).tolist())
print("their mean, s:     ", ((W_1 @ last + W_2 @ before) / 2).tolist())

# %% [markdown]
# In general, with $h$ for states, $x$ for inputs, and $f$ for a recurrent cell such as a GRU (a cell with gates):
#
# $$s_{t-1}^k = \frac{1}{m_t^k} \sum_{j=1}^{m_t^k} W_j h_{t-j}^k \quad (2) \qquad h_t^k = f(s_{t-1}^k, x_t) \quad (3)$$
#
# All channels share all weights. States before the first step are zero, and they count: the sum is always divided by $m$.
#
# **Exercise 2** (medium, 10 minutes). Write Eq. 2 for one step. `states` (T, H) are the states of a channel so far, the oldest
# first. `W` has shape (n-1, H, H), and `W[0]` is $W_1$. There may be fewer than $m$ states: leave out those that do not exist.

# %%
def my_block_input(states, m, W):
    ...  # (H,)

block_input = exercises.yours(my_block_input, "block_input")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The state at distance $j$ is `states[-j]`. It exists if `j <= len(states)`.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_block_input(states, m, W):
#     return sum(W[j - 1] @ states[-j] for j in range(1, min(m, len(states)) + 1)) / m
# ```
#
# </details>
#
# The attention then joins the channels. It gives each channel a score. A softmax over the channels makes weights $\alpha$ of the
# scores, so the weights of a step sum to 1. The next cell runs the whole layer with your two functions.
#
# $$e_t^k = r^\top \tanh(V [h_t^k; x_t]) \quad (6) \qquad \alpha_t = \text{softmax}_k(e_t) \quad (5) \qquad
# h_t = \sum_k \alpha_t^k h_t^k \quad (4)$$

# %%
def channel(x, layer, k, n):
    """Return the states of channel k, (T, H), for x (T, D) and the plain cell."""
    states = torch.zeros(1, layer.d_hidden)  # before the first step
    for t in range(1, len(x) + 1):
        s = block_input(states, in_degree(t, k, n), layer.weight_block)
        from_input = layer.weight_ih_l0 @ x[t - 1] + layer.bias_ih_l0
        new = torch.tanh(from_input + layer.weight_hh_l0 @ s + layer.bias_hh_l0)  # Eq. (3)
        states = torch.cat([states, new[None]])
    return states[1:]

_ = torch.manual_seed(0)
layer = MultiChannelRNN(5, 6, block=4, cell="rnn", mapping_start="uniform")
x = torch.randn(9, 5)
h = torch.stack([channel(x, layer, k, 4) for k in (1, 2, 3)], 1)  # (T, C, H)
e = layer.attention_r(torch.tanh(layer.attention_v(torch.cat([h, x[:, None].expand(9, 3, 5)], -1))))  # Eq. (6)
joined = (e.softmax(1) * h).sum(1)  # Eq. (5), (4)
print(f"largest difference from rtx: {(joined - layer(x[None])[0][0]).abs().max():.0e}")

# %% [markdown]
# Only the joined $h_t$ goes to the next layer. It never comes back into the channels.
#
# ## 3. What do blocks and attention add?
#
# We trained language models with one layer on the Python reference manual, from three random starts (**seeds**) each. An
# update is one step of the optimiser. There are three controls:
#
# - **equal channels**: blocks, but no choice. All channels have the same weight, in training and in the test.
# - **last two (three) states**: no blocks, and no choice. There is one channel, and each state reads two (three) predecessors, with
#   matrices $W_j$.
# - **GRU**: one predecessor. The second GRU is wider, so that it has as many parameters as MC-RNN.
#
# The measure is **perplexity**: a perplexity of 10 is as uncertain as a choice among 10 equally likely words. The learning rate
# is the best of three on validation data.
#
# **Predict.** Which of the controls will be worst?

# %%
from rtx.lab.studies import chosen_runs

runs = chosen_runs("../studies/parts_of_mc_rnn.json", "words")

def perplexities(name, at, kind="perplexity"):
    return [run["test"][at][kind][0] for run in runs[name]]

def spread(values):
    return f"{mean(values):5.2f} ({min(values):5.2f} to {max(values):5.2f})"

print(f"{'test perplexity: mean (lowest to highest seed)':46} parameters   200 updates              400 updates")
for name, seeds in runs.items():
    columns = "   ".join(spread(perplexities(name, at)) for at in (0, 1))
    print(f"{name:46} {seeds[0]['parameters']:10,}   {columns}   {len(seeds)} seeds, rate {seeds[0]['rate']}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The GRU of the same width, at both times. The wider GRU comes second from the end.
#
# </details>
#
# - **Reading more than one state** makes the largest difference, above all after 200 updates. The GRU with as many parameters
#   comes closer, and after 400 updates it is still behind.
# - **Blocks** (and the several channels that they need) add a few percent. Compare equal channels with the last three
#   states: both have no choice. After 400 updates all three seeds with blocks are better. After 200 updates they overlap.
# - **The attention** adds nothing that we can see. After 400 updates the model that was trained with equal channels is
#   as good or slightly better.
#
# For all models the largest of the three rates was best, and all are better after 400 updates than after 200. So the table says who
# learns sooner.
#
# A trained MC-RNN may still *use* its attention. A test for this changes the attention after the training:

# %%
for name in ("MC-RNN, n = 3", "MC-RNN, n = 4"):
    whole = perplexities(name, 1)
    print(f"{name}: perplexity {spread(whole)}")
    for kind in ("equal in the test", "reversed in the test"):
        rise = [100 * (b / a - 1) for a, b in zip(whole, perplexities(name, 1, kind))]
        print(f"   scores {kind:21} perplexity + {mean(rise):3.0f} %  (seeds: {min(rise):.0f} to {max(rise):.0f} %)")

# %% [markdown]
# "Equal" multiplies the scores by 0, "reversed" by -1. The trained model does use its weights: with reversed scores it is clearly
# worse. But a model that is trained without them (the row "equal channels") can do without them. A change after the training
# asks what *this* model needs. A new training asks what the *task* needs. The answers differ here.
#
# ## 4. What does the attention choose?
#
# We train one small model for about 200 updates and look at its weights.

# %%
from rtx.tasks import task_by_name
from rtx.tasks.loader import loader

task = task_by_name("words", least=30, context=8, scored=32)
_ = torch.manual_seed(1)
model = rtx.LanguageModel(rtx.MCRNN(24, block=4, cell="gru"), task.inputs)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):  # about 200 updates
    for batch in loader(task, "train", 32, seed=epoch):
        loss = task.loss(task.predict(model, batch), batch)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        optimizer.step()

# %%
test = next(iter(loader(task, "test", 200)))
_ = model.eval().requires_grad_(False)
print(f"test perplexity {task.score(task.predict(model, test), test):.1f}; word frequencies alone: {task.baseline():.1f}")
words = task.texts[0]
explore.channels(model, words, "the value of the expression is not a list of the class , and so on")

# %% [markdown]
# **Try.** Find a word where one channel has most of the weight. Do the joined words form a phrase?
#
# <details><summary>Answer</summary>
#
# Some do. But at every step *some* channel has the largest weight, and many neighbouring words look like a phrase. A test of
# this claim needs text with marked phrases. The paper shows one sentence.
#
# </details>
#
# **Predict.** Put one word in front of the sentence. Which channel then gets the weight that channel 1 had?

# %%
def weights(text):
    """Return the weights of the three channels at each word, (T, 3)."""
    tokens = torch.tensor([words.encode(text)])
    return model.backbone.layers[0].introspect(model.embed(tokens))["channel_weights"][0]

text = "the value of the expression is not a list of the class , and so on"
plain, longer = weights(text), weights("if " + text)[1:]
late = slice(4, None)  # the first words also notice the start of the sentence
print(f"largest change if channel k is compared with channel k:     {(plain - longer)[late].abs().max():.2f}")
print(f"largest change if channel k is compared with channel k + 1: {(plain - longer.roll(-1, 1))[late].abs().max():.2f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Channel 2. Eq. 1 depends on $t - k$ only, and all channels share their weights. A smaller change remains.
#
# </details>
#
# So "channel 2" in a figure is not a property of the model. What has a meaning is the in-degree, the number of joined words.
#
# ## 5. Shorter ways for gradients
#
# An **edge** is one state that reads another one. In a plain recurrent network the way from step $t$ back to step $t - l$ has
# $l$ edges. A block shortens it. The paper (§5.2) says that $\lfloor l / (n-1) \rfloor + 1$ edges are always enough. In each
# channel we look for the way with the fewest edges. Is the paper right in every channel?
#
# **Exercise 3** (hard, optional, 10 minutes). Write the number of edges in the *worst* channel, for a distance `length` of
# at least 1.

# %%
def my_longest_path(length, n):
    ...  # edges, in the channel that needs most

longest_path = exercises.yours(my_longest_path, "longest_path")

# %% [markdown]
# <details><summary>Hint</summary>
#
# In the worst channel you start one step after the end of a block. The first edge goes back one step only, so $l - 1$ steps are
# left. Each further edge goes back up to $n - 1$ steps. How many edges are that, rounded up?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_longest_path(length, n):
#     return (length - 2) // (n - 1) + 2
# ```
#
# </details>

# %%
def shortest_way(t, k, n, distance):
    """Count edges from step t back: the longest possible edge each time."""
    edges, left = 0, distance
    while left > 0:
        left, t, edges = left - min(in_degree(t, k, n), left), t - min(in_degree(t, k, n), left), edges + 1
    return edges

n = 4
print("distance   best channel   worst channel   your formula   the paper's bound")
for distance in (1, 2, 3, 4, 5, 6, 8, 11):
    found = [shortest_way(41, k, n, distance) for k in (1, 2, 3)]
    mine, bound = longest_path(distance, n), distance // (n - 1) + 1
    print(f"{distance:8} {min(found):14} {max(found):15} {mine:14} {bound:19}")

# %% [markdown]
# At distances 2, 5, 8 and 11 the worst channel needs one edge more than the paper says. The best channel never does.
#
# **Predict.** Each edge makes a gradient smaller. How does the gradient of one channel with $n = 7$ depend on the distance?

# %%
def gradient_back(n, seed, farthest=24):
    """Return the gradient of the last state of channel 1 by distance, relative to distance 0. Untrained."""
    torch.manual_seed(seed)
    layer = MultiChannelRNN(16, block=n, cell="rnn")
    T = 1 + 6 * (n - 1) * (farthest // (n - 1))  # a step that ends a block of channel 1
    x = torch.randn(1, T, 16).repeat(16, 1, 1).requires_grad_()
    last = layer.channels(x)[:, -1, 0]  # (16, 16): one copy of the sequence for each number of the state
    (gradient,) = torch.autograd.grad(last.diagonal().sum(), x)
    size = gradient.square().sum((0, 2)).sqrt().flip(0)[: farthest + 1]
    return size / size[0]

# %%
fig, ax = plt.subplots(figsize=(6.5, 3))
lines = {7: ("n = 7, channel 1", plots.COLOURS[0], "-"), 2: ("n = 2, a plain recurrent network", plots.COLOURS[1], "--")}
for n, (name, colour, line) in lines.items():
    for seed in range(5):
        ax.semilogy(gradient_back(n, seed), line, color=colour, linewidth=1.2, label=name if seed == 0 else None)
ax.set(xlabel="distance (steps)", ylabel="gradient, relative to distance 0", xticks=range(0, 25, 6))
ax.set_title("untrained: with n = 7 the gradient falls in stairs of six steps")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# <details><summary>Answer</summary>
#
# It falls in stairs: the way has the same number of edges for six distances, and then one more.
#
# </details>
#
# Each line is one of five random starts. The measured step ends a block, which is the best case. At long distances the gradient with
# blocks is much larger. At the first distances it is smaller, and within a stair it rises a little. We did not look for the reason.
#
# ## 6. Translation: the paper's models
#
# The paper compares on translation from German to English. We trained its rows on a smaller corpus, Multi30k, for 8 epochs
# (passes over the data). Two rows have a second learning rate. The baselines are LSTMs. HO-RNN always reads its
# last states. HM-RNN learns where segments end. MC-RNN-$c$ has $c$ channels. The score is BLEU (overlap with a human translation; higher is better).

# %%
from rtx.evidence import tables
from rtx.training.recipe import load_recipe

paper = {"baseline": 31.03, "baseline-large": 30.93, "baseline-deep": 30.98, "hm-rnn": 30.60, "ho-rnn": 31.29,
         "mc-rnn-2": 31.98, "mc-rnn-3": 32.23, "mc-rnn-4": 32.09}
print("BLEU             paper, IWSLT14   ours, Multi30k: mean ± standard deviation (each seed)")
for name, lines in tables.cells(load_recipe("multi30k"), Path("../results")).items():
    for seeds in lines:
        scores = [run.test for run in seeds]
        each = " ".join(f"{score:.1f}" for score in scores)
        rate = seeds[0].variant.removeprefix("adam").removeprefix("+learning_rate=") or "0.001"
        row = f"{tables.spread(scores, 1):10}  ({each})"
        print(f"{name:16} {paper.get(name, '-'):>14}   {row:32} rate {rate}   {seeds[0].parameters:,} parameters")

# %% [markdown]
# In the paper MC-RNN is ahead. In our runs it is not: of the recurrent rows, the wider baseline has the largest mean. At a rate
# of 0.001, one seed of MC-RNN-2 and one of MC-RNN-3 are far behind the others. All trainings were short. So this compares speed under
# one recipe, on another corpus than the paper's. The two Transformer rows are not in the paper.
#
# ## Recap
#
# - $n - 1$ channels put each group of $n$ neighbouring words into a block of one channel.
# - On our small text, reading several states helped most, and blocks a little. The choice among channels did not help.
# - A trained model uses its attention. But a model that was trained without it was as good.
# - Ways back are shorter, and untrained gradients show it. The paper's bound fails for some channels.
# - Open: whether the chosen blocks are phrases, and what blocks add with the paper's text and training.
#
# ## Quiz
#
# 1. Why can $m_t^k$ never be 0?
# 2. Why does $h_t$ not go back into the channels?
# 3. Setting a part to a constant makes a trained model worse. Does the task need this part?
#
# <details><summary>Answers</summary>
#
# 1. The first node of a block is the last node of the block before, where it has $n - 1$ predecessors.
# 2. Then a state of any channel would depend on the blocks of all channels. The channels would no longer stand for different blocks.
# 3. Not necessarily. Train a model without the part. In section 3 such a model was as good.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Xu et al. (2019), *Modeling Local Dependence in Natural Language with Multi-Channel Recurrent Neural Networks*.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | in-degree (Eq. 1), Figures 1-3 | $m_t^k$, $n$ | section 1 | `MultiChannelRNN.in_degrees` |
# | the cell's input (Eq. 2-3) | $s_{t-1}^k$, $h_t^k$, $W_j$ | section 2 | `MultiChannelRNN.channels` |
# | attention over channels (Eq. 4-6) | $e_t^k$, $\alpha_t^k$ | sections 2-4 | `trace`: `channel_weights` |
# | path lengths (§5.2) | $d_i(l)$ | section 5 | |
# | Tables 2 and 5 | | section 6 | `rtx train multi30k` |
#
# The paper says "almost the same time cost" without a measurement. [Notebook 12](12_make_it_fast.ipynb) counts the work.
#
# </details>
#
# **Back:** [Convolution, recurrence or attention: which tool for which past?](07_convolve_or_recur.ipynb) · **Index:** [README](../README.md) · **On:**
# [Can a model without recurrence remember thousands of steps?](09_add_and_multiply.ipynb)
