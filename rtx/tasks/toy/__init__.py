"""Tasks whose sequences are drawn. They ask one question only: how long does a model remember?"""

from rtx.tasks.toy.arithmetic import add, draw_marks, multiply, solved, squared_error
from rtx.tasks.toy.copy_memory import copy_memory
from rtx.tasks.toy.locality_dial import locality_dial, optimal_loss
from rtx.tasks.toy.temporal_order import temporal_order

__all__ = ["add", "copy_memory", "draw_marks", "locality_dial", "multiply", "optimal_loss", "solved", "squared_error"]
__all__ += ["temporal_order"]
