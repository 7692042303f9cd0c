"""Plots in panels: the accuracy by clicks, and the learning curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import QEvent
from qtpy.QtGui import QColor

from bridgetrack.active.accuracy import Point

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
