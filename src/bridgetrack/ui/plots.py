"""Plots in panels: the accuracy by clicks, and the learning curve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
from pyqtgraph.exporters import ImageExporter
from qtpy.QtCore import QEvent, Qt
from qtpy.QtGui import QColor

from bridgetrack.active.accuracy import Point
from bridgetrack.errors import OutputError
from bridgetrack.session.results import Distribution
from bridgetrack.tracks.colours import PALETTES, Colouring
from bridgetrack.tracks.cycles import CellCycles

_LINE = "#56b4e9"
_GAP = "#e69f00"
_LONE = np.array([-0.15, 0.15])
"""Where the band of a single point begins and ends, in clicks."""


class StillPlot(pg.PlotWidget):
    """A plot without a menu that does not follow the mouse."""

    def __init__(self) -> None:
        super().__init__(background=None)
        self.setMouseEnabled(x=False, y=False)
        self.setMenuEnabled(False)
        self.hideButtons()

    def draw_axes(self, ink: QColor | None = None) -> None:
        """Draw the axes in a colour; in that of the theme's words where it is None."""
        pen = pg.mkPen(ink or self.palette().windowText().color())
        for side in ("left", "bottom"):
            axis = self.getAxis(side)
            axis.setPen(pen)
            axis.setTextPen(pen)

    def showEvent(self, event: Any) -> None:  # noqa: N802
        """The theme is known."""
        super().showEvent(event)
        self.draw_axes()

    def changeEvent(self, event: Any) -> None:  # noqa: N802
        """Another theme may have been chosen."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange and self.isVisible():
            self.draw_axes()


class AccuracyPlot(StillPlot):
    """A line with a band; hidden while there is nothing to plot."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(130)
        self.setLabel("bottom", "clicks")
        self.setLabel("left", "right events, %")
        self.setToolTip("The line is the estimate; the truth lies in the band with 95 %")
        none = pg.mkPen(None)
        self._low, self._high = self.plot(pen=none), self.plot(pen=none)
        self.addItem(pg.FillBetweenItem(self._low, self._high, brush=pg.mkBrush(86, 180, 233, 70)))
        self._line = self.plot(
            pen=pg.mkPen(_LINE, width=2), symbol="o", symbolSize=5, symbolBrush=_LINE,
            symbolPen=none,
        )  # fmt: skip
        self.hide()

    def show_points(self, points: Sequence[Point]) -> None:
        """Draw a progress curve."""
        rows = [
            (p.clicks, 100 * p.accuracy, 100 * p.low, 100 * p.high)
            for p in points
            if p.accuracy is not None and p.low is not None and p.high is not None
        ]
        table = np.asarray(rows, dtype=np.float64).reshape(-1, 4)
        self.setVisible(len(table) > 0)
        if not len(table):
            return
        clicks, accuracy, low, high = table.T
        wide, of = (clicks, slice(None)) if len(table) > 1 else (clicks[0] + _LONE, [0, 0])
        self._low.setData(wide, low[of])
        self._high.setData(wide, high[of])
        self._line.setData(clicks, accuracy)
        self.setXRange(0, max(float(clicks[-1]), 10.0), padding=0.02)
        self.setYRange(max(float(low.min()) - 5, 0.0), 100, padding=0.08)


class LearningCurve(StillPlot):
    """Objective and gap of a training step by step; hidden while there is nothing to plot."""

    def __init__(self) -> None:
        super().__init__()
        self.setMaximumHeight(130)
        self.setLabel("bottom", "steps")
        self.addLegend(offset=(-5, 5), labelTextColor="#8a9bb0")
        self._objective = self.plot(pen=pg.mkPen(_LINE, width=2), name="objective")
        self._gap = self.plot(pen=pg.mkPen(_GAP, width=2), name="gap")
        self.setToolTip("Training is done when the gap has closed")
        self.hide()

    def show_steps(self, curve: Sequence[tuple[float, float]]) -> None:
        """Draw (objective, gap) of every step."""
        table = np.asarray(curve, dtype=float).reshape(-1, 2)
        self.setVisible(len(table) > 1)
        steps = np.arange(len(table))
        self._objective.setData(steps, table[:, 0], connect="finite")
        self._gap.setData(steps, table[:, 1], connect="finite")


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
