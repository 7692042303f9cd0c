"""Tracks, and scores of links, from whatever holds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bridgetrack.errors import InputError
from bridgetrack.features.link_scores import LinkScores
from bridgetrack.io.csv import read_tracks_csv
from bridgetrack.io.ctc import read_ctc
from bridgetrack.io.geff import read_geff, read_geff_edges, read_trackmate
from bridgetrack.io.tables import SCORE_COLUMNS, known_columns, read_text_table
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


def read_link_scores(path: Path | str) -> LinkScores:
    """Read scores of links.

    Parameters
    ----------
    path
        A CSV table with a row per link: ``frame`` of the earlier cell, labels ``source`` and
        ``target``, and ``score``, 0 to 1; or a GEFF store whose nodes have labels and whose edges
        have an attribute of that name (``score``, ``probability``, ``weight``). Links over
        more than one frame are left out.

    Raises
    ------
    InputError
        Where it cannot be read, a column is missing, or a number is wrong; names file and row.
    """
    path = Path(path)
    if path.is_dir() or path.suffix.lower() == ".geff":
        return _of_geff(path)
    text = read_text_table(path)
    found = known_columns(text.header, SCORE_COLUMNS)
    missing = [role for role, column in found.items() if column is None]
    if missing:
        raise InputError(
            f"{path}: there is no column {missing[0]}; a table of link scores needs frame (of the "
            f"earlier cell), source and target (labels) and score; it has {', '.join(text.header)}"
        )
    *ends, score = (str(column) for column in found.values())
    frame, source, target = (text.integers(column) for column in ends)
    return LinkScores(frame, source, target, text.numbers(score), str(path))


def _of_geff(path: Path) -> LinkScores:
    nodes, edges = read_geff_edges(path)
    name = next((n for n in SCORE_COLUMNS["score"] if n in edges.columns), None)
    if name is None:
        raise InputError(
            f"{path}: its edges have no score; one of {', '.join(SCORE_COLUMNS['score'])} is needed"
        )
    cells = nodes.set_index("id")[["frame", "label"]]
    ends = [cells.loc[edges[side]].to_numpy(dtype=np.int64) for side in ("source", "target")]
    score = pd.to_numeric(edges[name], errors="coerce").to_numpy(dtype=np.float64)
    near = (ends[1][:, 0] == ends[0][:, 0] + 1) & ~np.isnan(score)
    here = [end[near] for end in ends]
    return LinkScores(here[0][:, 0], here[0][:, 1], here[1][:, 1], score[near], str(path))
