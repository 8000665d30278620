# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Frame the problem
#
# **What is a sequence task, when is a number good, and why is the past so hard to hold?**
#
# Pixels, notes, letters, sums: the papers here put them all into one form, and then ask how well a model remembers.
# Before any model, look at the form, at the data, and at the scores of those who have learnt nothing.
#
# - **You will** look at real samples of four tasks, turn a text into questions and answers, convert one loss into three
#   units, and measure how fast recurrent networks forget.
# - **You learn** the contract of causality, what to compare a score with, and why gradients vanish.
# - **You need** Python, tensors; [00 start here](00_start_here.ipynb) for the notation.
# - **Time:** 30 minutes to read and try; the cells run in about 20 seconds.
#
# ## Paper map
#
# Wang et al. (2019), *R-Transformer*, sections 2 and 4; Bengio et al. (1994) and Hochreiter & Schmidhuber (1997) for
# section 4.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | the problem (section 2) | $x_1, \dots, x_N \to y$ | section 1 | every model, $(B, T, D)$ to $(B, T, D)$ |
# | the experiments' data (4.1-4.3) | | section 2 | `rtx.TASKS` |
# | accuracy, NLL, bits, perplexity (Tables 1-4) | | section 3 | `task.loss`, `task.score`, `task.baseline` |
# | "long-term dependencies" (1, 3.1) | | section 4 | `RNN`, `RTransformer` |

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots
from rtx.tasks import task_by_name
plots.style()
_ = torch.set_num_threads(1), torch.manual_seed(0)

# %% [markdown]
# ## 1. One contract
#
# The paper's Eq. 1 maps a sequence to one label, $y = f(x_1, \dots, x_N)$. In three of its four experiments a model
# answers at *every* step; in the fourth, the label of the whole sequence is the last answer. Here is the form that
# covers all:
#
# $$y_t = f(x_1, \dots, x_t), \qquad t = 1, \dots, T$$
#
# The right-hand side ends at $t$. That is a contract, **causality**: an answer may depend on the past and the present,
# never on the future. Training leans on it: if $y_t$ could peek at $x_{t+1}$, a model of text would copy the next
# letter, and be worth nothing when it has to write.
#
# **Exercise 1** (easy, 5 minutes). In a text, the answer to each token is the next one. From `tokens` $(N,)$ make
# inputs and targets of equal length, and return them as two rows, `torch.stack([inputs, targets])`.

# %%
def next_tokens(tokens):
    ...

exercises.next_tokens(next_tokens)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Which token has no next one? Which token is never asked for?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def next_tokens(tokens):
#     return torch.stack([tokens[:-1], tokens[1:]])
# ```
#
# </details>
#
# ## 2. Four tasks
#
# `rtx` brings the papers' tasks in the papers' form, and small ones that need no download. Here are four of the small
# ones. (The paper's own are MNIST, Nottingham tunes and the Penn Treebank.)

# %%
names = ("digits", "chorales", "characters", "add")
tasks = {name: task_by_name(name, **({"size": 1000} if name == "add" else {})) for name in names}
samples = {name: task.split("train")[0] for name, task in tasks.items()}
for name, task in tasks.items():
    inputs, target = samples[name]
    print(f"{name:10} {tuple(inputs.shape)!s:9} to {tuple(target.shape)!s:9} a {task.per}: {task.metric}")

# %%
fig, axes = plt.subplots(2, 2, figsize=(9, 5))
pixels, digit = samples["digits"]
axes[0, 0].imshow(pixels.view(8, 8), cmap="gray_r", extent=(0.5, 8.5, 8.5, 0.5))
axes[0, 0].set(title=f"digits: a {digit}", xlabel="column", ylabel="row")
axes[0, 1].step(range(1, 65), pixels[:, 0], where="mid")
axes[0, 1].set(title="... as a model reads it, pixel by pixel", xlabel="step t", ylabel="darkness")
_ = plots.piano_roll(axes[1, 0], samples["chorales"].inputs, "chorales: which notes come next?")
inputs, total = samples["add"]
marked = inputs[:, 1] == 1
axes[1, 1].vlines(range(1, len(inputs) + 1), 0, inputs[:, 0], color="0.7")
axes[1, 1].plot(marked.nonzero() + 1, inputs[marked, 0], "o", color=plots.COLOURS[1])
axes[1, 1].set(title=f"add: the sum of the orange ones, {total.item():.2f}", xlabel="step t", ylabel="value")
plt.show()
text = tasks["characters"].texts[0]
print("characters, asked:", repr(text.decode(samples["characters"].inputs[1:22].tolist())))
print("        answered:", repr(text.decode(samples["characters"].target[1:22].tolist())))

