"""A player: a piano roll to hear."""

from pathlib import Path

from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from rtx.lab.explore.bach import keys, tune_data
from rtx.lab.explore.page import Page
from rtx.lab.plots import piano_roll
from rtx.tasks.rolls import FRAME_SECONDS, check_roll


class Player(Page):
    """A roll to hear and to save as MIDI. Keys that sound in successive frames are held, because a roll cannot tell.

    Args:
        roll: (frames, 88) of 0 and 1.
        title: what is played.
        frame_seconds: how long a frame lasts; an eighth note at 100 quarter notes a minute by default.

    Raises:
        ValueError: if `roll` is no piano roll, or a frame does not last.
    """

    def __init__(self, roll: ArrayLike, title: str = "piano roll", frame_seconds: float = FRAME_SECONDS) -> None:
        tune, still = check_roll("roll", roll), Figure(figsize=(7.2, 2.4), layout="constrained")
        piano_roll(still.add_subplot(), tune, title)
        data = tune_data({"tune": keys(tune), "name": title}, frame_seconds)
        script = Path(__file__).with_name("player.js")
        super().__init__(script, data, still, "click a place, and it plays from there", title=title, frame=1)
