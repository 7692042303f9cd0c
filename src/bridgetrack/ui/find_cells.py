"""Finding the cells of a movie: sliders, a live preview, and a button for all frames."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from magicgui.widgets import ComboBox
from napari.layers import Labels
from numpy.typing import NDArray
from qtpy.QtWidgets import QCheckBox
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
from bridgetrack.segmentation.settings import Appearance
from bridgetrack.session.mask_work import CellSearch
from bridgetrack.ui.background import EventLoopQueue
from bridgetrack.ui.forms import SettingsForm
from bridgetrack.ui.layers import find_role, movie_of, placed_like, tag, tags_of, time_of
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.source_panel import SourceChooser
from bridgetrack.ui.widgets import DIM, Column, button, text


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


_LOOKS = {"diameter": "Cell size, pixels", "faint": "Faint cells", "split": "Split touching cells"}
_FOREGROUND = {"foreground": "Cells are"}
"""What is shown of the settings; the rest is decided by the movie."""

_WAYS = {"jointly": "together with their tracks", "plain": "quickly: one reading a frame"}
"""How the built-in method chooses cells, in words."""

_PAUSE = 200
"""Milliseconds after the last move of a slider until the preview follows."""


def _told(found: SettingsEstimate) -> str:
    """What was decided, and what is doubtful about it."""
    said = f"Cells look {found.readings[0].words}."
    return " ".join([said, *(f"⚠ {words[0].upper()}{words[1:]}." for words in found.doubts)])


_Way = tuple[Any, bool, str | None]
"""The layer of a movie, whether masks are chosen over time, and how the cells look."""


class FindCells(Column):
    """Sliders with a live preview, and a button for all frames."""

    def __init__(self, panel: Panel, source: SourceChooser) -> None:
        super().__init__()
        self._panel, self._source = panel, source
        self._decided: tuple[_Way, SettingsEstimate] | None = None
        self._search: CellSearch | None = None
        self._looked_in: Any = None  # its layer
        self._searched: Any = None  # the layer that is looked at, None while none is
        self._of: Any = source.image.layer  # the movie chosen last
        self._own_size = False  # whether a person set the size of its cells
        self._waiting: list[Any] = []  # what goes on once it is known what suits the movie
        queue = self._queue = EventLoopQueue()
        panel.destroyed.connect(lambda _=None: queue.stop())
        self.looks = SettingsForm(Appearance, _LOOKS, sliders=("faint", "split"))
        self.looks["diameter"].native.setDecimals(1)
        self.column.addWidget(self.looks.native)
        self.estimate = self.add(text(style=DIM))
        self.live = QCheckBox("Live preview on this frame")
        self.live.setToolTip("Show the cells of the frame in view as the sliders move")
        self.column.addWidget(self.live)
        self.expert = SettingsForm(SegmentationSettings, _FOREGROUND)
        others = [name for name in available_backends() if name != "builtin"]
        self.method = ComboBox(
            name="method",
            choices=[*((words, way) for way, words in _WAYS.items()), *((n, n) for n in others)],
            tooltip="How cells are found; cellpose where it is installed",
        )
        self.expert.begin_with("Found", self.method)
        self.go = self.add(button(
            "Find cells in all frames",
            "Look for the cells of every frame; they make a layer of their own",
            self.run, icon="find", hot="Alt+C",
        ))  # fmt: skip
        panel.state.cancelled["segment"] = self._cancelled
        self.words = self.add(text())
        self._preview_soon = qdebounced(self._show_preview, timeout=_PAUSE, parent=self)
        self._listen()
        self._on_image()

    def _listen(self) -> None:
        panel = self._panel
        self.looks["diameter"].changed.connect(self._on_size_set)
        for form in (self.looks, self.expert):
            form.listen(self._preview_soon)
        self.method.changed.connect(lambda _: self._on_way())
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
        for work in ("settings", "preview"):
            session.cancel(work)
        self.estimate.setText("")
        layer = self._source.image.layer
        if layer is not None and layer is not self._of:
            # The size that was set is of the cells of the movie before.
            self._own_size = self._own_size and self._of is None
            self._of = layer
        self._on_image()

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
        movie = session.movie
        if movie is not None and movie.kept and movie.found is not None:
            known = movie.found.settings  # there again, as the cells are
            if known is not None and known.diameter is not None:
                now = self.looks.applied_to(Appearance())
                self.looks.show(replace(now, diameter=known.diameter))
                self._own_size = True
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

    def settings(self, decided: SegmentationSettings) -> SegmentationSettings:
        """What the forms say, beginning with what suits the movie."""
        chosen = self.expert.applied_to(decided)
        if chosen.foreground == "auto":
            chosen = replace(chosen, foreground=decided.foreground)
        shown = self.looks.applied_to(Appearance()).applied_to(chosen)
        if not self._own_size:
            return replace(shown, diameter=decided.diameter)
        return complete_settings([], shown)

    def _finding(self) -> Finding:
        """How the forms say that cells are found, but for the settings."""
        way = str(self.method.value)
        # a network's cells are taken as they are
        choose: Literal["jointly", "plain"] = "jointly" if way == "jointly" else "plain"
        return Finding(None, choose, "builtin" if way in _WAYS else way)

    @property
    def _way(self) -> _Way:
        """What has to stay the same for what was decided to hold."""
        return self._source.image.layer, self._finding().chooses, self.expert["foreground"].value

    @property
    def _said(self) -> SegmentationSettings:
        """What a person said of the cells; the rest is left open."""
        size = self.looks["diameter"].value if self._own_size else None
        return SegmentationSettings(diameter=size, foreground=self.expert["foreground"].value)

    def _with_settings(self, then: Any) -> None:
        """Call `then(movie, settings)` once what suits the movie is known."""
        movie = self._movie()
        if movie is None:
            return
        if self._decided is not None and self._decided[0] == self._way:
            self._then(then, movie, self._decided[1].settings)
            return
        under_way = self._panel.session.busy("settings")
        waiting = self._waiting if under_way else []
        self._waiting = waiting if then in waiting else [*waiting, then]
        if not under_way:
            self._decide(movie)

    def _decide(self, movie: Movie) -> None:
        """Find out what suits the movie, then go on with all that waits for it."""
        way, said = self._way, self._said
        finding = replace(self._finding(), settings=said)

        def known(found: SettingsEstimate) -> None:
            if self._source.image.layer is not way[0]:
                return  # another movie was chosen meanwhile
            if (self._way, self._said) != (way, said):
                self._decide(movie)  # what was set meanwhile stays
                return
            self._decided = way, found
            self._show_decided(found)
            waiting, self._waiting = self._waiting, []
            for then in waiting:
                self._then(then, movie, found.settings)

        self._panel.session.run("settings", lambda: finding.decided(movie), known, self._failed)

    def _show_decided(self, found: SettingsEstimate) -> None:
        if not self._own_size:
            box, size = self.looks["diameter"], round(found.settings.diameter or 20)
            shown = float(min(max(size, box.min), box.max))
            self.looks.show(replace(self.looks.applied_to(Appearance()), diameter=shown))
        self.estimate.setText(_told(found))

    def _then(self, then: Any, movie: Movie, decided: SegmentationSettings) -> None:
        try:
            settings = self.settings(decided)
        except BridgetrackError as error:
            self._failed(error)
            return
        then(movie, settings)

    def _failed(self, error: Exception) -> None:
        self.words.setText(str(error))

    def _on_size_set(self, _: Any) -> None:
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
        backend = self._finding().backend
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
        self._with_settings(self._run)

    def _run(self, movie: Movie, settings: SegmentationSettings) -> None:
        session, layer = self._panel.session, self._source.image.layer
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
        self._searched = None
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
        if not labels.any():
            self.words.setText(
                "No cells were found. Set Cell size to what they are, look at a frame in the live "
                "preview, and search again."
            )
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
        made = Labels(
            labels, name="Cells found", opacity=0.3, visible=False,
            metadata=tag("labels", found=finding, partial=partial, **time_of(layer)),
            **placed_like(layer),
        )  # fmt: skip
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
