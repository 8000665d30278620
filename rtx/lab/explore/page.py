"""The frame of every explorer: its arithmetic runs in the page, so that it is alive without a kernel."""

import base64
import json
import math
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import anywidget
import numpy as np
import torch
import traitlets
from torch import Tensor

from rtx.nn.validate import check_choice
from rtx.training.files import write_whole

DIGITS = 4  # of a number in the data
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function|async function) (\w+))", re.MULTILINE)
HERE = Path(__file__).parent
TRAITS = ("data", "state", "start", "presets", "caption", "title", "name")  # of a page, beside its weights
END = """
const start = (traits, el, place) => $page.mount(PIECE.show, $page.fixed(traits), el, place);
const render = ({ model, el }) => $page.mount(PIECE.show, model, el, { kernel: true });
export default { render, start };
"""
HTML = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
</style>
</head>
<body>
<script type="module">
$script
start($traits, document.body, { address: location.href, own: true });
</script>
</body>
</html>
"""


class Page(anywidget.AnyWidget):
    """An explorer whose arithmetic runs in the page: in JupyterLab, on a static site, and in a file of its own.

    The script is an ES module that exports `show(page)`; page.js beside this file says what it can use. What a reader
    can change is in `state`, which follows the page, and the page follows it.

    Args:
        script: the explorer's module, a file of this folder or the path of another one. It may import "./page.js" and
            other files beside it.
        data: what the script reads as `page.data`: anything of dicts, lists, text, numbers, arrays and tensors.
        caption: what to try.
        title: of the explorer; by default the script's name.
        presets: states worth a look, by the text of their button; each names what it sets, and all else stays as it is.
        weights: the bytes of a safetensors file, for the script to compute with.
        state: the controls' values at the start, by name.

    Raises:
        ValueError: if the data holds a number that is not finite.
    """

    # as one text: a notebook file would have a line for every number
    data = traitlets.Any().tag(sync=True, to_json=lambda value, _: json.dumps(value, ensure_ascii=False))
    state = traitlets.Dict().tag(sync=True)
    start = traitlets.Dict().tag(sync=True)
    presets = traitlets.Dict().tag(sync=True)
    caption = traitlets.Unicode().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)  # of the page that the site gives it
    weights = traitlets.Bytes().tag(sync=True)

    def __init__(
        self,
        script: str | Path,
        data: dict[str, Any],
        caption: str,
        title: str = "",
        presets: Mapping[str, dict[str, Any]] | None = None,
        weights: bytes = b"",
        **state: Any,
    ) -> None:
        path = HERE / script
        self._esm, data = bundle(path), compact(data)
        json.dumps(data, allow_nan=False)  # a ValueError
        super().__init__(
            data=data,
            state=state,
            start=state,
            presets=dict(presets or {}),
            caption=caption,
            title=title or path.stem,
            name=path.stem,
            weights=weights,
        )

    def set(self, **state: Any) -> Any:
        """Move controls from code, as a reader would.

        Raises:
            ValueError: if there is no control of a name.
        """
        for name in state:
            check_choice("state", name, self.state)
        self.state = self.state | state

    def save(self, path: str | Path) -> Path:
        """Write the live page as one file that needs no server (.html).

        Raises:
            ValueError: if `path` has another ending.
        """
        path = Path(path)
        check_choice("path", path.suffix, [".html"])
        traits = {name: getattr(self, name) for name in TRAITS}
        traits |= {"data": json.dumps(self.data), "weights": base64.b64encode(self.weights).decode()}
        write_whole(path, standalone(self._esm, traits).encode())
        return path

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        live, facts = super()._repr_mimebundle_() or ({}, {})
        return live | {"text/plain": f"[explorer of {', '.join(self.state)}: {self.caption}]"}, facts


def standalone(script: str, traits: Mapping[str, Any]) -> str:
    """Return an HTML page of its own for an explorer: its bundled script, and its traits, the weights in base64."""
    given = json.dumps(traits).replace("<", "\\u003c")  # a "<" could end the element
    return Template(HTML).substitute(title=escape(traits["title"]), script=script, traits=given)


def bundle(script: Path, end: str = "", frame: bool = True) -> str:
    """An explorer's module and the files that it imports as one module, since a widget cannot load a second file.

    Each file becomes a function's scope, in the order in which they need one another. The whole exports what anywidget
    asks for, `render`, and `start`, which shows the explorer without a kernel; or what `end` says. Without `frame`,
    page.js is left out, as for a worker.
    """
    scopes: dict[str, str] = {}
    if frame:
        _add(HERE / "page.js", scopes)
    _add(script, scopes)
    return "\n".join(scopes.values()) + (end or END.replace("PIECE", f"${script.stem}"))


def _add(path: Path, scopes: dict[str, str]) -> None:
    """Add a file after those that it imports; a file that is not beside the script is one of ours."""
    text = path.read_text(encoding="utf-8")
    for _, name in IMPORT.findall(text):
        if name not in scopes:
            beside = path.with_name(f"{name}.js")
            _add(beside if beside.exists() else HERE / beside.name, scopes)
    body = IMPORT.sub(lambda found: f"const {{{found[1].replace(' as ', ': ')}}} = ${found[2]};\n", text)
    names = ", ".join(EXPORT.findall(body))
    scopes[path.stem] = f"const ${path.stem} = (() => {{\n{EXPORT.sub('', body)}return {{ {names} }};\n}})();"


def compact(value: Any) -> Any:
    """Arrays as lists, and numbers with four digits."""
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return compact(value.tolist())
    if isinstance(value, dict):
        return {str(key): compact(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [compact(item) for item in value]
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < 10**DIGITS else float(f"{value:.{DIGITS}g}")
    return value


def packed(values: Tensor) -> dict[str, Any]:
    """A large array at under two characters a number, for recording.js: 256 steps from low to high, for colours.

    Raises:
        ValueError: if a number is not finite, or there is none.
    """
    if not values.numel() or not bool(torch.isfinite(values).all()):
        raise ValueError(f"values: expected finite numbers, got {values.numel()} of them, or some that are not")
    low, high = values.min().item(), values.max().item()
    steps = ((values.double() - low) * (255 / ((high - low) or 1))).round().cpu().numpy().astype("u1")
    return {"shape": list(values.shape), "low": low, "high": high, "steps": base64.b64encode(steps.tobytes()).decode()}
