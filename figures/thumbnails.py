"""A small picture for each notebook, for the README's table: one of those that the notebook itself shows."""

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
    "00_start_here": 0,
    "01_frame_the_problem": 0,
    "02_slide_a_window": 1,
    "03_attend_to_the_past": 0,
    "04_stack_the_block": 1,
    "05_encode_position": 3,
    "06_carry_memory": 0,
    "07_convolve_or_recur": -1,
    "08_split_into_channels": 0,
    "09_add_and_multiply": 5,
    "10_read_digits": 0,
    "11_model_music": 0,
    "12_make_it_fast": 0,
    "13_model_language": 3,
    "14_translate_and_summarise": 2,
    "15_weigh_the_evidence": 0,
    "16_what_came_after": 3,
}
"""Notebook → which of its pictures, counted from 0; -1 is the last."""


def pictures(notebook: Path) -> list[bytes]:
    """The PNGs among a notebook's outputs, explorers' stills too."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    return [base64.b64decode(data["image/png"]) for data in outputs if "image/png" in data]


def digest(png: bytes) -> str:
    """What tells whether a thumbnail is still that of its notebook's picture."""
    return sha256(png).hexdigest()[:16]


def thumbnail(png: bytes) -> bytes:
    """A picture made smaller, in few colours, which says whose it is: the same picture gives the same bytes."""
    whole = Image.open(BytesIO(png)).convert("RGB")
    whole.thumbnail((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    few = whole.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    said = PngInfo()
    said.add_text("Source", digest(png))
    few.save(buffer, "PNG", optimize=True, pnginfo=said)
    return buffer.getvalue()


def write() -> None:
    """Make them all again, from the notebooks as they are."""
    FOLDER.mkdir(exist_ok=True)
    for name, place in CHOSEN.items():
        (FOLDER / f"{name}.png").write_bytes(thumbnail(pictures(NOTEBOOKS / f"{name}.ipynb")[place]))
