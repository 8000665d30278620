"""Draw the next token from a language model's logits, with a temperature, top-k and a nucleus.

Fan, Lewis & Dauphin (2018), Hierarchical Neural Story Generation (top-k); Holtzman et al. (2020), The Curious Case of
Neural Text Degeneration (nucleus).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rtx.checks import check_seed
from rtx.nn.validate import check_at_least_zero, check_positive, is_number


def seeded_generator(seed: int) -> torch.Generator:
    """Return a random generator on the CPU: its numbers do not depend on the model's device."""
    return torch.Generator().manual_seed(check_seed("seed", seed))


def sample_token(
    logits: Float[Tensor, "*batch V"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "*batch"]:
    """Draw one token for each row of logits.

    The logits are divided by the temperature. The `top_k` most likely tokens of the softmax are kept. Of these, made
    to sum to 1 again, the nucleus is kept: the fewest most likely tokens whose probabilities together reach `top_p`. Of
    two equally likely tokens, the lower number counts as more likely.

    Each row uses one uniform number, drawn on the CPU. So one seed gives the same draws on every device.

    Args:
        logits: -inf forbids a token.
        temperature: below 1 makes likely tokens more likely. 0 always takes the most likely token.
        top_k: number of tokens that are kept; None for all.
        top_p: probability of the nucleus, above 0 and up to 1. 1 keeps all tokens.
        generator: for the draws, on the CPU; by default torch's own.
    """
    scores = logits.detach().cpu().double()  # not every device has float64
    _check(scores, temperature, top_k, top_p)
    if temperature == 0:
        temperature, top_k = 1.0, 1
    scores, tokens = scores.sort(dim=-1, descending=True, stable=True)
    # the best score becomes 0 before the division, so that a temperature near 0 cannot overflow
    p = ((scores - scores[..., :1]) / temperature)[..., :top_k].softmax(-1)
    # a token is in the nucleus if the tokens before it do not reach top_p
    kept = (p > 0) & (p.cumsum(-1) - p < top_p)
    edges = (p * kept).cumsum(-1)
    drawn = torch.rand(*p.shape[:-1], 1, generator=generator, dtype=torch.float64) * edges[..., -1:]
    # the first token whose share ends after the draw; rounding must not go past the last kept token
    rank = torch.minimum((edges <= drawn).sum(-1, keepdim=True), kept.sum(-1, keepdim=True) - 1)
    return tokens.gather(-1, rank).squeeze(-1).to(logits.device)


def _check(logits: Tensor, temperature: float, top_k: int | None, top_p: float) -> None:
    if bool((logits.isnan() | (logits == torch.inf)).any()):
        raise ValueError("logits: expected numbers, or -inf for a forbidden token, got NaN or inf")
    if bool((logits == -torch.inf).all(-1).any()):
        raise ValueError("logits: expected at least one allowed token in each row, got a row of -inf")
    check_at_least_zero("temperature", temperature)
    if top_k is not None and check_positive("top_k", top_k) > logits.shape[-1]:
        raise ValueError(f"top_k: expected at most the vocabulary's {logits.shape[-1]} tokens, got {top_k}")
    if not (is_number(top_p) and 0 < top_p <= 1):
        raise ValueError(f"top_p: expected a number above 0 and up to 1, got {top_p!r}")
