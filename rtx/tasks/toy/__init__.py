"""Tasks with generated sequences. They test whether a model remembers, notices order, or looks up."""

from rtx.tasks.toy.arithmetic import add, multiply
from rtx.tasks.toy.copy_memory import copy_memory
from rtx.tasks.toy.locality_dial import locality_dial
from rtx.tasks.toy.look_up import look_up
from rtx.tasks.toy.temporal_order import temporal_order

__all__ = ["add", "copy_memory", "locality_dial", "look_up", "multiply", "temporal_order"]
