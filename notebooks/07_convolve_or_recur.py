# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Convolution, recurrence or attention: which tool for which past?
#
# The module below has three parts, which read the same sequence. Its output is their sum, and the picture first shows this sum. Choose
# a part. Then choose an output, and see on which inputs the output depends.

# %%
import torch
import rtx
from torch import nn
from rtx.lab import exercises, explore, plots, xray
_ = torch.set_num_threads(1), torch.manual_seed(0)

# %%
class Tools(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.recurrence = rtx.TCN(4, layers=2, kernel=3), nn.GRU(4, 4, batch_first=True)
        self.attention = rtx.nn.MultiHeadAttention(4, heads=1)

    def forward(self, x):
        return self.convolution(x) + self.recurrence(x)[0] + self.attention(x)

explore.xray(Tools(), torch.randn(1, 20, 4))

# %% [markdown]
# **Recurrence** sees the whole past, through one state that changes at every step. **Attention** sees the whole past directly. A
# **TCN** (temporal convolutional network, Bai et al., 2018) sees a fixed distance. All three *can see* the last ten inputs. But
# which of them *learns* to use them?
#
# - **You will** write the convolution of a TCN, train a small TCN with it, and (optional) set its weights by hand.
# - **You learn** what each tool learns soon or late, and why one test of memory is not enough.
# - **You need** a GRU ([01](01_frame_the_problem.ipynb)), a [window](../docs/glossary.md#window) ([02](02_slide_a_window.ipynb)), attention ([03](03_attend_to_the_past.ipynb)).
# - **Time:** 50 minutes, exercises included. The cells run in about 15 seconds.
#
# ## 1. A convolution that looks back, by hand
#
# How does a convolution read a sequence? Each output is a sum of a few inputs, each multiplied by a fixed weight. The set of weights is the **kernel**.
# The step between two neighbours of these inputs is the **dilation**. Here the kernel has three weights, and the dilation is 2.

# %%
x6, kernel, d = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.5, -2.0], 2
for t in range(6):
    terms = [(weight, x6[t - d * i] if t >= d * i else 0.0) for i, weight in enumerate(kernel)]
    print(f"output {t + 1}:", " + ".join(f"{w:4} · {value}" for w, value in terms), f" = {sum(w * value for w, value in terms):5.1f}")

# %% [markdown]
# Output 6 reads the inputs 6, 4 and 2. Before the sequence there are zeros. No output reads a later input: the convolution is **causal**.
#
# In a network, inputs are vectors and weights are matrices. With a kernel of $k$ matrices and dilation $d$ (Bai et al., section 3.3):
#
# $$y_t = \sum_{i=0}^{k-1} x_{t - d i} \, w_i$$
#
# **Exercise 1** (medium, 10 minutes). Write this convolution for `x` $(B, T, D)$ and a kernel `w` $(k, D, E)$. `w[0]` belongs to the present.

# %%
def my_dilated_convolution(x, w, d):
    ...  # (B, T, E)

dilated_convolution = exercises.yours(my_dilated_convolution, "dilated_convolution")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Put `d * (len(w) - 1)` zeros before the sequence: `torch.nn.functional.pad(x, (0, 0, zeros, 0))`. Then each $x_{t - d i}$ is a slice.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_dilated_convolution(x, w, d):
#     T, before = x.shape[1], d * (len(w) - 1)
#     padded = torch.nn.functional.pad(x, (0, 0, before, 0))
#     return sum(padded[:, before - d * i : before - d * i + T] @ w[i] for i in range(len(w)))
# ```
#
# </details>
#
# The R-Transformer is a model with small recurrent networks in windows ([LocalRNNs](../docs/glossary.md#localrnn)), followed by attention. Its paper says that a convolution ignores the order of
# the inputs that it sees. **Predict.** We swap two of them. Does the output change?

