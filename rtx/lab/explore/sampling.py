"""Explorer of sampling: what a language model would write next, and how temperature, top-k and nucleus change it.

Fan, Lewis & Dauphin (2018), top-k; Holtzman et al. (2020), nucleus.
"""

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.lab.explore.recording import Panel, Recording, Slide, Values
from rtx.models import LanguageModel
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite, check_positive
from rtx.tasks.generate import continue_text
from rtx.tasks.vocabulary import Vocabulary

SHOWN = 16  # tokens in the picture
TEMPERATURES, TOP_P = (0.0, 0.5, 0.7, 1.0, 1.3, 2.0), (0.5, 0.8, 0.95, 1.0)


def sampling(model: LanguageModel, vocabulary: Vocabulary, prompt: str, tokens: int = 40, seed: int = 1) -> Recording:
    """The next token's probabilities and a continuation, with controls `temperature`, `top_k` and `top_p`.

    Args:
        model: a language model, trained or not.
        vocabulary: how it reads and writes.
        prompt: the text so far.
        tokens: how many are drawn behind it.
        seed: of the draws, the same at every setting.

    Raises:
        ValueError: if the vocabulary is another model's or lacks a symbol of the prompt, or the logits are not finite.
    """
    if vocabulary.size != model.vocabulary:
        raise ValueError(f"vocabulary: expected the model's {model.vocabulary} symbols, got {vocabulary.size}")
    check_positive("tokens", tokens)
    logits = next_logits(model, vocabulary.encode(prompt) or [vocabulary.start])
    order = logits.argsort(descending=True, stable=True)[: min(SHOWN, vocabulary.size)]
    plain = logits.softmax(-1)[order]

    @cache
    def written(temperature: float, top_k: int, top_p: float) -> str:
        return "".join(continue_text(model, vocabulary, prompt, tokens, temperature, top_k, top_p, seed))

    def see(temperature: float, top_k: int, top_p: float) -> Values:
        p = kept(logits, temperature, top_k, top_p)
        number = int((p > 0).sum())
        greedy = temperature == 0 or top_k == 1
        text = written(*((0.0, 1, 1.0) if greedy else (temperature, top_k, top_p)))
        return f"{number} of {len(p)} tokens can be drawn. {prompt!r} goes on: {text!r}", {"next": [plain, p[order]]}

    numbers = [*(k for k in (1, 10) if k < vocabulary.size), vocabulary.size]
    return Recording(
        "What is written next?",
        "lower the temperature until the text repeats itself; go back to 1 and cut the tail instead, by k or by p",
        {
            "temperature": Slide("temperature", TEMPERATURES),
            "top_k": Slide("top k", numbers),
            "top_p": Slide("top p", TOP_P),
        },
        {
            "next": Panel(
                "bars",
                "the likeliest next tokens",
                up="probability",
                names=("the model's", "drawn from"),
                places=[_written(vocabulary, int(token)) for token in order],
                fit=True,
            )
        },
        see,
        name="sampling",
        presets={"Greedy": {"temperature": 0.0}, "Nucleus 0.8": {"top_p": 0.8}, "Hot": {"temperature": 2.0}},
        temperature=1.0,
        top_k=vocabulary.size,
        top_p=1.0,
    )


@torch.no_grad()
def next_logits(model: LanguageModel, tokens: list[int]) -> Float[Tensor, " V"]:
    """The logits of the token after these.

    Raises:
        ValueError: if they are not finite.
    """
    with evaluating(model):
        logits = model(torch.tensor([tokens], device=model.embedding.weight.device))[0, -1].double().cpu()
    check_finite("logits of the model", logits)
    return logits


def kept(logits: Float[Tensor, " V"], temperature: float, top_k: int, top_p: float) -> Float[Tensor, " V"]:
    """The probabilities by which `rtx.nn.sampling.sample_token` draws; 0 for what is cut off."""
    scores, tokens = logits.sort(descending=True, stable=True)
    if temperature == 0:
        temperature, top_k = 1.0, 1
    p = ((scores - scores[0]) / temperature)[:top_k].softmax(-1)
    p = p * (p.cumsum(-1) - p < top_p)
    return torch.zeros_like(logits).scatter(0, tokens[: len(p)], p / p.sum())


def _written(vocabulary: Vocabulary, token: int) -> str:
    symbol = vocabulary.symbols[token]
    return {" ": "blank", "\n": "newline"}.get(symbol, symbol)