# %% [markdown]
# A sum of two numbers and a chorale have nothing in common, and one and the same model can be trained on both.
# `rtx.build` puts a layer before it and one behind it, so that widths fit:

# %%
for name in ("digits", "chorales", "add"):
    model = rtx.build(tasks[name], "r-transformer", d_model=16, layers=1, heads=2, window=4)
    answer = model(samples[name].inputs[None])
    print(f"{name:10} {tuple(samples[name].inputs[None].shape)} to {tuple(answer.shape)}")

# %% [markdown]
# ## 3. What is a good number?
#
# Most losses here are **negative log-likelihoods**: $-\ln p$ of what really came, in *nats*. If a model gives the right
# letter a probability of ½, it pays $\ln 2 \approx 0.69$ nats, or 1 *bit*. **Perplexity** is $e$ to the nats: among how
# many equally likely tokens the model might as well have guessed.
#
# | task | loss | metric of the paper | better |
# | --- | --- | --- | --- |
# | digits, MNIST | cross-entropy | accuracy in % | more |
# | chorales, Nottingham | 88 yes-or-no questions a frame | NLL per frame, in nats | less |
# | characters | cross-entropy | bits per character | less |
# | words | cross-entropy | perplexity | less |
# | add, multiply | squared error | share with an error below 0.04 | more |
#
# **Exercise 2** (easy, 3 minutes). From `nats`, a float, to all three: return `torch.tensor([nats, bits, perplexity])`.

# %%
import math

def three_units(nats):
    ...

exercises.three_units(three_units)

# %% [markdown]
# <details><summary>Hint</summary>
#
# $\log_2 x = \ln x / \ln 2$.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def three_units(nats):
#     return torch.tensor([nats, nats / math.log(2), math.exp(nats)])
# ```
#
# </details>
#
# Units matter. The two versions of the paper print different units above the same Table 3. R-Transformer's 1.24 is
# *bits* per character; the same number in nats would be 1.79 bits, and the worst of the table.
#
# **Predict.** What does a model that has learnt nothing score? (a) The commonest digit, for every picture. (b) For each
# character its frequency in the text, which has about a hundred different ones. (c) A guess at the sum in `add`, within 0.04.
#
# <details><summary>Answer</summary>
#
# (a) About 10 %. (b) If all were equally likely, $\log_2 100 \approx 6.6$ bits; blanks and e's are common, so 4.6.
# (c) The mean is right for 8 % ([09 add and multiply](09_add_and_multiply.ipynb)).
#
# </details>

# %%
tokens = torch.cat([target for _, target in tasks["characters"].split("train")])
tokens = tokens[tokens >= 0]
shares = torch.bincount(tokens) / len(tokens)
bits = -(shares[shares > 0].log2() * shares[shares > 0]).sum().item()
print(f"characters by frequency, by hand: {bits:.1f} bits on the training side; by rtx, on the test side:")
for name, task in tasks.items():
    unlearnt = task.baseline()
    print(f"{name:10}", f"about 8 %: {0.05 < unlearnt < 0.11}" if name == "add" else f"{unlearnt:4.1f} {task.metric}")

# %% [markdown]
# Ask for such a number beside every score. A table without it tells little: 90 % is poor where 89 % of the answers are
# the same.
#
# ## 4. Why is the past hard to hold?
#
# A recurrent network writes its past into a state, step by step: $h_t = f(h_{t-1}, x_t)$. What $h_T$ still knows of
# $x_s$ went through $T - s$ steps, and so do the gradients that should teach it:
#
# $$\frac{\partial h_T}{\partial x_s} = \frac{\partial h_T}{\partial h_{T-1}} \cdots \frac{\partial h_{s+1}}{\partial
# h_s} \, \frac{\partial h_s}{\partial x_s}$$
#
# **Predict.** Say each factor shrinks what passes by a half. What is left after 50 steps?
#
# <details><summary>Answer</summary>
#
# $2^{-50} \approx 10^{-15}$, next to nothing. With factors above 1 it would explode instead; only factors of exactly 1
# keep it as it is.
#
# </details>
#
# Measure it: how much does an untrained network's last output move if the input $d$ steps earlier moves?

# %%
def by_distance(model, T=100):
    """The gradient's size at each distance back from the last output, 0 first; root mean square of 16 random sequences."""
    x = torch.randn(16, T, model.d_model, requires_grad=True)
    last = model(x)[:, -1]
    slope = torch.autograd.grad((last * torch.randn_like(last)).sum(), x)[0]
    return slope.square().sum(-1).mean(0).sqrt().flip(0)

