"""Cell-cycle numbers as files: a table, or the survival curve as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bridgetrack.errors import OutputError
from bridgetrack.files import write_text
from bridgetrack.tracks.cycles import CellCycles
from bridgetrack.tracks.lineage_picture import PICTURES, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_cycles(found: CellCycles, path: Path | str) -> None:
    """Write cell cycles to a file, as the end of its name says.

    Parameters
    ----------
    found
        From `cell_cycles`.
    path
        ``.csv`` for the table of cycles; ``.svg``, ``.png`` or ``.pdf`` for the survival curve.

    Raises
    ------
    OutputError
        Where the file cannot be written, or its name ends otherwise.
    """
    path = Path(path)
    end = path.suffix.lower()
    if end == ".csv":
        text = found.cycles.to_csv(index=False, lineterminator="\n")
        write_text(path, text, "the table of cell cycles")
    elif end in PICTURES:
        save_figure(_curve(found), path, "the survival curve")
    else:
        raise OutputError(
            f"{path}: cell cycles are written as .csv (the table) or {', '.join(PICTURES)} "
            "(the survival curve); let the name end in one of these"
        )


def _curve(found: CellCycles) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.5))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    table = found.survival
    per, unit = (60.0, "h") if found.unit == "min" else (1.0, "frames")
    time = np.r_[0.0, table["time"].to_numpy(dtype=np.float64) / per]
    left, low, high = (
        np.r_[1.0, table[c].to_numpy(dtype=np.float64)] for c in ("undivided", "low", "high")
    )
    axes.fill_between(time, low, high, step="post", alpha=0.25, linewidth=0, color="#56b4e9")
    axes.step(time, left, where="post", color="#0072b2")
    lost = np.r_[0, table["censored"].to_numpy(dtype=np.int64)] > 0
    axes.plot(time[lost], left[lost], "|", color="#0072b2", markersize=6)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, None)
    axes.set_xlabel(f"time since birth [{unit}]")
    axes.set_ylabel("share not divided")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
