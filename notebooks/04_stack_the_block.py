# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Stack the block
#
# **What does each of the block's three sublayers add, and does it matter where the norm stands?**
#
# A block of R-Transformer stacks a LocalRNN, an attention and a feed-forward network, each with a residual and a
# LayerNorm. Here you build it from its equation, take out one part at a time, and move the norm.
#
# - **You will** write the step that the block repeats, hold your block against `rtx`, prove what attention alone
#   cannot tell, and train small models with one part missing.
# - **You learn** what each sublayer can see, which of them notices order, and what post-norm and pre-norm do to deep
#   stacks.
# - **You need** LocalRNN ([notebook 02](02_slide_a_window.ipynb)) and tables of derivatives
#   ([notebook 00](00_start_here.ipynb)); attention as a weighted mean of what came before.
# - **Time:** 35 minutes to read and try; the cells run in about 40 seconds.
#
# ## Paper map
#
# Wang et al. (2019), *R-Transformer*, section 3.3.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | Eq. 8, lines 1-2 | $h_t, \hat h_t$ | section 1 | `Residual(LocalRNN(…))` |
# | Eq. 8, lines 3-4 | $u_t, \hat u_t$ | section 1 | `Residual(MultiHeadAttention(…))` |
# | Eq. 8, lines 5-6 | $m_t, x_t^{i+1}$ | section 1 | `Residual(FeedForward(…))` |
# | "does not rely on any position embeddings" | | sections 3, 4 | `Transformer(position=…)` |
# | Eq. 8's order, and the authors' code | | section 5 | `norm="post"`, `norm="pre"` |

# %%
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots, receptive_field
torch.set_num_threads(1)
plots.style()

# %% [markdown]
# ## 1. One step, three times
#
# Eq. 8 writes a block in six lines. They are the same two lines three times, so here they are once, with $f$ for
# the sublayer:
#
# $$z_1, \dots, z_T = f(x_1, \dots, x_T) \qquad \hat z_t = \text{LayerNorm}(z_t + x_t) \qquad (8)$$
#
# The sum with $x_t$ is the **residual**: a way around the sublayer. **LayerNorm** shifts and scales the $D$ numbers
# of each position to mean 0 and variance 1, then applies a learnt gain and bias.
#
# **Exercise 1** (easy, 5 minutes). Write `residual(x, sublayer, norm)`: one step of Eq. 8. `sublayer` and `norm` are
# functions from $(B, T, D)$ to $(B, T, D)$.

# %%
def residual(x, sublayer, norm):
    ...  # Eq. (8)

exercises.residual(residual)

# %% [markdown]
# <details><summary>Hint</summary>
#
# What is in the brackets of LayerNorm in Eq. 8: the sublayer's output, or a sum?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def residual(x, sublayer, norm):
#     return norm(x + sublayer(x))
# ```
#
# </details>
#
# The whole block, with the paper's letters. The output of each line is the input of the next:

# %%
def naive_block(x, local_rnn, attention, feed_forward, norms):
    h = norms[0](local_rnn(x) + x)  # Eq. (8)
    u = norms[1](attention(h) + h)
    return norms[2](feed_forward(u) + u)

# %% [markdown]
# `rtx.RTransformer` holds its blocks in `blocks`, and each block its three steps. Take one apart and compare:

# %%
_ = torch.manual_seed(0)
D = 32
x = torch.randn(4, 24, D)  # (B, T, D)
model = rtx.RTransformer(D, layers=1, heads=2, window=4)
steps = model.blocks[0]
naive = naive_block(x, *(step.sublayer for step in steps), [step.norm for step in steps])
torch.testing.assert_close(naive, model(x))
print("Eq. 8 and rtx agree:", *(type(step.sublayer).__name__ for step in steps))

# %% [markdown]
# ## 2. What each sublayer sees
#
# Take the three sublayers by themselves, without residual and norm.
#
# **Predict.** Sketch the table of derivatives of each: which input $s$ moves which output $t$? And which of the three has the
# most weights?
#
# <details><summary>Answer</summary>
#
# LocalRNN: a band, $M$ wide. Attention: the whole triangle, near and far alike. Feed-forward: the diagonal, for it
# treats each position by itself. It has the most weights: $8D^2$, against $6D^2$ in a GRU and $4D^2$ in attention,
# biases left aside.
#
# </details>

