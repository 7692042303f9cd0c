"""Real movies that are downloaded, checked and unpacked the first time they are opened."""

from __future__ import annotations

import shutil
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import napari
from napari.layers import Layer
from napari.utils.notifications import show_error
from platformdirs import user_cache_path
from qtpy.QtCore import QEventLoop
from qtpy.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QWidget

from bridgetrack.errors import BridgetrackError, InputError, OutputError
from bridgetrack.progress import Progress, Steps, run
from bridgetrack.session.background import Done, Failed
from bridgetrack.ui.background import ThreadRunner
from bridgetrack.ui.file_menu import sample_layers
from bridgetrack.ui.layers import LayerData

_CHUNK = 2**18
_POLL = 0.1
"""Seconds between two looks at how far a download is."""
_PATIENCE = 30.0
"""Seconds without an answer from a server after which it is given up."""


@dataclass(frozen=True)
class RealMovie:
    """A movie of the Cell Tracking Challenge as its archive holds it."""

    name: str  # of the data set, and of its folder in the archive
    url: str
    sha256: str
    megabytes: int  # of the archive, for people
    scale: tuple[float, float]  # pixel size in micrometres
    interval: float  # minutes between two frames
    # image, cells: folders in the data set
    image: str = "01"
    cells: str = "01_ST/SEG"


# The checksum is that which torch_em publishes for this archive; its conditions of use ask to
# cite doi:10.1038/s41592-023-01879-y.
HELA = RealMovie(
    "Fluo-N2DL-HeLa",
    "https://data.celltrackingchallenge.net/training-datasets/Fluo-N2DL-HeLa.zip",
    "35dd99d58e071aba0b03880128d920bd1c063783cc280f9531fbdc5be614c82e",
    182,
    (0.645, 0.645),
    30.0,
)


class _StoppedError(Exception):
    """The download is not wanted any more."""


class _Meter:
    """How far a download is, in the form of a progress bar; ends it when told to."""

    def __init__(self) -> None:
        self.total = 0
        self.got = 0
        self.stopped = threading.Event()

    def update(self, n: int) -> None:
        if self.stopped.is_set():
            raise _StoppedError
        self.got += n

    def reset(self) -> None:
        self.got = 0

    def close(self) -> None:
        pass

    @property
    def done(self) -> float:
        return min(self.got / self.total, 1.0) if self.total else 0.0


def movie_folder(movie: RealMovie) -> Path:
    """Where a movie is kept once it is there."""
    return user_cache_path("bridgetrack", appauthor=False) / "movies" / movie.name


def fetch(movie: RealMovie) -> Steps[Path]:
    """Download a movie unless it is there already; the folder of its image and its cells."""
    folder = movie_folder(movie)
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new.") as scratch:
            archive = yield from _download(movie, Path(scratch))
            yield Progress("Unpacking", 0.0)
            yield from _unpack(movie, archive, Path(scratch) / "unpacked")
            shutil.rmtree(folder, ignore_errors=True)
            (Path(scratch) / "unpacked").rename(folder)
    except OSError as error:
        raise OutputError(
            f"{movie.name} cannot be kept in {folder.parent} ({error.strerror or error}); it needs "
            f"about {2 * movie.megabytes} MB of free space"
        ) from error
    return folder


def _download(movie: RealMovie, scratch: Path) -> Steps[Path]:
    """The archive, once its checksum is right."""
    import pooch

    meter, stage = _Meter(), f"Downloading {movie.megabytes} MB"
    found: list[Path] = []
    failed: list[Exception] = []
    get = pooch.HTTPDownloader(progressbar=meter, chunk_size=_CHUNK, timeout=_PATIENCE)

    def work() -> None:
        try:
            checksum = f"sha256:{movie.sha256}"
            kept = pooch.retrieve(movie.url, checksum, "movie.zip", scratch, downloader=get)
            found.append(Path(kept))
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            yield Progress(stage, meter.done)
            thread.join(_POLL)
    finally:
        meter.stopped.set()
        thread.join(_POLL)
    if failed:
        with _explained(movie):
            raise failed[0]
    return found[0]


@contextmanager
def _explained(movie: RealMovie) -> Iterator[None]:
    """Turn what went wrong into words."""
    import requests

    host = urlsplit(movie.url).hostname
    by_hand = (
        f"Or download {movie.url} by other means, unpack it, and open its folder "
        f"{movie.image} in napari."
    )
    try:
        yield
    except requests.HTTPError as error:
        code = error.response.status_code if error.response is not None else "an error"
        raise InputError(
            f"{movie.name} cannot be downloaded: {host} answers {code}. Try again later. {by_hand}"
        ) from error
    except requests.RequestException as error:
        raise InputError(
            f"{movie.name} cannot be downloaded: there is no connection to {host}. Connect this "
            f"computer to the internet and try again. {by_hand}"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{movie.name} was downloaded, but the file is not the one expected (its checksum "
            f"differs), so it was thrown away. Try again later. {by_hand}"
        ) from error


def _unpack(movie: RealMovie, archive: Path, target: Path) -> Steps[None]:
    """Take image and cells out of the archive."""
    roots = tuple(f"{movie.name}/{part}/" for part in (movie.image, movie.cells))
    try:
        with zipfile.ZipFile(archive) as packed:
            names = [n for n in packed.namelist() if n.startswith(roots) and n.endswith(".tif")]
            for k, name in enumerate(names):
                place = target / Path(name).relative_to(movie.name)
                if not place.resolve().is_relative_to(target.resolve()):
                    raise InputError(f"{movie.name}: the archive holds a file outside its folder")
                place.parent.mkdir(parents=True, exist_ok=True)
                with packed.open(name) as source, place.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
                yield Progress("Unpacking", (k + 1) / len(names))
    except (zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{movie.name}: the archive cannot be unpacked ({error})") from error
    if not all((target / part).is_dir() for part in (movie.image, movie.cells)):
        raise InputError(f"{movie.name}: the archive lacks {movie.image} or {movie.cells}")


# ---------------------------------------------------------------------- into the window

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
