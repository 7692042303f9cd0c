"""The masks with the numbers of their tracks, as an OME-Zarr label movie."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bridgetrack.export.ctc import Renamed
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.writers import save_labels
from bridgetrack.tracks.tracks import Tracks


def write_zarr(tracks: Tracks, labels: Movie, path: Path) -> tuple[str, ...]:
    """Write the segmentation renamed to tracks, a frame in memory at a time.

    Pieces of one cell get one number, and detections that belong to no track are erased. A track
    keeps its number across gaps.

    Parameters
    ----------
    tracks
        The tracks; ``label`` of their nodes refers to `labels`.
    labels
        The segmentation.
    path
        Where to, a name that ends in ``.zarr``.

    Returns
    -------
    tuple of str
        What it cannot hold: who descends from whom.

    Raises
    ------
    InputError
        Where a node is not drawn in the segmentation.
    OutputError
        Where it cannot be written; nothing is left behind then.
    """
    number = tracks.nodes["track_id"].to_numpy(dtype=np.int64)
    wide = int(number.max(initial=0)) > np.iinfo(np.uint16).max
    renamed = Renamed(tracks, labels, number)
    frames = (renamed.frame(t) for t in range(labels.n_frames))
    save_labels(frames, path, geometry=labels.geometry, dtype="uint32" if wide else "uint16")
    return ("pixels hold track numbers; who descends from whom is in the other formats",)