# %%
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, Residual

_ = torch.manual_seed(0)
sequence = torch.randn(1, 16, 8)
sublayers = {"LocalRNN": LocalRNN(8, window=4), "attention": MultiHeadAttention(8, heads=2)}
sublayers["feed-forward"] = FeedForward(8)
fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True)
for ax, (name, sublayer) in zip(axes, sublayers.items()):
    moved = receptive_field(sublayer, sequence)
    image = plots.receptive_field_map(ax, moved / moved.sum(1, keepdim=True), name, low=0.003)
    ax.set(xticks=range(2, 17, 2), yticks=range(2, 17, 2))
    ax.label_outer()
    weights = sum(p.numel() for p in sublayer.parameters() if p.ndim == 2)
    seen = (moved[-1] > 0).sum()
    print(f"{name:12} inputs that move output 16: {seen:2}   weights: {weights / 8**2:.0f} D²")
fig.colorbar(image, ax=axes, shrink=0.8, extend="min", label="share of what moves the output")
plt.show()

# %% [markdown]
# A band, a triangle, a diagonal; white is exactly zero. Two sublayers carry something from position to position:
# LocalRNN from its window, attention from anywhere before. The third works on what has arrived.
#
# ## 3. Who notices order?
#
# The last position's attention is a weighted mean of the past:
#
# $$u_T = W^o \sum_{s=1}^{T} \alpha_s \, v_s, \qquad
# \alpha_s = \frac{\exp(\langle q_T, k_s\rangle / \sqrt{K})}{\sum_{r=1}^{T} \exp(\langle q_T, k_r\rangle / \sqrt{K})}$$
#
# (one head shown). Now shuffle positions 1 to $T-1$ and leave the last in its place.
#
# **Predict.** Which of these untrained models changes its last output? (a) attention and feed-forward, one block;
# (b) the same, two blocks; (c) one block, with sinusoids added to the input; (d) one block of R-Transformer.
#
# <details><summary>Answer</summary>
#
# (a) does not: a sum does not care for the order of its terms. (c) and (d) do, as intended. And so does (b)! In its
# first block position $s$ attends to positions 1 to $s$ only. So what leaves the first block at $s$ depends on who
# stood before it, and the second block gets to see that. The causal mask leaks order.
#
# </details>

# %%
_ = torch.manual_seed(0)
T = x.shape[1]
shuffled = torch.cat([torch.randperm(T - 1), torch.tensor([T - 1])])
models = {
    "(a) attention, 1 block": rtx.Transformer(D, layers=1, heads=2, position="none"),
    "(b) attention, 2 blocks": rtx.Transformer(D, layers=2, heads=2, position="none"),
    "(c) with sinusoids": rtx.Transformer(D, layers=1, heads=2, position="sinusoidal"),
    "(d) with LocalRNN": rtx.RTransformer(D, layers=1, heads=2, window=4),
}
for name, model in models.items():
    last, last_shuffled = (model.double()(s.double())[:, -1] for s in (x, x[:, shuffled]))
    change = ((last - last_shuffled).norm() / last.norm()).item()
    print(f"{name:24} changes by {100 * change:4.1f} %   unchanged to 1e-6: {change < 1e-6}")

# %% [markdown]
# (a) is blind to order for every choice of its weights, so no training helps it. LocalRNN is the paper's cure,
# positions are the Transformer's, and a second block is a crutch that comes for free with causal masks.
#
# **Exercise 2** (easy, 5 minutes). Write `notices_order(model, x)`: True if the last output of a causal model changes when the
# first two of the positions (B, T, D) change places. Rounding does not count.

# %%
def notices_order(model, x):
    ...

exercises.notices_order(notices_order)

