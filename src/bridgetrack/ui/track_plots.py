"""Plots of tracks: a number over time, how it is distributed, and the survival curve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyqtgraph as pg
from pyqtgraph.exporters import ImageExporter
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor

from bridgetrack.errors import OutputError
from bridgetrack.session.results import Distribution
from bridgetrack.tracks.colours import PALETTES, Colouring
from bridgetrack.tracks.cycles import CellCycles
from bridgetrack.ui.plots import StillPlot

_LINE, _BAND, _CHOSEN = "#56b4e9", (86, 180, 233, 70), "#e69f00"
_HUES = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#f0e442", "#0072b2", "#999999")
_MANY = 200
"""So many curves at most are drawn at once."""


class NumberPlot(StillPlot):
    """Curves of tracks, or bars."""

    def __init__(self) -> None:
        super().__init__()
        self.setMouseEnabled(x=True, y=True)

    def show_curves(
        self, time: np.ndarray, values: np.ndarray, track: np.ndarray, colours: Sequence[int]
    ) -> None:
        """A curve for each track, shapes (n,); `colours` are the tracks in the order of hues."""
        self.clear()
        hue = {t: k for k, t in enumerate(colours)}
        for t in list(dict.fromkeys(track.tolist()))[:_MANY]:
            own = track == t
            pen = pg.mkPen(_HUES[hue.get(t, 0) % len(_HUES)], width=2)
            self.plot(time[own], values[own], pen=pen, connect="finite", name=str(t))
        self.enableAutoRange()

    def show_bars(self, found: Distribution) -> None:
        """How often values occur: all, and those chosen."""
        self.clear()
        wide = np.diff(found.edges)
        middle = found.edges[:-1] + wide / 2
        for counts, colour in ((found.counts, _LINE), (found.chosen, _CHOSEN)):
            if counts.any():
                self.addItem(
                    pg.BarGraphItem(
                        x=middle, height=counts, width=0.95 * wide, brush=colour, pen=None
                    )
                )
        self.enableAutoRange()

    def show_survival(self, found: CellCycles) -> None:
        """The share of cells that have not divided by a time since birth, with its band."""
        self.clear()
        table = found.survival
        if not len(table):
            return
        per = 60.0 if found.unit == "min" else 1.0
        edges = np.repeat(np.r_[0.0, table["time"].to_numpy() / per], 2)[1:]

        def steps(name: str) -> np.ndarray:
            return np.repeat(np.r_[1.0, table[name].to_numpy()], 2)[:-1]

        none = pg.mkPen(None)
        low, high = (
            self.plot(edges, steps("low"), pen=none),
            self.plot(edges, steps("high"), pen=none),
        )
        self.addItem(pg.FillBetweenItem(low, high, brush=pg.mkBrush(*_BAND)))
        self.plot(edges, steps("undivided"), pen=pg.mkPen(_LINE, width=2))
        self.setXRange(0, float(edges[-1]), padding=0.02)
        self.setYRange(0, 1, padding=0.03)

    def name_axes(self, bottom: str, left: str) -> None:
        """What the axes show."""
        self.setLabel("bottom", bottom)
        self.setLabel("left", left)


def save_plot(plot: StillPlot, path: Path) -> None:
    """Write what a plot shows as PNG, in black on white and at twice its size."""
    before = plot.backgroundBrush()
    plot.setBackground("w")
    plot.draw_axes(QColor("black"))
    try:
        made = ImageExporter(plot.plotItem)
        made.parameters()["width"] = max(2 * round(plot.plotItem.width()), 200)
        if not made.export(toBytes=True).save(str(path), "PNG"):
            raise OutputError(f"{path}: the plot cannot be written; choose another place")
    finally:
        plot.setBackgroundBrush(before)
        plot.draw_axes()


class Legend(pg.GraphicsLayoutWidget):
    """The colours of the trees and what they stand for; empty where they are names."""

    def __init__(self) -> None:
        super().__init__()
        self.setBackground(None)
        self.setFixedWidth(72)
        self._bar: pg.ColorBarItem | None = None
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_colours(self, found: Colouring | None) -> None:
        """Show a palette with its values."""
        self.clear()
        self._bar = None
        self.setVisible(found is not None and found.palette != "names")
        if found is None or found.palette == "names":
            return
        stops = PALETTES[found.palette]
        shades = pg.ColorMap(np.linspace(0, 1, len(stops)), (255 * stops).astype(np.uint8))
        self._bar = pg.ColorBarItem(
            values=(found.low, found.high), colorMap=shades, interactive=False, width=12
        )
        self.addItem(self._bar)
