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
        ax.plot(right, [row - 0.25, row, row + 0.25], "o", color=plots.COLOURS[0], markersize=4)  # a dot for each seed
    ax.axvline(100 / 8, color="0.5", linestyle=":")
    ax.set(title=f"T = {T}", xlabel="right answers in % (dotted: a guess)", xlim=(0, 103), yticks=range(len(names)))
    ax.set_yticklabels(names)
axes[0].invert_yaxis()
fig.suptitle("after 1,000 updates: the LSTM is always right with 5 symbols, but only guesses with 20", fontsize=11)
plt.show()

# %% [markdown]
# There are 8 symbols, so a guess is right in 12.5 %. Each dot is one seed: one draw of the weights and of the training data. All
# models have one layer of width 32. All were trained for 1,000 **updates** (training steps). Each model was trained at
# three [learning rates](../docs/glossary.md#learning-rate). Its rate is the one that was best on validation sequences. The dots show its answers on other sequences.
#
# - **RNN, GRU, LSTM:** recurrent networks. A GRU and an LSTM have **gates**: numbers between 0 and 1 that decide how much of the
#   state they keep. **Gates open:** this LSTM starts with gates that keep almost everything.
# - **Sinusoids:** waves that a [Transformer](../docs/glossary.md#transformer) adds to its inputs to mark the positions.
# - **R-Transformer:** a small RNN over a window of the last 4 symbols (the **LocalRNN**), then attention. **LocalRNN alone** has
#   no [attention](../docs/glossary.md#attention). **Transformer, no positions** is the [R-Transformer](../docs/glossary.md#r-transformer) without LocalRNN. It has no [sinusoids](../docs/glossary.md#sinusoids).
#
# - **You will** turn a text into questions and answers, compute a baseline for text, and measure how gradients shrink with
#   distance.
# - **You learn** what a sequence task is, how to judge a score, and what gates and attention do to gradients.
# - **You need** Python, tensors, and the words of [notebook 00](00_start_here.ipynb).
# - **Time:** 50 minutes, 30 of them for the three exercises. The cells run in about 20 seconds.
#
# ## 1. One form for all tasks
#
# What do a text, a picture and a tune have in common? All tasks of this course have one form. At each step $t$ there is an input
# $x_t$, and the model gives an answer $y_t$:
#
# $$y_t = f(x_1, \dots, x_t), \qquad t = 1, \dots, T$$
#
# If the whole sequence has one label, such as the digit in a picture, we use the last answer $y_T$. The right-hand side ends
# at $t$, so the model is **causal**: an answer depends on the past and the present, never on the future. A model of text that
# could see $x_{t+1}$ would copy the next letter, and would be useless for writing.
#
# **Exercise 1** (easy, 5 minutes). A **token** is one element of a text; here it is a character. The answer to each token is the
# next token. From `tokens` (N,) make inputs and
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
# Here are three more tasks that need no download. `digits` reads the picture of a digit pixel by pixel (8 × 8 pixels, top
# right in the left panel below). `chorales` predicts which notes sound in the next frame; a frame is an eighth note. `add`
# sums the two marked numbers of a sequence.

# %%
tasks = {name: task_by_name(name) for name in ("digits", "chorales")} | {"add": task_by_name("add", size=1000)}
samples = {name: task.split("train")[0] for name, task in tasks.items()}
fig, axes = plt.subplots(1, 3, figsize=(10, 2.6), layout="constrained")
axes[0].step(range(1, 65), samples["digits"].inputs[:, 0], where="mid")
picture = axes[0].inset_axes((0.78, 0.72, 0.28, 0.28))
_ = picture.imshow(samples["digits"].inputs.view(8, 8), cmap="Greys"), picture.axis("off")
axes[0].set(title=f"digits: this is a {samples['digits'].target}", xlabel="step t (pixel)", ylabel="darkness", ylim=(0, 1.45))
_ = plots.piano_roll(axes[1], samples["chorales"].inputs, "chorales: which notes come next?")
_ = axes[1].set_ylabel("note (MIDI number)", fontsize=8)
marked, total = samples["add"].inputs[:, 1] == 1, samples["add"].target.item()
axes[2].vlines(range(1, len(marked) + 1), 0, samples["add"].inputs[:, 0], color="0.7")
axes[2].plot(marked.nonzero() + 1, samples["add"].inputs[marked, 0], "o", color=plots.COLOURS[1])
axes[2].set(title=f"add: the marked ones make {total:.2f}", xlabel="step t", ylabel="value")
plt.show()

