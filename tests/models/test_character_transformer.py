"""The character Transformer: its segments, its sliding evaluation, its auxiliary losses against loops."""

import pytest
import torch
from torch.nn import functional as F

from rtx.models import CharacterTransformer
from rtx.nn.auxiliary_losses import AuxiliaryLosses


def model(segment: int = 4, layers: int = 2, norm: str = "post") -> CharacterTransformer:
    torch.manual_seed(0)
    return CharacterTransformer(8, layers, 2, segment, norm=norm).double().eval()


def inputs(T: int, B: int = 2) -> torch.Tensor:
    return torch.randn(B, T, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def torchs_layer(block: torch.nn.Sequential, norm: str) -> torch.nn.TransformerEncoderLayer:
    """torch's own layer with the same weights; its attention's biases, which the paper's equation lacks, at zero."""
    attention, feed_forward = block
    other = torch.nn.TransformerEncoderLayer(8, 2, 32, 0.0, batch_first=True, norm_first=norm == "pre").double().eval()
    inner = attention.sublayer
    state = {
        "self_attn.in_proj_weight": torch.cat([inner.query.weight, inner.key.weight, inner.value.weight]),
        "self_attn.in_proj_bias": torch.zeros(24),
        "self_attn.out_proj.weight": inner.output.weight,
        "self_attn.out_proj.bias": torch.zeros(8),
    }
    for name, part in [
        ("linear1", feed_forward.sublayer.expand),
        ("linear2", feed_forward.sublayer.contract),
        ("norm1", attention.norm),
        ("norm2", feed_forward.norm),
    ]:
        state |= {f"{name}.{key}": value for key, value in part.state_dict().items()}
    other.load_state_dict(state)
    return other


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_layer_is_torchs_own_with_its_positions_added_segment_by_segment(norm):
    transformer, x = model(norm=norm), inputs(10)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    hidden = transformer.hidden(x)
    torch.testing.assert_close(hidden[-1], transformer(x), rtol=0, atol=0)
    assert len(hidden) == 2
    for start, length in [(0, 4), (4, 4), (8, 2)]:
        h = x[:, start : start + length]
        for layer, block in enumerate(transformer.blocks):
            placed = h + transformer.positions[layer, :length]
            h = torchs_layer(block, norm)(placed, src_mask=mask[:length, :length])
            torch.testing.assert_close(hidden[layer][:, start : start + length], h, rtol=0, atol=1e-10)


@pytest.mark.parametrize("segment", [1, 3, 4, 30])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_step_by_step_equals_the_whole_sequence_and_begins_anew_at_each_segment(segment, norm):
    transformer, x = model(segment, norm=norm), inputs(13)
    rows, state = [], None
    for x_t in x.unbind(1):
        y, state = transformer.step(x_t, state)
        rows.append(y)
        assert all(part[0].length <= segment for part in state[1:])
    torch.testing.assert_close(torch.stack(rows, 1), transformer(x), rtol=0, atol=1e-10)


@pytest.mark.parametrize("T", [1, 3, 4, 5, 11])
@pytest.mark.parametrize("windows", [1, 2, 64])
def test_sliding_gives_the_last_output_of_the_segment_that_ends_at_each_position(T, windows):
    transformer, x = model(), inputs(T)
    expected = [transformer(x[:, max(0, t - 3) : t + 1])[:, -1] for t in range(T)]
    torch.testing.assert_close(transformer.slide(x, windows), torch.stack(expected, 1), rtol=0, atol=1e-12)


def test_a_segment_knows_nothing_of_the_one_before_but_sliding_does():
    transformer, x = model(), inputs(8)
    other = x.clone()
    other[:, 3] += 1  # the last position of the first segment
    assert torch.equal(transformer(other)[:, 4:], transformer(x)[:, 4:])
    changed = (transformer.slide(other) - transformer.slide(x)).abs().amax((0, 2)) > 1e-9
    assert changed.tolist() == [False] * 3 + [True] * 4 + [False]


@pytest.mark.parametrize("segment", [1, 4, 12])
def test_the_last_output_reaches_to_its_segments_start(segment):
    transformer, x = model(segment), inputs(12, B=1).requires_grad_()
    (gradient,) = torch.autograd.grad(transformer(x)[0, -1].square().sum(), x)
    assert (gradient[0].abs().amax(-1) > 0).sum() == segment


def test_positions_start_as_long_as_one():
    torch.manual_seed(0)
    lengths = CharacterTransformer(64, 2, 2, 32).positions.norm(dim=-1)
    assert lengths.mean().item() == pytest.approx(1, abs=0.05)


def losses(**changes: object) -> AuxiliaryLosses:
    torch.manual_seed(0)
    sizes: dict[str, object] = {"d_model": 8, "layers": 4, "vocabulary": 5}
    return AuxiliaryLosses(**(sizes | changes)).double()


def example(layers: int = 4, T: int = 6, targets: int = 2) -> tuple[list[torch.Tensor], torch.Tensor]:
    draws = torch.Generator().manual_seed(2)
    hidden = [torch.randn(3, T, 8, generator=draws, dtype=torch.float64) for _ in range(layers)]
    return hidden, torch.randint(5, (3, T + targets), generator=draws)


@pytest.mark.parametrize("targets", [1, 2, 3])
@pytest.mark.parametrize("positions", ["all", "last"])
@pytest.mark.parametrize("intermediate", [True, False])
@pytest.mark.parametrize("progress", [0.0, 0.2, 0.49, 1.0])
def test_the_loss_is_the_sum_that_a_loop_makes(targets, positions, intermediate, progress):
    loss = losses(targets=targets, positions=positions, intermediate=intermediate)
    hidden, tokens = example(targets=targets)
    total = torch.zeros((), dtype=torch.float64)
    for layer in range(1, 5):
        if layer < 4 and (not intermediate or progress >= layer / 8):
            continue
        if layer < 4:
            weight, bias = loss.classifiers[layer - 1].parameters()
        else:
            parts = [loss.decoder, *([loss.classifiers[-1]] if targets > 1 else [])]
            weight, bias = torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])
        for target in range(1, targets + 1):
            rows = slice(5 * (target - 1), 5 * target)
            places = range(6) if positions == "all" else [5]
            each = [
                F.cross_entropy(weight[rows] @ hidden[layer - 1][b, t] + bias[rows], tokens[b, t + target])
                for b in range(3)
                for t in places
            ]
            total = total + sum(each) / len(each) * (1 if target == 1 else 0.5)
    torch.testing.assert_close(loss(hidden, tokens, progress), total, rtol=0, atol=1e-10)


