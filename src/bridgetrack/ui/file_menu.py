"""What napari's File menu opens and saves: samples, CTC folders, projects, tables, tracks."""

from __future__ import annotations

import shutil
import tempfile
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import napari
from platformdirs import user_cache_path
from qtpy.QtCore import QThread
from qtpy.QtWidgets import QApplication, QMainWindow

from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import SAMPLE_SEQUENCE, refuse_inputs, replacing, sample_folder
from bridgetrack.io.csv import plain_cells
from bridgetrack.io.ctc import write_ctc
from bridgetrack.io.geff import write_geff
from bridgetrack.io.may_write import refuse_other, signed
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.progress import Progress, Steps
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.ui.file_layers import (
    Reader,
    csv_reading,
    folder_reading,
    image_data,
    labels_data,
    layers_of,
    project_reading,
    trackmate_reading,
)
from bridgetrack.ui.layers import KEY, LayerData

if TYPE_CHECKING:
    from bridgetrack.ui.state import ViewerState


_LATER: list[LayerData] = [(None,)]  # type: ignore[list-item]
"""What a reader returns that has read a file and has no layers for napari to add."""


def _beside(read: Reader | None) -> Reader | None:
    """A reader that has a file read beside the window while a person waits in it.

    napari calls readers in the thread of its window, which stands still until they return. They may
    return that there is nothing to add, though; the layers are added once they are read. Scripts
    wait for what ``viewer.open`` returns, and get the layers from it.
    """
    if read is None:
        return None

    def reader(path: str | list[str]) -> list[LayerData]:
        state = _window_of_a_person()
        if state is None:
            return read(path)
        name = Path(path if isinstance(path, str) else path[0]).name
        state.files.read(name, lambda: read(path), state.add_layers)
        return _LATER

    return reader


def _window_of_a_person() -> ViewerState | None:
    """The window in which an event is handled and a panel of ours tells what comes of it."""
    from bridgetrack.ui.state import shared_state  # most scripts need no panel

    app, here = QApplication.instance(), QThread.currentThread()
    if app is None or here is not app.thread() or not here.loopLevel():
        return None
    windows = [w for w in app.topLevelWidgets() if isinstance(w, QMainWindow) and w.isVisible()]
    viewer = napari.current_viewer()
    return None if viewer is None or len(windows) > 1 else shared_state(viewer)


def folder_reader(path: str | list[str]) -> Reader | None:
    """Read a folder that holds a movie or masks, None for other things."""
    return _beside(folder_reading(path))


def project_reader(path: str | list[str]) -> Reader | None:
    """Read a Bridgetrack project, None for other things."""
    return _beside(project_reading(path))


def csv_reader(path: str | list[str]) -> Reader | None:
    """Read a CSV table of tracks or of detections, None for those that napari writes."""
    read = csv_reading(path)
    if read is None and isinstance(path, str) and not _of_napari(Path(path)):
        # A person is told which columns are missing.
        return _beside(_whatever) if _window_of_a_person() is not None else None
    return _beside(read)


def _whatever(path: str | list[str]) -> list[LayerData]:
    return layers_of(Path(path if isinstance(path, str) else path[0]))


def _of_napari(path: Path) -> bool:
    """Whether a table holds points or shapes in the columns that napari gives them."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return "axis-0" in file.readline().split(",")
    except OSError:
        return True


def trackmate_reader(path: str | list[str]) -> Reader | None:
    """Read the tracks in a file that TrackMate saved, None for other XML."""
    return _beside(trackmate_reading(path))


def sample_movie() -> list[LayerData]:
    """The simulated movie that comes with the package: image and its true segmentation."""
    folder = sample_folder()
    image, truth = folder / SAMPLE_SEQUENCE, folder / f"{SAMPLE_SEQUENCE}_GT" / "TRA"
    (pixels, *look), cells = sample_layers("sample movie", "Sample movie", image, truth)
    return [(pixels.compute(), *look), cells]


def sample_layers(
    sample: str, name: str, image: Path, labels: Path, **known: Any
) -> list[LayerData]:
    """A sample as layers; its answers are kept in the user's data folder."""
    movie, cells = open_movie(image, **known), open_labels(labels, **known)
    layers = [image_data(movie, name, image), labels_data(cells, "Cells", labels)]
    for file, (_, options, _) in zip((image, labels), layers, strict=True):
        tags = options["metadata"][KEY]
        del tags["path"]
        tags.update(sample=sample, file=str(file), frame_interval=movie.geometry.frame_interval)
    return layers


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


