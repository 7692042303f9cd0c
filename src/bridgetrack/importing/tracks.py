"""Tracks from whatever holds them."""

from __future__ import annotations

from pathlib import Path

from bridgetrack.errors import InputError
from bridgetrack.importing.ctc import read_ctc
from bridgetrack.importing.geff import read_geff, read_trackmate
from bridgetrack.importing.tracks_csv import read_tracks_csv
from bridgetrack.tracks.tracks import Tracks

READERS = {".csv": read_tracks_csv, ".geff": read_geff, ".xml": read_trackmate}
"""What reads tracks without masks, by the end of a name."""


def track_path(chosen: Path) -> Path:
    """What to give `read_tracks` where a dialog can choose files only.

    For a file inside a store or a folder of tracks that store or folder, else the file.
    """
    if chosen.suffix.lower() in READERS:
        return chosen
    inside = (p for p in (chosen, *chosen.parents) if p.suffix.lower() == ".geff")
    return next(inside, chosen.parent if chosen.name.endswith("track.txt") else chosen)


def read_tracks(path: Path | str) -> Tracks:
    """Read tracks from a file or folder, as its name says.

    Parameters
    ----------
    path
        A CSV table (`read_tracks_csv`), a GEFF store (`read_geff`), a file that TrackMate saved
        (``.xml``), or a folder of the Cell Tracking Challenge (`read_ctc`).

    Raises
    ------
    InputError
        Where it is none of these or cannot be read; the message names it.
    """
    path = Path(path)
    if path.suffix.lower() in READERS:
        return READERS[path.suffix.lower()](path)
    if path.is_dir():
        return read_ctc(path).tracks
    raise InputError(
        f"{path}: no tracks are known in such files; give {', '.join(READERS)}, or the folder of a "
        "Cell Tracking Challenge truth or result"
    )
