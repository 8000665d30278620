# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Why is the past hard to hold?
#
# Eight models read $T$ random symbols. After the last symbol they must name the *first* one. How often are they right?

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, plots
from rtx.lab.studies import chosen_runs
plots.style()
_ = torch.set_num_threads(1), torch.manual_seed(0)
studies = {T: chosen_runs("../studies/first_symbol.json", f"T = {T}") for T in (5, 20)}
names = list(studies[5])
fig, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
for ax, (T, runs) in zip(axes, studies.items()):
    for row, name in enumerate(names):
        right = [100 * run["test"][-1]["right"][0] for run in runs[name]]
        ax.plot(right, [row] * len(right), "o", color=plots.COLOURS[0], alpha=0.7)
    ax.axvline(100 / 8, color="0.5", linestyle=":")
    ax.set(title=f"T = {T}", xlabel="right answers in % (dotted: a guess)", xlim=(0, 103), yticks=range(len(names)))
    ax.set_yticklabels(names)
axes[0].invert_yaxis()
fig.suptitle("after 1,000 updates: the RNN and the LSTM are right over 5 steps, but not over 20", fontsize=11)
plt.show()

# %% [markdown]
# Each dot is one seed. All models have a width of 32, one layer, the same 1,000 updates and the same batches. Each model has
# the best of three learning rates, chosen on other data. There are 8 symbols, so a guess is right in 12.5 %. "Gates open" and the
# other names are explained below. This notebook looks for what makes the difference.
#
# - **You will** turn a text into questions and answers, compute a baseline for text, and measure how gradients shrink with
#   distance.
# - **You learn** what a sequence task is, what makes a score good, and what gates and attention do for gradients.
# - **You need** Python, tensors, and the notation of [notebook 00](00_start_here.ipynb).
# - **Time:** 30 minutes to read and try. The cells run in about 20 seconds.
#
# ## 1. One form for all tasks
#
# Which tasks can one and the same model learn? All tasks of this course have one form. At each step $t$ there is an input
# $x_t$, and the model gives an answer $y_t$:
#
# $$y_t = f(x_1, \dots, x_t), \qquad t = 1, \dots, T$$
#
# If the whole sequence has one label, such as the digit in a picture, we use the last answer $y_T$. The right-hand side ends
# at $t$. This property is called **causality**: an answer may depend on the past and the present, never on the future.
# Training relies on it. A model of text that could see $x_{t+1}$ would copy the next letter, and would be useless for
# writing.
#
# **Exercise 1** (easy, 5 minutes). In a text, the answer to each token is the next token. From `tokens` (N,) make inputs and
# targets of equal length. Return them as two rows, `torch.stack([inputs, targets])`.

# %%
def my_next_tokens(tokens):
    ...

next_tokens = exercises.yours(my_next_tokens, "next_tokens")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Which token has no next token? Which token is never an answer?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_next_tokens(tokens):
#     return torch.stack([tokens[:-1], tokens[1:]])
# ```
#
# </details>

# %%
from rtx.tasks import task_by_name

characters = task_by_name("characters")
vocabulary = characters.texts[0]
inputs, targets = next_tokens(torch.tensor(vocabulary.encode("The past is long.")))
print("reads  ", vocabulary.decode(inputs.tolist()))
print("answers", vocabulary.decode(targets.tolist()))

# %% [markdown]
# Here are three more tasks that need no download. `digits` reads a picture pixel by pixel. `chorales` predicts which notes
# sound next. `add` sums the two marked numbers of a sequence.

# %%
tasks = {name: task_by_name(name) for name in ("digits", "chorales")} | {"add": task_by_name("add", size=1000)}
samples = {name: task.split("train")[0] for name, task in tasks.items()}
fig, axes = plt.subplots(1, 3, figsize=(10, 2.6), layout="constrained")
axes[0].step(range(1, 65), samples["digits"].inputs[:, 0], where="mid")
axes[0].set(title=f"digits: this is a {samples['digits'].target}", xlabel="step t (pixel)", ylabel="darkness")
_ = plots.piano_roll(axes[1], samples["chorales"].inputs, "chorales: which notes come next?")
marked, total = samples["add"].inputs[:, 1] == 1, samples["add"].target.item()
axes[2].vlines(range(1, len(marked) + 1), 0, samples["add"].inputs[:, 0], color="0.7")
axes[2].plot(marked.nonzero() + 1, samples["add"].inputs[marked, 0], "o", color=plots.COLOURS[1])
axes[2].set(title=f"add: the marked ones make {total:.2f}", xlabel="step t", ylabel="value")
plt.show()

