"""Where every picture begins: a figure that belongs to no window."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["import_matplotlib", "new_figure"]


def new_figure(**options: Any) -> Figure:
    """Return an empty figure that is drawn by Agg, whatever backend is set.

    What the caller has set stays: neither the backend nor the figures of pyplot change.

    Args:
        options: What `matplotlib.figure.Figure` takes.
    """
    import_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(**options)
    FigureCanvasAgg(figure)
    return figure


def import_matplotlib() -> None:
    """Import matplotlib, though MPLBACKEND names a backend that is not installed.

    The commands that a notebook starts inherit its backend, which their own installation of Python
    need not have: matplotlib would refuse to be imported, though no picture here needs a backend.
    """
    if "matplotlib" in sys.modules:
        return
    named = os.environ.pop("MPLBACKEND", None)
    try:
        import matplotlib
    finally:
        if named is not None:
            os.environ["MPLBACKEND"] = named
    if named:
        with suppress(ValueError):
            matplotlib.rcParams["backend"] = named
