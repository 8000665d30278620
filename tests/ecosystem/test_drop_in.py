"""A backbone stands where `nn.TransformerEncoder` stood: the same call, the same training script."""

import pytest
import torch
from outside_script import WIDTH, torchs_encoder, train
from torch import nn

from rtx.models import CausalEncoder, RTransformer, Transformer

CAUSAL = torch.ones(6, 6).triu(1).bool()


def ours(**options: object) -> CausalEncoder:
    torch.manual_seed(0)
    return CausalEncoder(RTransformer(8, 1, 2, 3), **options).eval()


@pytest.mark.slow
def test_an_outside_script_trains_with_either() -> None:
    for encoder in (torchs_encoder, lambda: CausalEncoder(RTransformer(WIDTH, 2, 2, window=4))):
        torch.manual_seed(0)
        assert train(encoder()) > 0.8  # a guess gets a third


@pytest.mark.parametrize("batch_first", [False, True])
def test_it_is_torchs_encoder_where_both_have_the_same_weights(batch_first: bool) -> None:
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(8, 2, 32, 0.0, batch_first=batch_first)
    backbone = Transformer(8, 1, 2, position="none").eval()
    attention, forward = backbone.blocks[0]
    with torch.no_grad():
        q, k, v = theirs.self_attn.in_proj_weight.chunk(3)
        for mine, other in zip(
            attention.sublayer.parameters(), (q, k, v, theirs.self_attn.out_proj.weight), strict=True
        ):
            mine.copy_(other)
        theirs.self_attn.in_proj_bias.zero_(), theirs.self_attn.out_proj.bias.zero_()
        for mine, other in ((forward.sublayer.expand, theirs.linear1), (forward.sublayer.contract, theirs.linear2)):
            mine.load_state_dict(other.state_dict())
    encoder = nn.TransformerEncoder(theirs, 1, enable_nested_tensor=False).eval()
    x = torch.randn((3, 6, 8) if batch_first else (6, 3, 8))
    real = torch.tensor([6, 4, 1])
    padding = torch.arange(6) >= real[:, None]
    y = CausalEncoder(backbone, batch_first)(x, CAUSAL, padding)
    expected = encoder(x, CAUSAL, padding)
    y, expected = (part if batch_first else part.transpose(0, 1) for part in (y, expected))
    torch.testing.assert_close(y[~padding], expected[~padding], rtol=0, atol=1e-5)
    assert not y[padding].any()


@pytest.mark.parametrize("mask", [CAUSAL, nn.Transformer.generate_square_subsequent_mask(6), None])
def test_the_causal_mask_may_come_in_each_of_torchs_forms(mask: torch.Tensor | None) -> None:
    x = torch.randn(6, 2, 8)
    torch.testing.assert_close(ours()(x, mask, is_causal=True), ours()(x, CAUSAL))
    torch.testing.assert_close(ours()(x[:, 0], mask, is_causal=True), ours()(x, CAUSAL)[:, 0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "mask: expected the causal mask or is_causal=True, as RTransformer is causal and cannot see the future"),
        ({"mask": torch.zeros(6, 6).bool()}, r"mask: expected the causal mask of \(6, 6\), as RTransformer is causal"),
        ({"mask": CAUSAL.T}, "mask: expected the causal mask"),
        ({"mask": torch.ones(5, 5).triu(1).bool(), "is_causal": True}, r"got \(5, 5\)"),
        ({"mask": CAUSAL.numpy()}, "mask: expected a torch.Tensor, got ndarray"),
        ({"src": [[1.0]], "is_causal": True}, "src: expected a torch.Tensor, got list"),
        (
            {"is_causal": True, "src_key_padding_mask": [6, 4]},
            "src_key_padding_mask: expected a torch.Tensor, got list",
        ),
        ({"mask": CAUSAL.long()}, "mask: expected bool, or 0 and -inf, got torch.int64"),
        (
            {"is_causal": True, "src_key_padding_mask": torch.tensor([[True] + [False] * 5] * 2)},
            "src_key_padding_mask: expected padding behind each sequence only",
        ),
        ({"is_causal": True, "src_key_padding_mask": torch.ones(2, 6).bool()}, "a real position in each sequence"),
        ({"is_causal": True, "src_key_padding_mask": CAUSAL}, r"src_key_padding_mask: expected \(2, 6\), got \(6, 6\)"),
    ],
)
def test_what_a_causal_model_cannot_do_is_one_clear_error(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ours()(**{"src": torch.randn(6, 2, 8)} | arguments)


def test_what_is_no_backbone_is_refused() -> None:
    with pytest.raises(ValueError, match="backbone: expected a backbone"):
        CausalEncoder(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="batch_first: expected true or false, got 'yes'"):
        CausalEncoder(RTransformer(WIDTH, 1, 2, 3), batch_first="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_vector_is_refused_as_the_backbone_refuses_it(batch_first: bool) -> None:
    encoder = CausalEncoder(RTransformer(WIDTH, 1, 2, 3), batch_first)
    with pytest.raises(ValueError, match=r"x: expected shape \(batch, time, \d+\), got"):
        encoder(torch.randn(WIDTH), is_causal=True)