class _Meter:
    """How far a download is, as a progress bar of pooch; ends the download when told to."""

    def __init__(self) -> None:
        self.total = self.got = 0
        self.stopped = threading.Event()

    def update(self, n: int) -> None:
        if self.stopped.is_set():
            raise OSError("stopped")
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
            (Path(scratch) / "unpacked" / movie.name).rename(folder)
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
    get = pooch.HTTPDownloader(progressbar=meter, timeout=_PATIENCE)

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
        raise InputError(
            f"{movie.name} cannot be downloaded from {urlsplit(movie.url).hostname}: {failed[0]}. "
            f"Try again later, or download {movie.url} by other means, unpack it, and open its "
            f"folder {movie.image} in napari."
        ) from failed[0]
    return found[0]


def _unpack(movie: RealMovie, archive: Path, target: Path) -> Steps[None]:
    """Take image and cells out of the archive."""
    roots = tuple(f"{movie.name}/{part}/" for part in (movie.image, movie.cells))
    try:
        with zipfile.ZipFile(archive) as packed:
            names = [n for n in packed.namelist() if n.startswith(roots) and n.endswith(".tif")]
            for k, name in enumerate(names):
                packed.extract(name, target)
                yield Progress("Unpacking", (k + 1) / len(names))
    except (zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{movie.name}: the archive cannot be unpacked ({error})") from error
    if not all((target / root).is_dir() for root in roots):
        raise InputError(f"{movie.name}: the archive lacks {movie.image} or {movie.cells}")


def opening(movie: RealMovie) -> Steps[list[LayerData]]:
    """Fetch a movie and read it; its answers are kept in the user's data folder."""
    folder = yield from fetch(movie)
    yield Progress("Reading the movie", 0.0)
    return sample_layers(
        movie.name, movie.name, folder / movie.image, folder / movie.cells,
        scale=movie.scale, unit="micrometer", frame_interval=movie.interval,
    )  # fmt: skip


def open_real_movie(state: ViewerState, movie: RealMovie = HELA) -> None:
    """Fetch a movie beside the window and add it to the viewer."""
    state.files.begin(lambda: opening(movie), state.add_layers)


def tracks_of(attributes: dict[str, Any]) -> Tracks:
    """The tracks that a layer shows.

    Raises
    ------
    InputError
        Where they do not come from here.
    """
    ours = attributes.get("metadata", {}).get(KEY, {}).get("tracks")
    if not isinstance(ours, Tracks):
        raise InputError(
            "these tracks do not come from Bridgetrack; save them with the program that made them"
        )
    return ours


def _read_from(attributes: dict[str, Any]) -> str | None:
    """The file that a layer came from, None where it is of no file."""
    path = attributes.get("metadata", {}).get(KEY, {}).get("path")
    return path if isinstance(path, str) else None


def write_csv_file(path: str, data: Any, attributes: dict[str, Any]) -> list[str]:
    """Write a table of cells with tracks and parents."""
    target = Path(path)
    refuse_inputs([target], [_read_from(attributes)])
    table = plain_cells(tracks_of(attributes))
    with replacing(target, "the table") as file:
        table.to_csv(file, index=False)
    return [path]


def write_geff_store(path: str, data: Any, attributes: dict[str, Any]) -> list[str]:
    """Write a GEFF store."""
    refuse_inputs([Path(path)], [_read_from(attributes)])
    refuse_other(Path(path))
    with signed(Path(path)) as spare:
        write_geff(tracks_of(attributes), spare)
    return [path]


def write_ctc_folder(path: str, layers: list[LayerData]) -> list[str]:
    """Write masks and res_track.txt from a Tracks layer with its Labels layer."""
    tracks = next((x for x in layers if x[2] == "tracks"), None)
    labels = next((x for x in layers if x[2] == "labels"), None)
    if tracks is None or labels is None:
        raise InputError("choose the Tracks layer and its Labels layer together to write CTC")
    found = tracks_of(tracks[1])
    axes = "TZYX" if found.geometry.ndim == 3 else "TYX"
    folder = Path(path).with_suffix("")
    refuse_inputs([folder], [_read_from(layer[1]) for layer in layers])
    refuse_other(folder)
    cells = open_labels(labels[0], axes=axes, scale=found.geometry.scale)
    with signed(folder) as spare:
        write_ctc(found, cells, spare)
    return [str(folder)]