# %%
w, x = torch.randn(3, 4, 4), torch.randn(1, 6, 4)
swapped = x[:, [0, 3, 2, 1, 4, 5]]
change = (dilated_convolution(x, w, 2) - dilated_convolution(swapped, w, 2))[0, -1].norm() / dilated_convolution(x, w, 2)[0, -1].norm()
print(f"inputs 2 and 4 swapped: the change of output 6 is {change:.1f} times as large as output 6 (norms)")

# %% [markdown]
# <details><summary>Answer</summary>
#
# It changes, because each delay has its own matrix ([02](02_slide_a_window.ipynb), section 6, has the control). The sentence of the paper is wrong for such a convolution.
#
# </details>
#
# ## 2. How far does a stack see?
#
# A TCN is a stack of blocks. A block has two convolutions with the same dilation, each followed by a ReLU, and a [residual connection](../docs/glossary.md#residual-connection). The dilation doubles
# from block to block: 1, 2, 4, and so on.
#
# **Exercise 2** (medium, 5 minutes). How many inputs does the last output of $L$ blocks with kernel $k$ depend on?

# %%
def my_tcn_reach(L, k):
    ...  # a whole number

tcn_reach = exercises.yours(my_tcn_reach, "tcn_reach")

# %% [markdown]
# <details><summary>Hint</summary>
#
# One convolution adds $(k - 1) d$ positions. Each of the dilations 1, 2, 4, … has two convolutions.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_tcn_reach(L, k):
#     return 1 + 2 * (k - 1) * (2**L - 1)
# ```
#
# </details>
#
# We build a TCN from your convolution, and measure.

# %%
class Block(nn.Module):
    def __init__(self, D, k, d):
        super().__init__()
        self.d, self.kernels = d, nn.Parameter((2 * torch.rand(2, k, D, D) - 1) / (k * D) ** 0.5)
        self.biases = nn.Parameter(torch.zeros(2, D))

    def forward(self, x):
        y = (dilated_convolution(x, self.kernels[0], self.d) + self.biases[0]).relu()
        return (x + (dilated_convolution(y, self.kernels[1], self.d) + self.biases[1]).relu()).relu()

def tcn(D, L, k):
    return nn.Sequential(*[Block(D, k, 2**layer) for layer in range(L)])

for L, k in ((1, 4), (2, 3), (3, 4)):
    print(f"{L} blocks, kernel {k}: formula {tcn_reach(L, k):2}, measured {xray(tcn(4, L, k), torch.randn(1, 48, 4)).span:2}")

# %% [markdown]
# ## 3. Three tasks, four kinds of past
#
# **Copy memory** (Bai et al.): read letters, wait in silence, then say the letters. The past is needed at a *distance*. **Parity**: is the number of ones so
# far odd? The past is needed *as a whole*. **Rule and book**: a text begins with a book of pairs of symbols. A flag says how each later symbol is made. With flag r, a fixed *rule* makes
# it from the two symbols before it: the past is needed *nearby*. With flag b, we find the symbol before it in the *book*, and write its partner in the pair: the past is needed *by content*. (In the print, each flag stands one symbol early. The first one has no meaning, because the
# first two symbols are random.)

# %%
import matplotlib.pyplot as plt
from rtx.tasks import task_by_name
plots.style()

copy = task_by_name("copy-memory", length=8, letters=5)
example = copy.split("test")[0]
symbols = "_abcdefgh?"  # the first ? ends the silence; each further one asks for a letter
print("copy memory  reads ", "".join(symbols[i] for i in example.inputs.argmax(-1)))
print("             answer", "".join(symbols[i] for i in example.target))
bits = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1, 1, 1])
print("parity       reads ", "".join(map(str, bits.tolist())))
print("             answer", "".join(map(str, (bits.cumsum(0) % 2).tolist())))
dial = task_by_name("locality-dial", length=16, local=1.0, long=1.0, symbols=5).split("test")[2].inputs
print("rule and book: the book", " ".join("ABCDE"[i] + "ABCDE"[j] for i, j in zip(dial[:5, :5].argmax(1), dial[:5, 5:10].argmax(1))))
print("             text  ", "".join("ABCDE"[i] for i in dial[5:, :5].argmax(1)))
print("             next  ", "".join("rb"[int(flag)] for flag in dial[5:, 10]), "(r: by the rule, b: by the book)")

