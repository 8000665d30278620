"""Errata that a model's gradients or outputs settle."""

import torch
from torch import nn
from torch.nn import functional as F

from rtx.models import FeedForwardAttention, RTransformer
from rtx.nn import LocalRNN, MultiHeadAttention
from rtx.nn.relative import RelativeAttention
from rtx.tasks import task_by_name
from rtx.tasks.toy.arithmetic import TOLERANCE
from studies.evidence import Erratum, Evidence

CLIP = 0.15


def clip_meter() -> Evidence:
    """The gradient's norm at the optimiser's step, for the two orders of clipping and backward()."""
    torch.manual_seed(0)
    model = nn.Sequential(RTransformer(16, 2, 2, 4), nn.Linear(16, 8))
    x, target = torch.randn(4, 20, 16), torch.randn(4, 20, 8)

    def norm(first: str) -> float:
        model.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), target, reduction="sum")
        steps = {"clip": lambda: nn.utils.clip_grad_norm_(model.parameters(), CLIP), "backward": loss.backward}
        for name in (first, "backward" if first == "clip" else "clip"):
            steps[name]()
        return float(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm())

    bars = {"clip, then backward": norm("clip"), "backward, then clip": norm("backward"), "the limit": CLIP}
    kept = bars["backward, then clip"] <= CLIP * 1.001
    free = bars["clip, then backward"] > CLIP
    return Evidence(bars, "norm of the gradient", "Clipping before the backward pass clips nothing.", free and kept)


def padding() -> Evidence:
    """How far the first states of a window move if its pads are read by the cell, and not left out."""
    torch.manual_seed(0)
    window = 5
    local = LocalRNN(8, window)
    nn.init.uniform_(local.bias_ih_l0, -0.5, 0.5)
    x = torch.randn(1, 8, 8)
    cell = nn.GRU(8, 8, batch_first=True)
    cell.load_state_dict(local.state_dict())
    with torch.no_grad():
        read = local(x)[0]
        skipped = torch.stack([cell(x[:, max(0, t - window + 1) : t + 1])[0][0, -1] for t in range(8)])
        moved = (read - skipped).norm(dim=1) / skipped.norm(dim=1)
    bars = {f"state {t + 1}": round(100 * moved[t].item(), 3) for t in range(8)}  # less is float32's rounding
    first = bool((moved[: window - 1] > 1e-3).all() and (moved[window - 1 :] < 1e-5).all())
    return Evidence(bars, "difference (% of the state's norm)", "The first M - 1 states differ, and no other.", first)


def equal_copies() -> Evidence:
    """How many times an equal share of the attention a position gives itself, before training, at two sizes."""
    bars = {}
    for name, (D, heads) in {"MNIST": (32, 2), "music": (160, 4)}.items():
        for init, label in (("separate", "drawn separately"), ("copies", "equal copies")):
            torch.manual_seed(0)
            model = RTransformer(D, layers=8, heads=heads, window=3, init=init)
            x, steps = F.layer_norm(torch.randn(4, 100, D), (D,)), torch.arange(1, 101)
            attentions = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
            with torch.no_grad():
                own = torch.stack([one.weights(x).diagonal(dim1=-2, dim2=-1) for one in attentions])
            bars[f"{name}, {label}"] = float((own * steps)[..., 20:].mean())
    separate, copied = bars["MNIST, drawn separately"], bars["MNIST, equal copies"]
    verdict, supported = (
        "With equal copies, a position gives itself several equal shares from the start.",
        0.8 < separate < 1.2 and copied > 3,
    )
    return Evidence(bars, "attention to oneself (1: an equal share)", verdict, supported)


def epsilon() -> Evidence:
    """The size of a word's vector after the two norms, for embeddings of N(0, 0.01²) with a dropout of .15."""
    torch.manual_seed(0)
    D = 128
    x = F.dropout(0.01 * torch.randn(1000, D), 0.15)
    theirs = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)
    sizes = [float(y.square().mean().sqrt()) for y in (theirs, F.layer_norm(x, (D,), eps=1e-5))]
    bars = dict(zip(("std + 1e-6, as coded", "root of variance + 1e-5, in torch"), sizes, strict=True))
    return Evidence(
        bars, "size after the norm", "After torch's norm, small inputs stay smaller.", sizes[1] < 0.97 < sizes[0]
    )


