"""A page holds its data, its script and its controls' values, for a notebook and for a file of its own."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rtx.lab.explore import Page
from rtx.lab.explore.page import packed

SCRIPT = """\
import {
  slider,
} from "./page.js";
import { css } from "./colours.js";

export function show(page) { slider(page, "row", { max: 3 }); return ({ row }) => `row ${row}`; }
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "piece.js"
    path.write_text(SCRIPT)
    return path


def make(script: Path, data: dict[str, Any] | None = None) -> Page:
    return Page(script, data or {"table": torch.eye(3)}, "move the row", row=1, word="a<b")


def test_data_become_json_of_four_digits(script: Path) -> None:
    data = {"x": np.array([[1 / 3, 2.0]]), "n": np.int64(7), "t": (torch.tensor(12345.678), None, True, "text")}
    assert make(script, data).data == {"x": [[0.3333, 2]], "n": 7, "t": [12350.0, None, True, "text"]}


def test_numbers_that_are_not_finite_are_refused(script: Path) -> None:
    with pytest.raises(ValueError):
        make(script, {"x": torch.tensor(float("inf"))})


def test_packed_numbers_come_back() -> None:
    values = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    found = packed(values)
    steps = np.frombuffer(base64.b64decode(found["steps"]), "u1").reshape(found["shape"])
    back = found["low"] + steps * (found["high"] - found["low"]) / 255  # as recording.js
    assert back == pytest.approx(values.numpy(), abs=0.02)
    with pytest.raises(ValueError, match="values"):
        packed(values / 0)


def test_a_page_is_moved_from_code_and_a_notebook_gets_view_and_caption(script: Path) -> None:
    page = make(script)
    page.set(row=2)
    assert page.state == {"row": 2, "word": "a<b"}
    with pytest.raises(ValueError, match="state: 'column'.* row, word"):
        page.set(column=1)
    bundle, _ = page._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == page.model_id
    assert bundle["text/plain"] == "[explorer of row, word: move the row]"


def test_a_page_of_its_own_holds_everything(script: Path, tmp_path: Path) -> None:
    page = make(script, {"text": "</script><b>"})
    text = page.save(tmp_path / "page.html").read_text()
    assert text.count("</script>") == 1 and "http" not in text
    traits, _ = json.JSONDecoder().raw_decode(text.split("start(")[-1])
    assert traits["state"] == page.state and json.loads(traits["data"]) == page.data


def test_pages_are_saved_as_no_other_kind(script: Path, tmp_path: Path) -> None:
    page = make(script)
    with pytest.raises(ValueError, match="path.*pdf"):
        page.save(tmp_path / "a.pdf")
    assert not (tmp_path / "a.pdf").exists()
