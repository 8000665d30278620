"""The character Transformer: its segments, its evaluation with `slide`, and its auxiliary losses against loops."""

import pytest
import torch
from oracles import count, torch_layer
from torch.nn import functional as F

from rtx.models import CharacterTransformer, LanguageModel
from rtx.training.auxiliary_losses import AuxiliaryLosses


def model(segment: int = 4, layers: int = 2, norm: str = "post") -> CharacterTransformer:
    torch.manual_seed(0)
    return CharacterTransformer(8, layers, 2, segment, norm=norm).double().eval()


def inputs(T: int, B: int = 2) -> torch.Tensor:
    return torch.randn(B, T, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_layer_is_torchs_own_on_each_segment_with_positions_added(norm):
    transformer, x = model(norm=norm), inputs(10)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    hidden = transformer.hidden(x)
    torch.testing.assert_close(hidden[-1], transformer(x), rtol=0, atol=0)
    assert len(hidden) == 2
    for start, length in [(0, 4), (4, 4), (8, 2)]:
        h = x[:, start : start + length]
        for layer, block in enumerate(transformer.blocks):
            placed = h + transformer.positions[layer, :length]
            h = torch_layer(block, norm)(placed, src_mask=mask[:length, :length])
            torch.testing.assert_close(hidden[layer][:, start : start + length], h, rtol=0, atol=1e-10)


@pytest.mark.parametrize("T", [1, 3, 4, 5, 11])
@pytest.mark.parametrize("windows", [1, 2, 64])
def test_slide_gives_the_last_output_of_the_segment_that_ends_at_each_position(T, windows, monkeypatch):
    monkeypatch.setattr("rtx.models.character_transformer.WINDOWS", windows)
    transformer, x = model(), inputs(T)
    expected = [transformer(x[:, max(0, t - 3) : t + 1])[:, -1] for t in range(T)]
    torch.testing.assert_close(transformer.slide(x), torch.stack(expected, 1), rtol=0, atol=1e-12)


def test_positions_start_with_length_1():
    torch.manual_seed(0)
    lengths = CharacterTransformer(64, 2, 2, 32).positions.norm(dim=-1)
    assert lengths.mean().item() == pytest.approx(1, abs=0.05)


def losses(layers: int = 4, vocabulary: int = 5, targets: int = 2) -> AuxiliaryLosses:
    torch.manual_seed(0)
    return AuxiliaryLosses(LanguageModel(CharacterTransformer(8, layers, 2), vocabulary), targets).double()


def example(layers: int = 4, T: int = 6, targets: int = 2) -> tuple[list[torch.Tensor], torch.Tensor]:
    draws = torch.Generator().manual_seed(2)
    hidden = [torch.randn(3, T, 8, generator=draws, dtype=torch.float64) for _ in range(layers)]
    return hidden, torch.randint(5, (3, T + targets), generator=draws)


@pytest.mark.parametrize("targets", [1, 2, 3])
@pytest.mark.parametrize("progress", [0.0, 0.2, 0.49, 1.0])
def test_the_loss_is_the_sum_of_a_loop(targets, progress):
    loss = losses(targets=targets)
    hidden, tokens = example(targets=targets)
    total = torch.zeros((), dtype=torch.float64)
    for layer in range(1, 5):
        if layer < 4 and progress >= layer / 8:
            continue
        if layer < 4:
            weight, bias = loss.classifiers[layer - 1].parameters()
        else:
            parts = [loss.decoder, *([loss.classifiers[-1]] if targets > 1 else [])]
            weight, bias = torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])
        for target in range(1, targets + 1):
            rows = slice(5 * (target - 1), 5 * target)
            each = [
                F.cross_entropy(weight[rows] @ hidden[layer - 1][b, t] + bias[rows], tokens[b, t + target])
                for b in range(3)
                for t in range(6)
            ]
            total = total + sum(each) / len(each) * (1 if target == 1 else 0.5)
    torch.testing.assert_close(loss(hidden, tokens, progress), total, rtol=0, atol=1e-10)


def test_half_precision_is_summed_in_single_and_tokens_may_be_int32():
    loss = losses(layers=1, vocabulary=256)
    hidden = [torch.randn(32, 512, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))]
    tokens = torch.randint(256, (32, 514), generator=torch.Generator().manual_seed(3))
    exact = loss(hidden, tokens)
    found = loss.half()([h.half() for h in hidden], tokens.int())  # 16,384 positions at about 5.6: too much for half
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=0)


def test_an_unknown_symbol_is_not_predicted():
    loss, (hidden, tokens) = losses(layers=1), example(layers=1)
    known = tokens[:, :5]
    logits = loss._predict(0, hidden[0]).unflatten(-1, (2, 5))
    first = F.cross_entropy(logits[:, :4, 0].flatten(0, 1), known[:, 1:].flatten())
    second = F.cross_entropy(logits[:, :3, 1].flatten(0, 1), known[:, 2:].flatten())
    unknown = F.pad(known, (0, 3), value=-1)
    torch.testing.assert_close(loss(hidden, unknown), first + second / 2, rtol=0, atol=1e-10)


def test_a_target_that_is_unknown_at_all_positions_has_no_loss():
    loss, (hidden, tokens) = losses(layers=1), example(layers=1, T=1)
    tokens[:, 2] = -1  # the text ends with the first target of its only position
    expected = F.cross_entropy(loss.decoder(hidden[0])[:, 0], tokens[:, 1])
    torch.testing.assert_close(loss(hidden, tokens), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("layers", "published"), [(12, 44), (64, 235)])
def test_parameters_with_a_classifier_for_each_layer_and_target_are_the_published_ones(layers, published):
    with torch.device("meta"):
        transformer = CharacterTransformer(512, layers, 8)
        loss = AuxiliaryLosses(LanguageModel(transformer, 256), 2)
    assert count(transformer) == layers * 3_412_480
    assert round((256 * 512 + count(transformer, loss)) / 1e6) == published


def test_states_of_another_segment_are_refused():
    x = inputs(6)
    with pytest.raises(ValueError, match="^state: "):
        model().step(x[:, 0], model(9).read(x)[1])  # 6 positions in a segment of 4
