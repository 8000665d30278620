"""AWD-LSTM: torch's LSTM with the regularisation that made it the best language model of its time.

Merity, Keskar & Socher (2018), Regularizing and Optimizing LSTM Language Models; the set-up of Xu et al. (2019),
MC-RNN, Table 4. Averaged SGD is in `rtx.training.averaging`. Tied weights and embedding dropout are in
`rtx.models.LanguageModel`. The continuous cache is from Grave, Joulin & Usunier (2017).
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from rtx.models.backbone import Backbone, Card, CausalModel
from rtx.nn.dropout import LockedDropout
from rtx.nn.recurrent import run_network
from rtx.nn.streaming import State, check_state, read_through
from rtx.nn.validate import check_at_least_zero, check_fraction, check_positive


class AWDLSTM(CausalModel):
    """A stack of LSTMs. One dropout mask hides the same units at all steps, another hides recurrent weights.

    Without dropout it is a stack of torch's LSTMs. The authors' size on PTB is d_model 400, layers 3, d_hidden 1150.
    These are 20.2 M parameters, and 24.2 M with the 10,000 tied words, as the paper says.

    Args:
        d_model: D, width of the input and of the last layer, so that input and output embeddings can be tied.
        layers: L.
        d_hidden: width of the layers before the last; by default D.
        dropout_input: on the input.
        dropout_hidden: between the layers.
        dropout: on the output.
        weight_dropout: DropConnect, the probability that a hidden-to-hidden weight is hidden for a whole call.
    """

    stateful = True
    auxiliary_losses = ("activations",)

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
        self.d_model = d_model = check_positive("d_model", d_model)
        hidden = check_positive("d_hidden", d_model if d_hidden is None else d_hidden)
        widths = [d_model, *[hidden] * (check_positive("layers", layers) - 1), d_model]
        self.networks = nn.ModuleList(nn.LSTM(a, b, batch_first=True) for a, b in pairwise(widths))
        self.dropout_input = LockedDropout(check_fraction("dropout_input", dropout_input))
        self.dropout_hidden = LockedDropout(check_fraction("dropout_hidden", dropout_hidden))
        self.dropout = LockedDropout(dropout)
        self.weight_dropout = check_fraction("weight_dropout", weight_dropout)

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has (h, c) of each layer, (B, width) each."""
        self.check_input(x)
        layers = [partial(self._run, cast(nn.LSTM, network)) for network in self.networks]
        raw, state = read_through(layers, self.dropout_input(x), state, self.dropout_hidden)
        return self.dropout(raw), state

    def _run(self, network: nn.LSTM, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        given = None
        if state is not None:
            check_state(state, *[(len(x), network.hidden_size)] * 2)
            given = tuple(part[None] for part in state)
        p = self.weight_dropout if self.training else 0.0
        y, (h, c) = run_network(partial(_with_weight_dropout, network, p) if p else network, network, x, given)
        return y, (h[0], c[0])


def _with_weight_dropout(
    network: nn.LSTM, p: float, x: Tensor, state: tuple[Tensor, ...] | None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return `network(x, state)` with each recurrent weight hidden with probability p."""
    w, u, *biases = network.all_weights[0]
    dropped = F.dropout(u, p)
    if torch.compiler.is_compiling():  # it keeps torch's networks as they are, but would unroll a function
        found: tuple[Tensor, tuple[Tensor, Tensor]] = functional_call(network, {"weight_hh_l0": dropped}, (x, state))
        return found
    zeros = x.new_zeros(1, len(x), network.hidden_size)
    # Not `functional_call`: on a GPU it would copy all weights of the network at each call.
    weights, state = [w, dropped, *biases], state or (zeros, zeros)
    y, h, c = torch.lstm(x, state, weights, True, 1, 0.0, network.training, False, True)
    return y, (h, c)


def activation_penalty(
    raw: Float[Tensor, "B T D"], dropped: Float[Tensor, "B T D"], ar: float = 2.0, tar: float = 1.0
) -> Float[Tensor, ""]:
    """Return the activation regularisation: a penalty for large outputs and for outputs that jump between steps.

    It uses means of squares, as the authors' code does. The paper writes norms.

    Args:
        raw: the last layer's output before dropout.
        dropped: the same after dropout.
        ar: α, weight of the size of `dropped`.
        tar: β, weight of the change of `raw` from one step to the next.
    """
    penalty = ar * dropped.square().mean()
    return penalty + tar * (raw[:, 1:] - raw[:, :-1]).square().mean() if raw.shape[1] > 1 else penalty


def watch_activations(backbone: Backbone, take: Callable[[Tensor, Tensor], object]) -> None:
    """Call `take(raw, dropped)` with the activations of each training step, for `activation_penalty`.

    Args:
        backbone: must offer the auxiliary loss "activations", as AWD-LSTM and MC-RNN do.
        take: receives the last layer's output before and after dropout.
    """
    if "activations" not in backbone.auxiliary_losses:
        given = type(backbone).__name__
        raise ValueError(f"ar, tar: expected a model with recurrent activations, awd-lstm or mc-rnn, got {given}")

    def hook(dropout: nn.Module, raw: tuple[Tensor, ...], dropped: Tensor) -> None:
        if dropout.training:
            take(raw[0], dropped)

    cast(AWDLSTM, backbone).dropout.register_forward_hook(hook)


class Cached(NamedTuple):
    """The last steps of a text: the model's states, and the word that came after each."""

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
    """Return log-probabilities of the next word, mixed with those of words that recently followed similar states.

    The cache has no parameters and is used for evaluation only. A long text is read in pieces; each piece gets the
    cache after the piece before. Grave et al. (2017), Eq. 2-4, computed in float32 at least. The defaults are those of
    Merity et al.'s code on PTB. Their code starts to mix when the cache is full; here this starts at the second word.

    Args:
        hidden: the state h_t that predicted each word.
        words: the words x_{t+1} that came, which are the targets. A word is in the cache from the next step on.
        logits: the model's own prediction at each step.
        past: the cache after the piece before; None at the start.
        window: number of steps in the cache.
        theta: θ, the weight of similarity.
        mix: λ, the cache's share of the probability.

    Returns:
        The log-probabilities and the next cache.
    """
    check_positive("window", window), check_fraction("mix", mix)
    check_at_least_zero("theta", theta)
    # in half precision the probabilities would not sum to 1
    hidden, logits = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (hidden, logits))
    (B, T, D), V = hidden.shape, logits.shape[-1]
    before = Cached(hidden.new_zeros(B, 0, D), words.new_zeros(B, 0)) if past is None else past
    keys, values = torch.cat([before.hidden, hidden], 1), torch.cat([before.words, words], 1)
    S = keys.shape[1]
    age = torch.arange(S - T, S, device=hidden.device)[:, None] - torch.arange(S, device=hidden.device)
    seen = (age > 0) & (age <= window)  # (T, S)
    # p_cache(w) ∝ Σ_i 1[w = x_{i+1}] exp(θ h_t · h_i)
    scores = (theta * hidden @ keys.transpose(1, 2)).masked_fill(~seen, -torch.inf)
    weights = torch.where(seen.any(-1)[:, None], scores.softmax(-1), 0)  # (B, T, S); zero in a row that sees nothing
    p_cache = logits.new_zeros(B, T, V).scatter_add(-1, values[:, None].expand(-1, T, -1), weights.to(logits.dtype))
    share = mix * seen.any(-1)[:, None].to(logits.dtype)
    # added as logarithms, because a very small probability would become 0
    mixed = torch.logaddexp(torch.log1p(-share) + logits.log_softmax(-1), (share * p_cache).log())
    return mixed, Cached(keys[:, -window:], values[:, -window:])


CARD = Card(
    "awd-lstm",
    AWDLSTM,
    "Merity, Keskar & Socher (2018)",
    "PTB words; Xu et al., Table 4",
    {"d_model": 400, "layers": 3, "d_hidden": 1150},
)
