"""Whether annotations belong to the movie that they are used with."""

from __future__ import annotations

from bridgetrack.annotations.anchored import Anchored
from bridgetrack.movie.geometry import Geometry


def misfit(anchored: Anchored, labels: str, answers: str) -> str:
    """What is to be said of annotations that mostly miss the cells of a movie.

    Parameters
    ----------
    anchored
        The annotations, tied to the movie as far as possible.
    labels, answers
        Names of the movie and of the annotations, for the message.

    Returns
    -------
    str
        A message with cause and cure; empty where at least half of them found their cells.
    """
    missed, given = len(anchored.lost), len(anchored.annotations)
    if not given or 2 * missed <= given:
        return ""
    first = anchored.lost[0]
    many = "1 annotation points" if given == 1 else f"{given} annotations point"
    return (
        f"{answers}: {missed} of {many} at places where {labels} has no such cell (e.g. "
        f"{first.cell}: {first.reason}); they probably belong to another movie or another "
        f"segmentation{_extents(anchored)}: give the annotations made on these labels, or the "
        "labels that these annotations were made on"
    )


def all_miss(anchored: Anchored) -> bool:
    """Whether there are annotations and none of them found its cells."""
    return 0 < len(anchored.annotations) == len(anchored.lost)


def _extents(anchored: Anchored) -> str:
    """Both extents, where they differ."""
    theirs, ours = anchored.annotations.geometry, anchored.detections.geometry
    if (theirs.n_frames, theirs.shape) == (ours.n_frames, ours.shape):
        return ""
    return f" (made on {_extent(theirs)}, this movie has {_extent(ours)})"


def _extent(geometry: Geometry) -> str:
    frames = f"{geometry.n_frames} frame{'' if geometry.n_frames == 1 else 's'}"
    if geometry.shape is None:
        return frames
    return f"{frames} of {' x '.join(map(str, geometry.shape))} pixels"