# %% [markdown]
# ## 2. What is a good number?
#
# A score means little by itself. An accuracy of 90 % is poor if 89 % of all answers are the same. So we always ask what a
# model scores that has learnt nothing: the **baseline**.
#
# Most losses here are negative log-likelihoods: $-\ln p$, where $p$ is the probability that the model gave to the answer that
# came. The same loss has three units:

# %%
print("p of the answer   nats   bits   perplexity")
for p in (0.5, 0.1, 0.01):
    nats = -torch.tensor(p).log()
    print(f"{p:15} {nats:6.2f} {nats / torch.tensor(2.0).log():6.2f} {nats.exp():12.1f}")

# %% [markdown]
# A **nat** uses the natural logarithm, a **bit** the logarithm to base 2. The **perplexity** is $e^{\text{nats}}$. A model that
# guesses among 10 equally likely answers has a perplexity of 10. Units matter: the R-Transformer paper prints 1.24 bits per
# character. If this number were in nats, it would be 1.79 bits.
#
# **Exercise 2** (medium, 10 minutes). A model knows how frequent each character is in the training text, and nothing else. How
# many bits per character does it need for another text? Both texts are tensors of whole numbers from 0 to $V - 1$. Count each
# character once more than it occurs, so that no probability is 0.

# %%
def my_unigram_bits(train, test, V):
    ...  # a number

unigram_bits = exercises.yours(my_unigram_bits, "unigram_bits")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `torch.bincount(train, minlength=V)` counts. Turn the counts into probabilities, look up the probability of each
# character of `test`, and average $-\log_2 p$.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_unigram_bits(train, test, V):
#     counts = torch.bincount(train, minlength=V) + 1
#     return -(counts / counts.sum())[test].log2().mean()
# ```
#
# </details>
#
# **Predict.** The text has about a hundred different characters. If all were equally likely, each would cost
# $\log_2 100 \approx 6.6$ bits. Do frequencies save one bit, two bits or three?

# %%
texts = [torch.cat([one.target[one.target >= 0] for one in characters.split(split)]) for split in ("train", "test")]
print(f"characters by frequency: {unigram_bits(*texts, vocabulary.size):.2f} bits per character")
for name, task in tasks.items():
    print(f"{name:10} baseline {task.baseline():5.2f} ({task.metric})")

# %% [markdown]
# Frequencies save two bits, because blanks and vowels are common. The baseline of `digits` names the commonest digit. The
# baseline of `chorales` gives each note its frequency. The baseline of `add` always answers the mean; it is right if the error
# is below 0.04. [Notebook 13](13_model_language.ipynb) has stronger baselines for text.
#
# ## 3. What a product of factors does
#
# Why is the past hard to hold? A recurrent network passes its past on in a state, step by step: $h_t = f(h_{t-1}, x_t)$. What
# $h_T$ still knows of $x_s$ went through $T - s$ steps. A gradient from $h_T$ back to $x_s$ goes through the same steps, and
# each step multiplies it by one factor (in general, by one matrix):
#
# $$\frac{\partial h_T}{\partial x_s} = \frac{\partial h_T}{\partial h_{T-1}} \cdots \frac{\partial h_{s+1}}{\partial
# h_s} \, \frac{\partial h_s}{\partial x_s}$$
#
# Take the smallest example, a state of one number: $h_t = w \, h_{t-1} + x_t$. Then every factor is $w$.

# %%
print("factor w   after 1 step   after 10 steps   after 50 steps")
for w in (0.5, 0.9, 1.0, 1.1):
    print(f"{w:8} {w:14.2f} {w**10:16.3f} {w**50:16.1e}")

# %% [markdown]
# Factors below 1 make a gradient vanish, factors above 1 make it explode. To learn what happened
# 50 steps ago, a model needs a gradient that still arrives there.
#
# **Exercise 3** (hard, optional, 15 minutes). Measure it for real models. `model` maps `x` (B, T, D) to outputs (B, T, D). Take
# the sum of the last outputs, each multiplied by the number in `weights` (B, D). Compute its gradient with respect to `x`.
# Return its size for each distance from the last position: (T,), distance 0 first. The size is the root of the mean
# over the $B$ sequences of the sum of squares over $D$.

# %%
def my_gradient_by_distance(model, x, weights):
    ...

