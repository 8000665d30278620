"""Tasks whose sequences are drawn. They ask one question only: how long does a model remember?"""

from rtx.tasks.toy.arithmetic import add, draw_marks, multiply, solved, squared_error
from rtx.tasks.toy.copy_memory import copy_memory
from rtx.tasks.toy.locality_dial import locality_dial, optimal_loss
from rtx.tasks.toy.look_up import look_up
from rtx.tasks.toy.temporal_order import temporal_order

__all__ = ["add", "copy_memory", "draw_marks", "locality_dial", "look_up", "multiply", "optimal_loss", "solved"]
__all__ += ["squared_error", "temporal_order"]
