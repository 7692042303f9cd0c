"""The guided workflow: the panels as steps, each with its requirements and the next step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QAbstractButton, QButtonGroup, QFileDialog, QScrollArea, QStackedWidget

from bridgetrack.annotations.annotation import Kind
from bridgetrack.errors import InputError
from bridgetrack.models.library import SHIPPED
from bridgetrack.pipeline.project import Outcome
from bridgetrack.session.project import saving
from bridgetrack.ui.annotate_panel import AnnotatePanel
from bridgetrack.ui.file_menu import layers_of, masks_of, table_of
from bridgetrack.ui.layers import LayerData, find_role
from bridgetrack.ui.panel import Panel, WorkBar
from bridgetrack.ui.result_layers import SHOWING, TRACKS
from bridgetrack.ui.segment_panel import SegmentPanel
from bridgetrack.ui.track_panel import TrackPanel
from bridgetrack.ui.train_panel import TrainPanel
from bridgetrack.ui.widgets import button, row, text


def fill(viewer: Any, image: Path | None, labels: Path | None) -> Any:
    """Add the workflow to a viewer, and layers as soon as they are read; returns its widget.

    `image` may be anything that can be opened, also masks or a table.
    """

    def read() -> list[LayerData]:
        layers = [] if image is None else (layers_of if labels else table_of)(image)
        if labels is not None:
            (pixels, options, kind), *more = masks_of(labels)
            layers += [(pixels, {**options, "name": "Cells"}, kind), *more]
        return layers

    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    named = [path.name for path in (image, labels) if path is not None]
    if named:
        widget.segment.bring(" and ".join(named), read)
    return widget


def launch(image: Path | None, labels: Path | None) -> None:
    """Open a window and wait until it is closed."""
    import napari

    viewer = napari.Viewer(title="Bridgetrack")
    fill(viewer, image, labels)
    napari.run()


_CHECKING = "Look at the event in both frames, then answer. Esc stops; your answers are saved."

ENOUGH = 20
"""Answers after which training is worth while."""


class WorkflowPanel(Panel):
    """Cells, Annotate, Train, Track: one at a time."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        viewer = self.state.viewer
        self.segment = SegmentPanel(viewer)
        self.annotate = AnnotatePanel(viewer)
        self.train = TrainPanel(viewer)
        self.track = TrackPanel(viewer)
        self.steps: list[Panel] = [self.segment, self.annotate, self.train, self.track]
        names = ("1 Cells", "2 Annotate", "3 Train", "4 Track")
        tips = (
            "Choose the movie and its cells, or find the cells",
            "Say what happens to some cells",
            "Learn from your answers",
            "Look at the tracks, correct and export them",
        )
        self.tabs = [
            button(name, tip, self._opener(k), checkable=True)
            for k, (name, tip) in enumerate(zip(names, tips, strict=True))
        ]
        group = QButtonGroup(self)
        for tab in self.tabs:
            group.addButton(tab)
        self.save = button(
            "Save project as…", "Everything is saved beside the movie automatically. This saves a "
            "copy to continue from, or to repeat the run without a window",
            self.ask_save,
        )  # fmt: skip
        self.add(row(self.segment.open, self.save))
        self.add(row(*self.tabs))
        self.next_words, self.work = self.add(text(lines=2)), self.add(WorkBar(self))
        self.work.hide()
        self.work.shown.connect(self._show_work)
        self.stack = QStackedWidget()
        for panel in self.steps:
            panel.column.setContentsMargins(0, 0, 0, 0)
            self.stack.addWidget(_scrolling(panel))
        self.column.addWidget(self.stack, 1)
        # Below the scroll area: at the end of a long step it would be out of view.
        self.add_notice()
        for each in self.findChildren(QAbstractButton):
            each.pressed.connect(lambda: self.notice.say("", ""))  # another action begins
        self.setMinimumWidth(320)
        session = self.session
        for signal in (
            session.movie_changed, session.scene_changed, session.answers_changed,
            session.model_changed, session.tracking_changed, session.trainer.changed,
            session.message, session.progress,
        ):  # fmt: skip
            self.listen(signal, self._say_next)
        for changed in (self.segment.source.image.chosen, self.segment.source.judged):
            changed.connect(lambda *_: self._say_next())
        self.listen(self.state.annotator.mode_changed, self._follow_mode)
        self.listen(self.session.questions.check.ended, lambda: self.open_step(3))
        self.open_step(0)

    def _show_work(self, shown: bool) -> None:
        """Show work in place of the words, at their height, so that nothing below moves."""
        if shown and self.work.isHidden():
            self.work.setFixedHeight(self.next_words.heightForWidth(self.next_words.width()))
        self.next_words.setVisible(not shown)
        self.work.setVisible(shown)

    def _follow_mode(self) -> None:
        if self.state.annotator.asking and self.step != 1:
            self._open(1)
        self._say_next()

    def _opener(self, k: int) -> Any:
        def act() -> None:
            if k != self.step:
                self.session.message.emit("info", "")  # it was about the earlier step
            self.open_step(k)

        return act

    @property
    def step(self) -> int:
        """Number of the open step, from 0."""
        return int(self.stack.currentIndex())

    def open_step(self, k: int) -> None:
        """Open a step."""
        if self.state.annotator.asking and k != 1:
            self.state.annotator.stop_asking()
        self._open(k)

    def _open(self, k: int) -> None:
        self.tabs[k].setChecked(True)
        self.stack.setCurrentIndex(k)
        if k == 3:
            self.track.show_tracks()
        elif k == 1:
            self.state.results.show_cells(False)
        if k in (1, 3):
            self.state.canvas.activate()
        self._say_next()

    def _say_next(self, *_: Any) -> None:
        self.next_words.setText(self._next_step())
        self.save.setEnabled(self.session.movie is not None)

    def _next_step(self) -> str:
        """Requirements of a step, or the next step, in plain words."""
        session, step = self.session, self.step
        if session.questions.check.running:
            return _CHECKING
        source = self.segment.source
        if session.movie is None and source.problem and step:
            return f"{source.problem}; see step 1."
        if session.movie is None and source.image.layer is not None:
            where = "" if step == 0 else ", in step 1"
            return f"Next: find the cells, or choose the layer that has them{where}."
        if session.movie is None:
            first = "Open a movie, or drop it on the window"
            return f"{first}, then choose its cells." if step == 0 else f"{first}; see step 1."
        if session.tracker.failed:
            return "These cells cannot be tracked. Choose others in step 1, or find cells there."
        if session.tracking is None:
            return "The cells are being measured; this takes a moment."
        drawn = find_role(self.state.viewer.layers, TRACKS) is not None
        if step == 3 and session.busy(SHOWING) and not drawn:
            return "The tracks are being drawn; this takes a moment."
        masks = 0 if session.masks is None else len(session.masks.answers)
        if step == 0 and session.model.name != SHIPPED:
            used = f"The model in use is “{session.model.name}”; step 3 changes it."
            return f"Ready. {used} Next: step 2, or the tracks in step 4."
        answers = sum(a.kind != Kind.CANNOT_TELL for a in session.annotations or ())
        return _ready(step, answers, masks, session.trainer.outcome)

    def ask_save(self) -> None:
        """Ask for a name and save the project in the background."""
        wanted, kinds = self.beside_movie("copy.bridgetrack"), "Bridgetrack project (*.bridgetrack)"
        name, _ = QFileDialog.getSaveFileName(self, "Save project", wanted, kinds)
        if not name:
            return
        session, doer = self.session, self.state.elsewhere
        with session.telling():
            if doer.busy("project"):
                raise InputError("another project is still being saved; wait until it is done")
            steps = saving(session, Path(name), self.track.export.formats.ticked)

            def done(folder: Path) -> None:
                session.message.emit("info", f"Saved {folder}.")

            doer.run("project", lambda: steps, done, what="Saving the project")


