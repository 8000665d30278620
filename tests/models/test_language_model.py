"""The language model around a backbone: tied, streaming, generating."""

import numpy as np
import pytest
import torch
from torch import nn

from rtx.models import RNN, LanguageModel, RTransformer, Transformer

BACKBONES = {
    "gru": lambda: RNN(8, 2, "gru"),
    "r-transformer": lambda: RTransformer(8, 2, 2, 3),
    "transformer": lambda: Transformer(8, 2, 2),
}


@pytest.fixture(params=BACKBONES)
def model(request):
    torch.manual_seed(0)
    made = LanguageModel(BACKBONES[request.param](), 11).double().eval()
    torch.nn.init.normal_(made.embedding.weight)
    return made


def test_tied_weights_are_one_parameter_that_learns_from_both_ends(model):
    assert model.decoder.weight is model.embedding.weight
    untied = LanguageModel(RNN(8), 11, tied=False)
    assert untied.decoder.weight is not untied.embedding.weight
    model(torch.tensor([[1, 2]])).sum().backward()
    assert (model.embedding.weight.grad.abs().sum(1) > 0).all()  # words that were not read, too: by the output


def on_meta(model):
    return model.to("meta").to_empty(device="cpu")


def assigned(model):
    model.load_state_dict({name: tensor.clone() for name, tensor in model.state_dict().items()}, assign=True)
    return model


@pytest.mark.parametrize("make_anew", [on_meta, assigned, lambda model: assigned(on_meta(nn.Sequential(model)))[0]])
def test_tied_weights_stay_one_parameter_where_torch_makes_them_anew(model, make_anew):
    count = len([*model.parameters()])
    model = make_anew(model)
    assert model.decoder.weight is model.embedding.weight and len([*model.parameters()]) == count
    untied = make_anew(LanguageModel(RNN(8), 11, tied=False))
    assert untied.decoder.weight is not untied.embedding.weight


def test_embeddings_start_small_and_the_outputs_bias_at_zero():
    torch.manual_seed(0)
    model = LanguageModel(RNN(8), 500)
    assert 0.099 < model.embedding.weight.abs().max() <= 0.1 and not model.decoder.bias.any()


def test_steps_equal_the_whole_text(model):
    tokens, state, rows = torch.randint(0, 11, (3, 9)), None, []
    with torch.no_grad():
        for column in tokens.unbind(1):
            logits, state = model.step(column, state)
            rows.append(logits)
        torch.testing.assert_close(torch.stack(rows, 1), model(tokens), rtol=0, atol=1e-10)


def test_generated_text_is_the_one_that_rereading_everything_gives(model):
    prompt = torch.tensor([[1, 2, 3], [4, 5, 6]])
    text = model.generate(prompt, 6, temperature=0)
    expected = prompt
    for _ in range(6):
        expected = torch.cat([expected, model(expected)[:, -1].argmax(-1, keepdim=True)], 1)
    assert torch.equal(text, expected)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_state_that_stays_in_place_gives_the_same_text(cell, temperature):
    torch.manual_seed(0)
    model = LanguageModel(RTransformer(8, 2, 2, 3, cell), 11).eval()
    torch.nn.init.normal_(model.embedding.weight)
    prompt = torch.tensor([[1, 2, 3], [4, 5, 6]])
    texts = [model.generate(prompt, 50, temperature, in_place=in_place) for in_place in (True, None, False)]
    assert torch.equal(texts[0], texts[1]) and torch.equal(texts[1], texts[2])


def test_a_transformer_that_is_told_no_positions_counts_none():
    torch.manual_seed(0)
    model = LanguageModel(Transformer(8, 2, 2, position="none"), 11).eval()
    torch.nn.init.normal_(model.embedding.weight)
    prompt = torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert torch.equal(model.generate(prompt, 50, in_place=True), model.generate(prompt, 50, in_place=False))


@pytest.mark.parametrize(
    ("position", "message"),
    [
        ("sinusoidal", "state: this model counts its positions on the CPU"),
        ("learned", "state: this model counts its positions on the CPU"),
        ("relative", "state: RelativeAttention needs to know where a key is, which a fixed cache hides"),
    ],
)
def test_a_model_whose_state_cannot_stay_says_so_where_it_is_asked_to(position, message):
    model = LanguageModel(Transformer(8, 2, 2, position=position), 11).eval()
    with pytest.raises(ValueError, match=message):
        model.generate(torch.tensor([[1]]), 40, in_place=True)


def test_a_seed_gives_one_text_and_another_seed_another(model):
    prompt = torch.tensor([[1]])
    texts = [model.generate(prompt, 30, seed=seed).tolist() for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]


def test_top_k_and_nucleus_keep_to_the_likely(model):
    prompt = torch.tensor([[1]])
    best = model.generate(prompt, 20, temperature=0)
    assert torch.equal(model.generate(prompt, 20, top_k=1), best)
    assert torch.equal(model.generate(prompt, 20, top_p=1e-9), best)


