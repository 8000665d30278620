"""Draw the next token from a language model's logits: temperature, top-k and nucleus.

Fan, Lewis & Dauphin (2018), Hierarchical Neural Story Generation (top-k); Holtzman et al. (2020), The Curious Case of
Neural Text Degeneration (nucleus).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rtx.nn.validate import check_positive, check_tensor, is_number, is_whole


def draws_from(seed: int) -> torch.Generator:
    """The random numbers of a seed, drawn on the CPU: the same whatever the device of a model.

    Raises:
        ValueError: if the seed is no whole number, or none of 64 bits.
    """
    if not is_whole(seed) or not -(2**63) <= seed < 2**64:
        raise ValueError(f"seed: expected a whole number of at most 64 bits, got {seed!r}")
    return torch.Generator().manual_seed(int(seed))


def sample_token(
    logits: Float[Tensor, "*batch V"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "*batch"]:
    """One token for each row of logits.

    The logits are divided by the temperature; of the softmax the `top_k` likeliest tokens are kept; of these, made to
    sum to 1 again, the nucleus: the fewest likeliest whose probabilities together reach `top_p`. Of equally likely
    tokens the lower number counts as the likelier. A row takes one uniform number, drawn on the CPU whatever the
    logits' device and whatever is kept, so one seed gives the same draws everywhere.

    Args:
        logits: -inf forbids a token.
        temperature: below 1 likely tokens become likelier; 0, the limit, always takes the likeliest.
        top_k: how many tokens are kept; None for all.
        top_p: the probability the nucleus reaches, above 0 and up to 1, which keeps all.
        generator: of the draws, on the CPU; torch's own if not given.

    Raises:
        ValueError: if an argument is out of its range, or a row has a NaN, an infinity, or no token allowed.
    """
    scores = _checked(logits, temperature, top_k, top_p, generator).double()
    if temperature == 0:
        temperature, top_k = 1.0, 1
    scores, tokens = scores.sort(dim=-1, descending=True, stable=True)
    # the best becomes 0 before the division, so that a temperature near 0 cannot overflow
    p = ((scores - scores[..., :1]) / temperature)[..., :top_k].softmax(-1)
    # a token is in the nucleus if those before it do not reach top_p yet
    kept = (p > 0) & (p.cumsum(-1) - p < top_p)
    edges = (p * kept).cumsum(-1)
    drawn = torch.rand(*p.shape[:-1], 1, generator=generator, dtype=torch.float64) * edges[..., -1:]
    # the first token whose share ends beyond the draw; rounding must not reach past the last one kept
    rank = torch.minimum((edges <= drawn).sum(-1, keepdim=True), kept.sum(-1, keepdim=True) - 1)
    return tokens.gather(-1, rank).squeeze(-1).to(logits.device)


def _checked(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float, generator: torch.Generator | None
) -> Tensor:
    """The logits on the CPU: a GPU is waited for once, and not every device has float64."""
    check_tensor("logits", logits)
    if logits.ndim < 1 or not logits.numel() or not logits.is_floating_point():
        raise ValueError(
            f"logits: expected floating-point numbers of shape (…, vocabulary), got {logits.dtype} of shape "
            f"{tuple(logits.shape)}"
        )
    logits = logits.detach().cpu()
    if bool((logits.isnan() | (logits == torch.inf)).any()):
        raise ValueError("logits: expected numbers, or -inf for a token that is forbidden, got NaN or inf")
    if bool((logits == -torch.inf).all(-1).any()):
        raise ValueError("logits: expected at least one token that is not forbidden in each row, got a row of -inf")
    if not (is_number(temperature) and 0 <= temperature < float("inf")):
        raise ValueError(f"temperature: expected a finite number of at least 0, got {temperature!r}")
    if top_k is not None and check_positive("top_k", top_k) > logits.shape[-1]:
        raise ValueError(f"top_k: expected at most the vocabulary's {logits.shape[-1]} tokens, got {top_k}")
    if not (is_number(top_p) and 0 < top_p <= 1):
        raise ValueError(f"top_p: expected a number above 0 and up to 1, got {top_p!r}")
    if generator is not None and not isinstance(generator, torch.Generator):
        raise ValueError(f"generator: expected a torch.Generator, got {generator!r}")
    if generator is not None and generator.device.type != "cpu":
        raise ValueError(f"generator: expected one on the CPU, got one on {generator.device}")
    return logits
