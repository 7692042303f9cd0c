"""A real movie in napari's File menu, downloaded in the background."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import napari
from napari.layers import Layer
from napari.utils.notifications import show_error
from qtpy.QtCore import QEventLoop
from qtpy.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QWidget

from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.progress import Progress, Steps, run
from bridgetrack.session.background import Done, Failed
from bridgetrack.ui.background import ThreadRunner
from bridgetrack.ui.downloads import HELA, RealMovie, fetch, movie_folder
from bridgetrack.ui.file_menu import sample_layers
from bridgetrack.ui.layers import LayerData

_JOB = "download"


def real_movie() -> list[LayerData]:
    """HeLa nuclei of the Cell Tracking Challenge.

    napari wants the layers from this call, so the window's events are handled in here until the
    movie is there; panels use `download_into`, which returns at once.
    """
    viewer = napari.current_viewer()
    if viewer is None or movie_folder(HELA).is_dir():
        return run(opening(HELA))
    loop, found, failed = QEventLoop(), [], []
    bar = DownloadBar(viewer, HELA)

    def failing(error: Exception) -> None:
        failed.append(error)
        loop.quit()

    def done(layers: list[LayerData]) -> None:
        found.extend(layers)
        loop.quit()

    bar.stop.clicked.connect(loop.quit)
    bar.destroyed.connect(loop.quit)
    bar.start(done, failing)
    loop.exec()
    if found:
        return found
    raise failed[0] if failed else InputError("the download was stopped; nothing is kept")


def opening(movie: RealMovie) -> Steps[list[LayerData]]:
    """Fetch a movie and read it."""
    folder = yield from fetch(movie)
    yield Progress("Reading the movie", 0.0)
    return movie_layers(movie, folder)


def movie_layers(movie: RealMovie, folder: Path) -> list[LayerData]:
    """A fetched movie as layers; its answers are kept in the user's data folder."""
    return sample_layers(
        movie.name, movie.name, folder / movie.image, folder / movie.cells,
        scale=movie.scale, unit="micrometer", frame_interval=movie.interval,
    )  # fmt: skip


def download_into(viewer: Any, movie: RealMovie) -> DownloadBar:
    """Fetch a movie in the background and add it to a viewer."""

    def done(layers: list[LayerData]) -> None:
        for layer in layers:
            viewer.add_layer(Layer.create(*layer))

    def failed(error: Exception) -> None:
        if not isinstance(error, BridgetrackError):
            raise error
        show_error(str(error))

    bar = DownloadBar(viewer, movie)
    bar.start(done, failed)
    return bar


class DownloadBar(QWidget):
    """A progress bar with a Cancel button under the canvas, there for as long as it takes."""

    def __init__(self, viewer: Any, movie: RealMovie) -> None:
        super().__init__()
        self._viewer, self._movie = viewer, movie
        self._runner = ThreadRunner()
        line = QHBoxLayout(self)
        line.addWidget(QLabel(movie.name))
        self.bar = QProgressBar()
        self.bar.setRange(0, 100)
        line.addWidget(self.bar, 1)
        self.stop = QPushButton("Cancel")
        self.stop.setToolTip("Stop the download; nothing is kept")
        self.stop.clicked.connect(self._on_stop)
        line.addWidget(self.stop)
        runner = self._runner
        # A lambda keeps the runner alive until the widget is gone.
        self.destroyed.connect(lambda _=None: runner.close())

    def start(self, done: Done, failed: Failed) -> None:
        """Begin; at the end one of the two is called with the layers or with an error."""
        self._viewer.window.add_dock_widget(self, name="Download", area="bottom")
        movie = self._movie

        def on_done(layers: list[LayerData]) -> None:
            self._end()
            done(layers)

        def on_failed(error: Exception) -> None:
            self._end()
            failed(error)

        self._runner.start(_JOB, lambda: opening(movie), on_done, on_failed, self._show)

    def _show(self, step: Progress) -> None:
        self.bar.setValue(round(100 * step.done))
        self.bar.setFormat(f"{step.stage} %p %")

    def _on_stop(self) -> None:
        self._runner.cancel(_JOB)
        self._end()

    def _end(self) -> None:
        self._viewer.window.remove_dock_widget(self)
        self.deleteLater()