# %% [markdown]
# `studies/which_past.py` trains models of 35,000 to 41,000 parameters on these tasks (not each model on each task). Each model has the best of four
# [learning rates](../docs/glossary.md#learning-rate) (three for parity), chosen on [validation data](../docs/glossary.md#validation-data). Each is trained with three **seeds**: a seed sets the initial weights and the training sequences. The tests are after 100, 200 and 400
# **updates** (steps of Adam, with 32 sequences each). The Transformers have two layers. Their positions are sinusoids, or **relative** ([05](05_encode_position.ipynb)): attention knows each distance below 16. "LSTM, gates open" starts with open forget gates ([01](01_frame_the_problem.ipynb)). The R-Transformers have two blocks with a window of 4, and no positions. Transformers and R-Transformers come with **post-norm**
# (a [LayerNorm](../docs/glossary.md#layer-normalisation-layernorm) after each residual sum) and **pre-norm** (a LayerNorm before each sublayer). "LocalRNNs" are three layers of LocalRNNs with a window of 7, without attention: they see $1 + 3 \cdot 6 = 19$ inputs. The TCNs have
# four blocks with kernel 6 (151 inputs), and two blocks with kernel 5 (25 inputs).

# %%
from rtx.lab.studies import chosen_runs

def scores(problem, name, scale):
    """By model: results after 100, 200 and 400 updates, (3, seeds)."""
    runs = chosen_runs("../studies/which_past.json", problem)
    return {model: scale * torch.tensor([[run["test"][at][name][0] for run in seeds] for at in range(3)]) for model, seeds in runs.items()}

def dots(ax, table, **labels):
    for row, results in enumerate(table.values()):
        for shift, part, mark, colour, updates in zip((-0.22, 0, 0.22), results, "vso", plots.COLOURS, (100, 200, 400)):
            ax.plot([part.min(), part.max()], [row + shift] * 2, color=colour)
            ax.plot(part.mean(), row + shift, mark, color=colour, label=f"{updates} updates" if row == 0 else None)
    ax.set(ylim=(len(table) - 0.5, -0.5), **labels)
    ax.set_yticks(range(len(table)), table)

def numbers(title, table, digits=0):
    print(f"{title}, after 100, 200, 400 updates, mean ± standard deviation over seeds")
    for model, results in table.items():
        print(f"    {model:32}", "   ".join(f"{part.mean():6.{digits}f} ± {part.std():5.{digits}f}" for part in results))

# %% [markdown]
# ## 4. Copy memory: a distance
#
# First your TCN. A sequence has five letters, drawn from eight. The silence has 8 steps: seven blanks and the first "?". So each letter is wanted 13 steps after it was read.
#
# **Predict.** Three blocks see 43 inputs, one block sees 7. Which of them learns the task in 150 updates? A guess among eight letters is right in 12.5 %.

# %%
from rtx.tasks.loader import loader

def recalled(model, silence):
    batch = next(iter(loader(task_by_name("copy-memory", length=silence, letters=5), "test", 200)))
    with torch.no_grad():
        return 100 * (model(batch.inputs.double())[:, -5:].argmax(-1) == batch.targets[:, -5:]).float().mean().item()