gradient_by_distance = exercises.yours(my_gradient_by_distance, "gradient_by_distance")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `x = x.clone().requires_grad_()`, then `torch.autograd.grad(total, x)[0]` is (B, T, D). `flip(0)` reverses the distances.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_gradient_by_distance(model, x, weights):
#     x = x.clone().requires_grad_()
#     (gradient,) = torch.autograd.grad((model(x)[:, -1] * weights).sum(), x)
#     return gradient.square().sum(-1).mean(0).sqrt().flip(0)
# ```
#
# </details>
#
# Now untrained models of width 32. An LSTM has a memory, which its **forget gates** multiply by a number between 0 and 1 at
# each step. A bias of 5 opens these gates: $\sigma(5) = 0.993$. A rotation is a recurrent matrix that does not shrink the state.
#
# **Predict.** Which of the lines fall, and which stay level: a plain RNN, an RNN with a rotation, a GRU, an LSTM, an LSTM with open
# gates, an R-Transformer?

# %%
def network(cell, bias=0.0, rotation=False):
    model = rtx.RNN(32, cell=cell)
    with torch.no_grad():
        if rotation:
            torch.nn.init.orthogonal_(model.network.weight_hh_l0)
        if cell == "lstm":
            model.network.bias_ih_l0[32:64] = bias  # of the forget gates
    return model

makers = {"RNN": lambda: network("rnn"), "RNN, rotation": lambda: network("rnn", rotation=True), "GRU": lambda: network("gru"),
          "LSTM": lambda: network("lstm"), "LSTM, gates open": lambda: network("lstm", bias=5.0),
          "R-Transformer": lambda: rtx.RTransformer(32, layers=1, heads=2, window=4)}

# %%
def measure(make, T, draws=5):
    """(draws, T): the gradient by distance, as a share of that at distance 0."""
    found = []
    for seed in range(draws):
        torch.manual_seed(seed)
        size = gradient_by_distance(make(), torch.randn(16, T, 32), torch.randn(16, 32))
        found.append(size / size[0])
    return torch.stack(found)

fig, ax = plt.subplots(figsize=(8, 3.4))
for (name, make), line in zip(makers.items(), ("-", "-.", "--", ":", "-.", "-")):
    size = measure(make, T=100).clamp(min=1e-30).log10().mean(0)  # the geometric mean of the draws
    ax.semilogy(10 ** size.where(size > -12, torch.nan), line, label=name)
    print(f"{name:16} left after 50 steps: 10^{size[50]:5.1f}")
ax.set(xlabel="steps back", ylabel="gradient, share of that at 0", ylim=(1e-12, 20))
ax.set_title("RNN, GRU and LSTM lose the gradient; open gates and attention keep it")
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown]
# The axis is logarithmic, so a straight falling line is a product of equal factors. The plain RNN, the GRU and the LSTM lose
# the gradient within 50 steps. A rotation helps, but the tanh of each step still shrinks the gradient. Open gates keep it. In the
# R-Transformer, attention leads from every position to the last one in a single step. After the 4 positions of its window, its
# line is level.
#
# **Is it really the forget gate?** We keep the LSTM and change only its bias. If the gate is the cause, the factor per step
# must follow it.

# %%
print("bias   gate = sigmoid(bias)   measured factor per step (mean of steps 10 to 40, T = 400)")
for bias in (0.0, 1.0, 2.0, 3.0, 5.0):
    size = measure(lambda: network("lstm", bias), T=400).log10()
    factor = 10 ** ((size[:, 40] - size[:, 10]) / 30)
    print(f"{bias:4}   {torch.tensor(bias).sigmoid():20.3f}   {factor.mean():23.3f} ± {factor.std():.3f}")

# %% [markdown]
# The factor rises with the gate, so the gate is a cause. It is not the only one: at a bias of 0 the factor is 0.62, but the
# gate is 0.5. The rest must take other paths through the cell, which we do not separate here.
#
# The line of the open gates *rises* towards the far end in the figure. Do open gates amplify a gradient with distance? The far
# end of the figure is also the *start* of the sequence, where the memory is still empty. A longer sequence separates the two.

# %%
short, long = (measure(lambda: network("lstm", 5.0), T) for T in (100, 400))
print("LSTM, gates open    distance 50    distance 75    distance 99")
for T, size in ((100, short), (400, long)):
    print(f"T = {T}         ", *(f"{size[:, d].mean():8.2f} ± {size[:, d].std():.2f}" for d in (50, 75, 99)))

