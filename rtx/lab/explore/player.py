"""A player: a piano roll to hear, in the browser and without a kernel."""

import base64
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets
from numpy.typing import ArrayLike

from rtx.lab.explore.cells import free_earlier
from rtx.lab.explore.page import bundle
from rtx.lab.plots import new_figure, piano_roll, png
from rtx.nn.validate import check_above_zero
from rtx.tasks.rolls import FRAME_SECONDS, LOWEST, check_roll


class Player(anywidget.AnyWidget):
    """A roll with a play button. Keys that sound in successive frames are held, as a roll cannot tell.

    Everything it needs is in its state, so it also plays on a static page; where no widget runs, its picture
    stands instead.

    Args:
        roll: (frames, 88) of 0 and 1.
        title: what is played.
        frame_seconds: how long a frame lasts; an eighth note at 100 quarter notes a minute by default.

    Raises:
        ValueError: if `roll` is no piano roll, or a frame does not last.
    """

    _esm = bundle(Path(__file__).with_name("player.js"), "\nexport default { render: $player.render };\n")
    notes = traitlets.Bytes().tag(sync=True)  # 11 bytes a frame, a bit per key, the lowest first
    title = traitlets.Unicode().tag(sync=True)
    frame_seconds = traitlets.Float().tag(sync=True)
    lowest = traitlets.Int(LOWEST).tag(sync=True)

    def __init__(self, roll: ArrayLike, title: str = "piano roll", frame_seconds: float = FRAME_SECONDS) -> None:
        check_above_zero("frame_seconds", frame_seconds)
        self.roll = check_roll("roll", roll)
        bits = np.packbits(self.roll, axis=1).tobytes()
        super().__init__(notes=bits, title=title, frame_seconds=frame_seconds)
        free_earlier(self, self)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        live, facts = super()._repr_mimebundle_() or ({}, {})
        figure, (ax,) = new_figure(7.2, 2.4)
        piano_roll(ax, self.roll, self.title)
        seconds = len(self.roll) * self.frame_seconds
        still = {
            "image/png": base64.b64encode(png(figure)).decode(),
            "text/plain": f"[player] {self.title}: {len(self.roll)} frames, {seconds:.1f} seconds",
        }
        return live | still, facts | {"image/png": {"width": 720}}
