"""What every explorer does: its scripts fit together, it leaves random numbers alone, and takes a label as written."""

from pathlib import Path

import pytest
import torch

import rtx
from rtx.lab import explore
from rtx.lab.explore.page import EXPORT, IMPORT


def test_what_a_script_imports_is_there() -> None:
    # in the one module that an explorer becomes, a missing name would only be undefined
    scripts = {path.stem: path.read_text() for path in Path(explore.__file__).parent.glob("*.js")}
    exported = {name: set(EXPORT.findall(text)) for name, text in scripts.items()}
    for name, text in scripts.items():
        for names, source in IMPORT.findall(text):
            wanted = {one.split(" as ")[0].strip() for one in names.split(",")} - {""}
            assert wanted <= exported[source.removesuffix(".js")], name


def test_a_new_explorer_leaves_the_readers_random_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    x, model = torch.randn(5, 4), rtx.RNN(4)
    before = torch.get_rng_state()
    explore.depends(), explore.window(x), explore.positions(), explore.xray(model)
    assert torch.equal(torch.get_rng_state(), before) and not seeded
