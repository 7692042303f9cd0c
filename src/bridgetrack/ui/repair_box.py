"""Repairing cells that were brought along: a checkbox, and a list of what was changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from bridgetrack.annotations.anchor import cell_refs
from bridgetrack.pipeline.mask_changes import ChangeKind, MaskChange
from bridgetrack.progress import Steps
from bridgetrack.regions.mend import Mend
from bridgetrack.session.repair import Repaired, repair
from bridgetrack.ui.event_looks import GHOST, rgba
from bridgetrack.ui.layers import placed_like, tag, tags_of
from bridgetrack.ui.overlay import CLEAR, Drawing, SliceShown
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.source_panel import SourceChooser
from bridgetrack.ui.widgets import SPACE, button, text

_WORDS = {
    ChangeKind.CUT: "cut",
    ChangeKind.JOINED: "joined",
    ChangeKind.ADDED: "added",
    ChangeKind.DROPPED: "dropped",
    ChangeKind.OUTLINE: "drawn anew",
}
"""What was done, in the order in which it matters."""

_HERE = {
    ChangeKind.CUT: "was one cell",
    ChangeKind.JOINED: "were several cells",
    ChangeKind.ADDED: "was missing",
    ChangeKind.DROPPED: "was drawn as a cell",
    ChangeKind.OUTLINE: "was drawn otherwise",
}
"""What stands on the image at a change that is selected."""

_CHANGES = Qt.ItemDataRole.UserRole
"""Where a row of the list has the changes that it stands for."""


class ChangesList(QTreeWidget):
    """Lists changes, those that matter most first; outlines are folded into one row.

    A click calls `jump` with a change; `called` says what the cells are called that came of some.
    """

    def __init__(
        self,
        jump: Callable[[MaskChange], None],
        called: Callable[[Sequence[MaskChange]], list[str]],
    ) -> None:
        super().__init__()
        self.setHeaderLabels(["Change", "Frame", "Cells"])
        header = self.header()
        modes = QHeaderView.ResizeMode
        for column, width in enumerate((150, 56, 0)):
            header.setSectionResizeMode(column, modes.Fixed if width else modes.Stretch)
            if width:
                header.resizeSection(column, width)
        self.setIndentation(14)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setToolTip("Click a change to go there; outlines unfold at the arrow")
        self.setMinimumHeight(140)
        self._jump, self._called = jump, called
        self.itemClicked.connect(self._on_click)
        self.itemExpanded.connect(lambda item: self._name(_children(item)))

    @property
    def chosen(self) -> list[MaskChange]:
        """The changes selected, each once, in order of the list."""
        found: dict[MaskChange, None] = {}
        for item in self.selectedItems():
            found |= dict.fromkeys(item.data(0, _CHANGES))
        return list(found)

    def fill(self, changes: Iterable[MaskChange]) -> None:
        """Show these changes."""
        kinds = list(_WORDS)
        listed = sorted(changes, key=lambda c: (kinds.index(c.kind), c.frame))
        outlines = [c for c in listed if c.kind == ChangeKind.OUTLINE]
        self.clear()
        self.addTopLevelItems([_row(c) for c in listed[: len(listed) - len(outlines)]])
        if outlines:
            group = QTreeWidgetItem([f"{len(outlines)} outlines drawn anew", "", ""])
            group.setData(0, _CHANGES, outlines)
            group.addChildren([_row(c) for c in outlines])
            self.addTopLevelItem(group)
            group.setFirstColumnSpanned(True)
        self.name_cells()

    def name_cells(self) -> None:
        """Call the cells what they are called now; those folded away when they are unfolded."""
        rows = [self.topLevelItem(k) for k in range(self.topLevelItemCount())]
        there = [row for row in rows if row is not None]
        self._name([row for row in there if not row.childCount()])
        for row in there:
            if row.isExpanded():
                self._name(_children(row))

    def _name(self, rows: Sequence[QTreeWidgetItem]) -> None:
        names = self._called([row.data(0, _CHANGES)[0] for row in rows])
        for row, name in zip(rows, names, strict=True):
            row.setText(2, name)

    def _on_click(self, item: QTreeWidgetItem, _: int) -> None:
        known = item.data(0, _CHANGES)
        if len(known) == 1:
            self._jump(known[0])


def _children(row: QTreeWidgetItem) -> list[QTreeWidgetItem]:
    return [row.child(k) for k in range(row.childCount())]


def _row(change: MaskChange) -> QTreeWidgetItem:
    row = QTreeWidgetItem([_WORDS[change.kind], str(change.frame), ""])
    row.setData(0, _CHANGES, [change])
    return row


class RepairBox(QWidget):
    """Repairs the cells chosen above into a layer of its own."""

    def __init__(self, panel: Panel, source: SourceChooser) -> None:
        super().__init__()
        self._panel, self._source = panel, source
        self._repaired: Repaired | None = None
        self._layers: tuple[Any, Any] = (None, None)  # the cells given, and the repaired ones
        self._taken: dict[MaskChange, Mend] = {}  # what took changes back
        self._outlined = False  # whether cells that stay were outlined anew
        self._earlier: Any = None  # the repaired cells before these, hidden
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(SPACE)
        self.on = QCheckBox("Repair these cells by the image")
        self.on.setToolTip("Cut, join, add, drop where the image says so; makes a layer of its own")
        self.on.toggled.connect(self._on_toggled)
        box.addWidget(self.on)
        self.outlines = QCheckBox("and outline cells that stay anew")
        self.outlines.setToolTip(
            "Without it they are drawn as you brought them; a repair begins anew at once, and "
            "unticking it brings their own outlines back"
        )
        self.outlines.toggled.connect(self._on_outlines)
        box.addWidget(self.outlines)
        self.work = Work(panel, "repair", cancelled=self._cancelled)
        box.addWidget(self.work)
        self.words = text()
        box.addWidget(self.words)
        self.list = ChangesList(self._go_to, self._called)
        self.list.hide()
        canvas = panel.state.canvas
        canvas.painters.append(self._paint)
        self.list.itemSelectionChanged.connect(canvas.redraw)
        panel.destroyed.connect(lambda _=None: canvas.painters.remove(self._paint))
        box.addWidget(self.list)
        self.back = button(
            "Take the selected back", "These masks are as they were; Undo brings the change back",
            self.take_back, icon="undo",
        )  # fmt: skip
        self.back.hide()
        box.addWidget(self.back)
        panel.listen(panel.session.movie_changed, self._on_movie)
        panel.listen(panel.session.masks_changed, self._follow_masks)
        panel.listen(panel.session.tracking_changed, self._on_tracking)
        self._on_movie()

    # ------------------------------------------------------------------ repairing

    def _on_movie(self) -> None:
        movie = self._panel.session.movie
        mine = movie is not None and movie.layers[1] is self._layers[1]
        fits = movie is not None and movie.labels is not None and movie.image is not None
        self.on.setEnabled(fits)
        self.outlines.setEnabled(fits)
        if movie is not None and not mine and self.on.isChecked():
            # Other cells were chosen.
            self._tick(self.on, False)
        self._show()

    def _tick(self, box: QCheckBox, on: bool) -> None:
        box.blockSignals(True)
        box.setChecked(on)
        box.blockSignals(False)

    @property
    def _in_use(self) -> bool:
        """Whether repaired cells are those that are looked at."""
        made = self._layers[1]
        return made is not None and self._source.labels.layer is made

    def _on_outlines(self, outlines: bool) -> None:
        if not self.on.isChecked():
            return
        if self._in_use and outlines == self._outlined:  # what is there is what is wanted again
            self._panel.session.cancel("repair")
            return
        self._repair()

    def _on_toggled(self, on: bool) -> None:
        session = self._panel.session
        given, made = self._layers
        if not on:
            session.cancel("repair")
            if made is not None and self._source.labels.layer is made:
                self._source.labels.choose(given)
            return
        self._repair()

    def _repair(self) -> None:
        """Repair what was brought along, also where repaired cells are looked at."""
        session, found = self._panel.session, self._repaired
        movie = found.given if found is not None and self._in_use else session.movie
        if movie is None:
            return
        layer, model = movie.layers[1], session.model
        said, outlines = session.said_of_masks(), self.outlines.isChecked()

        def work() -> Steps[Repaired]:
            answers = yield from said
            return (yield from repair(movie, model, answers, outlines=outlines))

        session.run(
            "repair",
            work,
            lambda found: self._add(found, layer, outlines),
            self._failed,
            unfinished=f"The repair of “{layer.name}” ended before it was done, as these cells or "
            "their movie are not open any more; they are as they were.",
        )

    def _as_it_is(self) -> None:
        """The boxes say what there is, where a repair ended early."""
        self._tick(self.on, self._in_use)
        if self._in_use:
            self._tick(self.outlines, self._outlined)

    def _cancelled(self) -> str:
        self._as_it_is()
        return ""

    def _failed(self, error: Exception) -> None:
        self._as_it_is()
        self.words.setText(str(error))

    def _add(self, found: Repaired, layer: Any, outlined: bool) -> None:
        viewer = self._panel.state.viewer
        if viewer is None:
            return
        before = self._layers[1] if self._in_use else None
        self._repaired, self._taken, self._outlined = found, {}, outlined
        made = viewer.add_labels(
            found.labels,
            name=f"{layer.name} repaired",
            metadata=tag(
                "labels",
                frame_interval=tags_of(layer).get("frame_interval"),
                found=found.finding,
            ),
            opacity=layer.opacity,
            **placed_like(layer),
        )
        self._layers = layer, made
        self._source.labels.choose(made)
        layer.visible = False
        if before is not None:  # of several repairs the one before stays, hidden, to go back to
            before.visible = False
            if self._earlier in viewer.layers:
                viewer.layers.remove(self._earlier)
            self._earlier = before
        self._show()

    # ------------------------------------------------------------------ the list

    def _show(self) -> None:
        found = self._repaired
        shown = found is not None and self.on.isChecked()
        self.list.setVisible(shown)
        self.back.setVisible(shown)
        if not shown or found is None:
            return
        listed = self._listed
        counts = {kind: sum(c.kind == kind for c in listed) for kind in ChangeKind}
        told = ", ".join(f"{n} {_WORDS[kind]}" for kind, n in counts.items() if n)
        told = f"{told}." if told else "Nothing was changed."
        self.words.setText(f"{told} {found.finding.sentence}" if found.finding.short else told)
        self.list.fill(listed)

    @property
    def _listed(self) -> list[MaskChange]:
        """Changes that are in force: not taken back, or brought back by an undo."""
        found, masks = self._repaired, self._panel.session.masks
        if found is None or masks is None:
            return []
        gone = {c for c, mend in self._taken.items() if not masks.fits(mend)}
        return [c for c in found.changes if c not in gone]

    def _follow_masks(self, _: object = None) -> None:
        if self._taken:
            self._show()

    def _on_tracking(self) -> None:
        if self._repaired is not None and self.on.isChecked():
            self.list.name_cells()

    def _called(self, changes: Sequence[MaskChange]) -> list[str]:
        """The names on the image of the cells that came of each change; before tracks, nothing."""
        session = self._panel.session
        if session.known is None or session.scene is None or not changes:
            return [""] * len(changes)
        cells, names = session.scene.detections, session.names
        wanted = {(c.frame, label): "" for c in changes for label in c.after}
        there = zip(cells.frame.tolist(), cells.label.tolist(), strict=True)
        rows = np.array([k for k, cell in enumerate(there) if cell in wanted], dtype=np.int64)
        wanted |= {ref.cell: names(ref) for ref in cell_refs(cells, rows)}
        return [", ".join(filter(None, (wanted[c.frame, n] for n in c.after))) for c in changes]

    def _paint(self, drawing: Drawing, view: SliceShown) -> None:
        """What was there at the selected changes in view; a ring where nothing is left to see."""
        if self._repaired is None or not self.on.isChecked():
            return
        for change in self.list.chosen:
            flat = view.plane is None or not change.place[:-2]
            near = flat or abs(change.place[0] - (view.plane or 0.0)) * view.depth <= view.size
            if change.frame != view.frame or not near:
                continue
            above = 1.6  # cell diameters: where a cell is outlined, its proposal stands below
            if change.kind == ChangeKind.DROPPED:
                above = 0.8
                drawing.ring(change.place, 0.7 * view.size, rgba(GHOST))
            *deep, y, x = change.place
            place = *deep, y - above * view.size, x
            drawing.mark(place, "disc", 0.1, CLEAR, CLEAR, _HERE[change.kind])

    def _go_to(self, change: MaskChange) -> None:
        """Bring a change into view, with the cell that came of it outlined."""
        state, scene = self._panel.state, self._panel.session.scene
        state.canvas.show(change.frame, change.place)
        if scene is None:
            return
        here = scene.detections.frame == change.frame
        rows = np.flatnonzero(here & np.isin(scene.detections.label, change.after))
        if len(rows):
            state.annotator.select(int(rows[0]))

    def take_back(self) -> None:
        """Make the masks of the selected changes what they were, as one step."""
        session, found = self._panel.session, self._repaired
        chosen = self.list.chosen
        if found is None or not chosen or session.movie is None or session.movie.labels is None:
            return
        with session.telling():
            mends = found.all_back(chosen, session.movie.labels)
            session.accept_all(list(mends.values()))
            self._taken |= mends
            left = len(chosen) - len(mends)
            if left:
                session.message.emit(
                    "warning", f"{left} of these masks have changed since; they stay as they are."
                )
        self._show()
