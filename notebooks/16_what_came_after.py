# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What came after the R-Transformer?
#
# ![In the R-Transformer recurrence reads three positions and attention reads all. In Griffin recurrence reads all and attention reads three](../figures/griffin_1.png)
#
# In 2019 the **R-Transformer** (Wang et al. 2019) gave the near past to a recurrent network and the far past to attention. In 2024 **Griffin** (De et al. 2024) does the reverse.
# Blue lines are recurrence, orange lines are attention. The thick blue and orange lines show what the last position reads. Here both [windows](../docs/glossary.md#window) have three positions.
#
# **Predict.** Both models read a stream of 10,000 positions, one by one. Which model must keep more numbers?
#
# - **You will** join steps of a recurrence, compute how long a factor remembers, and count the bytes of a cache.
# - **You learn** what a *linear* recurrence gives and costs, what decides before training how long a memory lasts, and how both designs learn one task.
# - **You need** [02 slide a window](02_slide_a_window.ipynb) and [03 attend to the past](03_attend_to_the_past.ipynb), and the gates of a [GRU](../docs/glossary.md#gru-lstm) and an LSTM.
# - **Time:** 55 minutes with the exercises. The cells run in about 20 seconds.

# %%
import json
import math
from pathlib import Path
import matplotlib.pyplot as plt
import torch
import rtx
from rtx.lab import exercises, explore, plots
from rtx.lab.studies import chosen_runs
from rtx.nn.linear_recurrence import RGLRU
plots.style()
torch.set_num_threads(1)

# %% [markdown]
# ## 1. Which part swapped its place?
#
# | | Transformer | R-Transformer | Griffin |
# | --- | --- | --- | --- |
# | near past | attention | **recurrence in a window** (LocalRNN) | **attention in a window** |
# | far past | attention | **attention** to all | **recurrence** over all |
# | the recurrence | none | GRU or LSTM | linear in its state (section 2) |
# | positions | added encoding (section 6: relative) | none | rotary ([05](05_encode_position.ipynb)), inside the window |
# | norm | after each sublayer | after (paper), before (code) | before each sublayer |
#
# Each third [block](../docs/glossary.md#block) of Griffin has attention. The other blocks are recurrent, with a convolution over four positions first. Our Griffin is not quite the paper's:
#
# - The paper's window has 1,024 positions, with training sequences of 2,048. Our windows have 4 to 32.
# - The paper's recurrence is about 4/3 as wide as the model. Ours is as wide as the model.
# - The paper's smallest model has 100 million parameters. In section 6, ours has about 40,000.
#
# The explorer shows which inputs move which outputs of an untrained Griffin (brighter is more). The picture has the whole model. You can choose one of its parts.

# %%
_ = torch.manual_seed(0)
explore.xray(rtx.Griffin(8, layers=3, heads=2, window=4), torch.randn(1, 12, 8))

# %% [markdown]
# **Try.** Look at `blocks.0.mixing.recurrence`, `blocks.2.mixing` and `blocks.0.mixing.convolution`. How many positions does each read?
#
# <details><summary>Answer</summary>
#
# The recurrence reads all earlier positions (a triangle). The attention reads four (a band). The convolution reads four, too.
#
# </details>
#
# ## 2. What does a linear recurrence give?
#
# A recurrence is **linear in its state** if each step has the form $h_t = a_t h_{t-1} + b_t$, where $a_t$ and $b_t$ do not depend on $h$.

# %%
a1, b1, a2, b2 = 0.5, 1.0, 0.8, 2.0
h0 = 4.0
h1 = a1 * h0 + b1
h2 = a2 * h1 + b2
print(f"one after the other: {h0} -> {h1} -> {h2:.1f}")
print(f"both at once: 0.4 · {h0} + 2.8 = {0.4 * h0 + 2.8:.1f}")

