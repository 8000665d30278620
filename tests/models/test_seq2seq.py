"""RNNSearch against loops over one sentence at a time; and what holds for every model from a source to a target."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.models import MODELS, RNN, EncoderDecoder, Seq2Seq, rnnsearch
from rtx.nn import naive
from rtx.nn.state import select
from rtx.tasks.build import hyperparameter_names

SOURCES, TARGETS, BEGIN, END = 9, 7, 0, 1
RECURRENT = ["rnn", "gru", "lstm", "mc-rnn", "ho-rnn", "hm-rnn", "awd-lstm", "griffin"]
LENGTHS = torch.tensor([5, 2, 1])
SOURCE = torch.tensor([[2, 3, 8, 0, 4], [5, 6, 0, 0, 0], [7, 0, 0, 0, 0]])
TARGET = torch.tensor([[0, 2, 3, 4], [0, 6, 5, 1], [0, 3, 3, 1]])


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


def naive_search(model: Seq2Seq, source: list[int], target: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """One sentence through one-layer GRUs, from the equations, with no padding and no batch: logits and weights."""
    D = model.d_model

    def run(gru: RNN, xs):
        h, hs = torch.zeros(D, dtype=torch.float64), []
        for x in xs:
            h = naive.gru(x, h, *gru.network.parameters())
            hs.append(h)
        return hs

    embedded = [model.source_embedding.weight[token] for token in source]
    annotations = run(model.encoder, embedded)
    read = annotations[-1]
    if model.backward_encoder is not None:
        backwards = run(model.backward_encoder, embedded[::-1])[::-1]
        read = backwards[0]
        annotations = [
            model.join.weight @ torch.cat(pair) + model.join.bias for pair in zip(annotations, backwards, strict=True)
        ]
    a = model.attention
    query, s = torch.tanh(model.first_query.weight @ read + model.first_query.bias), torch.zeros_like(read)
    logits, weights = [], []
    for token in target:
        y = model.target_embedding.weight[token]
        energies = [
            a.energy.weight[0] @ torch.tanh(a.query.weight @ query + a.key.weight @ h + a.key.bias) for h in annotations
        ]
        alpha = torch.stack(energies).exp() / torch.stack(energies).exp().sum()
        c = sum(weight * h for weight, h in zip(alpha, annotations, strict=True))
        x = model.decoder_input.weight @ torch.cat([y, c]) + model.decoder_input.bias
        query = s = naive.gru(x, s, *model.decoder.network.parameters())
        hidden = torch.tanh(model.hidden.weight @ torch.cat([s, c, y]) + model.hidden.bias)
        logits.append(model.output.weight @ hidden + model.output.bias)
        weights.append(torch.nn.functional.pad(alpha, (0, 5 - len(alpha))))
    return torch.stack(logits), torch.stack(weights)


@pytest.mark.parametrize("two_way", [False, True])
def test_rnnsearch_equals_its_equations_with_all_gradients(two_way):
    torch.manual_seed(0)
    model = Seq2Seq(SOURCES, TARGETS, RNN(4), RNN(4), RNN(4) if two_way else None).double()
    naives = [
        naive_search(model, source[:n], target)
        for source, n, target in zip(SOURCE.tolist(), LENGTHS.tolist(), TARGET.tolist(), strict=True)
    ]
    expected, weights = (torch.stack(part) for part in zip(*naives, strict=True))
    logits = model(SOURCE, TARGET, LENGTHS)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(model.align(SOURCE, TARGET, LENGTHS), weights, rtol=0, atol=1e-10)
    probe, parameters = torch.randn_like(logits), list(model.parameters())
    ours = torch.autograd.grad((logits * probe).sum(), parameters)
    theirs = torch.autograd.grad((expected * probe).sum(), parameters)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def stream(model, source, target, lengths):
    state, rows = model.start(source, lengths), []
    for tokens in target.unbind(1):
        logits, state = model.step(tokens, state)
        rows.append(logits)
    return torch.stack(rows, 1)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_step_by_step_equals_the_whole(model, dtype, tolerance):
    model = model.to(dtype)
    logits = model(SOURCE, TARGET, LENGTHS)
    assert logits.shape == (3, 4, TARGETS) and logits.dtype == dtype
    torch.testing.assert_close(stream(model, SOURCE, TARGET, LENGTHS), logits, rtol=0, atol=tolerance)


def test_a_step_leaves_its_state_as_it_was_and_rows_can_be_reordered(model):
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


def test_what_stands_in_the_padding_never_matters(model):
    other = torch.where(torch.arange(5) < LENGTHS[:, None], SOURCE, -100)
    assert torch.equal(model(other, TARGET, LENGTHS), model(SOURCE, TARGET, LENGTHS))


def test_the_source_is_read_and_the_future_of_the_target_is_not(model):
    logits = model(SOURCE, TARGET, LENGTHS)
    later = TARGET.clone()
    later[:, 2] = 2
    changed = (model(SOURCE, later, LENGTHS) - logits).abs().amax((0, 2))
    assert (changed[:2] < 1e-12).all() and (changed[2:] > 1e-6).all()
    other = SOURCE.clone()
    other[:, 0] = 1
    assert ((model(other, TARGET, LENGTHS) - logits).abs().amax(2) > 1e-6).all()


def test_alignments_sum_to_one_over_the_source_and_to_the_coverage_over_the_target(model):
    weights = model.align(SOURCE, TARGET, LENGTHS)
    real = torch.arange(5) < LENGTHS[:, None]
    assert weights.shape == (3, 4, 5)
    torch.testing.assert_close(weights.sum(2), torch.ones(3, 4).double())
    coverage = weights.sum(1)
    assert (coverage[~real] == 0).all() and (coverage[real] > 0).all()
    torch.testing.assert_close(coverage.sum(1), torch.full((3,), 4.0).double())


def test_every_parameter_gets_a_gradient(model):
    # long enough for an HM-RNN's upper level to be updated
    draws = torch.Generator().manual_seed(0)
    logits = model(torch.randint(9, (3, 16), generator=draws), torch.randint(7, (3, 16), generator=draws))
    (logits * torch.randn_like(logits)).sum().backward()
    dead = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert dead == []


def test_lower_precision_and_autocast_agree_with_float64(model):
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


def test_a_translation_scores_what_forward_says_and_width_1_is_greedy(model):
    how = {"begin": BEGIN, "end": END, "length": 6}
    for width in (4, 1):
        found = model.translate(SOURCE, LENGTHS, **how, width=width)
        best = found.tokens[:, 0]
        real = torch.arange(best.shape[1]) < found.lengths[:, :1]
        taught = model(SOURCE, torch.cat([torch.full((3, 1), BEGIN), best[:, :-1]], 1), LENGTHS).log_softmax(-1)
        each = taught.gather(2, best[..., None]).squeeze(2) * real
        torch.testing.assert_close(each.sum(1) / found.lengths[:, 0], found.scores[:, 0], rtol=0, atol=1e-10)
    assert torch.equal(taught.argmax(-1)[real], best[real])


@settings(max_examples=15)
@given(seed=st.integers(0, 100), B=st.integers(1, 3), S=st.integers(1, 6), T=st.integers(1, 5))
def test_any_lengths_stream_and_ignore_their_padding(seed, B, S, T):
    draws = torch.Generator().manual_seed(seed)
    source, target = torch.randint(SOURCES, (B, S), generator=draws), torch.randint(TARGETS, (B, T), generator=draws)
    lengths = torch.randint(1, S + 1, (B,), generator=draws)
    for kind in ("lstm", "r-transformer"):
        both = make(kind).double().eval()
        torch.testing.assert_close(
            stream(both, source, target, lengths), both(source, target, lengths), rtol=0, atol=1e-10
        )


def test_the_seed_decides_the_draws_of_dropout():
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


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_lengths_may_be_whole_numbers_of_any_size(model, dtype):
    source, target, lengths = SOURCE[:, :3], TARGET, torch.tensor([2, 3, 1])
    assert torch.equal(model(source, target, lengths.to(dtype)), model(source, target, lengths))


@pytest.mark.parametrize(
    ("source", "target", "lengths", "message"),
    [
        (SOURCE[:, :0], TARGET, None, r"source: expected tokens of shape \(batch, time\), at least one, got \(3, 0\)"),
        (SOURCE, TARGET, torch.tensor([5, 0, 1]), r"source_lengths: expected 3 .* from 1 to 5, .* got \[5, 0, 1\]"),
        (SOURCE, TARGET, torch.tensor([6, 2, 1]), r"source_lengths: expected 3 .* from 1 to 5, .* got \[6, 2, 1\]"),
        (SOURCE + 1, TARGET, None, "source: expected tokens from 0 to 8, got 9"),
        (SOURCE, TARGET + 1, None, "target: expected tokens from 0 to 6, got 7"),
        (SOURCE.byte(), TARGET, None, "source: expected whole numbers of int32 or int64, got torch.uint8"),
        (SOURCE, TARGET.short(), None, "target: expected whole numbers of int32 or int64, got torch.int16"),
        (SOURCE, TARGET[:, :0], None, r"target: expected tokens of shape \(batch, time\), at least one, got \(3, 0\)"),
        (SOURCE, TARGET[:2], None, "target: expected one sequence for each of the 3 sources, got 2"),
        (SOURCE.tolist(), TARGET, None, "source: expected a torch.Tensor, got list"),
        (SOURCE.numpy(), TARGET, None, "source: expected a torch.Tensor, got ndarray"),
        (torch.tensor(1), TARGET, None, r"source: expected tokens of shape \(batch, time\), at least one, got \(\)"),
    ],
)
def test_bad_input_is_refused_with_one_clear_error(model, source, target, lengths, message):
    for method in (model, model.align):
        with pytest.raises(ValueError, match=message):
            method(source, target, lengths)


@pytest.mark.parametrize("source", [SOURCE.tolist(), SOURCE.numpy()])
def test_a_source_that_is_no_tensor_is_not_translated(model, source):
    with pytest.raises(ValueError, match="source: expected a torch.Tensor, got"):
        model.translate(source, begin=BEGIN, end=END, length=3)


def test_bad_steps_are_refused(model):
    _, state = model.step(TARGET[:, 0], model.start(SOURCE, LENGTHS))
    with pytest.raises(ValueError, match="state: expected"):
        model.step(TARGET[:2, 0], state)
    with pytest.raises(ValueError, match="state: expected"):
        model.step(TARGET[:, 0], state[:1])
    with pytest.raises(ValueError, match="tokens: expected tokens from 0 to 6, got 7"):
        model.step(TARGET[:, 0] + 7, state)
    with pytest.raises(ValueError, match="width: expected at most the vocabulary's 7 tokens, got 8"):
        model.translate(SOURCE, begin=BEGIN, end=END, length=3, width=8)


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ((torch.nn.Linear(8, 8), RNN(8)), "encoder: expected a backbone with a d_model and a step, got Linear"),
        ((RNN(8), torch.nn.GRU(8, 8)), "decoder: expected a backbone with a d_model and a step, got GRU"),
        ((RNN(8), RNN(6)), "decoder: expected the encoder's d_model = 8, got 6"),
        ((RNN(8), RNN(8), RNN(6)), "backward: expected the encoder's d_model = 8, got 6"),
    ],
)
def test_modules_that_do_not_fit_are_refused(modules, message):
    with pytest.raises(ValueError, match=message):
        Seq2Seq(SOURCES, TARGETS, *modules)


@pytest.mark.parametrize(
    ("build", "updates"),
    [
        (lambda: Seq2Seq(6, 6, RNN(32), RNN(32), RNN(32)), 110),
        (lambda: EncoderDecoder(6, 6, 32, 1, 4), 60),
        (lambda: EncoderDecoder(6, 6, 32, 1, 4, window=6), 90),
    ],
    ids=["seq2seq", "transformer", "r-transformer"],
)
def test_it_learns_to_reverse_five_tokens(build, updates):
    torch.manual_seed(0)
    model, draws = build(), torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, updates)
    for _ in range(updates):
        source = torch.randint(2, 6, (32, 5), generator=draws)
        target = torch.nn.functional.pad(source.flip(1), (1, 0), value=BEGIN)
        target = torch.nn.functional.pad(target, (0, 1), value=END)
        logits = model(source, target[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    source = torch.randint(2, 6, (200, 5), generator=draws)
    found = model.eval().translate(source, begin=BEGIN, end=END, length=6, width=2).tokens[:, 0, :5]
    assert (found == source.flip(1)).double().mean() > 0.95


@pytest.mark.parametrize(
    ("vocabulary", "layers", "millions", "printed"), [(25_000, 2, 23.0, 25), (30_000, 4, 30.0, 36)]
)
def test_parameters_of_the_baselines_of_tables_2_and_3_are_fewer_than_printed(vocabulary, layers, millions, printed):
    with torch.device("meta"):
        model = rnnsearch(vocabulary, vocabulary, "lstm", d_model=256, layers=layers)
    found = sum(p.numel() for p in model.parameters()) / 1e6
    assert abs(found - millions) < 0.05 and found < printed
