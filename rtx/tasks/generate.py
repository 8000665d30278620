"""Continue a tune or a text: the next part is drawn from what a model predicts from all before it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.models import CharacterTransformer, LanguageModel
from rtx.nn.mode import evaluating
from rtx.nn.sampling import sample_token, seeded_generator
from rtx.nn.validate import check_above_zero, check_count, check_finite, check_positive, check_sequence
from rtx.tasks.build import SequenceModel
from rtx.tasks.task import Text

LOOK_BACK = 8  # tokens before a new one that may decide how it is written


def continue_roll(
    model: SequenceModel, roll: Float[Tensor, "T K"], frames: int, temperature: float = 1.0, seed: int = 0
) -> Float[Tensor, "T+{frames} K"]:
    """Return the piano roll with `frames` new frames after it.

    The notes of a frame are drawn independently of each other, as in the model's loss. `temperature` divides the
    logits: below 1 likely notes become likelier.
    """
    check_positive("frames", frames)
    check_above_zero("temperature", temperature)
    check_sequence("roll", roll[None], model.inputs, like=next(model.parameters()))
    draws = seeded_generator(seed)

    def drawn(_: int, logits: Tensor) -> Tensor:
        p = torch.sigmoid(logits.float() / temperature).cpu()
        return (torch.rand(p.shape, generator=draws) < p).to(roll)

    return torch.cat([roll, *(torch.stack([*found.values()]) for found in _continued(model, [roll], frames, drawn))])


def continue_texts(
    model: LanguageModel,
    vocabulary: Text,
    prompts: Sequence[str],
    tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
    stop: Sequence[str] = (),
    least: int = 0,
    forbidden: Sequence[str] = (),
) -> Iterator[list[str]]:
    """Yield what comes next after each of several prompts, until all continuations have ended.

    The prompts may differ in length. A continuation is the same alone and beside others, and a single one has the draws
    of `model.generate`. After an empty prompt, the model begins at the start of a text. A continuation has at most
    `tokens` tokens. It ends before any of the texts in `stop`, but not within its first `least` tokens. Symbols in
    `forbidden` are never drawn, and neither are tokens that are no text, such as <unk>.

    A character Transformer reads the last segment anew for each draw. `model.generate` starts new segments instead,
    and so forgets the prompt at the end of the first segment.
    """
    check_positive("tokens", tokens)
    if check_count("least", least) > tokens:
        raise ValueError(f"least: expected at most the {tokens} tokens of a continuation, got {least}")
    if vocabulary.size != model.vocabulary:
        raise ValueError(f"vocabulary: expected the model's {model.vocabulary} symbols, got {vocabulary.size}")
    if not all(stop):
        raise ValueError("stop: expected texts of at least one character, got an empty one")
    never = [*vocabulary.unwritten]
    for symbol in forbidden:
        found = vocabulary.encode(symbol)
        if len(found) != 1 or found[0] in vocabulary.unwritten:
            raise ValueError(f"forbidden: expected one symbol of the vocabulary, got {symbol!r}")
        never += found
    reads = [vocabulary.encode(prompt) or [vocabulary.start] for prompt in prompts]
    draws = [seeded_generator(seed) for _ in prompts]
    writers = [_Writer(vocabulary, read, tokens, least, stop) for read in reads]

    def draw(row: int, logits: Tensor) -> Tensor:
        allowed = logits.index_fill(-1, torch.tensor(never, dtype=torch.long, device=logits.device), -torch.inf)
        return sample_token(allowed, temperature, top_k, top_p, draws[row])

    starts = [torch.tensor(read, device=model.embedding.weight.device) for read in reads]
    for drawn in _continued(model, starts, tokens, draw):
        yield [writer.add(int(drawn[row])) if row in drawn else "" for row, writer in enumerate(writers)]
        if all(writer.ended for writer in writers):
            return


class _Writer:
    """Turns the tokens of a continuation into text, and holds back what may be the beginning of a stop."""

    def __init__(self, vocabulary: Text, read: list[int], most: int, least: int, stop: Sequence[str]) -> None:
        self.vocabulary, self.before, self.stop = vocabulary, read[-LOOK_BACK:], stop
        self.most, self.least, self.count, self.held, self.ended = most, least, 0, "", False

    def add(self, token: int) -> str:
        """Return the text that is certain now that this token is drawn."""
        if self.ended:
            return ""
        both, self.count = [*self.before, token], self.count + 1
        self.held += self.vocabulary.decode(both)[len(self.vocabulary.decode(self.before)) :]
        self.before = both[-LOOK_BACK:]
        found = [at for stop in self.stop if (at := self.held.find(stop)) >= 0 and self.count > self.least]
        self.ended = bool(found) or self.count == self.most
        begun = [n for stop in self.stop for n in range(1, len(stop)) if self.held.endswith(stop[:n])]
        end = min(found) if found else len(self.held) - (0 if self.ended else max(begun, default=0))
        text, self.held = self.held[:end], self.held[end:]
        return text


@torch.no_grad()
def _continued(
    model: SequenceModel | LanguageModel, starts: Sequence[Tensor], steps: int, draw: Callable[[int, Tensor], Tensor]
) -> Iterator[dict[int, Tensor]]:
    """Yield what is drawn after each step, by the row of the start that it continues.

    The model reads one position of every row at a time. A row whose start has ended goes on with what is drawn. Each
    draw is from the logits after all before it, and the row with the longest start has `steps` draws.
    """
    with evaluating(model):
        state, step, found = None, _step_of(model), dict[int, Tensor]()
        for at in range(max(map(len, starts)) + steps - 1):
            now = torch.stack([found[row] if row in found else start[at] for row, start in enumerate(starts)])
            logits, state = step(now, state)
            check_finite("logits of the model", logits)
            found = {row: draw(row, logits[row]) for row, start in enumerate(starts) if at + 1 >= len(start)}
            if found:
                yield found


def _step_of(model: SequenceModel | LanguageModel) -> Callable[[Tensor, Any], tuple[Tensor, Any]]:
    """Return how a model reads one position. A character Transformer reads its last segment anew, as in `slide`."""
    backbone = model.backbone
    if not isinstance(backbone, CharacterTransformer):
        return model.step

    def step(position: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
        seen = position[:, None] if before is None else torch.cat([before, position[:, None]], 1)
        seen = seen[:, -backbone.segment :]
        return model(seen)[:, -1], seen

    return step