# %% [markdown]
# **Exercise 1** (medium, 5 minutes). Where do 0.4 and 2.8 come from? First comes the step $(a_1, b_1)$, then $(a_2, b_2)$. Give the one step that does both,
# as `torch.stack([a, b])`.

# %%
def my_compose_steps(a1, b1, a2, b2):
    ...  # four tensors of one shape; (2, *shape)

compose_steps = exercises.yours(my_compose_steps, "compose_steps")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Write out $a_2 (a_1 h + b_1) + b_2$, and sort by $h$.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_compose_steps(a1, b1, a2, b2):
#     return torch.stack([a2 * a1, a2 * b1 + b2])
# ```
#
# </details>
#
# Two steps are again a step of the same form. So we can join neighbours, then pairs, then fours: this is a **scan**. The next cell uses your function. With $a_t = b_t = 1$, each number counts the
# steps that are joined so far.

# %%
def scan(a, b):
    """Return the b of each round, a list of (T, D). The last one holds all states, from h_0 = 0."""
    shift, rounds = 1, []
    while shift < len(a):
        joined = compose_steps(a[:-shift], b[:-shift], a[shift:], b[shift:])
        a, b = (torch.cat([old[:shift], new]) for old, new in zip((a, b), joined))
        shift *= 2
        rounds.append(b)
    return rounds

for number, b in enumerate(scan(torch.ones(8, 1), torch.ones(8, 1)), start=1):
    print(f"round {number}: steps joined at each position {b[:, 0].int().tolist()}")
print("rounds for 1,000 steps:", len(scan(torch.ones(1000, 1), torch.ones(1000, 1))))

# %% [markdown]
# So $T$ steps need $\lceil \log_2 T \rceil$ rounds.
#
# Griffin's recurrence is the **RG-LRU** (real-gated linear recurrent unit). Two gates and a learnt number $\Lambda$ set $a_t$ and $b_t$. All operations act on each number
# of a vector alone, except $W_a$ and $W_x$:
#
# $$r_t = \sigma(W_a x_t + b_a) \quad (1) \qquad i_t = \sigma(W_x x_t + b_x) \quad (2) \qquad a_t = \sigma(\Lambda)^{8 r_t} \quad (3)$$
#
# $$h_t = a_t h_{t-1} + \sqrt{1 - a_t^2} \; (i_t x_t) \qquad (4)$$
#
# The gates read $x_t$ only, so all $a_t$ and $b_t$ are known before the first step.

# %%
def terms(x, layer):
    """Return a and b of Eq. 4, (T, D) each, for x (T, D) and a layer with one full matrix for each gate."""
    r = torch.sigmoid(x @ layer.recurrence_gate.weight[0].T + layer.recurrence_gate.bias)  # Eq. (1)
    i = torch.sigmoid(x @ layer.input_gate.weight[0].T + layer.input_gate.bias)  # Eq. (2)
    a = torch.sigmoid(layer.decay) ** (8 * r)  # Eq. (3)
    return a, torch.sqrt(1 - a**2) * (i * x)  # the second part is b of Eq. (4)

layer, x = RGLRU(8), torch.randn(50, 8)
with torch.no_grad():
    a, b = terms(x, layer)
    print(f"largest difference between our scan and rtx's layer: {(scan(a, b)[-1] - layer(x[None])[0]).abs().max():.4f}")

# %% [markdown]
# A GRU's gates read $h_{t-1}$. So its $a_2$ is not known before $h_1$ is, and `compose_steps` cannot join the two steps in advance.
#
# **Predict.** The scan has few rounds, but each round does up to $2T$ multiplications for each number of the state. On one core, when is it faster than a loop? The times come from `studies/steps_and_streams.py`.

# %%
times = json.loads(Path("../studies/steps_and_streams.json").read_text(encoding="utf-8"))
print("1,000 steps on one core        loop      scan")
for width, took in times["ms of 1,000 steps"].items():
    print(f"state of {width:>5} numbers {took['loop']:7.1f} ms {took['scan']:6.1f} ms")

