"""A continued tune keeps its start and follows the model's probabilities, the seed and the temperature."""

import resource
from itertools import islice

import pytest
import torch
from torch import Tensor, nn

from rtx.models import RNN, CausalModel, CharacterTransformer, LanguageModel, RTransformer
from rtx.nn.mode import evaluating
from rtx.tasks import SequenceModel
from rtx.tasks.generate import continue_roll, continue_texts
from rtx.tasks.vocabulary import Vocabulary, vocabulary

NOTES = 5
ROLL = torch.tensor([[1.0, 0, 0, 1, 0], [0, 1, 0, 1, 0]])


class Same(CausalModel):
    """Gives its input."""

    d_model = NOTES

    def read(self, x: Tensor, state: tuple[Tensor, ...] | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
        return x, ()


def constant_model(logits: Tensor) -> SequenceModel:
    model = SequenceModel(Same(), NOTES, NOTES, "step")
    nn.init.zeros_(model.head.weight)
    model.head.bias.data = logits
    return model


def small_model(dropout: float = 0.0) -> SequenceModel:
    torch.manual_seed(0)
    return SequenceModel(RTransformer(8, 1, 2, 3, dropout=dropout), NOTES, NOTES, "step")


def test_the_stream_draws_what_rereading_everything_draws() -> None:
    model, tune = small_model().double().eval(), ROLL.double()
    draws = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for _ in range(12):
            p = torch.sigmoid(model(tune[None])[0, -1].float())
            tune = torch.cat([tune, (torch.rand(p.shape, generator=draws) < p).to(tune)[None]])
    assert torch.equal(continue_roll(model, ROLL.double(), 12, seed=5), tune)


SEGMENT = 4


def last_segments(model: torch.nn.Module, start: Tensor, steps: int, draw) -> Tensor:
    """Read the last segment anew for each draw."""
    with torch.no_grad():
        for _ in range(steps):
            start = torch.cat([start, draw(model(start[None, -SEGMENT:])[0, -1])[None]])
    return start


@pytest.mark.parametrize("prompt", ["a", "abc", "abcd", "abcdabc", "abcdabcd"])
def test_a_text_model_of_segments_sees_the_last_segment_at_every_draw(prompt: str) -> None:
    torch.manual_seed(0)
    letters = vocabulary("characters", "abcd")
    model = LanguageModel(CharacterTransformer(8, 2, 2, SEGMENT), letters.size).eval()
    torch.nn.init.normal_(model.embedding.weight, std=2)  # otherwise the likeliest symbol is always the same
    text = last_segments(model, torch.tensor(letters.encode(prompt)), 12, lambda logits: logits.argmax())
    (continued,) = map("".join, zip(*continue_texts(model, letters, [prompt], 12, temperature=0), strict=True))
    assert prompt + continued == letters.decode(text.tolist())


def test_a_tune_model_of_segments_sees_the_last_segment_at_every_draw() -> None:
    torch.manual_seed(0)
    model = SequenceModel(CharacterTransformer(8, 1, 2, SEGMENT), NOTES, NOTES, "step").eval()
    draws = torch.Generator().manual_seed(5)

    def draw(logits: Tensor) -> Tensor:
        return (torch.rand(logits.shape, generator=draws) < torch.sigmoid(logits)).float()

    assert torch.equal(continue_roll(model, ROLL, 12, seed=5), last_segments(model, ROLL, 12, draw))


@pytest.mark.parametrize("temperature", [0.01, 0.5, 1.0, 3.0])
def test_notes_sound_as_often_as_the_model_says(temperature: float) -> None:
    logits = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])
    drawn = continue_roll(constant_model(logits), ROLL, 1500, temperature)[2:]
    expected = torch.sigmoid(logits / temperature)
    torch.testing.assert_close(drawn.mean(0), expected, rtol=0, atol=4 * 0.5 / 1500**0.5)


def test_the_seed_decides_and_the_callers_random_numbers_stay() -> None:
    model = small_model()
    before = torch.get_rng_state()
    tunes = [continue_roll(model, ROLL, 10, seed=seed) for seed in (3, 3, 4)]
    assert torch.equal(tunes[0], tunes[1]) and not torch.equal(tunes[0], tunes[2])
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_is_off_while_drawing_and_every_module_keeps_its_mode() -> None:
    model = small_model(dropout=0.5).train()
    model.head.eval()
    tune = continue_roll(model, ROLL, 20)
    assert torch.equal(tune, continue_roll(model.eval(), ROLL, 20))
    model.train()
    model.head.eval()
    with pytest.raises(KeyError), evaluating(model):
        assert not any(module.training for module in model.modules())
        raise KeyError
    assert model.training and model.backbone.training and not model.head.training


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": 0}, "frames: expected a whole number of at least 1, got 0"),
        ({"temperature": 0.0}, "temperature: expected a finite number above 0, got 0.0"),
        ({"seed": None}, "seed: .* got None"),
        ({"roll": ROLL[None]}, r"roll: expected shape \(batch, time, 5\), got \(1, 1, 2, 5\)"),
        ({"roll": ROLL[:, :4]}, r"roll: expected shape \(batch, time, 5\), got \(1, 2, 4\)"),
        ({"model": constant_model(torch.full((NOTES,), torch.nan))}, "logits of the model: expected finite"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"model": small_model(), "roll": ROLL, "frames": 2}
    with pytest.raises(ValueError, match=message):
        continue_roll(**arguments | change)


@pytest.mark.soak
def test_a_stream_of_100_000_symbols_needs_no_more_memory_than_a_short_one() -> None:
    symbols = Vocabulary("characters", lambda: "abcdefghijkl", 12)
    stream = continue_texts(LanguageModel(RNN(4, 1, cell="gru"), 12), symbols, ["a"], 100_000)
    most = []
    for piece in (10_000, 90_000):
        assert sum(1 for _ in islice(stream, piece)) == piece
        most.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # kB
    assert most[1] - most[0] < 1000
