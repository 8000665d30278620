"""Small pictures of four notebooks, for the README: each is one that the notebook itself shows."""

import base64
import json
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

FOLDER = Path(__file__).parent / "notebooks"
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
WIDTH, HEIGHT, COLOURS = 440, 240, 128  # twice the size at which they are shown

CHOSEN = {
    "03_attend_to_the_past": 0,
    "05_encode_position": 3,
    "11_model_music": 0,
    "15_weigh_the_evidence": 3,
}
"""Notebook → which of its pictures, counted from 0; -1 is the last."""


def pictures(notebook: Path) -> list[bytes]:
    """Return the PNGs among a notebook's outputs, with the stills of explorers."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    return [base64.b64decode(data["image/png"]) for data in outputs if "image/png" in data]


def digest(png: bytes) -> str:
    """Return a checksum that shows whether a thumbnail is still of its notebook's picture."""
    return sha256(png).hexdigest()[:16]


def thumbnail(png: bytes) -> bytes:
    """Return a smaller picture in few colours, with the checksum of the whole one in it."""
    whole = Image.open(BytesIO(png)).convert("RGB")
    whole.thumbnail((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    few = whole.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    said = PngInfo()
    said.add_text("Source", digest(png))
    few.save(buffer, "PNG", optimize=True, pnginfo=said)
    return buffer.getvalue()


def write() -> None:
    """Make them all again from the notebooks."""
    FOLDER.mkdir(exist_ok=True)
    for name, place in CHOSEN.items():
        (FOLDER / f"{name}.png").write_bytes(thumbnail(pictures(NOTEBOOKS / f"{name}.ipynb")[place]))
