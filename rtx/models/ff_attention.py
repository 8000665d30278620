"""Feed-forward attention: each step is transformed on its own, then averaged over time with learned weights.

Raffel & Ellis (2015), Feed-Forward Networks with Attention Can Solve Some Long-Term Memory Problems.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rtx.models.backbone import Card
from rtx.nn.masks import masked_softmax
from rtx.nn.ops.conditions import replaced
from rtx.nn.ops.pooling import pooling
from rtx.nn.ops.pooling.torch import LEAKS
from rtx.nn.padding import real_positions
from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_choice, check_lengths, check_positive, check_sequence, check_step


class FeedForwardAttention(nn.Module):
    """A whole model, not a backbone: it maps each sequence of vectors to one vector.

    An average does not depend on the order, so the output is the same for every permutation of the steps. With the
    paper's sizes there are 10,602 parameters, or 10,501 with the mean. Weights start as N(0, 1/fan_in), biases as zero.

    Args:
        inputs: F, numbers in each step.
        outputs: K, numbers in each output.
        d_hidden: D, width of the states and of the context.
        pooling: "attention" weights the states by the softmax of their scores over time. "mean" averages them.
        leak: "coded" is the LReLU of the authors' code, max(x, .01 x). "printed" is the paper's, max(x, .01). It has no
            gradient below .01, so with about half of all seeds the output starts at .01 and the model learns nothing.
    """

    def __init__(
        self, inputs: int = 2, outputs: int = 1, d_hidden: int = 100, pooling: str = "attention", leak: str = "coded"
    ) -> None:
        super().__init__()
        self.inputs, D = check_positive("inputs", inputs), check_positive("d_hidden", d_hidden)
        self.pooling = check_choice("pooling", pooling, ("attention", "mean"))
        self.leak = check_choice("leak", leak, LEAKS)
        self.hidden = _linear(inputs, D)
        self.score = _linear(D, 1) if pooling == "attention" else None
        self.context = _linear(D, D)  # W_cs, which reads the context
        self.output = _linear(D, check_positive("outputs", outputs))

    def forward(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B K"]:
        """Return one prediction for each sequence.

        Args:
            x: sequences, padded at the end. The padding is not read.
            lengths: number of real steps of each sequence; by default T.
        """
        if replaced(self.hidden, self.score):  # a wrapper such as LoRA: call the layers, do not read their weights
            inside = self.introspect(x, lengths)
            # Eq. (1) or (2): c = Σ α_t h_t
            c = (inside["weights"][:, None] @ inside["states"]).squeeze(1)
        else:
            scorer = (None, None) if self.score is None else (self.score.weight, self.score.bias)
            # Eq. (1) or (2), without storing the states of all steps
            c = pooling(x, self._checked(x, lengths), self.hidden.weight, self.hidden.bias, *scorer, self.leak)
        return self._read_out(c)

    def step(self, x: Float[Tensor, "B F"], state: State | None = None) -> tuple[Float[Tensor, "B K"], State]:
        """Read one step of a stream; return the output as if the sequence ended here, and the next state.

        The state is Σ exp(e_t) h_t, (B, D), and Σ exp(e_t), (B, 1), in float32 at least: in bfloat16 a long
        sum would soon stop growing. Scores are between -1 and 1, so their exponentials need no running maximum.
        """
        check_step("x", x, self.inputs, like=next(self.parameters()))
        h = LEAKS[self.leak](self.hidden(x))
        # Eq. (1), as two running sums
        mass = self._scores(h).exp()[:, None]  # (B, 1)
        wide = torch.promote_types(h.dtype, torch.float32)
        sums = (mass * h).to(wide), mass.to(wide)
        if state is not None:
            check_state(state, (x.shape[0], h.shape[-1]), (x.shape[0], 1))
            sums = state[0] + sums[0], state[1] + sums[1]
        return self._read_out((sums[0] / sums[1]).to(h.dtype)), sums

    def weights(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B T"]:
        """Return the share of each step in the context. Each row sums to 1; padding has 0."""
        return self.introspect(x, lengths)["weights"]

    def introspect(self, x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"] | None = None) -> dict[str, Tensor]:
        """Return "states", h (B, T, D), and "weights", their shares in the context (B, T)."""
        real = real_positions(self._checked(x, lengths), x.shape[1])
        h = LEAKS[self.leak](self.hidden(torch.where(real[..., None], x, 0)))
        # Eq. (1): α_t = exp(e_t) / Σ exp(e_s)
        return {"states": h, "weights": masked_softmax(self._scores(h), real).to(h.dtype)}

    def _checked(self, x: Tensor, lengths: Tensor | None) -> Int[Tensor, " B"]:
        check_sequence("x", x, self.inputs, like=next(self.parameters()))
        B, T, _ = x.shape
        if lengths is None:
            return torch.full((B,), T, device=x.device)
        check_lengths("lengths", lengths, B, T)
        return lengths.to(x.device)

    def _scores(self, h: Float[Tensor, "*B D"]) -> Float[Tensor, "*B"]:
        """Return a(h_t), or zeros for the mean."""
        return h.new_zeros(h.shape[:-1]) if self.score is None else torch.tanh(self.score(h)).squeeze(-1)

    def _read_out(self, c: Tensor) -> Tensor:
        # s = LReLU(W_cs c + b_cs), y = LReLU(W_sy s + b_sy)
        return LEAKS[self.leak](self.output(LEAKS[self.leak](self.context(c))))


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=inputs**-0.5)
    nn.init.zeros_(layer.bias)
    return layer


CARD = Card(
    "feed-forward-attention",
    FeedForwardAttention,
    "Raffel & Ellis (2015)",
    "§2.1",
    {"d_hidden": 100, "pooling": "attention"},
)
