"""The experiments of the papers, one file per experiment: their data, loss and metric."""

from rtx.tasks.build import SequenceModel, build
from rtx.tasks.registry import TASKS, task_by_name
from rtx.tasks.task import Batch, Example, Task

__all__ = ["TASKS", "Batch", "Example", "SequenceModel", "Task", "build", "task_by_name"]