# %% [markdown]
# <details><summary>Hint</summary>
#
# `x[:, [1, 0, 2, 3]]` swaps the first two of four; `torch.allclose` forgives the last digits.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def notices_order(model, x):
#     places = [1, 0, *range(2, x.shape[1])]
#     return not torch.allclose(model(x)[:, -1], model(x[:, places])[:, -1], atol=1e-5)
# ```
#
# </details>
#
# ## 4. Leave one out
#
# The next task is made so that each half of it needs one sublayer. A sequence of 24 symbols holds a **key**, A or B,
# somewhere in its first half, and just before its end a **pair**, XY or YX. The last symbol asks: which key, and
# which order? The rest is noise.
#
# ```
# . . . . A . . . . . . . . . . . . . . . . X Y ?      →  key A, X first
# . B . . . . . . . . . . . . . . . . . . . Y X ?      →  key B, Y first
# ```

# %%
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

def draw(size, T=24):
    x = torch.randint(4, (size, T))  # 0 to 3: noise
    key, order = torch.randint(2, (2, size))
    rows = torch.arange(size)
    x[rows, torch.randint(T // 2, (size,))] = 4 + key  # 4 or 5, early
    x[rows, T - 3], x[rows, T - 2] = 6 + order, 7 - order  # 6 then 7, or 7 then 6, late
    x[:, T - 1] = 8  # the question
    return one_hot(x, 9).float(), torch.stack([key, order], 1).float()

# %% [markdown]
# We build models with a part missing from the same bricks. A stack of bricks becomes a backbone when it inherits from
# `CausalModel`. `SequenceModel` puts a linear layer before the backbone and one after it. It reads the answer at the
# last position.

# %%
from rtx.models import CausalModel
from rtx.tasks.build import SequenceModel

class Stack(CausalModel):
    def __init__(self, steps):
        super().__init__()
        self.d_model, self.steps = D, torch.nn.Sequential(*steps)

    def forward(self, x, state=None):
        return self.steps(x)

local = lambda: LocalRNN(D, window=4)
attention = lambda: MultiHeadAttention(D, heads=2)
feed_forward = lambda: FeedForward(D)

def assemble(*sublayers, layers=1, norm="post"):
    torch.manual_seed(0)
    steps = (Residual(make(), D, norm) for _ in range(layers) for make in sublayers)
    return SequenceModel(Stack(steps), inputs=9, outputs=2, per="sequence")

# %%
def train(model, steps=100, learning_rate=5e-3, batch=32):
    torch.manual_seed(0)  # the same sequences for every model
    optimiser, losses = torch.optim.Adam(model.parameters(), learning_rate), []
    for _ in range(steps):
        inputs, answers = draw(batch)
        loss = binary_cross_entropy_with_logits(model(inputs), answers)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses

def verdicts(model, T=24):
    torch.manual_seed(1)
    inputs, answers = draw(2000, T)
    with torch.no_grad():
        right = ((model(inputs) > 0) == (answers > 0)).float().mean(0).tolist()
    return ["solved" if r > 0.95 else "coin toss" if r < 0.6 else "between" for r in right]

# %% [markdown]
# **Predict.** Four models of one block: all sublayers; no LocalRNN; no attention; no feed-forward. Which halves of
# the task does each solve? And at which loss does a model end that solves one half and tosses a coin for the other?
#
# <details><summary>Answer</summary>
#
# Without LocalRNN, the key but not the order: it is model (a) above. Without attention, the order but not the key,
# which lies outside the window. All sublayers: both. Without feed-forward: both, too; this task needs no more than a
# copy of what LocalRNN and attention find. A coin toss costs $\ln 2$, and the loss is the mean over both halves:
# $\frac{1}{2}\ln 2 \approx 0.347$.
#
# </details>

# %%
arms = {
    "all sublayers": assemble(local, attention, feed_forward),
    "no LocalRNN": assemble(attention, feed_forward),
    "no attention": assemble(local, feed_forward),
    "no feed-forward": assemble(local, attention),
}
losses = {name: train(model) for name, model in arms.items()}
for name, model in arms.items():
    key, order = verdicts(model)
    print(f"{name:16} key: {key:10} order: {order}")

# %%
fig, ax = plt.subplots(figsize=(7, 3.4))
for (name, values), line in zip(losses.items(), ("-", "--", ":", "-.")):
    means = torch.tensor(values).view(-1, 5).mean(1)  # of 5 steps
    ax.plot(range(3, 101, 5), means, line, label=name)
ax.axhline(0.347, color="0.6", linewidth=1)
ax.set(title="without LocalRNN or attention, half a coin toss is left (grey, 0.347)", ylim=(0, None))
ax.set(xlabel="training step", ylabel="loss (nats per answer)")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# Two curves fall to zero, two stay on the grey line. Longer training would not move those two, and that can be shown.
# Without LocalRNN, the two orders of a pair give one and the same output; without attention, so do the two keys:

# %%
inputs, _ = draw(100)
pair_swapped, key_swapped = inputs.clone(), inputs.clone()
pair_swapped[:, [21, 22]] = inputs[:, [22, 21]]
key_swapped[..., [4, 5]] = inputs[..., [5, 4]]
with torch.no_grad():
    for name, model in arms.items():
        key, order = ((model(inputs) - model(s)).abs().max().item() for s in (key_swapped, pair_swapped))
        print(f"{name:16} notices the key: {key > 1e-4!s:6} notices the order: {order > 1e-4}")

# %% [markdown]
# So is LocalRNN needed, or would positions do? Give the model without LocalRNN its sinusoids, and more steps at a
# smaller rate, which it needs. Then ask both at lengths they were not trained on.
#
# **Predict.** Both are trained at $T = 24$. Who still knows the order at $T = 96$?
#
# <details><summary>Answer</summary>
#
# Only the one with LocalRNN: its window moves along with the question. Sinusoids name absolute places, and at
# $T = 96$ the pair stands where no pair stood in training.
#
# </details>

# %%
_ = torch.manual_seed(0)
transformer = rtx.Transformer(D, layers=1, heads=2, position="sinusoidal")
sinusoids = SequenceModel(transformer, inputs=9, outputs=2, per="sequence")
_ = train(sinusoids, steps=300, learning_rate=3e-3)
for name, model in {"LocalRNN": arms["all sublayers"], "sinusoids": sinusoids}.items():
    (_, short), (_, long) = verdicts(model), verdicts(model, T=96)
    print(f"{name:10} order at T = 24: {short:10} order at T = 96: {long}")

# %% [markdown]
# Section 3 said that two blocks without LocalRNN and positions can tell order. Being able to is not the same as learning to:
# `train(assemble(attention, feed_forward, layers=2), steps=400, learning_rate=3e-3)` was still tossing coins for the
# order whenever we tried it.
#
# Keep in mind what this shows. The task was made to need one thing near and one far. It shows what the sublayers
# *can* do, not what real data need, and training on mixed lengths is left out. On real data, the paper leaves
# neither attention nor feed-forward out. Its nearest thing to a block without LocalRNN is its Transformer of equal $L$,
# $D$ and $H$: 98.2 % against R-Transformer's 99.1 % on MNIST, 3.34 against 2.37 nats per frame on Nottingham. That
# Transformer has fewer weights, too.
#
# ## 5. Norm after, or norm before?
#
# Eq. 8 normalises last: **post-norm**. The authors' own code normalises first, **pre-norm**, with no norm at the end:
#
# $$\text{post:} \quad \text{LayerNorm}(x + f(x)) \qquad\qquad \text{pre:} \quad x + f(\text{LayerNorm}(x))$$
#
# Paper and code are two different models. In `rtx` both are there, as `norm="post"`, the default, and `norm="pre"`. The
# code's weights also start differently: in a block, $W_q$, $W_k$, $W_v$ and $W_o$ are equal copies of one matrix, and two
# LocalRNNs are copies of one. So a position prefers itself at first. `rtx` draws every weight separately, unless you
# build a model with `init="copies"`. [docs/original-code.md](../docs/original-code.md) lists what else differs.

# %%
def naive_pre_block(x, local_rnn, attention, feed_forward, norms):
    h = x + local_rnn(norms[0](x))
    u = h + attention(norms[1](h))
    return u + feed_forward(norms[2](u))

_ = torch.manual_seed(0)
model = rtx.RTransformer(D, layers=1, heads=2, window=4, norm="pre")
steps = model.blocks[0]
naive = naive_pre_block(x, *(step.sublayer for step in steps), [step.norm for step in steps])
torch.testing.assert_close(naive, model(x))
print("agree:", tuple(naive.shape))

# %% [markdown]
# Under pre-norm the residuals add up, with nothing in their way: the output is $x$ plus what every sublayer has added.
#
# **Predict.** Stack 16 untrained blocks, 48 sublayers. How large are the numbers that leave block $l$, as a root mean
# square, under post-norm? Under pre-norm?
#
# <details><summary>Answer</summary>
#
# Post-norm: 1, after every block; an untrained LayerNorm says so. Pre-norm: it grows, but slowly. Every sublayer reads
# normalised input, so it adds something of about equal size, in a direction of its own. Squared sizes then add up:
# after $l$ blocks about $\sqrt{1 + c\,l}$, with a $c$ that depends on how the weights are drawn.
#
# </details>
#
# We also send a gradient down: from a random direction at the top, to the weights of each block.

# %%
def climb(norm, layers=16):
    torch.manual_seed(0)
    blocks = rtx.RTransformer(D, layers, heads=2, window=4, norm=norm).blocks
    outputs, direction = [x], torch.randn_like(x)
    for block in blocks:
        outputs.append(block(outputs[-1]))
    (outputs[-1] * direction).mean().backward()
    size = [h.square().mean().sqrt().item() for h in outputs[1:]]
    parts = [torch.stack([p.grad.norm() for p in block.parameters()]) for block in blocks]
    gradient = [part.norm().item() for part in parts]
    return size, gradient

found = {norm: climb(norm) for norm in ("post", "pre")}
for norm, (size, gradient) in found.items():
    picked = "  ".join(f"{size[layer - 1]:.2f}" for layer in (1, 4, 8, 16))
    print(f"{norm:4} size after blocks 1, 4, 8, 16: {picked}")
    print(f"     gradient, lowest / highest block: {gradient[0] / gradient[-1]:.2f}")

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4))
for norm, line in (("post", "-"), ("pre", "--")):
    for ax, values in zip(axes, found[norm]):
        ax.plot(range(1, 17), values, line, label=f"{norm}-norm")
        ax.set(xlabel="block", xticks=[1, 4, 8, 12, 16])
