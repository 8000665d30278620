"""rtx: the interactive companion to the papers on recurrence and attention.

The bricks are in `rtx.nn`, the papers' models in `rtx.models`, the experiments in `rtx.tasks`.
"""

from rtx.models import MODELS, RNN, RTransformer, Transformer
from rtx.tasks import TASKS, build

__all__ = ["MODELS", "RNN", "TASKS", "RTransformer", "Transformer", "build"]
__version__ = "0.1.0"
