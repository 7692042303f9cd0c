"""The family tree of one cell: its layout, and its plot, in which a click goes to a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyqtgraph as pg
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from bridgetrack.hypotheses.events import Event
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.ui.event_looks import LOOKS
from bridgetrack.ui.plots import StillPlot


@dataclass(frozen=True)
class Branch:
    """A track as a vertical line at `x` from its first to its last frame."""

    track_id: int
    x: float
    first: int
    last: int
    parent: int | None
    event: str = ""


def family_of(tracks: Tracks, node: int) -> int | None:
    """Lineage of a node (row of a detection), None where it belongs to no track."""
    found = tracks.nodes.loc[tracks.nodes["id"] == node, "lineage_id"]
    return int(found.iloc[0]) if len(found) else None


def branches(tracks: Tracks, lineage: int) -> list[Branch]:
    """Layout of one family: leaves side by side, mothers between and before their daughters."""
    own = tracks.nodes[tracks.nodes["lineage_id"] == lineage]
    spans = own.groupby("track_id")["frame"].agg(["min", "max"])
    links = tracks.links[tracks.links["track_id"].isin(spans.index)]
    links = links.drop_duplicates("track_id").set_index("track_id")
    children: dict[int, list[int]] = {}
    for child, parent in links["parent_id"].items():
        children.setdefault(int(parent), []).append(int(str(child)))
    place = _place(lineage, children, spans)
    first: dict[Any, int] = spans["min"].to_dict()
    last: dict[Any, int] = spans["max"].to_dict()
    mother: dict[Any, int] = links["parent_id"].to_dict()
    event: dict[Any, str] = links["event"].to_dict()
    found = [
        Branch(track, x, first[track], last[track], mother.get(track), event.get(track, ""))
        for track, x in place.items()
    ]
    return sorted(found, key=lambda b: b.first)


def _place(root: int, children: dict[int, list[int]], spans: pd.DataFrame) -> dict[int, float]:
    """Horizontal place of every track, depth first without recursion."""
    place: dict[int, float] = {}
    free = 0.0
    stack: list[tuple[int, bool]] = [(root, False)]
    seen: set[int] = set()
    while stack:
        track, done = stack.pop()
        below = [c for c in sorted(children.get(track, [])) if c in spans.index]
        if done:
            xs = [place[c] for c in below if c in place]
            if xs:
                place[track] = sum(xs) / len(xs)
                continue
            place[track], free = free, free + 1
        elif track not in seen and track in spans.index:
            seen.add(track)
            stack.append((track, True))
            stack += [(c, False) for c in reversed(below) if c not in seen]
    return place


_LINE = "#8a9bb0"
_HERE = "#e69f00"


class LineageView(QWidget):
    """Time runs down; branches of one family side by side. Emits `picked` (track, frame)."""

    picked = Signal(int, int)

    def __init__(self) -> None:
        super().__init__()
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        self._plot = StillPlot()
        self._plot.invertY(True)
        self._plot.hideAxis("bottom")
        self._plot.getAxis("left").setLabel("frame")
        self._plot.setFixedHeight(190)
        self._plot.scene().sigMouseClicked.connect(self._on_click)
        self.setToolTip("The family of the cell you point at; click a branch to go there")
        box.addWidget(self._plot)
        self._branches: list[Branch] = []
        self._marker: Any = None
        self._shown: tuple[Tracks | None, int | None] = (None, None)

    @property
    def branches(self) -> list[Branch]:
        """What is drawn."""
        return self._branches

    def show_family(self, tracks: Tracks | None, lineage: int | None) -> None:
        """Draw a family, or nothing."""
        shown, family = self._shown
        if tracks is shown and lineage == family:
            return
        self._shown = (tracks, lineage)
        self._plot.clear()
        self._marker = None
        self._branches = [] if tracks is None or lineage is None else branches(tracks, lineage)
        place = {b.track_id: b for b in self._branches}
        for b in self._branches:
            self._plot.plot([b.x, b.x], [b.first, b.last + 0.01], pen=pg.mkPen(_LINE, width=3))
            if b.parent in place:
                mother = place[b.parent]
                self._plot.plot(
                    [mother.x, mother.x, b.x], [mother.last, b.first, b.first],
                    pen=pg.mkPen(LOOKS[_event(b.event)].colour, width=2),
                )  # fmt: skip
        if self._branches:
            xs = [b.x for b in self._branches]
            self._plot.setXRange(min(xs) - 0.5, max(xs) + 0.5, padding=0)
            low, high = min(b.first for b in self._branches), max(b.last for b in self._branches)
            self._plot.setYRange(low - 0.5, high + 0.5, padding=0.02)

    def mark(self, track: int | None, frame: int) -> None:
        """Show where the cell pointed at is."""
        if self._marker is not None:
            self._plot.removeItem(self._marker)
            self._marker = None
        found = next((b for b in self._branches if b.track_id == track), None)
        if found is not None:
            self._marker = pg.ScatterPlotItem(
                [found.x], [frame], size=11, brush=pg.mkBrush(_HERE), pen=pg.mkPen("k")
            )
            self._plot.addItem(self._marker)

    def _on_click(self, event: Any) -> None:
        if not self._branches:
            return
        spot = self._plot.plotItem.vb.mapSceneToView(event.scenePos())
        frame = round(spot.y())
        near = [b for b in self._branches if b.first - 1 <= frame <= b.last + 1]
        if near:
            best = near[int(np.argmin([abs(b.x - spot.x()) for b in near]))]
            self.picked.emit(best.track_id, min(max(frame, best.first), best.last))


def _event(key: str) -> Event:
    return Event.from_key(key) if key else Event.MOVE