axes[0].set(title="pre-norm lets activations grow", ylabel="root mean square", ylim=(0, None))
axes[1].set(title="gradients of a block's weights stay alike", ylabel="norm of the gradient", ylim=(0, None))
axes[0].legend(frameon=False)
plt.show()
squared = [size**2 for size in found["pre"][0]]
lower, upper = (squared[7] - squared[0]) / 7, (squared[15] - squared[8]) / 7
print(f"pre: squared size grows per block by {lower:.2f} in the lower half, {upper:.2f} in the upper")

# %% [markdown]
# Left: post-norm is flat at 1; pre-norm climbs to about 2, its square by similar amounts in both halves. So what the
# authors' model hands to its last layer grows with depth, as no norm stands at its end. Right: under pre-norm
# the lowest block gets the largest gradient and it falls with height; under post-norm it is level, then falls. Both
# stay within a factor of about two: at the start, nothing explodes and nothing vanishes.
#
# What does each sublayer carry? The explorer shows two blocks of R-Transformer, each sublayer in a row of its own. Click a
# sublayer to switch it off.

# %%
explore.depends()

# %% [markdown]
# **Try.** Switch both attentions off: how far does the change still go, and why that far? Then switch the LocalRNNs off
# instead: which positions change now, and do neighbours change more than far ones? Does the feed-forward network carry
# anything from one position to another?
#
# The start is not the whole story; training takes steps. Change every weight matrix by 5 % noise, as a stand-in
# for a step, and watch the output.
#
# **Predict.** For which norm does the output move more in a stack of 16 blocks? And with a single block?
#
# <details><summary>Answer</summary>
#
# With one block, about equally. With 16, more under post-norm. There, the norm scales each sum back to size 1, so a
# sublayer's change counts as much in a high block as in a low one. Under pre-norm the sum has grown, and a
# change is small beside it.
#
# </details>