# %% [markdown]
# At the same distances, the line is level for $T = 400$. So the rise belongs to the start of the sequence, not to the
# distance. Had we drawn only $T = 100$, we would have reported an effect that does not exist.
#
# ## 4. Does it matter for learning?
#
# These gradients are those of *untrained* models, and training changes the weights. So here is the figure at the top again,
# with its numbers after 200, 500 and 1,000 updates (mean ± standard deviation of three seeds). The R-Transformer's window
# holds 4 symbols. "LocalRNN alone" is the R-Transformer without its attention. "No positions" is attention that is told
# nothing about places.

# %%
print("right answers in % (a guess: 12.5)", " " * 24, "T = 5", " " * 37, "T = 20")
print(f"{'after … updates':26}", *(f"{updates:>13}" for updates in (200, 500, 1000) * 2))
for name in names:
    shown = []
    for runs in studies.values():
        right = torch.tensor([[100 * test["right"][0] for test in run["test"]] for run in runs[name]])  # (seeds, 3)
        shown += [f"{m:6.1f} ± {s:4.1f}" for m, s in zip(right.mean(0), right.std(0))]
    print(f"{name:26}", *shown)

# %% [markdown]
# What each comparison shows, at this size and budget:
#
# - **The gate matters for learning, too.** The two LSTMs differ only in the bias at the start. Over 20 steps the usual one
#   still guesses after 1,000 updates; the one with open gates is right from 200 updates on.
# - **A small gradient at the start does not decide everything.** The GRU starts with as small a gradient as the LSTM, and learns the task between
#   200 and 500 updates, with the largest of the three rates. The plain RNN starts with
#   the smallest gradient of all, and still learns a part (24 to 65 % after 1,000 updates, by seed).
# - **Attention alone is not enough.** Without positions a model sees which symbols there were, but not which was first. That is
#   better than a guess, and no more. With sinusoids it is right after 200 updates.
# - **A window alone is not enough.** LocalRNN sees the last 4 symbols, so over 5 steps it can only guess.
# - **The R-Transformer needs both of its parts.** Its attention can fetch the first symbol. Its LocalRNN can mark this symbol,
#   because the first windows begin before the sequence and hold zeros. (We did not test this explanation of the mark.)
#
# ## Recap
#
# - All tasks here have one form: $y_t = f(x_1, \dots, x_t)$. The future stays hidden.
# - A loss has three units: nats, bits and perplexity. A score needs a baseline beside it.
# - In a recurrent network, a gradient is a product over all steps between. In untrained RNNs, GRUs and LSTMs it vanishes
#   within 50 steps. An LSTM's forget bias decides how fast.
# - Attention reaches every position in one step.
# - Open: this was one toy task with models of one layer. [Notebook 09](09_add_and_multiply.ipynb) goes to thousands of steps.
#
# ## Quiz
#
# 1. A model of text has 0.02 bits per character on new text. What do you check first?
# 2. A model has a perplexity of 80 over a vocabulary of 10,000. Is that good or bad?
# 3. An LSTM has forget gates of 0.99. How much of its memory is left after 100 steps, if nothing else is written?
#
# <details><summary>Answers</summary>
#
# 1. Whether it sees the future: the shift between inputs and targets, and the mask.
# 2. It depends on the baseline. A guess among 10,000 has a perplexity of 10,000, so 80 is better than that. The paper's models
#    have 79 to 122 on the Penn Treebank.
# 3. $0.99^{100} \approx 0.37$.
#
# </details>
# <details><summary>Paper map</summary>
#
# Wang et al. (2019), *R-Transformer*, sections 2 and 4. Section 3 follows Bengio et al. (1994) and Hochreiter &
# Schmidhuber (1997).
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | the problem (section 2) | $x_1, \dots, x_N \to y$ | section 1 | every model, $(B, T, D)$ to $(B, T, D)$ |
# | data of the experiments (4.1-4.3) | | section 1 | `rtx.TASKS` |
# | accuracy, NLL, bits, perplexity (Tables 1-4) | | section 2 | `task.loss`, `task.score`, `task.baseline` |
# | "long-term dependencies" (1, 3.1) | | sections 3, 4 | `RNN`, `RTransformer` |
#
# </details>
#
# **Back:** [How far back does a model look?](00_start_here.ipynb) · **Index:** [README](../README.md) · **On:**
# [What does a window see?](02_slide_a_window.ipynb)
