"""What the notebooks use: traces of a model at work, pictures, explorers with sliders, checks of exercises."""

from rtx.lab.jacobian import XRay, changed, receptive_field, xray
from rtx.lab.race import kept_bytes, race, training_step
from rtx.lab.tracing import trace

__all__ = ["XRay", "changed", "kept_bytes", "race", "receptive_field", "trace", "training_step", "xray"]