# %% [markdown]
# ## 2. What is a good number?
#
# A score means little by itself. An [accuracy](../docs/glossary.md#accuracy) of 90 % is poor if 89 % of all answers are the same. So we always ask for the
# **baseline**: the score of a simple rule that does not look at the inputs.
#
# Most losses here are negative log-likelihoods ([NLL](../docs/glossary.md#nll)): $-\ln p$, where $p$ is the probability that the model gave to the right
# answer. Lower is better. The same loss is reported in three ways:

# %%
print("p of the answer   nats   bits   perplexity")
for p in (0.5, 0.1, 0.01):
    nats = -torch.tensor(p).log()
    print(f"{p:15} {nats:6.2f} {nats / torch.tensor(2.0).log():6.2f} {nats.exp():12.1f}")

# %% [markdown]
# A **nat** uses the natural logarithm, a **bit** the logarithm to base 2. The **perplexity** is $e^{\text{nats}}$. A model that
# guesses among 10 equally likely answers has a perplexity of 10.
#
# **Exercise 2** (medium, 10 minutes). A model knows how frequent each character is in the training text, and nothing else. How
# many bits per character does it need for another text? Both texts are tensors of whole numbers from 0 to $V - 1$. Add 1 to
# each count, so that no probability is 0.

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
shares = texts[0].bincount().div(len(texts[0])).topk(5)
print("commonest characters:", *(f"{vocabulary.decode([i])!r} {100 * p:.0f} %" for p, i in zip(*shares)))
print(f"{vocabulary.size} characters, all equal: {torch.tensor(vocabulary.size).log2():.2f} bits per character")
print(f"by frequency: {unigram_bits(*texts, vocabulary.size):22.2f} bits per character")
for name, task in tasks.items():
    print(f"{name:10} baseline {task.baseline():5.2f}, {task.metric}: {'higher' if task.best == 'max' else 'lower'} is better")

# %% [markdown]
# Frequencies save two bits, because a few characters are common. The baseline of `digits` always names the commonest digit.
# The baseline of `chorales` uses the frequency of each note as its probability. The baseline of `add` always answers the mean.
# A sum counts as solved if the error is below 0.04.
#
# ## 3. What a product of factors does
#
# Why is the past hard to hold? A recurrent network carries its past in a state $h$. One step is $h_t = g(h_{t-1}, x_t)$.
# After $x_s$, $T - s$ more steps follow until $h_T$. A gradient from $h_T$ back to $x_s$ goes through all of them. Each step
# multiplies the gradient by one factor (in general, by a matrix):
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
# Factors below 1 make a gradient vanish, factors above 1 make it explode. If no gradient arrives at a symbol 50 steps ago,
# training cannot learn from this symbol.
#
# **Exercise 3** (hard, optional, 15 minutes). Measure it for real models. `model` maps $x$ (B, T, D) to outputs $y$ (B, T, D),
# and `weights` $w$ is (B, D). Let $S$ be the weighted sum of the last outputs. How large is the gradient of $S$ at the input
# $d$ steps before the end? Return $r_0, \dots, r_{T-1}$ as a tensor (T,):
#
# $$S = \sum_{b=1}^{B} w_b \cdot y_{b,T}, \qquad r_d = \sqrt{\frac{1}{B} \sum_{b=1}^{B} \left\lVert
# \frac{\partial S}{\partial x_{b,T-d}} \right\rVert^2}$$

# %%
def my_gradient_by_distance(model, x, weights):
    ...

gradient_by_distance = exercises.yours(my_gradient_by_distance, "gradient_by_distance")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `x = x.clone().requires_grad_()`, then `torch.autograd.grad(S, x)[0]` is (B, T, D). `flip(0)` reverses the distances.
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
# Now we measure untrained models of width 32. They read random vectors. An LSTM has a memory $c$. At each step its **forget
# gate** $f_t$ multiplies the memory, and its input gate $i_t$ adds something new, $n_t$:
#
# $$c_t = f_t \odot c_{t-1} + i_t \odot n_t, \qquad f_t = \sigma(W x_t + U h_{t-1} + b)$$
#
# Here $\odot$ multiplies number by number, and the sigmoid $\sigma(z) = 1 / (1 + e^{-z})$ lies between 0 and 1. The gate $i_t$
# is computed like $f_t$, with weights of its own. A bias of $b = 5$ opens the forget gate, because $\sigma(5) = 0.993$. A GRU has a similar gate: its
# update gate multiplies the state. A rotation (here it may be a reflection, too) is a recurrent matrix that keeps the length of the state (notebook 00).
#
# **Predict.** Which of the lines fall, and which stay level: a plain RNN, an RNN with a rotation, a GRU, an LSTM, an LSTM with
# open gates, an R-Transformer?

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
def measure(make, T, draws=5, scale=1.0):
    """(draws, T): the gradient by distance, as a share of that at distance 0."""
    found = []
    for seed in range(draws):
        torch.manual_seed(seed)
        size = gradient_by_distance(make(), scale * torch.randn(16, T, 32), torch.randn(16, 32))
        found.append(size / size[0])
    return torch.stack(found)