# %% [markdown]
# <details><summary>Answer</summary>
#
# For narrow states the scan is faster, about twenty times at a width of 8. The loop takes nearly the same time for 8 and for 64 numbers, so starting 1,000 operations costs more than the arithmetic. For wide states the loop is faster. A likely reason: the scan multiplies more.
#
# </details>
#
# We did not measure many cores. Griffin's authors wrote a kernel of their own for their accelerator (section 4.2 of the paper).
#
# ## 3. How long does it remember?
#
# If a number is multiplied by $a$ in each step, $a^l$ of it is left after $l$ steps.
#
# **Exercise 2** (easy, 5 minutes). After how many steps is half of it left? Do not round.

# %%
def my_half_life(a):
    ...  # a number between 0 and 1; steps, a float

half_life = exercises.yours(my_half_life, "half_life")

# %% [markdown]
# <details><summary>Hint</summary>
#
# For which $l$ is $a^l = ½$? A logarithm brings $l$ down from the exponent.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_half_life(a):
#     return math.log(0.5) / math.log(a)
# ```
#
# </details>
#
# At the start $\sigma(\Lambda)^8$ is drawn between 0.9 and 0.999 (section 2.4), and $r_t$ is near ½. In torch, LSTM's [forget gates](../docs/glossary.md#forget-gate) and GRU's update gates start near ½.

# %%
with torch.no_grad():
    drawn, gates = torch.sigmoid(RGLRU(1000).decay) ** 8, torch.sigmoid(RGLRU(64).recurrence_gate(torch.randn(1000, 64)))
print(f"drawn between {drawn.min():.2f} and {drawn.max():.3f}; mean of r: {gates.mean():.1f}")
for name, a in {"LSTM or GRU, usual start": 0.5, "RG-LRU, fastest": 0.9**0.5, "RG-LRU, slowest": 0.999**0.5}.items():
    print(f"{name:25} keeps {a:.4f} per step: half is left after {half_life(a):6.1f} steps")

# %% [markdown]
# **Exercise 3** (hard, optional, 15 minutes). Which inputs are still in the last state? A gradient answers this. Let $g_t$ be the derivative of the loss with respect to $h_t$ if all later states stay as they are. Return the full gradient with respect to each $b_t$, including its effect through all later states. A loop is allowed.

# %%
def my_gradient_back(a, g):
    ...  # (T, D) each; (T, D)

gradient_back = exercises.yours(my_gradient_back, "gradient_back")

# %% [markdown]
# <details><summary>Hint</summary>
#
# $b_t$ changes $h_t$ by the same amount, and $h_{t+1}$ by $a_{t+1}$ times this amount. Start with the last step: its gradient is $g_T$.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_gradient_back(a, g):
#     found = [g[-1]]
#     for t in range(len(g) - 2, -1, -1):
#         found.append(g[t] + a[t + 1] * found[-1])
#     return torch.stack(found).flip(0)
# ```
#
# </details>

# %%
torch.manual_seed(0)
x, only_last = torch.randn(100, 64), torch.zeros(100, 64)
only_last[-1] = 1
a, b = (part.detach().requires_grad_() for part in terms(x, RGLRU(64)))
left = gradient_back(a.detach(), only_last)
(by_torch,) = torch.autograd.grad(scan(a, b)[-1], b, only_last)
print(f"largest difference to torch: {(left - by_torch).abs().max():.4f}")
for steps in (10, 50, 99):
    print(f"share of b that is left in the last state after {steps} steps, mean of 64 numbers: {left[99 - steps].mean():.2f}")

