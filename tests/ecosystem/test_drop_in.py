"""A backbone in place of `nn.TransformerEncoder`: the same call, the same training script."""

import pytest
import torch
from oracles import torch_state
from torch import nn

from rtx.models import MODELS, CausalEncoder, RTransformer, Transformer
from rtx.tasks.build import hyperparameter_names

CAUSAL = torch.ones(6, 6).triu(1).bool()


def ours(**options: object) -> CausalEncoder:
    torch.manual_seed(0)
    return CausalEncoder(RTransformer(8, 1, 2, 3), **options).eval()


@pytest.mark.parametrize("batch_first", [False, True])
def test_with_the_same_weights_it_equals_torchs_encoder(batch_first: bool) -> None:
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(8, 2, 32, 0.0, batch_first=batch_first)
    backbone = Transformer(8, 1, 2, position="none").eval()
    theirs.load_state_dict(torch_state(*backbone.blocks[0]))
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
def test_the_causal_mask_may_have_each_of_torchs_forms(mask: torch.Tensor | None) -> None:
    x = torch.randn(6, 2, 8)
    torch.testing.assert_close(ours()(x, mask, is_causal=True), ours()(x, CAUSAL))
    torch.testing.assert_close(ours()(x[:, 0], mask, is_causal=True), ours()(x, CAUSAL)[:, 0])


@pytest.mark.parametrize("mask", [CAUSAL, nn.Transformer.generate_square_subsequent_mask(6)])
@torch.no_grad()
def test_exported_or_compiled_it_gives_the_same_numbers(mask: torch.Tensor) -> None:
    encoder = ours(batch_first=True)
    inputs = torch.randn(2, 6, 8), mask, mask[[0, 2]].flip(1)  # padding at the start
    compiled = torch.compile(encoder, fullgraph=True, backend="eager")
    for run in (torch.export.export(encoder, inputs).module(), compiled):
        torch.testing.assert_close(run(*inputs), encoder(*inputs), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_padded_sequence_has_the_outputs_that_it_has_alone(name: str) -> None:
    torch.manual_seed(0)
    sizes = {"d_model": 8, "layers": 2, "heads": 2, "window": 3, "segment": 4, "memory": 4}
    model = MODELS[name](**{key: value for key, value in sizes.items() if key in hyperparameter_names(name)})
    encoder, x = CausalEncoder(model.double(), batch_first=True).eval(), torch.randn(4, 7, 8).double()
    real = [(0, 7), (3, 7), (2, 5), (0, 4)]  # of the four sequences: from where to where
    padding = torch.ones(4, 7).bool()
    for row, (start, end) in enumerate(real):
        padding[row, start:end] = False
    x[padding] = torch.nan
    y = encoder(x, src_key_padding_mask=padding, is_causal=True)
    for row, (start, end) in enumerate(real):
        alone = encoder(x[row : row + 1, start:end], is_causal=True)
        torch.testing.assert_close(y[row, start:end], alone[0], rtol=0, atol=1e-12)
    assert not y[padding].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "^mask: .*RTransformer.*None"),
        ({"mask": torch.zeros(6, 6).bool()}, r"^mask: .*\(6, 6\).*RTransformer"),
        ({"mask": torch.ones(5, 5).triu(1).bool(), "is_causal": True}, r"^mask: .*\(6, 6\).*\(5, 5\)"),
        ({"is_causal": True, "src_key_padding_mask": CAUSAL}, r"^src_key_padding_mask: .*\(2, 6\).*\(6, 6\)"),
        (
            {"is_causal": True, "src_key_padding_mask": torch.tensor([[True, False, True, False, False, True]] * 2)},
            "^src_key_padding_mask: ",  # padding between two real positions
        ),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ours(batch_first=True)(torch.randn(2, 6, 8), **arguments)