# %%
fig, ax = plt.subplots(figsize=(8, 3.4))
print("mean of 5 draws   left after 19 steps (T = 20)   after 50 steps (T = 100)")
for (name, make), colour, line in zip(makers.items(), (0, 0, 2, 1, 1, 7), ("-", "--", "-", "-", "--", "-")):
    size = measure(make, T=100).mean(0)
    ax.semilogy(size.where(size > 1e-12, torch.nan), line, color=plots.COLOURS[colour], label=name)
    print(f"{name:17} {measure(make, T=20).mean(0)[19]:28.1e} {size[50]:26.1e}")
ax.set(xlabel="steps back", ylabel="gradient, share of that at 0", ylim=(1e-12, 20))
ax.set_title("RNN, GRU and LSTM lose the gradient; with open gates or attention a part stays")
handles, labels = ax.get_legend_handles_labels()
order = (4, 5, 1, 2, 3, 0)  # from the highest line to the lowest
ax.legend([handles[i] for i in order], [labels[i] for i in order], frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown]
# The axis is logarithmic, so a straight falling line is a product of equal factors. The plain RNN, the GRU and the LSTM lose the
# gradient within 50 steps. With a rotation the RNN loses it more slowly: the matrix keeps the length. With open gates a large part stays.
#
# In the R-Transformer, attention leads from every position to the last one in a single step. Beyond its [window](../docs/glossary.md#window) the line is
# level. Attention divides its weight among all positions. So less arrives at each position at $T = 100$ than at $T = 20$.
#
# **Why does the RNN with a rotation still lose it?** The slope of the tanh is nearly 1 only near 0. So we try tiny inputs.

# %%
def rotation():
    model = network("rnn", rotation=True)
    for bias in (model.network.bias_ih_l0, model.network.bias_hh_l0):
        torch.nn.init.zeros_(bias)
    return model

for scale in (1.0, 0.001):
    size = measure(rotation, T=100, scale=scale)[:, 50]
    print(f"RNN, rotation, no biases, inputs times {scale:<5}: left after 50 steps {size.min():.1e} to {size.max():.1e}")

# %% [markdown]
# Then nothing is lost. So the slope of the tanh is the cause.
#
# **Is it really the forget gate?** We keep the LSTM and change only the bias $b$. If the gate matters, a larger bias gives a larger factor per step.

# %%
print("bias   gate = sigmoid(bias)   measured factor per step (mean of steps 10 to 40, T = 400)")
for bias in (0.0, 1.0, 2.0, 3.0, 5.0):
    size = measure(lambda: network("lstm", bias), T=400).log10()
    factor = 10 ** ((size[:, 40] - size[:, 10]) / 30)
    print(f"{bias:4}   {torch.tensor(bias).sigmoid():20.3f}   {factor.mean():23.3f} ± {factor.std():.3f}")

# %% [markdown]
# The factor rises with the bias, so the forget gate matters. The factor is larger than $\sigma(b)$ in each row. We did not look
# for the reason.
#
# The line of the open gates *rises* towards the far end of the figure. Do open gates amplify a gradient with distance? In the
# figure, a distance of 99 is also position 1. So the line may rise because the distance is long, or because the sequence
# starts there. We measure the same distances in a longer sequence, where they are far from the start.

# %%
short, long = (measure(lambda: network("lstm", 5.0), T) for T in (100, 400))
print("LSTM, gates open    distance 19    distance 50    distance 75    distance 99")
for T, size in ((100, short), (400, long)):
    print(f"T = {T}         ", *(f"{size[:, d].mean():8.2f} ± {size[:, d].std():.2f}" for d in (19, 50, 75, 99)))

# %% [markdown]
# With $T = 400$, the four numbers are about equal. So the distance is not the reason for the rise: the start is. The 1.1 after
# 19 steps at $T = 20$ was measured at the start, too. Far from the start, the gradient falls to about a fifth in the first few steps and then stays level (why is open).
#
# ## 4. Does it matter for learning?
#
# Does a model with a larger gradient also learn more? Here are the numbers of the first figure: mean ± [standard deviation](../docs/glossary.md#standard-deviation) of
# three seeds.

# %%
print("right answers in % (a guess: 12.5)   T = 5               T = 20")
print("after … updates              rate     1,000     rate        200          500        1,000")
for name in names:
    print(f"{name:26}", end="")
    for T, runs in studies.items():
        right = torch.tensor([[100 * test["right"][0] for test in run["test"]] for run in runs[name]])  # (seeds, 3)
        shown = right[:, -1:] if T == 5 else right
        print(f"{runs[name][0]['rate']:7}", *(f"{m:6.1f} ± {s:4.1f}" for m, s in zip(shown.mean(0), shown.std(0))), end="")
    print()