# %% [markdown]
# So an untrained RG-LRU remembers long. Is the reason that it is linear? But it also starts with a long half-life (a **slow start**). In `studies/start_of_a_memory.py` the same
# layers start slow or fast. A model reads one of seven symbols, then 49 silent steps, and names the symbol. We train each layer (with a state of 32 numbers) twice: with a slow start, a half-life of 50 steps, and with a fast start, 1.5
# steps. Each model has the best of four [learning rates](../docs/glossary.md#learning-rate) (printed) and three [seeds](../docs/glossary.md#seed). There are only seven sequences of 50 steps: training, the choice of the rate and the test share them.
#
# **Predict.** Which of the six models can learn to recall?

# %%
def shares(problem, name):
    """By model: results in %, (numbers of updates, seeds)."""
    runs = chosen_runs("../studies/start_of_a_memory.json", problem)
    return {model: 100 * torch.tensor([[of[name][0] for of in run["test"]] for run in seeds]).T for model, seeds in runs.items()}

runs = chosen_runs("../studies/start_of_a_memory.json", "recall")
print("symbols recalled in %, mean and range of three seeds after 400 updates (a guess: 14 %)")
print("trained with 50 steps               tested with 50 steps       with 200 steps")
for (model, trained), (_, later) in zip(shares("recall", "50 steps").items(), shares("recall", "200 steps").items()):
    text = "     ".join(f"{part[-1].mean():4.0f} ({part[-1].min():3.0f} to {part[-1].max():3.0f})" for part in (trained, later))
    print(f"    {model:20} rate {runs[model][0]['rate']:<8g} {text}")

# %%
recall = shares("recall", "50 steps")
fig, axes = plt.subplots(1, 2, figsize=(8, 2.6), sharey=True)
for ax, start in zip(axes, ("slow", "fast")):
    for place, layer in enumerate(("LSTM", "GRU", "RG-LRU")):
        results = recall[f"{layer}, {start} start"]
        ax.plot((100, 200, 400), results.mean(1), "os^"[place] + "-", color=plots.COLOURS[place], label=layer)
        ax.fill_between((100, 200, 400), results.amin(1), results.amax(1), color=plots.COLOURS[place], alpha=0.2)
    ax.axhline(100 / 7, color="0.5", linestyle=":")
    ax.set(title=f"{start} start", xlabel="updates", ylim=(0, 104))
axes[0].set_ylabel("symbols recalled (%)")
axes[1].legend(frameon=False)
_ = fig.suptitle("with a slow start all three learn to recall; with a fast start only the GRU", fontsize=11)

# %% [markdown]
# - **Slow start:** the LSTM, the GRU and the RG-LRU recall all symbols after 400 updates, with every seed.
# - **Fast start:** the GRU learns. The LSTM stays at a guess. Of the RG-LRU, one seed begins to learn (29 %).
#
# So within 400 updates the start decides for the LSTM and the RG-LRU. With a fast start, linearity alone is not enough. (The fast start even has the larger input: Eq. 4 scales the symbol by 0.78, and by 0.17 with the slow start.) Tallec & Ollivier (2018) set gate biases from the number of steps that a memory should last. Why the GRU learns is open.
#
# ## 4. What does it cost?
#
# **Running parity** asks after each bit: is the number of ones so far odd? A linear recurrence can compute it, if we choose the factors by hand. A one flips the state: $a_t = -1$, $b_t = 1$. A zero keeps the
# state: $a_t = 1$, $b_t = 0$.

# %%
bits = torch.tensor([[0.0], [1], [1], [0], [1], [0], [0], [1], [1], [1]])
states = scan(1 - 2 * bits, bits)[-1]
print("bits        ", bits[:, 0].int().tolist())
print("states      ", states[:, 0].int().tolist())
print("ones modulo 2", (bits.cumsum(0) % 2)[:, 0].int().tolist())

# %% [markdown]
# The factor of a one is $-1$. But Eq. 3 gives factors between 0 and 1 only. Sarrof et al. (2024) prove: with numbers of finite precision, no stack of such layers, however deep, is right about parity for every length. Grazzi et al.
# (2025) prove it for more kinds of linear recurrences.
#
# **Predict.** In the RG-LRU, we replace the factor of $h_{t-1}$ by $2 a_t - 1$. The added part stays the same. The layer is still linear. Can it learn parity? Training uses 24 bits.

