"""Figures that belong to no window, and their bytes."""

from io import BytesIO

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def new_figure(width: float = 6.4, height: float = 3.6, columns: int = 1, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, row by row. Sizes are in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(rows * columns)]


def png(figure: Figure) -> bytes:
    """Return the figure as PNG: the same figure gives the same bytes."""
    buffer = BytesIO()
    figure.set_dpi(110)
    # not savefig, which draws the figure twice
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()