trained = {}
for L in (1, 3):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 24), tcn(24, L, 4), nn.Linear(24, 10))
    trained[L] = model.double()  # 64 bits: so exact that every processor learns the same
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for update, batch in zip(range(150), loader(copy, "train", 32)):
        loss = nn.functional.cross_entropy(model(batch.inputs.double()).flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{L} block{'s' if L > 1 else ''}, sees {tcn_reach(L, 4):2}: {recalled(model, 8):5.1f} % of the letters")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Three blocks learn most of it. One block stays at the guess: it never sees the letter, so no training can help.
#
# </details>
#
# What has the TCN learnt? The distance never changes. So a TCN can solve the task by a fixed *delay*: it repeats every input 13 steps later.
#
# **Exercise 3** (hard, optional, 15 minutes). Make a delay of `n` steps by hand, from `L` convolutions with kernel 2 and dilations 1, 2, 4, … There is no ReLU here.
# Each layer either passes its input on, or delays it by its dilation. Return the kernels, $(L, 2, D, D)$; $n < 2^L$.

# %%
def my_delay_kernels(n, L, D):
    ...  # (L, 2, D, D)

delay_kernels = exercises.yours(my_delay_kernels, "delay_kernels")

# %% [markdown]
# <details><summary>Hint</summary>
#
# $13 = 8 + 4 + 1$. Which layers delay? `n >> layer & 1` is the binary digit of this layer.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_delay_kernels(n, L, D):
#     kernels = torch.zeros(L, 2, D, D)
#     for layer in range(L):
#         kernels[layer, n >> layer & 1] = torch.eye(D)
#     return kernels
# ```
#
# </details>
#
# **Predict.** We test the delay of 13 and the trained TCN with silences of 6 to 10 steps. The training had 8. How many letters does each recall?

# %%
def delayed(x):
    for layer, kernel in enumerate(delay_kernels(13, 4, 10)):
        x = dilated_convolution(x, kernel.double(), 2**layer)
    return x

print("silence   delay of 13, by hand   trained TCN   (letters recalled in %)")
for silence in (6, 7, 8, 9, 10):
    print(f"{silence:7} {recalled(delayed, silence):22.1f} {recalled(trained[3], silence):13.1f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Both work at the silence of 8 only. With one step more or less, both are close to a guess.
#
# </details>
#
# So the trained TCN, too, learnt one distance. Is this special to convolutions? The study has longer sequences: ten letters, and a silence of 20 steps, or of 15 to 25
# steps, drawn anew for each sequence.

# %%
fig, axes = plt.subplots(1, 3, figsize=(10.5, 4.7), sharey=True)
copies = {"silence of 20": scores("copy, silence of 20", "as trained", 100), "same models, silence of 21": scores("copy, silence of 20", "21 steps", 100),
          "trained and tested with 15 to 25": scores("copy, silence of 15 to 25", "as trained", 100)}
for ax, (title, table) in zip(axes, copies.items()):
    dots(ax, table, title=title, xlabel="letters recalled (%), line: seeds", xlim=(0, 103))
    ax.axvline(12.5, color="0.5", linestyle=":")
fig.legend(*axes[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=3)
fig.suptitle("after 400 updates: one step more destroys what TCN and pre-norm Transformers learnt, not what GRU and R-Transformers learnt", fontsize=11)
plt.show()

# %%
for title, table in copies.items():
    numbers(f"{title}: letters recalled in %", table)

# %% [markdown]
# The dotted line is the guess. After 400 updates:
#
# - The **TCN that sees 25 inputs** stays at the guess. Each letter is wanted 30 steps later, so it never sees the letter.
# - The **TCN that sees 151 inputs** learns the silence of 20. At 21 it is at the guess, like a delay made for 20.
# - Both **pre-norm Transformers** recall nearly all letters at 20. At 21, 17 % are left with sinusoids, and a guess with relative positions. Both may have learnt one distance or absolute places: through the mask, relative attention can find places, too. The post-norm one with sinusoids has 13, 77 and 100 % at 20, and 17 % on average at 21.
# - The **R-Transformers**, the **GRU** and the post-norm [Transformer](../docs/glossary.md#transformer) with relative positions recall fewer letters at 20. But at 21 they recall about as many as at 20. So they need no exact silence.
# - The **LSTM** stays at the guess, and with open gates a little above it.
#
# In the third panel the silence varies, and no fixed delay solves the task. After 400 updates, the post-norm Transformer with relative positions recalls most on average (34, 98 and 100 % with the three seeds), and the post-norm R-Transformer comes next. The TCN recalls less than 20 %.
#
# So copy memory with one silence does not measure memory alone: a model can learn one distance.
#
# ## 5. Parity: the whole past
#
# To give the next answer, a model needs its last answer and the new bit. A model that does not keep its last answer needs *every* bit of the past, because each 1
# flips the answer.
#
# **Predict.** Trained with 24 steps, tested with 96. Which models can be right at step 96?
#
# <details><summary>Answer</summary>
#
# The GRU and the LSTM can: their [state](../docs/glossary.md#state) can keep the last answer. The LocalRNNs cannot. They see 19 places. Up to step 18, one of these is before the first bit and shows the start. At step 19 they see all bits, but not that the sequence starts there. From step 20 on, bits are missing. The others see all 24 bits in training; the test shows what they learn.
#
# </details>

# %%
parity = chosen_runs("../studies/which_past.json", "parity")
fig, axes = plt.subplots(1, 2, figsize=(10.5, 4))
dots(axes[0], scores("parity", "24 steps", 100), title="tested with 24 steps, as in training", xlabel="right (%)", xlim=(45, 102))
fig.legend(*axes[0].get_legend_handles_labels(), frameon=False, loc="outside lower left", ncols=3)
for name, style in zip(("GRU", "TCN, sees 151", "LocalRNNs, see 19", "R-Transformer, pre-norm"), ("-", "--", ":", "-.")):
    by_step = 100 * torch.tensor([run["test"][-1]["by step"] for run in parity[name]]).mean(0)
    axes[1].plot(range(1, 97), by_step, style, label=name)
axes[1].axvline(24, color="0.6")
axes[1].set(title="by step, after 400 updates (mean of the seeds)", xlabel="step (grey: longest in training)", ylabel="right (%)", ylim=(40, 103))
axes[1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
fig.suptitle("running parity: right answers by model and by step", fontsize=11)
plt.show()
for steps in (24, 96):
    numbers(f"% right up to step {steps}", scores("parity", f"{steps} steps", 100))

# %%
print("% right after 400 updates, mean of the seeds          steps 1 to 8   9 to 16   17 to 24")
for model, runs in parity.items():
    by_step = 100 * torch.tensor([run["test"][-1]["by step"] for run in runs]).mean(0)
    print(f"    {model:32}", "".join(f"{by_step[start : start + 8].mean():11.0f}" for start in (0, 8, 16)))

# %% [markdown]
# The GRU and the LSTM are right at all 96 steps, with every seed, after 100 updates. The LocalRNNs are right up to step 18, where they still see the start. Later they are close to a guess (50 %).
#
# The TCN, the Transformers and the R-Transformers see all 24 bits of the training. Still they are right in only 67 to 75 % after 400 updates. In steps 17 to 24 they guess, so
# they have learnt short beginnings only. It is not enough to see all bits.
#
# ## 6. Rule and book: nearby, or by content
#
# The R-Transformer has a recurrent network in a window *and* attention. Does having both help on a task that needs only one of them? In **rule alone**, the symbols with flag b are random, so only the rule can be learnt. In **book alone**, the symbols with flag r are random. All models see the whole sequence, with its book. We know the best possible loss, because we know how each symbol is made. We plot how far a model is above this loss, in [nats](../docs/glossary.md#bit-nat) (bits times 0.69) per symbol.
#
# **Predict.** Rule alone, book alone, both: which model comes close to the best loss first?

# %%
fig, axes = plt.subplots(1, 3, figsize=(10.5, 3.7), sharey=True)
for ax, problem in zip(axes, ("rule alone", "book alone", "rule and book")):
    dots(ax, scores(problem, "both", 1), title=problem, xlabel="nats above the best loss", xlim=(-0.02, None))
fig.legend(*axes[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=3)
fig.suptitle("nats above the best possible loss, after 100, 200 and 400 updates (line: lowest to highest seed)", fontsize=11)
plt.show()
for problem in ("rule alone", "book alone", "rule and book"):
    numbers(f"{problem}: nats above the best loss", scores(problem, "both", 1), 3)
guess = torch.tensor(5.0).log()  # in the first two problems, half of the symbols cannot be learnt
print(f"a guess among the five symbols: {guess / 2:.3f} if only the rule or only the book can be learnt, {guess:.3f} if both can")

# %% [markdown]
# - **Rule alone:** after 400 updates all models are within 0.01 nats of the best loss.
# - **Book alone:** after 100 updates the pre-norm Transformer with relative positions is within 0.02 nats, and ahead of all others with every seed. After 200, both R-Transformers and both Transformers with relative positions are there. The pre-norm Transformer with sinusoids is there after 400. After 400, the post-norm one has 0.68 and the TCN 0.72 (a guess: 0.80).
# - **Rule and book:** after 100 updates the pre-norm R-Transformer is ahead of all Transformers on average. After 200 both R-Transformers and the pre-norm Transformer with relative positions are within 0.01 nats. After 400 the other Transformers and the GRU are within 0.05 on average. The TCN is at 0.435.
#
# With post-norm and sinusoids only, we would have concluded that a Transformer fails in book alone. Two [controls](../docs/glossary.md#control) show that this is wrong. The GRU, without attention, learns
# most of the look-up, too. The R-Transformer learns *sooner* than a Transformer with sinusoids and the same norm: after 100 updates it is ahead in all three problems and with every seed. It is ahead of the pre-norm Transformer with relative positions only in rule and book, and on average. (With rates chosen after 100 updates, the seeds overlap.) After 400, the pre-norm
# models differ by at most about 0.01 nats.
#
# ## Recap
#
# In this study (35,000 to 41,000 parameters, at most 400 updates, three seeds):
#
# - **A fixed distance:** a TCN that sees far enough, or a pre-norm Transformer. Both fail when the silence is one step longer.
# - **A varied distance:** no model learnt it with every seed, and the seeds of the best four overlap. Two models chose our largest rate.
# - **The whole past:** a GRU or an LSTM. They alone learnt parity in 400 updates, and were right beyond the trained length.
# - **Nearby:** all models learnt the rule.
# - **By content:** R-Transformers and a pre-norm Transformer with relative positions were first. A Transformer with sinusoids was later.
# - The norm and the positions changed which model was ahead. In book alone, the Transformer with sinusoids was ahead of the GRU only with pre-norm.
# - Open: other sizes, and more updates.
#
# ## Quiz
#
# 1. A TCN has four blocks with kernel 6. A letter is wanted 160 steps later. Will longer training help?
# 2. Your model recalls all letters after a silence of 20. How do you find out whether it learnt exactly this silence?
# 3. Which of the three tools would you choose for a sensor that must count events modulo 2, over more steps than in training?
#
# <details><summary>Answers</summary>
#
# 1. No. It sees $1 + 2 \cdot 5 \cdot 15 = 151$ inputs.
# 2. Test it with a silence of 21. If it fails, it learnt one distance, or absolute positions.
# 3. Recurrence. Its state can keep the last answer. Section 5 tests four times the trained length.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# Bai et al. (2018), *An Empirical Evaluation of Generic Convolutional and Recurrent Networks for Sequence Modeling*; Wang et al. (2019), *R-Transformer*.
#
# | in the papers | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | dilated causal convolution (Bai, section 3.3) | $k$, $d$ | section 1 | `rtx.nn.convolution.CausalConv` |
# | residual blocks (Bai, section 3.4) | | section 2 | `TCN` |
# | copy memory (Bai, sections 4 and 5.2) | $T$ | sections 3, 4 | task `copy-memory`, recipe `copy-memory` |
# | "ignore the sequential information" (Wang, section 4.2) | | section 1 | |
# | local and long dependencies at once (Wang, section 1) | | section 6 | task `locality-dial`, recipe `locality-dial` |
#
# </details>
#
# **Back:** [How can attention read a long text in pieces?](06_carry_memory.ipynb) · **Index:** [README](../README.md) · **Words:** [glossary](../docs/glossary.md) · **On:**
# [Can a recurrent network read phrases?](08_split_into_channels.ipynb)