def _ready(step: int, answers: int, masks: int, trained: Outcome | None) -> str:
    """The next step if there are tracks and answers about events and `masks`."""
    besides = f" and {masks} about masks" if masks else ""
    if step == 0:
        return "Ready. Next: answer some questions in step 2, or see the tracks in step 4."
    if step == 1 and answers < ENOUGH:
        return f"{answers} of about {ENOUGH} answers{besides}; then train in step 3."
    if step == 1:
        return f"{answers} answers{besides}: enough to train in step 3; more improve the model."
    if step == 2 and trained is not None:
        return _TRAINED[trained.better]
    if step == 2 and not answers:
        return "Training needs answers; give some in step 2. About 20 are enough to begin with."
    if step == 2:
        return "Press Train."
    return "Point at an error and correct it as in step 2; the tracks are updated at once."


_TRAINED = {
    None: "Trained. Next: look at the tracks in step 4.",
    True: "Better than before on held-out answers. Next: look at the tracks in step 4.",
    False: "Worse than before on held-out answers: give more answers in step 2, or undo the "
    "training (Z).",
}
"""Message about a training that is better or worse than its starting model, or equal."""


def _scrolling(panel: Panel) -> QScrollArea:
    """A panel that scrolls vertically if it is too high, never horizontally."""
    area = QScrollArea()
    area.setWidget(panel)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    return area
