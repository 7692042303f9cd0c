"""A real movie that is downloaded, checked and unpacked the first time it is opened."""

from __future__ import annotations

import shutil
import tempfile
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import user_cache_path

from bridgetrack.errors import InputError, OutputError
from bridgetrack.progress import Progress, Steps
from bridgetrack.ui.file_menu import sample_layers
from bridgetrack.ui.layers import LayerData
from bridgetrack.ui.state import ViewerState

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
