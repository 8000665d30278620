"""The language model around a backbone: tied weights, streams, generated text."""

import numpy as np
import pytest
import torch
from oracles import stream
from torch import nn

from rtx.models import RNN, CharacterTransformer, LanguageModel, RTransformer, Transformer, TransformerXL

BACKBONES = {
    "gru": lambda: RNN(8, 2, "gru"),
    "r-transformer": lambda: RTransformer(8, 2, 2, 3),
    "transformer": lambda: Transformer(8, 2, 2),
    "character-transformer": lambda: CharacterTransformer(8, 2, 2, 4),
    "transformer-xl": lambda: TransformerXL(8, 2, 2, 4, 4),  # has parameters that its layers share
}


@pytest.fixture(params=BACKBONES)
def model(request):
    torch.manual_seed(0)
    made = LanguageModel(BACKBONES[request.param](), 11).double().eval()
    torch.nn.init.normal_(made.embedding.weight)
    return made


def test_tied_weights_are_one_parameter_that_learns_from_input_and_output(model):
    assert model.decoder.weight is model.embedding.weight
    untied = LanguageModel(RNN(8), 11, tied=False)
    assert untied.decoder.weight is not untied.embedding.weight
    model(torch.tensor([[1, 2]])).sum().backward()
    assert (model.embedding.weight.grad.abs().sum(1) > 0).all()  # also words that were not read


def on_meta(model):
    return model.to("meta").to_empty(device="cpu")


def assigned(model):
    model.load_state_dict({name: tensor.clone() for name, tensor in model.state_dict().items()}, assign=True)
    return model


@pytest.mark.parametrize("make_anew", [on_meta, assigned, lambda model: assigned(on_meta(nn.Sequential(model)))[0]])
def test_tied_weights_stay_one_parameter_when_torch_makes_new_ones(model, make_anew):
    count = len([*model.parameters()])
    model = make_anew(model)
    assert model.decoder.weight is model.embedding.weight and len([*model.parameters()]) == count
    untied = make_anew(LanguageModel(RNN(8), 11, tied=False))
    assert untied.decoder.weight is not untied.embedding.weight


def test_embeddings_start_in_01_and_the_outputs_bias_at_zero():
    torch.manual_seed(0)
    model = LanguageModel(RNN(8), 500)
    assert 0.099 < model.embedding.weight.abs().max() <= 0.1 and not model.decoder.bias.any()


@torch.no_grad()
def test_steps_and_pieces_equal_the_whole_text(model):
    tokens = torch.randint(0, 11, (3, 9))
    logits = model(tokens)
    torch.testing.assert_close(stream(model, tokens)[0], logits, rtol=0, atol=1e-10)
    first, state = model.read(tokens[:, :4])
    last, _ = model.read(tokens[:, 4:], state)
    torch.testing.assert_close(torch.cat([first, last], 1), logits, rtol=0, atol=1e-10)


def test_generated_text_is_that_of_reading_the_whole_text_for_each_token(model):
    prompt = torch.tensor([[1, 2, 3], [4, 5, 6]])
    expected = prompt
    for _ in range(6):
        expected = torch.cat([expected, model(expected)[:, -1].argmax(-1, keepdim=True)], 1)
    for kind in (torch.int32, torch.int64):
        assert torch.equal(model.generate(prompt.to(kind), 6, temperature=0), expected)


def test_a_seed_always_gives_the_same_text_and_another_seed_another_one(model):
    prompt = torch.tensor([[1]])
    texts = [model.generate(prompt, 30, seed=seed).tolist() for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]


def test_the_smallest_top_k_and_nucleus_give_the_most_likely_text(model):
    prompt = torch.tensor([[1]])
    best = model.generate(prompt, 20, temperature=0)
    assert torch.equal(model.generate(prompt, 20, top_k=1), best)
    assert torch.equal(model.generate(prompt, 20, top_p=1e-9), best)


def test_embedding_dropout_hides_a_word_at_all_its_positions():
    torch.manual_seed(0)
    model = LanguageModel(RNN(8), 50, embedding_dropout=0.5)
    vectors = model.embed(torch.arange(50).repeat(1, 2))[0].detach()
    assert torch.equal(vectors[:50], vectors[50:])
    assert 10 < (vectors[:50] == 0).all(1).sum() < 40
    assert model.eval().embed(torch.arange(50)[None]).all()


def test_input_dropout_hides_single_numbers_in_training():
    torch.manual_seed(0)
    model, tokens = LanguageModel(RNN(50), 50, input_dropout=0.5), torch.arange(50)[None]
    vectors, plain = model.embed(tokens), model.eval().embed(tokens)
    assert 0.45 < (vectors == 0).float().mean() < 0.55
    torch.testing.assert_close(vectors, torch.where(vectors == 0, 0, 2 * plain))


def test_only_the_wanted_tokens_are_decoded():
    torch.manual_seed(0)
    model = LanguageModel(RNN(8), 5).double()
    tokens, where = torch.randint(5, (3, 7)), torch.rand(3, 7) < 0.5
    torch.testing.assert_close(model(tokens, where), model(tokens)[where], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (torch.tensor([[1, 11]]), "11"),
        (torch.tensor([[1, -1]]), "-1"),
        (torch.tensor([1, 2]), r"\(2,\)"),
        (torch.zeros(1, 0, dtype=torch.long), r"\(1, 0\)"),
        (torch.ones(1, 2), "torch.float32"),
        (torch.ones(1, 2).byte(), "torch.uint8"),
        ([[1, 2]], "list"),
    ],
)
def test_bad_tokens_are_refused(model, tokens, message):
    for method in (model, model.read, model.slide):
        with pytest.raises(ValueError, match=f"^tokens: .*{message}"):
            method(tokens)


def test_no_tokens_and_logits_that_are_nan_are_refused(model):
    with pytest.raises(ValueError, match="^tokens: .*0"):
        model.generate(torch.tensor([[1]]), 0)
    with torch.no_grad():
        model.decoder.bias[0] = torch.nan
    with pytest.raises(ValueError, match="^logits: "):
        model.generate(torch.tensor([[1]]), 3)


def test_settings_may_be_numbers_of_numpy(model):
    prompt, how = torch.tensor([[5, 7]]), {"tokens": 9, "top_k": 4, "seed": 3}
    same = model.generate(prompt, **{name: np.int64(value) for name, value in how.items()})
    assert torch.equal(same, model.generate(prompt, **how))
