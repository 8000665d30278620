"""Old names of `rtx.training.lock`."""

from rtx.training.lock import is_locked as is_held
from rtx.training.lock import lock_folder as alone_in

__all__ = ["alone_in", "is_held"]