# %%
def shaken(norm, layers):
    torch.manual_seed(0)
    model = rtx.RTransformer(D, layers, heads=2, window=4, norm=norm)
    with torch.no_grad():
        before = model(x)
        for weight in model.parameters():
            if weight.ndim == 2:
                weight += 0.05 * weight.std() * torch.randn_like(weight)
        return ((model(x) - before).norm() / before.norm()).item()

for layers in (1, 4, 16):
    post, pre = (100 * shaken(norm, layers) for norm in ("post", "pre"))
    print(f"L = {layers:2}: the output moves by {post:4.1f} % (post), {pre:4.1f} % (pre)")

# %% [markdown]
# Liu et al. (2020, *Understanding the Difficulty of Training Transformers*) found the same for Transformers, and see in
# it why deep post-norm stacks are hard to train. So train two: 8 blocks, on the task of section 4, at its learning rate.
#
# **Predict.** One of the two learns the task, the other stays with coin tosses for both halves. Which?
#
# <details><summary>Answer</summary>
#
# Pre-norm learns it. Post-norm, which had no trouble with one block, does not at this rate.
#
# </details>

# %%
everything = (local, attention, feed_forward)
deep = {norm: assemble(*everything, layers=8, norm=norm) for norm in ("post", "pre")}
curves = {norm: train(model, steps=130, batch=16) for norm, model in deep.items()}
for norm, model in deep.items():
    key, order = verdicts(model)
    print(f"{norm:4} with 8 blocks   key: {key:10} order: {order}")

