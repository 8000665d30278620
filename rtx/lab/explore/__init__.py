"""Explorers: figures with at most three controls, usable in three lines on one's own model or data."""

from rtx.lab.explore.block import block
from rtx.lab.explore.cost import cost
from rtx.lab.explore.explorer import Explorer
from rtx.lab.explore.music import prediction
from rtx.lab.explore.player import Player
from rtx.lab.explore.pooling import pooling
from rtx.lab.explore.reach import reach
from rtx.lab.explore.window import window

__all__ = ["Explorer", "Player", "block", "cost", "pooling", "prediction", "reach", "window"]
