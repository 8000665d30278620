"""RNNSearch against loops over its equations, and what holds for every model from a source to a target."""

import pytest
import torch
from oracles import LENGTHS, SOURCE, TARGET, assert_same, count, gradients, skip_without_lstm_under_autocast
from references import rnnsearch as expected_rnnsearch

from rtx.models import MODELS, RNN, EncoderDecoder, Seq2Seq, rnnsearch
from rtx.nn.streaming import select
from rtx.tasks.build import hyperparameter_names

SOURCES, TARGETS, BEGIN, END = 9, 7, 0, 1
RECURRENT = ["rnn", "gru", "lstm", "mc-rnn", "ho-rnn", "hm-rnn", "awd-lstm", "griffin"]


def backbone(name: str) -> torch.nn.Module:
    sizes = {"d_model": 8, "layers": 2, "heads": 2, "window": 3, "d_hidden": 12}
    return MODELS[name](**{k: v for k, v in sizes.items() if k in hyperparameter_names(name)})


def make(kind: str) -> torch.nn.Module:
    torch.manual_seed(0)
    if kind == "one-way":
        return Seq2Seq(SOURCES, TARGETS, RNN(8), RNN(8))
    if kind in RECURRENT:
        return Seq2Seq(SOURCES, TARGETS, backbone(kind), backbone(kind), backbone(kind))
    window = 3 if kind.startswith("r-") else None
    return EncoderDecoder(SOURCES, TARGETS, 8, 2, 2, window, norm="pre" if kind.endswith("pre") else "post")


@pytest.fixture(params=["one-way", *RECURRENT, "transformer", "transformer-pre", "r-transformer", "r-transformer-pre"])
def model(request) -> torch.nn.Module:
    return make(request.param).double().eval()


@pytest.mark.parametrize("two_way", [False, True])
def test_rnnsearch_equals_its_equations_with_all_gradients(two_way):
    torch.manual_seed(0)
    model = Seq2Seq(SOURCES, TARGETS, RNN(4), RNN(4), RNN(4) if two_way else None).double()
    rows = [
        expected_rnnsearch(model, source[:n], target)
        for source, n, target in zip(SOURCE.tolist(), LENGTHS.tolist(), TARGET.tolist(), strict=True)
    ]
    assert_same(model(SOURCE, TARGET, LENGTHS), torch.stack([logits for logits, _ in rows]), model.parameters())
    weights = torch.stack([torch.nn.functional.pad(row, (0, 5 - row.shape[1])) for _, row in rows])
    torch.testing.assert_close(model.align(SOURCE, TARGET, LENGTHS), weights, rtol=0, atol=1e-10)


def stream(model, source, target, lengths):
    state, rows = model.start(source, lengths), []
    for tokens in target.unbind(1):
        logits, state = model.step(tokens, state)
        rows.append(logits)
    return torch.stack(rows, 1)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_step_by_step_equals_the_whole_target(model, dtype, tolerance):
    model = model.to(dtype)
    logits = model(SOURCE, TARGET, LENGTHS)
    assert logits.shape == (3, 4, TARGETS) and logits.dtype == dtype
    torch.testing.assert_close(stream(model, SOURCE, TARGET, LENGTHS), logits, rtol=0, atol=tolerance)


def test_a_step_does_not_change_its_state_and_rows_can_be_reordered(model):
    with torch.no_grad():
        _, state = model.step(TARGET[:, 0], model.start(SOURCE, LENGTHS))
        once, _ = model.step(TARGET[:, 1], state)
        model.step(TARGET[:, 2], state)
        again, _ = model.step(TARGET[:, 1], state)
        rows = torch.tensor([2, 0, 0])
        chosen, _ = model.step(TARGET[rows, 1], select(state, rows))
    assert torch.equal(once, again)
    torch.testing.assert_close(chosen, once[rows], rtol=0, atol=1e-12)


def test_a_batch_equals_its_sentences_alone_without_padding(model):
    logits, weights = model(SOURCE, TARGET, LENGTHS), model.align(SOURCE, TARGET, LENGTHS)
    for b, n in enumerate(LENGTHS.tolist()):
        alone = SOURCE[b : b + 1, :n], TARGET[b : b + 1]
        torch.testing.assert_close(logits[b], model(*alone)[0], rtol=0, atol=1e-12)
        torch.testing.assert_close(weights[b, :, :n], model.align(*alone)[0], rtol=0, atol=1e-12)


def test_every_parameter_gets_a_gradient(model):
    # long enough for an update of HM-RNN's upper layer
    draws = torch.Generator().manual_seed(0)
    logits = model(torch.randint(9, (3, 16), generator=draws), torch.randint(7, (3, 16), generator=draws))
    parts = zip(model.named_parameters(), gradients(logits, model.parameters()), strict=True)
    assert [name for (name, _), gradient in parts if not gradient.abs().max() > 0] == []