# %%
parity = {up_to: shares("parity", f"{up_to} steps") for up_to in (24, 96)}
runs = chosen_runs("../studies/start_of_a_memory.json", "parity")
print("% right up to step 24, and up to step 96 (a guess: 50 %), mean and range of three seeds after 800 updates")
for model in parity[24]:
    text = "   ".join(f"{part[-1].mean():5.1f} ({part[-1].min():5.1f} to {part[-1].max():5.1f})" for part in (parity[24][model], parity[96][model]))
    print(f"    {model:30} {text}   {runs[model][0]['parameters']:,} parameters")

# %% [markdown]
# Yes. After 800 updates the layer with negative factors is right at all 96 steps, with every seed (at the rates 0.01 and 0.03 only). With the same factors without their signs it stays near a guess. So does the original RG-LRU. The GRU and the LSTM learn parity, too.
#
# So the RG-LRU did not fail because it is linear, nor because its gates do not see the state. What failed is a linear recurrence *with factors between 0 and 1*. The proof says: no such layers are right at every length. It does not say why ours did not learn 24 bits in 800 updates.
#
# ## 5. What must a stream keep?
#
# A model that reads a stream keeps its past: [keys](../docs/glossary.md#query-key-value) and values, or a state.
#
# **Exercise 4** (easy, 5 minutes). A [Transformer](../docs/glossary.md#transformer) of $L$ layers and width $D$ has read $T$ positions. How many bytes of keys and values must it keep, in float32?

# %%
def my_cache_bytes(T, L, D):
    ...  # a whole number

cache_bytes = exercises.yours(my_cache_bytes, "cache_bytes")

# %% [markdown]
# <details><summary>Hint</summary>
#
# In each layer, each position leaves a key *and* a value of $D$ numbers each. How many bytes has a number of 32 bits?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_cache_bytes(T, L, D):
#     return 2 * L * T * D * 4
# ```
#
# </details>
#
# **Predict.** Which of these four grow without end: Transformer, R-Transformer, Griffin, GRU?

# %%
def weigh(state):
    """Return the bytes of what a model keeps."""
    if torch.is_tensor(state):
        return state.numel() * state.element_size()
    return sum(map(weigh, state)) if isinstance(state, tuple) else 0

MODELS = {"Transformer": rtx.Transformer(32, 3, 2), "R-Transformer": rtx.RTransformer(32, 3, 2, window=7),
          "Griffin": rtx.Griffin(32, 3, 2, window=32), "GRU": rtx.RNN(32, 3)}
kept, states = {name: [] for name in MODELS}, dict.fromkeys(MODELS)
with torch.no_grad():
    for x in torch.randn(600, 1, 32):
        for name, model in MODELS.items():
            _, states[name] = model.eval().step(x, states[name])
            kept[name].append(weigh(states[name]))
print(f"Transformer after 600 positions: measured {kept['Transformer'][-1]:,} bytes, by cache_bytes {cache_bytes(600, 3, 32):,}")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
for name, dash in zip(MODELS, ("-", "--", "-", "-")):
    left.semilogy(range(1, 601), kept[name], dash, label=name)
    right.plot(range(100, 601, 100), times["ms of a step"][name], dash)
left.set(xlabel="positions read", ylabel="bytes", title="kept: GRU and Griffin have a limit, two grow", ylim=(100, 3e6))
left.legend(frameon=False, fontsize=8, ncols=2)
right.set(xlabel="positions read", ylabel="ms per step (stored)", title="time of a step: small changes", ylim=(0, None))
plt.show()
print("bytes kept after    100 positions       600")
for name, sizes in kept.items():
    print(f"{name:13} {sizes[99]:18,} {sizes[-1]:9,}")