def test_half_precision_is_summed_in_single_and_short_whole_numbers_are_read():
    loss = losses(layers=1, vocabulary=256)
    hidden = [torch.randn(32, 512, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))]
    tokens = torch.randint(256, (32, 514), generator=torch.Generator().manual_seed(3))
    exact = loss(hidden, tokens)
    found = loss.half()([h.half() for h in hidden], tokens.int())  # 16,384 positions at about 5.6: too much for half
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=0)


def test_layers_stop_counting_from_the_bottom_and_all_have_by_half_the_training():
    loss = losses()
    assert [len(loss.counting(p)) for p in (0, 0.124, 0.125, 0.25, 0.374, 0.375, 0.5, 1)] == [4, 4, 3, 2, 2, 1, 1, 1]
    hidden, tokens = example()
    for h in hidden:
        h.requires_grad_()
    reached = {}
    for progress in (0.0, 0.3, 0.5):
        found = torch.autograd.grad(loss(hidden, tokens, progress), hidden, allow_unused=True)
        reached[progress] = [g is not None for g in found]
    assert reached == {0.0: [True] * 4, 0.3: [False, False, True, True], 0.5: [False, False, False, True]}


def test_the_prediction_is_the_last_layers_first_target():
    loss, (hidden, tokens) = losses(targets=1, intermediate=False), example(targets=1)
    logits = loss.logits(hidden[-1])
    assert logits.shape == (3, 6, 5)
    expected = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    torch.testing.assert_close(loss(hidden, tokens), expected, rtol=0, atol=1e-12)