def rectifier() -> Evidence:
    """The share of fresh models whose output has no gradient, for the two leaky rectifiers."""
    x = torch.rand(20, 50, 2, generator=torch.Generator().manual_seed(0))

    def dead(leak: str) -> float:
        stuck = 0
        for seed in range(100):
            torch.manual_seed(seed)
            model = FeedForwardAttention(leak=leak)
            model(x).sum().backward()
            gradient = model.output.weight.grad
            stuck += gradient is None or not bool(gradient.any())
        return float(stuck)

    bars = {"max(x, .01), as printed": dead("printed"), "max(x, .01 x), as coded": dead("coded")}
    printed, coded = bars.values()
    verdict, supported = (
        "As printed, many models never get a gradient. As coded, all get one.",
        printed > 20 and coded == 0,
    )
    return Evidence(bars, "models of 100 that get no gradient", verdict, supported)


def divisor() -> Evidence:
    """The share of sums that a line through the mean of the marked numbers gets right, for two ways to take it."""

    def solved_by_a_line(read_padding: bool) -> float:
        sequences = task_by_name("add", read_padding=read_padding).split("test")[:1000]
        marked = torch.stack([(x[:, 0] * (x[:, 1] == 1)).mean() for x, _ in sequences]).double()
        sums = torch.cat([target for _, target in sequences]).double()
        line = torch.stack([marked, torch.ones_like(marked)], 1)
        error = line @ torch.linalg.lstsq(line, sums[:, None]).solution[:, 0] - sums
        return 100 * (error.abs() < TOLERANCE).double().mean().item()

    bars = {"its own 50 to 55 steps": solved_by_a_line(False), "56 steps for all": solved_by_a_line(True)}
    own, same = bars.values()
    easier = own < 90 and same == 100
    return Evidence(
        bars, "sums that a straight line gets right (%)", "Only the code's mean is the sum times a constant.", easier
    )


def clipped_reach() -> Evidence:
    """How many keys move the last output of relative attention whose distances are clipped at k = 2."""
    torch.manual_seed(0)
    clip, T = 2, 12
    attention = RelativeAttention(8, 2, clip)
    x = torch.randn(1, T, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(attention(x)[0, -1].square().sum(), x)
    moving = int((gradient[0].norm(dim=1) > 0).sum())
    bars = {"the survey: a window of 2k + 1": 2 * clip + 1, "keys that move the last output": moving}
    verdict, supported = f"All {T} keys are seen. Distances above k share one vector.", moving == T
    return Evidence({name: float(value) for name, value in bars.items()}, "keys", verdict, supported)


MEASURED = (
    Erratum(
        "clipping before backward()",
        "R-Transformer, code for music (from TCN's)",
        "The gradient is clipped at .15, by a call that stands before loss.backward().",
        "How large is the gradient that the optimiser sees?",
        clip_meter,
    ),
    Erratum(
        "zeros before the sequence",
        "R-Transformer, §3.1 and code",
        "Windows at the start are filled up with M - 1 zero vectors. The code lets the cell read them: its bias acts.",
        "With M = 5, which states does it change, against leaving the pads out?",
        padding,
    ),
    Erratum(
        "equal copies of weights",
        "R-Transformer, code",
        "One layer is copied for W_q, W_k, W_v and W_o, and one for both LocalRNNs of a block: they start equal.",
        "How much of the first attention does a position give itself, compared with an equal share?",
        equal_copies,
    ),
    Erratum(
        "the epsilon of the norm",
        "R-Transformer, code",
        "The norm divides by the standard deviation plus 1e-6. torch's LayerNorm adds 1e-5 inside the root.",
        "A word's vector starts with numbers of about 0.01. How large are they after each norm?",
        epsilon,
    ),
    Erratum(
        "the leak of the rectifier",
        "Feed-forward attention, §2.1 and code",
        "LReLU(x) is printed as max(x, .01). The authors' code has max(x, .01 x).",
        "Of 100 models as printed, how many have an output that can never learn?",
        rectifier,
    ),
    Erratum(
        "what the mean is divided by",
        "Feed-forward attention, Eq. 2 and code",
        "Eq. 2 divides by a sequence's own length. The authors' code fills all up with zeros to 56 steps at T0 = 50 "
        "(1.1 · 50 is above 55 in floating point), and counts these, too.",
        "Suppose pooling finds the marked numbers, and nothing else. How many sums can a straight line read off?",
        divisor,
    ),
    Erratum(
        "what clipped distances see",
        "Survey of Transformer variants, relative positions",
        "Relative position representations are said to see only a window of 2k + 1.",
        "With k = 2 and 12 keys, how many move the last output?",
        clipped_reach,
    ),
)