print("Griffin, block by block:", [weigh(block) for block in states["Griffin"]])

# %% [markdown]
# The Transformer and the R-Transformer grow. The R-Transformer also keeps a window for each [LocalRNN](../docs/glossary.md#localrnn). Griffin stops growing when its window is full, and the GRU never grows. Only the third block of Griffin has attention, and its heads share their keys and values. So its full window takes 4,096 bytes. The times (right) grow by at most about 15 % up to 600 positions. Griffin's step is the slowest.
#
# What is kept after 10,000 positions? And in a large model?

# %%
windows = kept["R-Transformer"][-1] - kept["Transformer"][-1]  # of its LocalRNNs
print(f"10,000 positions: Transformer {cache_bytes(10_000, 3, 32):,} bytes, R-Transformer {cache_bytes(10_000, 3, 32) + windows:,}, Griffin {kept['Griffin'][-1]:,}")
half_precision = cache_bytes(8192, 26, 2560) / 2
print(f"8,192 positions, 26 layers, 2,560 wide, 16 bits: {half_precision / 1e9:.1f} GB for one stream")

# %% [markdown]
# ## 6. Which design learns near order and far content?
#
# The task is **rule and book** from [07](07_convolve_or_recur.ipynb). A sequence begins with a book of five pairs of symbols. In the text of 30 steps after it, half of the symbols follow from the order of the
# last two symbols (near). The other half must be looked up in the book (far). `studies/near_and_far.py` compares models of nearly equal size, with the norm first. Each has the best of four rates (after 400 updates), three seeds. The Transformer has [relative positions](../docs/glossary.md#relative-positions). Griffin's window has 8 positions. One position of the book holds one pair, so from position 13 on the window misses the book.
#
# **Predict.** Which model is first after 100 updates, and which after 400?

# %%
dial = chosen_runs("../studies/near_and_far.json", "rule and book")
above = {model: torch.tensor([[of["both"][0] for of in run["test"]] for run in seeds]).T for model, seeds in dial.items()}
fig, ax = plt.subplots(figsize=(7.5, 2.8))
for row, results in enumerate(above.values()):
    for shift, part, mark, colour, updates in zip((-0.22, 0, 0.22), results, "vso", plots.COLOURS, (100, 200, 400)):
        ax.plot([part.min(), part.max()], [row + shift] * 2, color=colour)
        ax.plot(part.mean(), row + shift, mark, color=colour, label=f"{updates} updates" if row == 0 else None)
ax.set(ylim=(len(above) - 0.5, -0.5), xlabel="nats above the best possible loss (less is better; line: lowest to highest seed)", title="rule and book: the R-Transformer has the lowest mean after 100 updates")
ax.set_yticks(range(len(above)), above)
_ = ax.legend(frameon=False)

# %%
print("nats above the best loss, mean ± standard deviation of three seeds")
print(f"{'':26} updates:  100            200            400       rate  parameters")
for model, results in above.items():
    text = "  ".join(f"{part.mean():.3f} ± {part.std():.3f}" for part in results)
    print(f"{model:26} {text}  {dial[model][0]['rate']:6g}  {dial[model][0]['parameters']:,}")
print("after 100 updates, mean")
for model, seeds in dial.items():
    near, far = (sum(run["test"][0][part][0] for run in seeds) / len(seeds) for part in ("rule", "book"))
    print(f"{model:26} near {near:.2f}, far {far:.2f}")