# %%
fig, ax = plt.subplots(figsize=(7, 3.2))
for (norm, values), line in zip(curves.items(), ("-", "--")):
    means = torch.tensor(values).view(-1, 5).mean(1)
    ax.plot(range(3, 131, 5), means, line, label=f"{norm}-norm")
ax.axhline(0.693, color="0.6", linewidth=1)
ax.set(title="8 blocks: pre-norm learns, post-norm tosses coins (grey, 0.693)", ylim=(-0.02, None))
ax.set(xlabel="training step", ylabel="loss (nats per answer)")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# Post-norm stays at the coin toss. It is not lost: at a learning rate of 0.001 it learnt the task when we tried
# `train(assemble(*everything, layers=8), steps=300, learning_rate=1e-3, batch=16)`, which takes half a minute. So the place of the norm does matter: it decides which learning rates work at which depth. The
# paper's deepest model, the one for MNIST, also has $L = 8$ and $D = 32$. The authors' code trains it, pre-norm, with
# Adam at 0.001.
#
# ## Recap
#
# - A block is one step done three times: a sublayer, a residual around it, a LayerNorm (Eq. 8).
# - LocalRNN sees a band and its order. Attention sees all of the past, as a set if there is but one block. The
#   feed-forward network sees its own position, and holds the most weights.
# - On a task that needs near order and a far symbol, leaving out LocalRNN loses the one, leaving out attention the
#   other, for good. Sinusoids replace LocalRNN at the length they were trained on.
# - Post-norm (Eq. 8) keeps activations at size 1; pre-norm (the code) lets them grow. A deep
#   stack is more forgiving with pre-norm.
#
# ## Quiz
#
# 1. A stack of blocks without attention, $M = 7$, one LocalRNN per block: how many blocks until 28 positions are in sight?
# 2. Shuffle a sequence, apply a sublayer, undo the shuffle: for which sublayer does this change nothing?
# 3. Under pre-norm, set all weights of all sublayers to zero, biases included. What does the stack compute? And under
#    post-norm?
#
# <details><summary>Answers</summary>
#
# 1. $L(M-1) + 1 \ge 28$ gives $L = 5$: it sees 31.
# 2. The feed-forward network, for it treats each position by itself. Causal attention does not pass: who is whose past
#    changes.
# 3. Pre-norm: its input, unchanged. Post-norm: its input, normalised; once is as good as $3L$ times.
#
# </details>
#
# **Back:** [Attend to the past](03_attend_to_the_past.ipynb) · **Index:** [README](../README.md) · **On:**
# [Encode position](05_encode_position.ipynb), which R-Transformer does without.
