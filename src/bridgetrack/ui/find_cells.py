"""Finding the cells of a movie: sliders, a live preview, and a button for all frames."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from magicgui.widgets import ComboBox
from napari.layers import Labels
from numpy.typing import NDArray
from qtpy.QtWidgets import QCheckBox, QVBoxLayout, QWidget
from superqt.utils import qdebounced

from bridgetrack.errors import BridgetrackError
from bridgetrack.movie import Movie
from bridgetrack.pipeline.finding import Finding
from bridgetrack.progress import Progress, Steps
from bridgetrack.segmentation import (
    SegmentationSettings,
    available_backends,
    segment_frame,
)
from bridgetrack.segmentation.builtin import complete_settings
from bridgetrack.segmentation.readings import SettingsEstimate
from bridgetrack.segmentation.settings import Appearance, MaskChoice
from bridgetrack.session.mask_work import CellSearch
from bridgetrack.ui.background import EventLoopQueue
from bridgetrack.ui.forms import SettingsForm
from bridgetrack.ui.layers import find_role, movie_of, placed_like, tag, tags_of
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.source_panel import SourceChooser
from bridgetrack.ui.widgets import SPACE, button, folded, text


def preview(
    movie: Movie,
    frame: int,
    settings: SegmentationSettings,
    backend: str,
) -> Steps[NDArray[Any]]:
    """Cells of one frame."""
    yield Progress("Preview", 0.0)
    return segment_frame(
        movie.channel_frame(frame), settings, scale=movie.geometry.scale, backend=backend
    )


_LOOKS = {"diameter": "Cell size", "faint": "Faint cells", "split": "Separate touching cells"}
_EXPERT = {
    "foreground": "Cells are",
    "threshold": "Threshold",
    "seeds": "Told apart by",
    "background_window": "Background",
    "edge": "Cut back to",
    "separation": "Least distance",
    "min_size": "Smallest",
    "max_size": "Largest",
    "fill_holes": "fill holes",
    "clear_border": "leave out cells at the border",
}
"""What the sliders and the folded form show of the settings; the rest is decided by the movie."""

_WAYS = {
    "jointly": "together with their tracks",
    "plain": "plain segmentation",
}
"""How cells are chosen, in words."""

_PAUSE = 200
"""Milliseconds after the last move of a slider until the preview follows."""


@dataclass(frozen=True)
class _Decided:
    """What suits a movie, told by its layer, for a way of choosing and what a person had said."""

    layer: Any
    chooses: bool
    said: SegmentationSettings
    found: SettingsEstimate

    def holds_for(
        self, layer: Any, chooses: bool, said: SegmentationSettings, own_size: bool
    ) -> bool:
        """Whether it need not be found out again, as with a size that the slider has by then."""
        same_size = own_size or self.said.diameter == said.diameter
        same_way = self.layer is layer and self.chooses == chooses
        return same_way and same_size and self.said.foreground == said.foreground


def _told(found: SettingsEstimate) -> str:
    """What was decided, and what is doubtful about it."""
    said = f"Cells look {found.readings[0].words}."
    return " ".join([said, *(f"⚠ {words[0].upper()}{words[1:]}." for words in found.doubts)])


class FindCells(QWidget):
    """Sliders with a live preview, and a button for all frames."""

    def __init__(self, panel: Panel, source: SourceChooser) -> None:
        super().__init__()
        self._panel, self._source = panel, source
        self._decided: _Decided | None = None
        self._search: CellSearch | None = None
        self._looked_in: Any = None  # its layer
        self._searched: Any = None  # the layer that is looked at, None while none is
        self._wanted: Any = None  # the layer to search once it is known what suits it
        self._left = ""  # what is still to be told of a search that another movie ended
        self._of: Any = source.image.layer  # the movie chosen last
        self._own_size = False  # whether a person set the size of its cells
        self._waiting: list[Any] = []  # what goes on once it is known what suits the movie
        queue = self._queue = EventLoopQueue(panel.state.turns)
        panel.destroyed.connect(lambda _=None: queue.stop())
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(SPACE)
        self.looks = SettingsForm(Appearance, _LOOKS, sliders=_LOOKS)
        box.addWidget(self.looks.native)
        self.estimate = text(dim=True)
        box.addWidget(self.estimate)
        self.live = QCheckBox("Live preview on this frame")
        self.live.setToolTip("Show the cells of the frame in view as the sliders move")
        box.addWidget(self.live)
        self.expert = SettingsForm(SegmentationSettings, _EXPERT)
        self.backend = ComboBox(
            name="method",
            choices=available_backends(),
            tooltip="Built in, or Cellpose where it is installed",
        )
        self.expert.begin_with("Method", self.backend)
        self.choice = SettingsForm(MaskChoice, {"choose": "Cells are chosen"}, words=_WAYS)
        self.backend.changed.connect(self._on_backend)
        box.addWidget(folded("Advanced settings", self.choice.native, self.expert.native))
        source.companions.append(self._leave)
        self.go = button(
            "Find cells in all frames",
            "Look for the cells of every frame; they make a layer of their own",
            self.run,
            icon="find",
            hot="Alt+C",
        )
        box.addWidget(self.go)
        self.work = Work(panel, "segment", "settings", cancelled=self._cancelled)
        box.addWidget(self.work)
        self.words = text()
        box.addWidget(self.words)
        self._preview_soon = qdebounced(self._show_preview, timeout=_PAUSE, parent=self)
        self._listen()
        self._on_image()

    def _listen(self) -> None:
        panel = self._panel
        self.looks["diameter"].changed.connect(lambda _: self._on_size_set())
        for form in (self.looks, self.expert):
            form.listen(self._preview_soon)
        for widget in (self.choice["choose"], self.backend):
            widget.changed.connect(lambda _: self._on_way())
        self.live.toggled.connect(self._on_live)
        self._source.image.chosen.connect(lambda _: self._on_other_image())
        panel.listen(panel.state.viewer.dims.events.current_step, self._on_frame)
        panel.listen(panel.session.movie_changed, self._on_movie)

    # ------------------------------------------------------------------ state

    def _movie(self) -> Movie | None:
        layer = self._source.image.layer
        if layer is None:
            return None
        try:
            return movie_of(layer)
        except BridgetrackError as error:
            self.words.setText(str(error))
            return None

    def _on_other_image(self) -> None:
        """What was looked for in the movie before says nothing of this one."""
        session = self._panel.session
        self._left = self._ended_early("another movie was chosen") or self._left
        for work in ("settings", "preview"):
            session.cancel(work)
        self.estimate.setText("")
        self._forget_looks()
        self._on_image()

    def _forget_looks(self) -> None:
        """The size that was set is of the cells of the movie before."""
        layer = self._source.image.layer
        if layer is None or layer is self._of:
            return
        if self._of is not None:
            self._own_size = False
        self._of = layer

    def _ended_early(self, why: str) -> str:
        """What is told of a search that ended while what suits its movie was looked for."""
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            return ""
        return (
            f"The search for the cells of “{wanted.name}” ended before its first frame, as {why}. "
            "To go on, choose that movie and press Find cells again."
        )

    def _leave(self) -> str:
        """Tell of the movie before, once this one is open, which takes away what was told."""
        left, self._left = self._left, ""
        if left:
            self._panel.session.message.emit("warning", left)
        return ""

    def _on_image(self) -> None:
        layer = self._source.image.layer
        self.go.setEnabled(layer is not None)
        self.live.setEnabled(layer is not None)
        self.words.setText("" if layer is not None else "Choose a movie above first.")
        self._decided = None
        if self.live.isChecked():
            self._show_preview()

    def _on_movie(self) -> None:
        """Opening or closing a movie ends all work on it: keep what a search found until then."""
        session, layer = self._panel.session, self._searched
        if not session.busy("settings") and (
            words := self._ended_early("a movie was closed, or opened with its cells")
        ):
            session.message.emit("warning", words)
        if layer is None or session.busy("segment"):
            return
        kept = self._cancelled().removeprefix("Cancelled: ")
        told = (
            "A movie was closed, or opened with its cells, which ended the search for the cells of "
            f"“{layer.name}”"
        )
        session.message.emit("warning", f"{told}{': ' if kept else '.'}{kept}")

    def _on_way(self) -> None:
        """Show at once what suits the movie in the way chosen now, where that was shown before."""
        if self._decided is not None:
            self._with_settings(lambda *_: self._show_preview())

    def _on_backend(self, _: Any = None) -> None:
        builtin = str(self.backend.value) == "builtin"
        # a network's cells are taken as they are, unless somebody asks for more
        self.choice.show(MaskChoice("jointly" if builtin else "plain"))

    def settings(self, decided: SegmentationSettings) -> SegmentationSettings:
        """What the forms say, beginning with what suits the movie."""
        chosen = self.expert.applied_to(decided)
        if chosen.foreground == "auto":
            chosen = replace(chosen, foreground=decided.foreground)
        shown = self.looks.applied_to(Appearance()).applied_to(chosen)
        if not self._own_size:
            return replace(shown, diameter=decided.diameter)
        # How much a frame is smoothed goes by the size; what was decided belongs to another one.
        return complete_settings([], replace(shown, smoothing=None))

    def _finding(self) -> Finding:
        """How the forms say that cells are found, but for the settings."""
        choose = self.choice.applied_to(MaskChoice()).choose
        return Finding(None, choose, str(self.backend.value))

    def _with_settings(self, then: Any) -> None:
        """Call `then(movie, settings)` once what suits the movie is known."""
        movie, layer = self._movie(), self._source.image.layer
        if movie is None:
            return
        decided, chooses = self._decided, self._finding().chooses
        if decided is not None and decided.holds_for(layer, chooses, self._said(), self._own_size):
            self._then(then, movie, decided.found.settings)
            return
        under_way = self._panel.session.busy("settings")
        waiting = self._waiting if under_way else []
        self._waiting = waiting if then in waiting else [*waiting, then]
        if not under_way:
            self._decide(movie, layer)

    def _said(self) -> SegmentationSettings:
        """What a person said of the cells of this movie; the rest is left open."""
        size = self.looks["diameter"].value if self._own_size else None
        return SegmentationSettings(diameter=size, foreground=self.expert["foreground"].value)

    def _decide(self, movie: Movie, layer: Any) -> None:
        """Find out what suits the movie, then go on with all that waits for it."""
        finding = replace(self._finding(), settings=self._said())
        chooses, said = finding.chooses, self._said()

        def known(found: SettingsEstimate) -> None:
            if self._source.image.layer is not layer:
                return  # another movie was chosen meanwhile
            if (self._finding().chooses, self._said()) != (chooses, said):
                self._decide(movie, layer)  # what was set meanwhile stays
                return
            self._decided = _Decided(layer, chooses, said, found)
            self._show_decided(found)
            waiting, self._waiting = self._waiting, []
            for then in waiting:
                self._then(then, movie, found.settings)

        self._panel.session.run("settings", lambda: finding.decided(movie), known, self._failed)

    def _show_decided(self, found: SettingsEstimate) -> None:
        if not self._own_size:
            size = self._shown_size(found.settings.diameter or 20)
            self.looks.show(replace(self.looks.applied_to(Appearance()), diameter=size))
        self.estimate.setText(_told(found))

    def _then(self, then: Any, movie: Movie, decided: SegmentationSettings) -> None:
        try:
            settings = self.settings(decided)
        except BridgetrackError as error:
            self._failed(error)
            return
        then(movie, settings)

    def _failed(self, error: Exception) -> None:
        self._wanted = None
        self.words.setText(str(error))

    # ------------------------------------------------------------------ size

    def _shown_size(self, diameter: float) -> float:
        """The size of cells that the form shows, in whole pixels."""
        box = self.looks["diameter"]
        return float(min(max(round(diameter), box.min), box.max))

    def _on_size_set(self) -> None:
        """A person set the size, which no estimate changes from now on."""
        self._own_size = True

    # ------------------------------------------------------------------ preview

    def _on_live(self, on: bool) -> None:
        if on:
            self._show_preview()
            return
        self._panel.session.cancel("preview")
        viewer = self._panel.state.viewer
        shown = find_role(viewer.layers, "preview")
        if shown is not None:
            viewer.layers.remove(shown)

    def _on_frame(self, _: Any = None) -> None:
        if self.live.isChecked():
            self._preview_soon()

    def _show_preview(self) -> None:
        if self.live.isChecked():
            self._with_settings(self._preview)

    def _preview(self, movie: Movie, settings: SegmentationSettings) -> None:
        layer = self._source.image.layer
        viewer = self._panel.state.viewer
        if layer is None:
            return
        frame = round(float(layer.world_to_data(viewer.dims.point)[0]))
        frame = min(max(frame, 0), movie.n_frames - 1)
        backend = str(self.backend.value)
        self._panel.session.run(
            "preview",
            lambda: preview(movie, frame, settings, backend),
            lambda labels: self._show(labels, layer),
            self._failed,
        )

    def _show(self, labels: Any, layer: Any) -> None:
        viewer = self._panel.state.viewer
        self.words.setText(f"{int(labels.max())} cells in this frame.")
        shown = find_role(viewer.layers, "preview")
        if shown is not None:
            shown.data = labels
            return
        where = {name: value[1:] for name, value in placed_like(layer).items()}
        made = viewer.add_labels(labels, name="Preview", metadata=tag("preview"), **where)
        made.contour = 1

    # ------------------------------------------------------------------ all frames

    def run(self) -> None:
        """Find the cells of all frames in the background."""
        self._wanted = None if self._movie() is None else self._source.image.layer
        self._with_settings(self._run)

    def _run(self, movie: Movie, settings: SegmentationSettings) -> None:
        session, layer = self._panel.session, self._source.image.layer
        self._wanted = None
        finding, weights = replace(self._finding(), settings=settings), session.model
        said = self._source.said_of_masks()
        before = self._search if self._looked_in is layer else None
        search = self._search = CellSearch.of(movie, finding, before)
        if search.done:
            self.words.setText(f"Going on after {len(search.done)} frames.")
        self._searched = self._looked_in = layer

        def work() -> Steps[tuple[NDArray[Any], Finding]]:
            answers = yield from said
            return (yield from search.steps(answers, weights))

        session.run(
            "segment",
            work,
            lambda found: self._add(layer, *found),
            self._failed,
        )

    def _cancelled(self) -> str:
        """Keep the frames that a search found before it was cancelled; what is told."""
        search, layer = self._search, self._searched
        self._searched = self._wanted = None
        if search is None or search.complete or not search.done or layer is None:
            return ""
        n = len(search.done)
        self._add(layer, search.labels.copy(), search.finding, partial=True)
        more = "masks chosen over time are looked for from the start again"
        if not search.finding.chooses:
            more = "the button goes on from there"
        words = f"Cancelled: the cells of {n} of {search.movie.n_frames} frames are kept; {more}."
        self.words.setText(words)
        return words

    def _add(self, layer: Any, labels: Any, finding: Finding, partial: bool = False) -> None:
        viewer, session = self._panel.state.viewer, self._panel.session
        self._searched = None
        if viewer is None:
            return
        self.live.setChecked(False)
        # Of several searches the last one is looked at. The one before it stays, hidden, to go
        # back to; a part of it that nobody touched goes, and so do older ones.
        said = session.masks is not None and len(session.masks.answers) > 0
        pairs = self._source.pairs
        found = [
            each
            for each in viewer.layers
            if tags_of(each).get("found") is not None and not pairs.movie_of(layer, each)
        ]
        used = self._source.labels.layer
        gone = [each for each in found[:-1] if each is not used]
        for earlier in found:
            earlier.visible = False
        if found and tags_of(found[-1]).get("partial") and not said:
            gone.append(found[-1])
        interval = tags_of(layer).get("frame_interval")
        made = Labels(
            labels,
            name="Cells found",
            metadata=tag("labels", frame_interval=interval, found=finding, partial=partial),
            opacity=0.3,
            visible=False,
            **placed_like(layer),
        )
        pairs.join(layer, made)
        self.words.setText(
            "Done. Mend wrong masks by a key and a click in step 2, or paint over them with the "
            "tools of this layer."
        )

        def put() -> None:
            if self._panel.state.viewer is viewer:
                viewer.add_layer(made)

        def show() -> None:
            if made not in viewer.layers:
                return
            if self._source.image.layer is layer:
                made.visible = True
                self._source.labels.choose(made)
            else:
                self.words.setText(f"Found the cells of “{layer.name}”: choose it as the movie.")
            for earlier in gone:
                if earlier in viewer.layers:
                    viewer.layers.remove(earlier)

        # In parts: each takes napari a moment.
        self._queue.then(put, show)
