"""What the notebooks use: traces of a model at work, pictures, explorers with sliders, checks of exercises."""

from rtx.lab.jacobian import XRay, reach, xray
from rtx.lab.tracing import trace

__all__ = ["XRay", "reach", "trace", "xray"]