# %% [markdown]
# Two [controls](../docs/glossary.md#control) help to read this table. The first compares the two LSTMs at equal learning rates, and shows each seed of the
# RNN. The second is the best score of a model that ignores the order. Such a model knows only how often each symbol occurred
# among the first $T - 1$. (It can leave out the last position, because the first symbol never stands there.) Its best answer is the most frequent symbol. The ± says how
# far chance moves a score on 1,000 sequences (one standard deviation).

# %%
import json
runs = [run for run in json.load(open("../studies/first_symbol.json"))["runs"] if run["problem"] == "T = 20"]
for name in ("LSTM", "LSTM, gates open"):
    for rate in (0.001, 0.003, 0.01):
        right = [100 * run["test"][-1]["right"][0] for run in runs if (run["model"], run["rate"]) == (name, rate)]
        print(f"{name:17} rate {rate:5}, T = 20: {min(right):5.1f} to {max(right):5.1f} %")
seeds = [f"{100 * run['test'][-1]['right'][0]:.1f}" for run in studies[20]["RNN"]]
print("RNN               rate  0.01, T = 20, each seed:", *seeds, "%")
for T in (5, 20):
    counts = torch.nn.functional.one_hot(torch.randint(8, (100_000, T - 1)), 8).sum(1)
    best = counts.amax(1).float().mean() / (T - 1)
    print(f"best without the order, T = {T}: {100 * best:.1f} %, by chance ± {100 * (best * (1 - best) / 1000) ** 0.5:.1f}")

# %% [markdown]
# What the comparisons show, at this size and [budget](../docs/glossary.md#budget):
#
# - **The forget gate matters for learning, too.** The two LSTMs differ only in the forget gate's bias at the start: near 0,
#   or 5. At $T = 20$, the LSTM with a bias near 0 only guesses, and the LSTM with open gates learns the task. Both statements are true at each of the three rates.
# - **The gradient before training does not decide alone.** (In the task, the recurrent networks
#   start with weights of the same kind as in section 3.) Over 19 steps, the GRU loses about as much gradient as the LSTM,
#   but at the largest rate, 0.01, it learns the task with every seed. The plain RNN loses most, and one of its three seeds still scores 64.9 %. The other two are near the
#   best score without the order. Between 500 and 1,000 updates, the RNN's mean fell.
# - **Attention alone is not enough.** Without positions, a model scores about as much as is possible without the order. At
#   $T = 5$ its mean is a little higher. Chance can move all seeds alike, because they share the 1,000 test sequences.
# - **A window alone is not enough.** With $T = 5$ symbols, a window of 4 does not hold the first symbol at the last step. So a LocalRNN can only
#   guess.
# - **The R-Transformer needs both of its parts.** Without its LocalRNN or without its attention it does not learn the task at
#   either length. With sinusoids, a Transformer is always right without LocalRNN.
#
# ## Recap
#
# - All tasks here have one form: $y_t = f(x_1, \dots, x_t)$. The future stays hidden.
# - A loss is reported in nats, in bits or as a perplexity. A score needs a baseline beside it.
# - **Why is the past hard to hold?** In a recurrent network, a gradient is a product with one factor for each step. In our
#   untrained RNN, GRU and LSTM the gradient vanishes within 50 steps.
# - Open forget gates kept a part of the LSTM's gradient, and this LSTM learnt the task with 20 symbols. But the GRU learnt the
#   task with as small a gradient as the plain LSTM. So the gradient before training is only a part of the answer.
# - Attention reaches every position in one step. In our task it also needed positions or a LocalRNN.
# - Open: why does the GRU learn where the LSTM does not, reliably only at our largest rate? This was one toy task with models of one layer.
#   [Notebook 09](09_add_and_multiply.ipynb) goes to thousands of steps.
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
# 2. It depends on the baseline. Equal guesses have a perplexity of 10,000. Word frequencies are another baseline; first
#    measure what they give.
# 3. $0.99^{100} \approx 0.37$.
#
# </details>
# <details><summary>Paper map</summary>
#
# Wang et al. (2019), *R-Transformer*, sections 2 and 4. Section 3 follows Bengio et al. (1994), and Gers et al.
# (2000) for the forget gate.
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
# **Back:** [How far back does a model look?](00_start_here.ipynb) · **Index:** [README](../README.md) · **Words:**
# [glossary](../docs/glossary.md) · **On:** [What does a window see?](02_slide_a_window.ipynb)