def test_reading_in_pieces_carries_the_state():
    torch.manual_seed(0)
    model = LanguageModel(RNN(8, 2, "lstm"), 11).double()
    tokens = torch.randint(0, 11, (2, 9))
    first, state = model.read(tokens[:, :4])
    last, _ = model.read(tokens[:, 4:], state)
    torch.testing.assert_close(torch.cat([first, last], 1), model(tokens), rtol=0, atol=1e-12)


def test_a_backbone_that_reads_no_pieces_says_so():
    with pytest.raises(ValueError, match="backbone: Transformer reads no pieces; step through the text instead"):
        LanguageModel(Transformer(8, 1, 2), 11).read(torch.tensor([[1]]))


def test_embedding_dropout_hides_a_word_wherever_it_is():
    torch.manual_seed(0)
    model = LanguageModel(RNN(8), 50, embedding_dropout=0.5)
    vectors = model.embed(torch.arange(50).repeat(1, 2))[0].detach()
    assert torch.equal(vectors[:50], vectors[50:])
    assert 10 < (vectors[:50] == 0).all(1).sum() < 40


def test_input_dropout_hides_single_numbers_in_training():
    torch.manual_seed(0)
    model, tokens = LanguageModel(RNN(50), 50, input_dropout=0.5), torch.arange(50)[None]
    vectors, plain = model.embed(tokens), model.eval().embed(tokens)
    assert 0.45 < (vectors == 0).float().mean() < 0.55
    torch.testing.assert_close(vectors, torch.where(vectors == 0, 0, 2 * plain))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (torch.tensor([[1, 11]]), "tokens: expected tokens from 0 to 10, got 11"),
        (torch.tensor([[1, -1]]), "tokens: expected tokens from 0 to 10, got -1"),
        (torch.tensor([1, 2]), r"tokens: expected tokens of shape \(batch, time\), at least one, got \(2,\)"),
        (torch.zeros(1, 0, dtype=torch.long), r"tokens: expected tokens of shape \(batch, time\), at least one"),
        (torch.ones(1, 2), "tokens: expected whole numbers of int32 or int64, got torch.float32"),
        (torch.ones(1, 2).byte(), "tokens: expected whole numbers of int32 or int64, got torch.uint8"),
        ([[1, 2]], "tokens: expected a torch.Tensor, got list"),
    ],
)
def test_bad_tokens_are_refused(model, tokens, message):
    with pytest.raises(ValueError, match=message):
        model(tokens)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": 0}, "tokens: expected a whole number of at least 1, got 0"),
        ({"tokens": 2, "temperature": -1.0}, "temperature: expected"),
        ({"tokens": 2, "top_k": 0}, "top_k: expected a whole number of at least 1, got 0"),
        ({"tokens": 2, "top_p": 0.0}, "top_p: expected"),
        ({"tokens": 2, "in_place": "no"}, "in_place: expected true or false, got 'no'"),
        ({"tokens": 2, "seed": None}, "seed: expected a whole number of at most 64 bits, got None"),
        ({"tokens": 2, "seed": 1.5}, "seed: expected a whole number of at most 64 bits, got 1.5"),
        ({"tokens": 2, "seed": 2**64}, f"seed: expected a whole number of at most 64 bits, got {2**64}"),
    ],
)
def test_bad_settings_are_refused(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.generate(torch.tensor([[1]]), **arguments)


def test_a_model_that_has_gone_wrong_does_not_babble(model):
    with torch.no_grad():
        model.decoder.bias[0] = torch.nan
    with pytest.raises(ValueError, match="logits: expected finite numbers"):
        model.generate(torch.tensor([[1]]), 3)


def test_what_is_no_backbone_is_refused():
    with pytest.raises(ValueError, match="backbone: expected a backbone with a d_model and a step, got Linear"):
        LanguageModel(torch.nn.Linear(2, 2), 5)


def test_only_what_is_asked_for_is_decoded():
    torch.manual_seed(0)
    model = LanguageModel(RNN(8), 5).double()
    tokens, where = torch.randint(5, (3, 7)), torch.rand(3, 7) < 0.5
    torch.testing.assert_close(model(tokens, where), model(tokens)[where], rtol=0, atol=1e-12)
    for bad in (where[:, 1:], where.int()):
        with pytest.raises(ValueError, match=r"where: expected bool of shape \(3, 7\), got"):
            model(tokens, bad)
    with pytest.raises(ValueError, match="where: expected a torch.Tensor, got ndarray"):
        model(tokens, where.numpy())


def test_lengths_limits_and_seeds_may_be_numbers_of_numpy(model):
    prompt, how = torch.tensor([[5, 7]]), {"tokens": 9, "top_k": 4, "seed": 3}
    same = model.generate(prompt, **{name: np.int64(value) for name, value in how.items()})
    assert torch.equal(same, model.generate(prompt, **how))
