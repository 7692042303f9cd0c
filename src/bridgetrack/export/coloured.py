"""The cells in the colours of their tracks, as a movie in red, green and blue."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tifffile

from bridgetrack.errors import InputError, OutputError
from bridgetrack.export.ctc import Renamed
from bridgetrack.files import staged, writing
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.writers import imagej_tags
from bridgetrack.progress import Progress, Steps
from bridgetrack.tracks.colours import Colouring, colouring
from bridgetrack.tracks.tracks import Tracks

_BIG = 2**32


def save_coloured(
    tracks: Tracks, labels: Movie, path: Path | str, colour: str = "family"
) -> Steps[Colouring]:
    """Write the cells on black, each in the colour of its track or of its own number.

    Parameters
    ----------
    tracks
        The tracks; ``label`` of their nodes refers to `labels`.
    labels
        The segmentation.
    path
        A name that ends in ``.tif``: a stack of 8-bit colour pages, with axes and scale for ImageJ.
    colour
        What the cells are coloured by, one of `colourings`. Detections without a track stay black.

    Yields
    ------
    Progress

    Returns
    -------
    Colouring
        With the values that the colours stand for.

    Raises
    ------
    InputError
        Where there is nothing to colour by, or the tracks are not those of the segmentation.
    OutputError
        Where the file cannot be written, or its name ends otherwise.
    """
    path = Path(path)
    if path.suffix.lower() not in (".tif", ".tiff"):
        raise OutputError(f"{path}: coloured cells are written as .tif; let the name end in it")
    if labels.n_frames != tracks.geometry.n_frames:
        raise InputError(
            f"{labels.source} has {labels.n_frames} frames, the tracks have "
            f"{tracks.geometry.n_frames}; give the segmentation that was tracked"
        )
    found = colouring(tracks, colour)
    nodes, geometry = tracks.nodes, labels.geometry
    row = found.at(nodes["track_id"].to_numpy(), nodes["frame"].to_numpy())
    black = np.zeros((1, 3))
    shades = (255 * np.vstack([black, found.colours[row]])).round().astype(np.uint8)
    cells = Renamed(tracks, labels, np.arange(1, len(nodes) + 1))
    size = 3 * labels.n_frames * float(np.prod(geometry.shape or (1,)))
    what, tags = "the coloured cells", imagej_tags(geometry, labels.n_frames, "color")
    with (
        staged(path, what) as spare,
        writing(path, what),
        tifffile.TiffWriter(spare, bigtiff=size > _BIG) as tiff,
    ):
        for t in range(labels.n_frames):
            yield Progress("Colouring the cells", t / labels.n_frames)
            picture = shades[cells.frame(t)]
            for plane in picture if picture.ndim == 4 else picture[None]:
                tiff.write(plane, photometric="rgb", compression="zlib", metadata=None, **tags)
                tags = {}
    return found