# %% [markdown]
# - **After 100 updates** the R-Transformer is within 0.012 [nats](../docs/glossary.md#bit-nat) of the best loss with every seed. (At the rate 0.003, as good after 400 updates, it is 0.015 to 0.115 above it.) The Transformer is there with one seed of three. Griffin and the GRU are about 0.5 above this loss.
# - **After 400 updates** Griffin is within 0.03, and the GRU within 0.06.
#
# The two models with attention to everything are sooner. (We tried no longer window.) After 100 updates Griffin has learnt the rule (near), but not the book (far).
#
# ## 7. What did later models keep?
#
# We chose six well-known models of 2024. The rows are from their papers.
#
# | model | recurrence | attention |
# | --- | --- | --- |
# | Mamba-2 (Dao & Gu 2024) | linear, a state space model | none |
# | RecurrentGemma (Botev et al. 2024) | Griffin's, models of 2 and 9 billion parameters | in a window |
# | Jamba (Lieber et al. 2024) | Mamba layers | Transformer layers between them |
# | xLSTM (Beck et al. 2024) | two kinds of LSTM; one of them can be computed in parallel | none |
# | Samba (Ren et al. 2024) | Mamba layers | in a sliding window, in layers between them |
# | Hymba (Dong et al. 2024) | state-space heads, beside attention heads in one layer | partly in a sliding window |
#
# Four of the six rows have recurrence *and* attention, as the R-Transformer has. None has a recurrence that restarts in a short window, as LocalRNN does.
#
# ## 8. Was the R-Transformer wrong?
#
# Its authors wanted order without added positions, a recurrence that is computed at all positions at once, and attention for the far past. Griffin's authors name other problems (their section 1): attention to everything costs more with the length, and the cache of a stream grows. A linear recurrence has neither problem.
#
# In our small task the R-Transformer had the lowest mean after 100 updates. No run shows which part helped.
#
# ## Recap
#
# - **Swapped.** Griffin: far by recurrence, near by attention. The R-Transformer: the reverse.
# - **Linear** steps can be joined: $\lceil \log_2 T \rceil$ rounds. On one core, this was faster for narrow states only.
# - **Memory.** Within 400 updates, the start of the gates decided for the LSTM and the RG-LRU. Linearity was not enough.
# - **Cost.** A linear layer with factors between 0 and 1 did not learn parity. With factors from $-1$ to 1 it did.
# - **Streams.** Keys and values grow with the stream. A state and a full window do not.
# - **Learning.** On rule and book, at the rate 0.01, the R-Transformer had the lowest mean after 100 updates (three seeds). After 400 updates Griffin was within 0.03 nats of the best loss.
# - **Open:** larger models, longer sequences, text.
#
# ## Quiz
#
# 1. Why can this scan not compute a GRU?
# 2. Your LSTM cannot recall a symbol after 50 silent steps. What do you change first?
#
# <details><summary>Answers</summary>
#
# 1. Its gates depend on $h_{t-1}$, so $a_t$ is not known before the state is. So steps cannot be joined in advance.
# 2. The bias of its forget gate, which sets how long a memory lasts at the start. In section 3 a half-life of 50 steps at the start was enough.
#
# </details>
#
# <details><summary>Paper map</summary>
#
# De et al. (2024), *Griffin: Mixing Gated Linear Recurrences with Local Attention for Efficient Language Models*.
#
# | in the paper | symbol | here | in `rtx` |
# | --- | --- | --- | --- |
# | residual block, gated network, recurrent block (§2.1-2.3) | | section 1 | `rtx.models.griffin` |
# | RG-LRU (§2.4, Eq. 1-4) | $r_t$, $i_t$, $a_t$, $h_t$ | sections 2-4 | `rtx.nn.linear_recurrence` |
# | local attention (§2.3), its window (Appendix E) | | sections 1, 5, 6 | `rtx.nn.local_attention` |
# | a loop or a scan (§4.2) | | section 2 | `linear_scan` |
# | state and cache (§5) | | section 5 | `model.step` |
#
# </details>
#
# **Back:** [Which numbers can you trust?](15_weigh_the_evidence.ipynb) · **Index:** [README](../README.md) · **Words:** [glossary](../docs/glossary.md) · **On:**
# [How far back does a model look?](00_start_here.ipynb), with your own data
