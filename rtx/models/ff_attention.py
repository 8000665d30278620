"""Feed-forward attention: one look at each step by itself, then a weighted average over time, and no recurrence.

Raffel & Ellis (2015), Feed-Forward Networks with Attention Can Solve Some Long-Term Memory Problems.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.padding import real_positions
from rtx.nn.state import State, check_state
from rtx.nn.validate import check_choice, check_lengths, check_positive, check_sequence, check_step

FLOOR = 0.01

LEAKS: dict[str, Callable[[Tensor], Tensor]] = {
    "printed": lambda x: x.clamp(min=FLOOR),
    "coded": lambda x: F.leaky_relu(x, FLOOR),
}


class FeedForwardAttention(nn.Module):
    """Maps sequences of vectors to one vector each: it is a whole model, with an input and an output of its own.

    An average does not know an order: the output is the same for every permutation of the steps. With the paper's
    sizes it has 10,602 parameters, 10,501 with the mean. Weights start as N(0, 1/fan-in), biases as zero.

    Args:
        inputs: F, numbers per step.
        outputs: K, numbers per sequence.
        d_hidden: D, width of the states and of the context.
        pooling: "attention" weights the states by the softmax over time of their scores; "mean" averages them.
        leak: "printed" is the paper's LReLU, max(x, .01), which passes no gradient below .01; "coded" is that of
            the authors' code, max(x, .01 x).

    Raises:
        ValueError: if a size is below 1 or a name is unknown.
    """

    def __init__(
        self,
        inputs: int = 2,
        outputs: int = 1,
        d_hidden: int = 100,
        pooling: str = "attention",
        leak: str = "printed",
    ) -> None:
        super().__init__()
        self.inputs, D = check_positive("inputs", inputs), check_positive("d_hidden", d_hidden)
        self.pooling = check_choice("pooling", pooling, ("attention", "mean"))
        self.leak = check_choice("leak", leak, LEAKS)
        self.hidden = _linear(inputs, D)
        self.score = _linear(D, 1) if pooling == "attention" else None
        self.context = _linear(D, D)
        self.output = _linear(D, check_positive("outputs", outputs))

    def forward(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B K"]:
        """One prediction for each sequence.

        Args:
            x: sequences, padded at their end with anything: the padding is not read.
            lengths: real steps of each; all T by default.

        Raises:
            ValueError: if `x` is not (B, T, F), or a length is not in 1 … T.
        """
        h, real = self._states(x, lengths)
        # Eq. (1) or (2): c = Σ α_t h_t
        return self._read_out((self._weights(h, real)[:, None] @ h).squeeze(1))

    def step(
        self, x: Float[Tensor, "B F"], state: State | None = None
    ) -> tuple[Float[Tensor, "B K"], tuple[Float[Tensor, "B D"], Float[Tensor, "B 1"]]]:
        """One step of a stream, and the output as if the sequence ended here.

        The state is Σ exp(e_t) h_t and Σ exp(e_t), in float32 at least, so that a long sum goes on growing. Scores
        are between -1 and 1: their exponentials need no running maximum.

        Raises:
            ValueError: if `x` is not (B, F), or `state` is another model's or batch's.
        """
        check_step("x", x, self.inputs, like=self.hidden.weight)
        h = LEAKS[self.leak](self.hidden(x))
        mass = self._scores(h).exp()[:, None]  # (B, 1)
        wide = torch.promote_types(h.dtype, torch.float32)
        sums = (mass * h).to(wide), mass.to(wide)
        if state is not None:
            check_state(state, (len(x), h.shape[-1]), (len(x), 1))
            sums = state[0] + sums[0], state[1] + sums[1]
        return self._read_out((sums[0] / sums[1]).to(h.dtype)), sums

    def weights(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B T"]:
        """The share of each step in the context: each row sums to 1, padding has 0."""
        return self._weights(*self._states(x, lengths))

    def inside(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, "B"] | None = None) -> dict[str, Tensor]:
        """By name: the states h (B, T, D), and their shares in the context, `attention` (B, T)."""
        h, real = self._states(x, lengths)
        return {"states": h, "attention": self._weights(h, real)}

    def _states(self, x: Tensor, lengths: Tensor | None) -> tuple[Tensor, Bool[Tensor, "B T"]]:
        check_sequence("x", x, self.inputs, like=self.hidden.weight)
        B, T, _ = x.shape
        if lengths is None:
            lengths = torch.full((B,), T, device=x.device)
        check_lengths("lengths", lengths, B, T)
        real = real_positions(lengths.to(x.device), T)
        # zeros for the padding first: a NaN in it would outlive a weight of zero
        return LEAKS[self.leak](self.hidden(torch.where(real[..., None], x, 0))), real  # (B, T, D)

    def _weights(self, h: Tensor, real: Tensor) -> Tensor:
        return self._scores(h).masked_fill(~real, -torch.inf).softmax(-1).to(h.dtype)

    def _scores(self, h: Tensor) -> Tensor:
        """(…): equal ones for the mean, which is the softmax of any constant."""
        # a(h_t) = tanh(w_hc · h_t + b_hc)
        return h.new_zeros(h.shape[:-1]) if self.score is None else torch.tanh(self.score(h)).squeeze(-1)

    def _read_out(self, c: Tensor) -> Tensor:
        # s = LReLU(W_cs c + b_cs), y = LReLU(W_sy s + b_sy)
        return LEAKS[self.leak](self.output(LEAKS[self.leak](self.context(c))))


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=inputs**-0.5)
    nn.init.zeros_(layer.bias)
    return layer
