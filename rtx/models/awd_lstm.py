"""AWD-LSTM: torch's LSTM with the regularisation that made it the best language model of its time.

Merity, Keskar & Socher (2018), Regularizing and Optimizing LSTM Language Models; the set-up of Xu et al. (2019),
MC-RNN, Table 4. Averaged SGD is in `rtx.training.optimizers`, the penalty on activations in `auxiliary_losses` there,
the continuous cache in `rtx.tasks.cache_pointer`. Tied weights and embedding dropout are in `rtx.models.LanguageModel`.
"""

from functools import partial
from itertools import chain, pairwise, repeat
from typing import cast

from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from rtx.models.backbone import Card, CausalModel
from rtx.nn.dropout import LockedDropout
from rtx.nn.recurrent import run_network
from rtx.nn.streaming import State, check_state, read_through
from rtx.nn.validate import check_fraction, check_positive


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
        widths = chain([d_model], repeat(hidden, check_positive("layers", layers) - 1), [d_model])
        networks = [nn.LSTM(a, b, batch_first=True) for a, b in pairwise(widths)]
        self.networks, self.widths = nn.ModuleList(networks), [network.hidden_size for network in networks]
        self.dropout_input = LockedDropout(check_fraction("dropout_input", dropout_input))
        self.dropout_hidden = LockedDropout(check_fraction("dropout_hidden", dropout_hidden))
        self.dropout = LockedDropout(dropout)
        self.weight_dropout = check_fraction("weight_dropout", weight_dropout)

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has (h, c) of each layer, (B, width) each."""
        self.check_input(x)
        networks = zip(self.networks, self.widths, strict=True)
        layers = [partial(self._run, cast(nn.LSTM, network), width) for network, width in networks]
        raw, state = read_through(layers, self.dropout_input(x), state, self.dropout_hidden)
        return self.dropout(raw), state

    def _run(self, network: nn.LSTM, width: int, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        given = None
        if state is not None:
            check_state(state, *[(x.shape[0], width)] * 2)
            given = tuple(part[None] for part in state)
        p = self.weight_dropout if self.training else 0.0
        y, (h, c) = run_network(partial(_with_weight_dropout, network, p) if p else network, network, x, given)
        return y, (h[0], c[0])


def _with_weight_dropout(
    network: nn.LSTM, p: float, x: Tensor, state: tuple[Tensor, ...] | None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return `network(x, state)` with each recurrent weight hidden with probability p."""
    dropped = {"weight_hh_l0": F.dropout(network.all_weights[0][1], p)}
    found: tuple[Tensor, tuple[Tensor, Tensor]] = functional_call(network, dropped, (x, state))
    return found


CARD = Card(
    "awd-lstm",
    AWDLSTM,
    "Merity, Keskar & Socher (2018)",
    "PTB words; Xu et al., Table 4",
    {"d_model": 400, "layers": 3, "d_hidden": 1150},
)
