"""AWD-LSTM: torch's LSTM, regularised until it was the state of the art in language modelling.

Merity, Keskar & Socher (2018), Regularizing and Optimizing LSTM Language Models; the set-up of Xu et al. (2019),
MC-RNN, Table 4. Averaged SGD is in `rtx.training.averaging`, tied weights and embedding dropout are in
`rtx.models.LanguageModel`. Grave, Joulin & Usunier (2017), the continuous cache.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from rtx.nn.dropout import LockedDropout
from rtx.nn.recurrent import beyond_float16, read_network
from rtx.nn.state import State, check_state, read_through
from rtx.nn.validate import check_fraction, check_positive, check_sequence, check_step, is_number


class AWDLSTM(nn.Module):
    """LSTMs with one mask for all steps on what passes between them, and one on their recurrent weights.

    Without dropout it is a stack of torch's LSTMs. The authors' size on PTB is d_model 400, layers 3, d_hidden
    1150: 20.2 M parameters, 24.2 M with the 10,000 tied words, their figure.

    Args:
        d_model: D, width of the input and of the last layer, so that input and output embeddings can be tied.
        layers: L.
        d_hidden: width of the layers before the last; D if not given.
        dropout_input: on the input.
        dropout_hidden: between the layers.
        dropout: on the output.
        weight_dropout: DropConnect, the share of each hidden-to-hidden matrix set to zero for a whole read.

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(
        self,
        d_model: int,
        layers: int = 3,
        d_hidden: int | None = None,
        dropout_input: float = 0.0,
        dropout_hidden: float = 0.0,
        dropout: float = 0.0,
        weight_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.d_model = d_model = check_positive("d_model", d_model)  # torch's networks take Python's own numbers only
        hidden = check_positive("d_hidden", d_model if d_hidden is None else d_hidden)
        widths = [d_model, *[hidden] * (check_positive("layers", layers) - 1), d_model]
        self.networks = nn.ModuleList(nn.LSTM(a, b, batch_first=True) for a, b in pairwise(widths))
        self.dropout_input = LockedDropout(check_fraction("dropout_input", dropout_input))
        self.dropout_hidden = LockedDropout(check_fraction("dropout_hidden", dropout_hidden))
        self.dropout = LockedDropout(dropout)
        self.weight_dropout = check_fraction("weight_dropout", weight_dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on positions 1 … t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        return self.read(x)[0]

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """A piece of a stream, and the state behind it: (h, c) of each layer, each (B, width).

        Raises:
            ValueError: as `forward`, or if `state` is another model's or batch's.
        """
        raw, state = self.activations(x, state)
        return self.dropout(raw), state

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=next(self.parameters()))
        y, state = self.read(x[:, None], state)
        return y.squeeze(1), state

    def activations(
        self, x: Float[Tensor, "B T D"], state: State | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        """As `read`, before the last dropout: what temporal activation regularisation is taken of.

        Raises:
            ValueError: as `read`.
        """
        check_sequence("x", x, self.d_model, like=next(self.parameters()))
        layers = [partial(self._run, network) for network in self.networks]  # type: ignore[arg-type]
        return read_through(layers, self.dropout_input(x), state, self.dropout_hidden)

    def _run(self, network: nn.LSTM, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        given = None
        if state is not None:
            check_state(state, *[(len(x), network.hidden_size)] * 2)
            given = tuple(part[None] for part in state)
        if self.training and self.weight_dropout:
            y, (h, c) = _read_dropped(network, x, given, self.weight_dropout)
        else:
            y, (h, c) = read_network(network, x, given)
        return y, (h[0], c[0])


@beyond_float16
def _read_dropped(
    network: nn.LSTM, x: Tensor, state: tuple[Tensor, ...] | None, rate: float
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """What `network(x, state)` gives, with a share of its recurrent weights hidden."""
    w, u, *biases = network.all_weights[0]
    dropped = F.dropout(u, rate)
    if torch.compiler.is_compiling():  # it leaves torch's networks as they are, but would write out a function's steps
        found: tuple[Tensor, tuple[Tensor, Tensor]] = functional_call(network, {"weight_hh_l0": dropped}, (x, state))
        return found
    zeros = x.new_zeros(1, len(x), network.hidden_size)
    # Not the network with another weight: on a GPU that moves all of its weights at each read, and a CUDA graph goes on
    # with those that stood where it was recorded.
    weights, state = [w, dropped, *biases], state or (zeros, zeros)
    y, h, c = torch.lstm(x, state, weights, True, 1, 0.0, network.training, False, True)
    return y, (h, c)


def activation_penalty(
    raw: Float[Tensor, "B T D"], dropped: Float[Tensor, "B T D"], ar: float = 2.0, tar: float = 1.0
) -> Float[Tensor, ""]:
    """Activation regularisation: large outputs, and outputs that jump from step to step, cost something.

    As in the authors' code, means of squares, where the paper writes norms.

    Args:
        raw: the last layer's output before dropout.
        dropped: the same after dropout.
        ar: α, weight of the size of `dropped`.
        tar: β, weight of the change of `raw` from one step to the next.
    """
    penalty = ar * dropped.square().mean()
    return penalty + tar * (raw[:, 1:] - raw[:, :-1]).square().mean() if raw.shape[1] > 1 else penalty


def watch_activations(model: nn.Module, take: Callable[[Tensor, Tensor], object]) -> None:
    """Have what the penalty is of, `raw` and `dropped`, given to a function whenever the model is read in training.

    Args:
        model: one with a backbone that has `activations`, such as a language model of `AWDLSTM` or `MCRNN`.
        take: (raw, dropped) → anything.

    Raises:
        ValueError: if the model has no such backbone.
    """
    backbone = getattr(model, "backbone", None)
    if not hasattr(backbone, "activations"):
        raise ValueError("ar, tar: expected a model with recurrent activations, such as awd-lstm or mc-rnn")

    def hook(dropout: nn.Module, raw: tuple[Tensor, ...], dropped: Tensor) -> None:
        if dropout.training:
            take(raw[0], dropped)

    backbone.dropout.register_forward_hook(hook)  # type: ignore[union-attr]


class Cached(NamedTuple):
    """The last `window` steps of a text: what the model's state was, and which word came after it."""

    hidden: Float[Tensor, "B S D"]
    words: Int[Tensor, "B S"]


def cache_pointer(
    hidden: Float[Tensor, "B T D"],
    words: Int[Tensor, "B T"],
    logits: Float[Tensor, "B T V"],
    past: Cached | None = None,
    window: int = 500,
    theta: float = 1.0,
    mix: float = 0.1,
) -> tuple[Float[Tensor, "B T V"], Cached]:
    """The log-probabilities of the next word, mixed with those of words that followed similar states lately.

    No parameters, nothing to train: used at evaluation only. A long text is read in pieces, each given the cache
    behind the piece before. Grave et al. (2017), Eq. 2-4, in float32 at least; the defaults are those that Merity et
    al.'s code is run with on PTB. That code mixes only once the cache is full, this one from the second word on.

    Args:
        hidden: the state h_t that predicted each word.
        words: the words that came, x_{t+1}: the targets. A word is in the cache from the next step on.
        logits: the model's own prediction at each step.
        past: the cache behind the piece before; None at the start, where the model's own prediction stands alone.
        window: steps that the cache holds.
        theta: θ, how much similarity counts.
        mix: λ, the cache's share of the probability.

    Raises:
        ValueError: if `window` is below 1, `mix` is not in [0, 1), or `theta` is below 0 or infinite.
    """
    check_positive("window", window), check_fraction("mix", mix)
    if not (is_number(theta) and 0 <= theta < torch.inf):
        raise ValueError(f"theta: expected a finite number of at least 0, got {theta!r}")
    # a sum of many half-precision probabilities is no longer 1
    hidden, logits = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (hidden, logits))
    (B, T, D), V = hidden.shape, logits.shape[-1]
    before = Cached(hidden.new_zeros(B, 0, D), words.new_zeros(B, 0)) if past is None else past
    keys, values = torch.cat([before.hidden, hidden], 1), torch.cat([before.words, words], 1)
    S = keys.shape[1]
    age = torch.arange(S - T, S, device=hidden.device)[:, None] - torch.arange(S, device=hidden.device)
    seen = (age > 0) & (age <= window)  # (T, S)
    # p_cache(w) ∝ Σ_i 1[w = x_{i+1}] exp(θ h_t · h_i)
    scores = (theta * hidden @ keys.transpose(1, 2)).masked_fill(~seen, -torch.inf)
    weights = torch.where(seen.any(-1)[:, None], scores.softmax(-1), 0)  # (B, T, S); a row that sees nothing is zero
    p_cache = logits.new_zeros(B, T, V).scatter_add(-1, values[:, None].expand(-1, T, -1), weights.to(logits.dtype))
    share = mix * seen.any(-1)[:, None].to(logits.dtype)
    # added as logarithms: a word too unlikely for its probability to be told from 0 still has one
    mixed = torch.logaddexp(torch.log1p(-share) + logits.log_softmax(-1), (share * p_cache).log())
    return mixed, Cached(keys[:, -window:], values[:, -window:])
