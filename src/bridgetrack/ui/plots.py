"""Plots in panels: numbers of tracks, lineage trees, accuracy by answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QEvent, Signal

from bridgetrack.arrays import Array, Index
from bridgetrack.tracks.colours import PALETTES, UNKNOWN, Colouring, paint
from bridgetrack.tracks.cycles import CellCycles
from bridgetrack.tracks.trees import Lineages
from bridgetrack.training.estimate import ErrorEstimate

_LINE, _BAND, _CHOSEN = "#56b4e9", (86, 180, 233, 70), "#e69f00"


class Plot(pg.PlotWidget):
    """A plot in the colours of the theme; its menu saves it as a picture or a table."""

    def __init__(self) -> None:
        super().__init__(background=None)
        self.setToolTip("Scroll to zoom, drag to move, right-click and Export… to save")

    def draw_band(self, x: Array, low: Array, high: Array) -> None:
        """Shade the area between two lines, shapes (n,)."""
        edges = [self.plot(x, y, pen=None) for y in (low, high)]
        self.addItem(pg.FillBetweenItem(*edges, brush=pg.mkBrush(*_BAND)))

    def _follow_theme(self) -> None:
        pen = pg.mkPen(self.palette().windowText().color())
        for side in ("left", "bottom"):
            self.getAxis(side).setPen(pen)
            self.getAxis(side).setTextPen(pen)
        title = self.plotItem.titleLabel
        title.setText(title.text, color=pen.color())
        self.resetCachedContent()  # else the background would stay that of the earlier theme
        self.viewport().update()

    def showEvent(self, event: Any) -> None:  # noqa: N802
        """The theme is known."""
        super().showEvent(event)
        self._follow_theme()

    def changeEvent(self, event: Any) -> None:  # noqa: N802
        """Another theme may have been chosen."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange and self.isVisible():
            self._follow_theme()


_HUES = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#f0e442", "#0072b2", "#999999")
_MANY = 200
"""Most curves that are drawn at once."""


_TITLE = 18
"""Height of the words above a plot, in pixels."""


class NumberPlot(Plot):
    """Curves of tracks, or bars."""

    def show_curves(
        self, time: np.ndarray, values: np.ndarray, track: np.ndarray, colours: Sequence[int]
    ) -> None:
        """Draw a curve per track, shapes (n,); `colours` are the tracks in the order of hues."""
        self.clear()
        hue = {t: k for k, t in enumerate(colours)}
        for t in list(dict.fromkeys(track.tolist()))[:_MANY]:
            own = track == t
            pen = pg.mkPen(_HUES[hue.get(t, 0) % len(_HUES)], width=2)
            self.plot(time[own], values[own], pen=pen, connect="finite", name=str(t))
        self.enableAutoRange()

    def show_bars(self, edges: Array, all_counts: Index, chosen_counts: Index) -> None:
        """Draw how often values between `edges` occur: all, and those chosen."""
        self.clear()
        wide = np.diff(edges)
        place = {"x": edges[:-1] + wide / 2, "width": 0.95 * wide, "pen": None}
        for counts, colour in ((all_counts, _LINE), (chosen_counts, _CHOSEN)):
            if counts.any():
                self.addItem(pg.BarGraphItem(height=counts, brush=colour, **place))
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

        self.draw_band(edges, steps("low"), steps("high"))
        self.plot(edges, steps("undivided"), pen=pg.mkPen(_LINE, width=2))
        self.setXRange(0, float(edges[-1]), padding=0.02)
        self.setYRange(0, 1, padding=0.03)

    def show_accuracy(self, curve: Mapping[int, ErrorEstimate]) -> None:
        """Estimated accuracy by the number of answers, with the band of its 95 % intervals."""
        self.clear()
        answers = np.array(list(curve), dtype=np.float64)
        ends = [(e.accuracy, e.low, e.high) for e in curve.values()]
        accuracy, low, high = 100 * np.array(ends).reshape(-1, 3).T
        self.draw_band(answers, low, high)
        pen = pg.mkPen(_LINE, width=2)
        self.plot(answers, accuracy, pen=pen, symbol="o", symbolSize=5, symbolBrush=_LINE)
        self.setXRange(0, max(curve, default=10), padding=0.02)
        self.setYRange(max(float(low.min(initial=100)) - 5, 0), 100, padding=0.08)
        self.name_axes("answers", "correct events, %")

    def name_axes(self, bottom: str, left: str) -> None:
        """Name the axes; the words of the left one are above it, where a low plot has room."""
        self.setLabel("bottom", bottom)
        self.setTitle(left, size="9pt", color=self.palette().windowText().color())
        self.plotItem.layout.setRowFixedHeight(0, _TITLE)


