"""The causality X-ray names the part that lets the future in, of modules with a planted leak."""

import torch
from torch import Tensor, nn

from rtx import RNN, RTransformer
from rtx.lab import explore, receptive_field
from rtx.lab.explore.recording import Recording
from rtx.lab.explore.xray import parts_of

T, D = 7, 6
X = torch.randn(1, T, D, generator=torch.Generator().manual_seed(0))


class Mixed(nn.Module):
    """Recurrence, a convolution, attention and a linear layer, some of them causal."""

    d_model = D

    def __init__(self, padding: int = 2, masked: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.recurrent = nn.GRU(D, D, batch_first=True)
        self.convolution = nn.Conv1d(D, D, 3, padding=padding)
        self.attention = nn.MultiheadAttention(D, 2, batch_first=True)
        self.output = nn.Sequential(nn.Linear(D, D), nn.Tanh())
        self.masked = masked

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        h, _ = self.recurrent(x)
        h = h + self.convolution(h.mT)[..., :length].mT
        mask = torch.ones(length, length).triu(1).bool() if self.masked else None
        mixed, _ = self.attention(h, h, h, attn_mask=mask, need_weights=False)
        return self.output(h + mixed)


class Backwards(nn.Module):
    """Causal parts, put together so that the whole is not."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = RNN(D)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        return self.recurrent(x.flip(1)).flip(1), 3


def options(explorer: Recording) -> dict[str, str]:
    part = explorer.controls["part"]
    return dict(zip(part.values, part.texts, strict=True))


def test_the_attention_without_its_mask_is_found() -> None:
    explorer = explore.xray(Mixed(masked=False), X)
    assert f"in {T * (T - 1) // 2} places" in explorer.text
    assert explorer.text.endswith(": attention.")
    assert options(explorer)["attention"] == "attention (leaks)" and options(explorer)["output"] == "output"
    assert "Causal" in explorer.set(part="recurrent")


def test_a_convolution_padded_on_both_sides_is_found_where_time_stands_last() -> None:
    for width in (D, T):  # as wide as long: the shape does not tell time
        conv = nn.Conv1d(width, width, 3, padding=1)
        x = torch.randn(1, T, width, generator=torch.Generator().manual_seed(0))
        explorer = explore.xray(nn.Sequential(nn.Linear(width, width), _Turned(conv)), x)
        assert explorer.text.endswith(": 1.part.")
        assert f"in {T - 1} places" in explorer.set(part="1.part")


class _Turned(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x.mT).mT


def test_a_leak_in_how_parts_are_put_together_is_the_wholes() -> None:
    explorer = explore.xray(Backwards(), X)
    assert sum("leaks" in label for label in options(explorer).values()) == 1  # the whole


def test_of_very_many_parts_the_outer_ones_are_looked_at() -> None:
    deep = nn.Sequential(*(nn.Linear(D, D) for _ in range(45)))
    leaking = nn.Sequential(deep, _Turned(nn.Conv1d(D, D, 3, padding=1)))
    explorer = explore.xray(leaking, X)
    assert len(options(explorer)) == 41 and options(explorer)["1"] == "1 (leaks)" and "1.part" not in options(explorer)
    assert explorer.text.endswith(": 1.")
    assert explore.xray(leaking[1], X).text.endswith(": part.")


def test_parts_are_looked_through_as_the_whole_calls_them() -> None:
    model = RTransformer(D, 1, 2, 3)
    found = parts_of(model, X)
    attention = found["blocks.0.1.sublayer"]
    before = model.blocks[0][0](X)  # type: ignore[index]
    torch.testing.assert_close(attention[1], before)
    expected = receptive_field(model.blocks[0][1].sublayer, before)  # type: ignore[index, union-attr]
    torch.testing.assert_close(receptive_field(*attention), expected)


def test_the_panels_show_the_parts_table_and_the_outputs_row() -> None:
    explorer = explore.xray(Mixed(padding=1), X)
    _, (table, row) = explorer.see(part="convolution", output=3)
    assert [bool(share) for share in table.values[2]] == [False, True, True, True, False, False, False]
    assert torch.equal(row.values, table.values[2])


def test_the_module_is_left_as_it_is() -> None:
    model = RTransformer(D, 1, 2, 3, dropout=0.5).train()
    explorer = explore.xray(model, X)
    assert explorer.text == explore.xray(model, X).text and model.training
    assert not any(part._forward_hooks for part in model.modules())
    assert all(weight.grad is None for weight in model.parameters())
