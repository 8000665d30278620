"""The frame of the showpieces: their arithmetic runs in the page, so that they stay alive without a kernel."""

import base64
import json
import math
import re
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import torch
import traitlets
from matplotlib.figure import Figure
from torch import Tensor

from rtx.lab.explore.cells import free_earlier
from rtx.lab.explore.saving import html_page, save
from rtx.lab.plots import small_png

FRAME = Path(__file__).with_name("page.js")
DIGITS = 4  # of a number in the data
MOST = 2_000_000  # characters of data; a page in a notebook should have a tenth of that
END = """\
const render = ({ model, el }) => mount(show, model, el);
const start = (traits, el) => mount(show, fixed(traits), el);
export default { render };
"""


class Page(anywidget.AnyWidget):
    """A showpiece: a script with its data, in JupyterLab, on a static page, and in a file of its own.

    The script is an ES module that exports `show(page)`. It makes its controls and canvases with `page` and returns
    a function from the state to the sentence on what is seen, called anew whenever the state, the width or the
    theme changes; page.js beside this file has the rest. Controls change the `state` here, and the other way round.

    Args:
        script: the showpiece's module; it may import from "./page.js" and other files beside it.
        data: what the script reads as `page.data`: anything of dicts, lists, text, numbers, arrays and tensors.
        still: a figure of the same, for where no script runs.
        caption: what to try.
        state: the controls' values at the start, by name.

    Raises:
        ValueError: if the data holds a number that is not finite, or is larger than 2,000,000 characters.
    """

    data = traitlets.Any().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    caption = traitlets.Unicode().tag(sync=True)

    def __init__(self, script: Path, data: dict[str, Any], still: Figure, caption: str, **state: Any) -> None:
        self.script, self.still = script, still
        self._esm = compose(script)  # no import between files: they would need a server
        data = compact(data)
        size = len(json.dumps(data))
        if size > MOST:
            raise ValueError(f"data: expected at most {MOST:,} characters, got {size:,}: show a shorter piece")
        super().__init__(data=data, state=state, caption=caption)
        free_earlier(self, self)

    def set(self, **state: Any) -> None:
        """Move controls from code, as a reader would.

        Raises:
            ValueError: if there is no control of a name.
        """
        for name in state:
            if name not in self.state:
                raise ValueError(f"state: expected one of {', '.join(self.state)}, got {name!r}")
        self.state = self.state | state

    def save(self, path: str | Path) -> Path:
        """Write the still figure (.png, .svg), or the live page as one file that needs no server (.html).

        Raises:
            ValueError: if `path` has another ending.
            OSError: if it cannot be written.
        """
        return save(path, self.still, self._html)

    def _html(self) -> str:
        traits = {"data": self.data, "state": self.state, "caption": self.caption}
        # a "<" could end the element: JSON may write it as an escape instead
        start = f'start({json.dumps(traits)}, document.getElementById("page"));'.replace("<", "\\u003c")
        return html_page(self.caption, f'<div id="page"></div>\n<script type="module">\n{self._esm}{start}\n</script>')

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        live, facts = super()._repr_mimebundle_() or ({}, {})
        still = {
            "image/png": base64.b64encode(small_png(self.still)).decode(),
            "text/plain": f"[page of {', '.join(self.state)}: {self.caption}]",
        }
        return live | still, facts | {"image/png": {"width": int(self.still.get_figwidth() * 100)}}


def compose(script: Path) -> str:
    """page.js and a showpiece as one module, the showpiece in a scope of its own.

    Raises:
        ValueError: if the script could not stand in an HTML page.
    """
    frame, piece = (_without_links(with_imports(path)) for path in (FRAME, script))
    if "</script" in piece:
        raise ValueError(f"script: expected none that writes </script, which would end it in a page, got {script.name}")
    return f"{frame}\nconst show = (() => {{\n{piece}\nreturn show;\n}})();\n{END}"


def with_imports(script: Path) -> str:
    """An ES module with the files that it imports in their place, page.js aside: a page loads no second file."""

    def text(found: re.Match[str]) -> str:
        file = script.with_name(found[1])
        return found[0] if file.name == FRAME.name else _without_links(with_imports(file))

    return re.sub(r'^import [^;]* from "\./([^"]*)";\n', text, script.read_text(encoding="utf-8"), flags=re.MULTILINE)


def _without_links(module: str) -> str:
    """An ES module without its imports and exports."""
    return re.sub(r"^(import [^;]*;\n|export )", "", module, flags=re.MULTILINE)


def compact(value: Any) -> Any:
    """As JSON can hold it: arrays as lists, numbers with four digits.

    Raises:
        ValueError: if a number is not finite, or something is none of these.
    """
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return compact(value.tolist())
    if isinstance(value, dict):
        return {str(key): compact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [compact(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"data: expected finite numbers, got {value}")
        return int(value) if value.is_integer() and abs(value) < 10**DIGITS else float(f"{value:.{DIGITS}g}")
    if value is None or isinstance(value, str | int):
        return value
    raise ValueError(f"data: expected dicts, lists, text, numbers, arrays or tensors, got {type(value).__name__}")


def packed(values: Tensor) -> dict[str, Any]:
    """A large array at under three characters a number, for `unpack` of page.js: 65,536 steps from low to high.

    Raises:
        ValueError: if a number is not finite, or there is none.
    """
    if not values.numel() or not bool(torch.isfinite(values).all()):
        raise ValueError(f"values: expected finite numbers, got {values.numel()} of them, or some that are not")
    low, high = values.min().item(), values.max().item()
    steps = ((values.double() - low) * (65_535 / ((high - low) or 1))).round().cpu().numpy().astype("<u2")
    text = base64.b64encode(steps.tobytes()).decode()
    return {"shape": list(values.shape), "low": low, "high": high, "steps": text}