_BINS = 48
"""Most shades of branches, one curve for each shade, so that thousands are drawn fast."""


class TreePlot(Plot):
    """Lineages side by side; time runs down. Emits `picked` (track, frame)."""

    picked = Signal(int, int)

    def __init__(self) -> None:
        super().__init__()
        self.setToolTip(f"{self.toolTip()}; click a branch to go there, double-click to see all")
        self.invertY(True)
        self.hideAxis("bottom")
        self.getAxis("left").setLabel("frame")
        self.scene().sigMouseClicked.connect(self._on_click)
        self.drawn: Lineages | None = None
        self._curves: list[Any] = []
        self._marks: list[Any] = []
        self._now: Any = None
        self._legend: pg.ColorBarItem | None = None

    def show_trees(self, drawn: Lineages | None, colours: Colouring | None) -> None:
        """Draw lineages, or nothing; the view stays if the same are drawn again."""
        same = drawn is not None and self.drawn is not None and _alike(drawn, self.drawn)
        for item in (*self._curves, *self._marks):
            self.removeItem(item)
        self._curves, self._marks = [], []
        self.drawn = drawn
        self._show_legend(colours)
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
            self._show_all()

    def _show_legend(self, found: Colouring | None) -> None:
        """The palette with its values beside the trees; none if colours are categories."""
        layout = self.plotItem.layout
        if self._legend is not None:
            layout.removeItem(self._legend)
            self._legend.scene().removeItem(self._legend)
            self._legend = None
        if found is not None and found.palette != "names":
            stops = PALETTES[found.palette]
            shades = pg.ColorMap(np.linspace(0, 1, len(stops)), (255 * stops).astype(np.uint8))
            self._legend = pg.ColorBarItem(
                values=(found.low, found.high), colorMap=shades, interactive=False, width=12
            )
            layout.addItem(self._legend, 2, 5)

    def _show_all(self) -> None:
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

    def _rows(self, tracks: Collection[int]) -> Index:
        return np.zeros(0, np.int64) if self.drawn is None else self.drawn.rows_of(tracks)

    def mark(self, tracks: Collection[int], frame: int) -> None:
        """Show which frame is in view, which tracks are chosen, and where they are then."""
        if self._now is None:
            self._now = pg.InfiniteLine(angle=0, pen=pg.mkPen(_CHOSEN, width=1))
            self.addItem(self._now)
        self._now.setValue(frame)
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
        halo = self._curve(spans, pg.mkPen(_CHOSEN, width=9))
        halo.setZValue(-1)
        here = (start <= frame) & (frame <= end)
        spots = pg.ScatterPlotItem(
            x[here], np.full(int(here.sum()), frame), size=11, brush=pg.mkBrush(_CHOSEN),
            pen=pg.mkPen("k"),
        )  # fmt: skip
        self._marks = [halo, spots]
        for item in self._marks:
            self.addItem(item)

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
            self._show_all()
            return
        spot = self.plotItem.vb.mapSceneToView(event.scenePos())
        found = self.drawn.nearest(spot.x(), spot.y())
        if found is not None:
            self.picked.emit(*found)


def _alike(one: Lineages, other: Lineages) -> bool:
    """Whether the same tracks are in the same places."""
    a, b = one.branches, other.branches
    return len(a) == len(b) and bool((a[["track_id", "x"]] == b[["track_id", "x"]]).all(axis=None))
