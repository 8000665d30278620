"""Feed-forward attention: one look at each step by itself, then a weighted average over time, and no recurrence.

Raffel & Ellis (2015), Feed-Forward Networks with Attention Can Solve Some Long-Term Memory Problems.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rtx.nn.kernels.pooling import pooling
from rtx.nn.kernels.pooling_plain import LEAKS, scores, shares, states
from rtx.nn.padding import real_positions
from rtx.nn.state import State, check_state
from rtx.nn.validate import check_choice, check_lengths, check_positive, check_sequence, check_step


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

    def forward(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B K"]:
        """One prediction for each sequence.

        Args:
            x: sequences, padded at their end with anything: the padding is not read.
            lengths: real steps of each; all T by default.

        Raises:
            ValueError: if `x` is not (B, T, F), or a length is not in 1 … T.
        """
        # Eq. (1) or (2): c = Σ α_t h_t, without a tensor of all h_t
        c = pooling(x, self._checked(x, lengths), self.hidden.weight, self.hidden.bias, *self._scorer(), self.leak)
        return self._read_out(c)

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
        mass = scores(h, *self._scorer()).exp()[:, None]  # (B, 1)
        wide = torch.promote_types(h.dtype, torch.float32)
        sums = (mass * h).to(wide), mass.to(wide)
        if state is not None:
            check_state(state, (len(x), h.shape[-1]), (len(x), 1))
            sums = state[0] + sums[0], state[1] + sums[1]
        return self._read_out((sums[0] / sums[1]).to(h.dtype)), sums

    def weights(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B T"]:
        """The share of each step in the context: each row sums to 1, padding has 0."""
        return self.inside(x, lengths)["attention"]

    def inside(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"] | None = None) -> dict[str, Tensor]:
        """By name: the states h (B, T, D), and their shares in the context, `attention` (B, T)."""
        real = real_positions(self._checked(x, lengths), x.shape[1])
        h = states(x, real, self.hidden.weight, self.hidden.bias, self.leak)
        return {"states": h, "attention": shares(h, real, *self._scorer())}

    def _checked(self, x: Tensor, lengths: Tensor | None) -> Int[Tensor, " B"]:
        check_sequence("x", x, self.inputs, like=self.hidden.weight)
        B, T, _ = x.shape
        if lengths is None:
            return torch.full((B,), T, device=x.device)
        check_lengths("lengths", lengths, B, T)
        return lengths.to(x.device)

    def _scorer(self) -> tuple[Tensor | None, Tensor | None]:
        """w_hc and b_hc, or None for the mean."""
        return (None, None) if self.score is None else (self.score.weight, self.score.bias)

    def _read_out(self, c: Tensor) -> Tensor:
        # s = LReLU(W_cs c + b_cs), y = LReLU(W_sy s + b_sy)
        return LEAKS[self.leak](self.output(LEAKS[self.leak](self.context(c))))


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=inputs**-0.5)
    nn.init.zeros_(layer.bias)
    return layer