def test_lower_precision_and_autocast_agree_with_float64(model):
    skip_without_lstm_under_autocast(model)
    expected = model(SOURCE, TARGET, LENGTHS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = model.float()(SOURCE, TARGET, LENGTHS)
    half = model.bfloat16()(SOURCE, TARGET, LENGTHS)
    torch.testing.assert_close(mixed.double(), expected, rtol=0, atol=0.2)
    torch.testing.assert_close(half.double(), expected, rtol=0, atol=0.2)


def test_translations_together_are_those_of_each_sentence_alone(model):
    how = {"begin": BEGIN, "end": END, "length": 6, "width": 3}
    together = model.translate(SOURCE, LENGTHS, **how)
    for b, n in enumerate(LENGTHS.tolist()):
        alone = model.translate(SOURCE[b : b + 1, :n], **how)
        L = min(alone.tokens.shape[2], together.tokens.shape[2])
        assert torch.equal(together.tokens[b, :, :L], alone.tokens[0, :, :L])
        torch.testing.assert_close(together.scores[b], alone.scores[0], rtol=0, atol=1e-10)


def test_the_score_of_a_translation_is_that_of_its_logits_and_width_1_is_greedy(model):
    how = {"begin": BEGIN, "end": END, "length": 6}
    for width in (4, 1):
        found = model.translate(SOURCE, LENGTHS, **how, width=width)
        best = found.tokens[:, 0]
        real = torch.arange(best.shape[1]) < found.lengths[:, :1]
        taught = model(SOURCE, torch.cat([torch.full((3, 1), BEGIN), best[:, :-1]], 1), LENGTHS).log_softmax(-1)
        each = taught.gather(2, best[..., None]).squeeze(2) * real
        torch.testing.assert_close(each.sum(1) / found.lengths[:, 0], found.scores[:, 0], rtol=0, atol=1e-10)
    assert torch.equal(taught.argmax(-1)[real], best[real])


def test_dropout_acts_in_training_only_and_depends_on_the_seed():
    model = Seq2Seq(SOURCES, TARGETS, RNN(8), RNN(8), RNN(8), dropout=0.5)
    torch.manual_seed(1)
    first, second = model(SOURCE, TARGET), model(SOURCE, TARGET)
    torch.manual_seed(1)
    assert torch.equal(model(SOURCE, TARGET), first) and not torch.equal(first, second)
    assert torch.equal(model.eval()(SOURCE, TARGET), model(SOURCE, TARGET))


def test_dropout_is_on_both_embeddings_and_on_the_last_hidden_layer():
    model, seen = Seq2Seq(SOURCES, TARGETS, RNN(8), RNN(8), RNN(8), dropout=0.5), []
    model.dropout.register_forward_hook(lambda _, given, dropped: seen.append(tuple(dropped.shape)))
    model(SOURCE, TARGET, LENGTHS)
    assert seen == [(3, 5, 8), (3, 4, 8), (3, 4, 8)]
    stream(model, SOURCE, TARGET[:, :1], LENGTHS)
    assert seen[3:] == [(3, 5, 8), (3, 8), (3, 8)]


def test_lengths_may_be_whole_numbers_of_any_size(model):
    source, target, lengths = SOURCE[:, :3], TARGET, torch.tensor([2, 3, 1])
    for dtype in (torch.uint8, torch.int16, torch.int32):
        assert torch.equal(model(source, target, lengths.to(dtype)), model(source, target, lengths))


def test_bad_input_is_refused(model):
    for source, target, lengths, message in (
        (SOURCE[:, :0], TARGET, None, r"^source: .*\(3, 0\)"),
        (SOURCE, TARGET, torch.tensor([5, 0, 1]), r"^source_lengths: .*\[5, 0, 1\]"),
        (SOURCE, TARGET, torch.tensor([6, 2, 1]), r"^source_lengths: .*\[6, 2, 1\]"),
        (SOURCE + 1, TARGET, None, "^source: .*9"),
        (SOURCE, TARGET + 1, None, "^target: .*7"),
        (SOURCE, TARGET - 1, None, "^target: .*-1"),
        (SOURCE.byte(), TARGET, None, "^source: .*torch.uint8"),
        (SOURCE, TARGET.short(), None, "^target: .*torch.int16"),
        (SOURCE, TARGET[:, :0], None, r"^target: .*\(3, 0\)"),
        (SOURCE, TARGET[:2], None, "^target: .*3.*2"),
        (SOURCE.tolist(), TARGET, None, "^source: .*list"),
        (SOURCE.numpy(), TARGET, None, "^source: .*ndarray"),
        (torch.tensor(1), TARGET, None, r"^source: .*\(\)"),
    ):
        for call in (model, model.align):
            with pytest.raises(ValueError, match=message):
                call(source, target, lengths)
        if message.startswith("^source"):
            with pytest.raises(ValueError, match=message):
                model.translate(source, lengths, begin=BEGIN, end=END, length=3)


def test_bad_steps_are_refused(model):
    _, state = model.step(TARGET[:, 0], model.start(SOURCE, LENGTHS))
    for call, message in [
        (lambda: model.step(TARGET[:2, 0], state), "^state: "),
        (lambda: model.step(TARGET[:, 0], state[:1]), "^state: "),
        (lambda: model.step(TARGET[:, 0] + 7, state), "^tokens: .*7"),
        (lambda: model.translate(SOURCE, begin=BEGIN, end=END, length=3, width=8), "^width: .*8"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_backbones_of_other_widths_are_refused():
    with pytest.raises(ValueError, match="^decoder: .*8.*6"):
        Seq2Seq(SOURCES, TARGETS, RNN(8), RNN(6))
    with pytest.raises(ValueError, match="^backward: .*8.*6"):
        Seq2Seq(SOURCES, TARGETS, RNN(8), RNN(8), RNN(6))


@pytest.mark.parametrize(
    ("vocabulary", "layers", "millions", "printed"), [(25_000, 2, 23.0, 25), (30_000, 4, 30.0, 36)]
)
def test_parameters_of_the_baselines_of_tables_2_and_3_are_fewer_than_printed(vocabulary, layers, millions, printed):
    with torch.device("meta"):
        model = rnnsearch(vocabulary, vocabulary, "lstm", d_model=256, layers=layers)
    found = count(model) / 1e6
    assert abs(found - millions) < 0.05 and found < printed