open_gates = rtx.RNN(32, cell="lstm")
with torch.no_grad():
    open_gates.network.bias_ih_l0[32:64] = 5.0  # the forget gates: sigmoid(5) = 0.993
networks = {"RNN": rtx.RNN(32, cell="rnn"), "GRU": rtx.RNN(32, cell="gru"), "LSTM": rtx.RNN(32, cell="lstm")}
networks |= {"LSTM, gates open": open_gates, "R-Transformer": rtx.RTransformer(32, layers=1, heads=2, window=4)}

# %%
fig, ax = plt.subplots(figsize=(8, 3.4))
for (name, network), line in zip(networks.items(), ("-", "--", ":", "-.", "-")):
    size = by_distance(network)
    ax.semilogy(size.where(size > 1e-12, torch.nan), line, label=name)
    print(f"{name:16} 50 steps back, less than a millionth is left: {bool(size[50] / size[0] < 1e-6)}")
ax.set(xlabel="steps back", ylabel="size of the gradient", ylim=(1e-12, 10))
ax.set_title("RNN, GRU and LSTM forget; open gates and attention do not")
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown]
# On a logarithmic axis, the straight falling lines are products of factors. An LSTM's memory is multiplied by its
# forget gates, which start about half open: its line falls by a factor of about 0.6 a step, not far from your prediction.
# Opened by a bias, the gates let through what the network has to keep; that is how LSTMs
# can remember, if they learn to. Their line even rises: by 0.993 a step the memory alone would lose half over 100 steps, but
# it also comes back through the state that the gates read, and with that the factors are just above 1. Attention has one step
# to everywhere.
#
# Does it matter? A small task: at the end of $T$ random symbols, say which came first. Training takes 200 steps.
#
# **Predict.** Which of them solve $T = 5$, which $T = 20$? R-Transformer's window holds 4 symbols.
#
# <details><summary>Answer</summary>
#
# All solve 5. At 20, the recurrent networks get no signal in these few steps and guess, one in eight; given many more,
# gated ones find it. R-Transformer looks back.
#
# </details>

# %%
from torch.nn.functional import cross_entropy

def recall_first(backbone, T, steps=200):
    model = rtx.LanguageModel(backbone, vocabulary=8, tied=False)
    torch.nn.init.normal_(model.embedding.weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        x = torch.randint(8, (32, T))
        loss = cross_entropy(model(x)[:, -1], x[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x = torch.randint(8, (500, T))
    with torch.no_grad():
        return (model(x)[:, -1].argmax(-1) == x[:, 0]).float().mean().item()

# %%
makers = {cell.upper(): lambda cell=cell: rtx.RNN(32, cell=cell) for cell in ("rnn", "gru", "lstm")}
makers["R-Transformer"] = lambda: rtx.RTransformer(32, layers=1, heads=2, window=4)
for name, make in makers.items():
    short, long = (recall_first(make(), T) > 0.9 for T in (5, 20))
    print(f"{name:14} nine in ten right at T = 5: {short}   at T = 20: {long}")

# %%
explore.depends()

# %% [markdown]
# **Try.** Which input moves which output, before any training? Drag the first bar: how much of the change does the RNN carry
# to the last position? And the R-Transformer?
#
# A picture before training is no verdict on what can be learnt. But what gives no gradient is not learnt by gradients.
#
# ## Recap
#
# - One form for all: $y_t = f(x_1, \dots, x_t)$, and the future stays out.
# - A loss in nats, bits or as perplexity is one number in three units; say which, and beside it what the ignorant
#   score.
# - A recurrent network's gradients are products over all steps between. They vanish, unless gates hold factors near 1.
# - Attention is one step from everything. It pays for that by comparing all pairs
#   ([03 attend to the past](03_attend_to_the_past.ipynb)); a window with recurrence keeps what is near
#   ([02 slide a window](02_slide_a_window.ipynb)). R-Transformer stacks the two.
#
# ## Quiz
#
# 1. A model of text has 0.02 bits per character on the test side. What do you check first?
# 2. A perplexity of 80 over a vocabulary of 10,000: good or bad?
# 3. An LSTM with forget gates at 0.99: what is left of its memory after 100 steps?
#
# <details><summary>Answers</summary>
#
# 1. Whether it sees the future: that inputs and targets are shifted, and the mask.
# 2. It depends on what the frequencies alone give, on how words are cut, and on whether test words are new. Against a
#    guess among 10,000 it is good; on the Penn Treebank, the paper's models are between 79 and 122.
# 3. $0.99^{100} \approx 0.37$ of what it held, if nothing is written over it.
#
# </details>
#
# **Back:** [Start here](00_start_here.ipynb) · **Index:** [README](../README.md) · **On:**
# [Slide a window](02_slide_a_window.ipynb)
