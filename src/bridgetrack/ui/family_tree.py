"""Family trees: plots that can be zoomed, in which a click goes to a cell."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import Signal

from bridgetrack.tracks.colours import UNKNOWN, Colouring, paint
from bridgetrack.tracks.trees import Lineages
from bridgetrack.ui.plots import StillPlot

_HERE = "#e69f00"
_BINS = 48
"""Branches are drawn in so many shades at most, one curve each, so that thousands stay fast."""


class TreePlot(StillPlot):
    """Families side by side; time runs down. Emits `picked` (track, frame)."""

    picked = Signal(int, int)

    def __init__(self) -> None:
        super().__init__()
        self.invertY(True)
        self.hideAxis("bottom")
        self.getAxis("left").setLabel("frame")
        self.scene().sigMouseClicked.connect(self._on_click)
        self.drawn: Lineages | None = None
        self._curves: list[Any] = []
        self._marks: list[Any] = []
        self._now: Any = None

    def let_zoom(self) -> None:
        """The wheel zooms, dragging moves."""
        self.setMouseEnabled(x=True, y=True)
        self.setToolTip(
            "The wheel zooms, dragging moves; click a branch to go there, a double click shows all"
        )

    def show_trees(self, drawn: Lineages | None, colours: Colouring | None) -> None:
        """Draw families, or nothing; the view stays where the same are drawn again."""
        same = drawn is not None and self.drawn is not None and _alike(drawn, self.drawn)
        for item in (*self._curves, *self._marks):
            self.removeItem(item)
        self._curves, self._marks = [], []
        self.drawn = drawn
        if drawn is None or colours is None or not len(drawn.branches):
            return
        corners, later, divides = drawn.joints(colours)
        self._draw(corners[divides], later[divides], colours.palette, 1.5)
        others = corners[~divides]
        if len(others):
            grey = pg.mkColor([round(255 * c) for c in UNKNOWN])
            self._add(others, pg.mkPen(grey, width=1.5, style=pg.QtCore.Qt.PenStyle.DotLine))
        ends, shades = drawn.strokes(colours)
        # Two strokes that follow each other on a track must not leave a gap.
        self._draw(ends, shades, colours.palette, 3)
        if not same:
            self.show_all()

    def show_all(self) -> None:
        """Zoom out until everything is in view."""
        if self.drawn is None or not len(self.drawn.branches):
            return
        table = self.drawn.branches
        self.setXRange(table["x"].min() - 0.7, table["x"].max() + 0.7, padding=0.01)
        self.setYRange(table["start"].min() - 0.5, table["end"].max() + 0.5, padding=0.02)

    def show_tracks(self, tracks: Collection[int]) -> None:
        """Move the view so that some tracks are in it."""
        rows = self._rows(tracks)
        if self.drawn is None or not len(rows):
            return
        x = self.drawn.branches["x"].to_numpy()[rows]
        (low, high), _ = self.viewRange()
        if x.min() < low or x.max() > high:
            wide = max(high - low, float(np.ptp(x)) + 2)
            middle = (x.min() + x.max()) / 2
            self.setXRange(middle - wide / 2, middle + wide / 2, padding=0)

    def _rows(self, tracks: Collection[int]) -> NDArray[np.int64]:
        if self.drawn is None:
            return np.zeros(0, np.int64)
        found = [self.drawn.row_of(t) for t in tracks]
        return np.asarray([k for k in found if k >= 0], dtype=np.int64)

    def mark(self, tracks: Collection[int], frame: int | None = None) -> None:
        """Show which tracks are chosen, and where they are in a frame."""
        for item in self._marks:
            self.removeItem(item)
        self._marks = []
        rows = self._rows(tracks)
        if self.drawn is None or not len(rows):
            return
        table = self.drawn.branches.iloc[rows]
        x, start, end = (table[c].to_numpy(dtype=np.float64) for c in ("x", "start", "end"))
        spans = np.stack(
            [np.column_stack([x, start]), np.column_stack([x, np.maximum(end, start + 0.3)])],
            axis=1,
        )
        halo = self._curve(spans, pg.mkPen(_HERE, width=9))
        halo.setZValue(-1)
        self._marks.append(halo)
        if frame is not None:
            here = (start <= frame) & (frame <= end)
            self._marks.append(
                pg.ScatterPlotItem(
                    x[here],
                    np.full(int(here.sum()), frame),
                    size=11,
                    brush=pg.mkBrush(_HERE),
                    pen=pg.mkPen("k"),
                )
            )
        for item in self._marks:
            self.addItem(item)

    def show_frame(self, frame: int) -> None:
        """Draw a line at the frame in view."""
        if self._now is None:
            self._now = pg.InfiniteLine(angle=0, pen=pg.mkPen(_HERE, width=1))
            self.addItem(self._now)
        self._now.setValue(frame)

    def _draw(self, lines: NDArray[Any], shades: NDArray[Any], palette: str, width: float) -> None:
        bins = np.where(np.isnan(shades), -1, np.rint(np.nan_to_num(shades) * (_BINS - 1)))
        for k in np.unique(bins):
            shade = np.array([np.nan if k < 0 else k / (_BINS - 1)])
            red, green, blue = (255 * paint(shade, palette)[0]).round().astype(int).tolist()
            self._add(lines[bins == k], pg.mkPen((red, green, blue), width=width))

    def _add(self, lines: NDArray[Any], pen: Any) -> None:
        curve = self._curve(lines, pen)
        self._curves.append(curve)
        self.addItem(curve)

    def _curve(self, lines: NDArray[Any], pen: Any) -> Any:
        """Lines of the same number of corners, shape (n, corners, 2), as one curve."""
        connect = np.ones(lines.shape[:2], dtype=np.int32)
        connect[:, -1] = 0
        flat = lines.reshape(-1, 2)
        return pg.PlotCurveItem(flat[:, 0], flat[:, 1], pen=pen, connect=connect.ravel())

    def _on_click(self, event: Any) -> None:
        if self.drawn is None:
            return
        if event.double():
            self.show_all()
            return
        spot = self.plotItem.vb.mapSceneToView(event.scenePos())
        found = self.drawn.nearest(spot.x(), spot.y())
        if found is not None:
            self.picked.emit(*found)


def _alike(one: Lineages, other: Lineages) -> bool:
    """Whether the same tracks stand in the same places."""
    a, b = one.branches, other.branches
    return len(a) == len(b) and bool((a[["track_id", "x"]] == b[["track_id", "x"]]).all(axis=None))