def test_an_unknown_symbol_is_not_predicted():
    loss, (hidden, tokens) = losses(layers=1), example(layers=1)
    known = tokens[:, :5]
    logits = loss._predict(0, hidden[0]).unflatten(-1, (2, 5))
    first = F.cross_entropy(logits[:, :4, 0].flatten(0, 1), known[:, 1:].flatten())
    second = F.cross_entropy(logits[:, :3, 1].flatten(0, 1), known[:, 2:].flatten())
    unknown = F.pad(known, (0, 3), value=-1)
    torch.testing.assert_close(loss(hidden, unknown), first + second / 2, rtol=0, atol=1e-10)


def test_a_target_that_no_position_knows_costs_nothing():
    loss, (hidden, tokens) = losses(layers=1), example(layers=1, T=1)
    tokens[:, 2] = -1  # the text ends with the first target of its only position
    expected = F.cross_entropy(loss.logits(hidden[0])[:, 0], tokens[:, 1])
    torch.testing.assert_close(loss(hidden, tokens), expected, rtol=0, atol=1e-12)


def test_a_decoder_that_is_given_is_the_one_that_predicts():
    torch.manual_seed(0)
    decoder = torch.nn.Linear(8, 5).double()
    loss, (hidden, tokens) = losses(decoder=decoder), example()
    assert loss.logits(hidden[-1]).equal(decoder(hidden[-1]))
    loss(hidden, tokens).backward()
    assert decoder.weight.grad.abs().max() > 0


def test_every_classifier_learns_at_the_start_of_the_training():
    loss = losses()
    loss(*example(), progress=0.0).backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in loss.parameters())


def test_classifiers_that_count_no_longer_have_a_gradient_of_zero():
    """Several processes that train together wait for a gradient of every parameter."""
    loss = losses()
    loss(*example(), progress=1.0).backward()
    retired = [p for one in loss.classifiers[:3] for p in one.parameters()]
    assert retired and all(p.grad is not None and not p.grad.any() for p in retired)


@pytest.mark.parametrize(("layers", "published"), [(12, 44), (64, 235)])
def test_parameters_with_a_classifier_for_each_layer_and_target_are_the_published_ones(layers, published):
    with torch.device("meta"):
        transformer, loss = CharacterTransformer(512, layers, 8), AuxiliaryLosses(512, layers, 256)
    count = {part: sum(p.numel() for p in part.parameters()) for part in (transformer, loss)}
    assert count[transformer] == layers * 3_412_480
    assert round((256 * 512 + sum(count.values())) / 1e6) == published


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extra": -1}, "extra: expected a finite number of at least 0, got -1"),
        ({"extra": "a"}, "extra: expected a finite number of at least 0, got 'a'"),
        ({"positions": "first"}, "positions: 'first' is unknown, allowed are all, last"),
        ({"targets": 0}, "targets: expected a whole number of at least 1, got 0"),
    ],
)
def test_impossible_losses_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        losses(**changes)


def test_what_does_not_fit_the_losses_is_refused():
    loss, (hidden, tokens) = losses(), example()
    for bad, message in [
        ((hidden[:3], tokens), "hidden: expected the outputs of 4 layers, got 3"),
        ((hidden, tokens[:, 1:]), r"tokens: expected \(3, 6 \+ 2\), the text and the targets behind it, got \(3, 7\)"),
        ((hidden, tokens + 1), "tokens: expected tokens from 0 to 4, got 5"),
        ((hidden, tokens, "a"), "progress: expected a number from 0 to 1, got 'a'"),
        ((hidden, tokens, 1.1), "progress: expected a number from 0 to 1, got 1.1"),
    ]:
        with pytest.raises(ValueError, match=message):
            loss(*bad)


def test_impossible_segments_and_states_are_refused():
    with pytest.raises(ValueError, match="segment: expected a whole number of at least 1, got 0"):
        model(0)
    with pytest.raises(ValueError, match="windows: expected a whole number of at least 1, got 0"):
        model().slide(inputs(9), 0)
    x = inputs(6)
    _, state = model(9).step(x[:, 0], (5, *model(9).step(x[:, 0])[1][1:]))
    with pytest.raises(ValueError, match="state: expected a place in a segment of 4 and 2 layers, got 6 and 2 layers"):
        model().step(x[:, 0], state)
    with pytest.raises(ValueError, match="state: expected a place in a segment of 4 and 2 layers, got 1 and 3 layers"):
        model().step(x[:, 0], model(layers=3).step(x[:, 0])[1])
