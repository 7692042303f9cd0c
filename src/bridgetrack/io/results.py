"""Tracks in every format: written to a folder, and read from files and folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridgetrack.arrays import Index
from bridgetrack.errors import InputError, OutputError, warn
from bridgetrack.features.feature import LinkScores
from bridgetrack.files import as_path, result_folder
from bridgetrack.io.columns import SCORE_COLUMNS, known_columns, shown
from bridgetrack.io.csv import read_tracks_csv, write_csv
from bridgetrack.io.ctc import read_ctc, write_ctc
from bridgetrack.io.geff import is_geff, read_edge_scores, read_geff, read_trackmate, write_geff
from bridgetrack.io.tables import PIECES
from bridgetrack.io.text_table import read_text_table
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.cycles import cell_cycles
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.tracks.trees import save_lineages


@dataclass(frozen=True)
class Format:
    """A format of tracks."""

    words: str  # its content in words
    files: tuple[str, ...]  # its files in a result folder
    # writes tracks with their labels into a folder; returns notes about data that it cannot hold
    write: Callable[[Tracks, Movie | None, Path], tuple[str, ...]]


def _csv(tracks: Tracks, labels: Movie | None, folder: Path) -> tuple[str, ...]:
    return write_csv(tracks, folder)


def _ctc(tracks: Tracks, labels: Movie | None, folder: Path) -> tuple[str, ...]:
    if labels is None:
        return ("not written, because there are no masks",)
    return write_ctc(tracks, labels, folder / "ctc")


def _geff(tracks: Tracks, labels: Movie | None, folder: Path) -> tuple[str, ...]:
    source = labels.source if labels is not None and Path(labels.source).exists() else None
    write_geff(tracks, folder / "tracks.geff", labels_path=source)
    return ()


def _cycles(tracks: Tracks, labels: Movie | None, folder: Path) -> tuple[str, ...]:
    table = cell_cycles(tracks).cycles
    table.to_csv(folder / "cycles.csv", index=False, lineterminator="\n")
    return ()


def _lineage(tracks: Tracks, labels: Movie | None, folder: Path) -> tuple[str, ...]:
    save_lineages(tracks, folder / "lineages.svg")
    return ()


_TABLES = ("detections.csv", PIECES, "edges.csv", "events.csv", "tracks.csv", "units.json")
FORMATS = {
    "csv": Format("tables", _TABLES, _csv),
    "ctc": Format("masks and tracks, Cell Tracking Challenge", ("ctc",), _ctc),
    "geff": Format("the lineage graph", ("tracks.geff",), _geff),
    "cycles": Format("a table of cell cycles", ("cycles.csv",), _cycles),
    "lineage": Format("a picture of the lineage trees", ("lineages.svg",), _lineage),
}
"""Formats that results are written in, by name."""
_USUAL = ("csv", "ctc", "geff")
RUN_FILE = "run.json"
"""The record of a run."""
METHODS = "methods.txt"
"""How the result was made, in sentences."""
REPLACED = "The earlier result in this folder was replaced."
"""Note about a folder with an earlier result."""


def write_results(
    tracks: Tracks,
    labels: Movie | None,
    out_dir: Path | str,
    formats: Sequence[str] = _USUAL,
    *,
    methods: str | None = None,
) -> tuple[str, ...]:
    """Write tracks in several formats to one folder, all or nothing.

    Parameters
    ----------
    tracks
        The tracks.
    labels
        The segmentation; None if there are only centroids (then nothing is
        written that needs masks).
    out_dir
        Folder for ``detections.csv``, ``edges.csv``, ``events.csv``, ``tracks.csv`` and
        ``units.json`` (csv), ``ctc/`` (ctc), ``tracks.geff`` (geff), ``cycles.csv``
        (cycles), ``lineages.svg`` (lineage). An earlier result there is replaced as a whole,
        unless the labels were read from it or it was changed since.
    formats
        Any of `FORMATS`, or one of them.
    methods
        How the tracks were made, for ``methods.txt`` (see `methods_text`).

    Returns
    -------
    tuple of str
        What a format could not hold, each beginning with its name; and whether an earlier result
        was replaced.

    Raises
    ------
    OutputError
        If a format is unknown, or the folder cannot be written or holds what must not be
        replaced; nothing has changed then.
    """
    formats = [formats] if isinstance(formats, str) else formats
    if unknown := [name for name in formats if name not in FORMATS]:
        raise OutputError(f"there is no format {unknown[0]!r}; known are {', '.join(FORMATS)}")
    folder = as_path(out_dir)
    replaced = folder.is_dir() and any(folder.iterdir())
    with result_folder(folder, None if labels is None else labels.source) as staging:
        notes = stage_results(tracks, labels, staging, formats, methods)
    return (*notes, REPLACED) if replaced else notes


def stage_results(
    tracks: Tracks,
    labels: Movie | None,
    staging: Path,
    formats: Sequence[str],
    methods: str | None = None,
) -> tuple[str, ...]:
    """Write tracks into an empty folder; the same as `write_results` otherwise."""
    notes = tuple(
        f"{name}: {note}"
        for name, form in FORMATS.items()
        if name in formats
        for note in form.write(tracks, labels, staging)
    )
    if methods is not None:
        (staging / METHODS).write_text(methods, encoding="utf-8", newline="\n")
    return notes


# ---------------------------------------------------------------------- reading

READERS: dict[str, Callable[[Path], Tracks]] = {
    ".csv": read_tracks_csv, ".tsv": read_tracks_csv, ".geff": read_geff, ".xml": read_trackmate
}  # fmt: skip
"""Readers of tracks without masks, by the ending of a name."""


def track_path(chosen: Path) -> Path:
    """The path for `read_tracks` if a dialog can choose files only.

    This is the store or folder of tracks that contains the file, otherwise the file.
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
        (``.xml``), a result folder, or a folder of the Cell Tracking Challenge (`read_ctc`).

    Raises
    ------
    InputError
        If it is none of these or cannot be read; the message names it.
    """
    path = as_path(path)
    inside = (path / name for name in ("tracks.geff", "detections.csv"))
    path = next((file for file in inside if file.exists()), path)
    if path.suffix.lower() in READERS:
        return READERS[path.suffix.lower()](path)
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    if is_geff(path):
        return read_geff(path)
    if path.is_dir():
        return read_ctc(path).tracks
    raise InputError(
        f"{path}: no tracks are known in such files; give {', '.join(READERS)}, a result folder, "
        "or the folder of a Cell Tracking Challenge truth or result"
    )


def read_link_scores(path: Path | str) -> LinkScores:
    """Read scores of links.

    Parameters
    ----------
    path
        A table with a row per link: ``frame`` of the earlier cell, labels ``source`` and
        ``target``, and ``score`` (``probability``, ``weight``), 0 to 1; or that of Trackastra, with
        ``source_frame``, ``source_label``, ``target_frame``, ``target_label``, ``weight``. Or a
        GEFF store whose edges have such a property, as HOCT writes it (``--full-graph``, edge
        property ``similarity``); of any other names it must be the only number.

    Raises
    ------
    InputError
        If it cannot be read, a column is missing, or a number is wrong; names file and row.

    Warns
    -----
    BridgetrackWarning
        If links were left out, because they end in another frame than the next.
    """
    if is_geff(as_path(path)):
        return _graph_scores(as_path(path))
    text = read_text_table(path)
    found = known_columns(text.header, SCORE_COLUMNS)
    later = found.pop("target_frame")
    missing = [role for role, column in found.items() if column is None]
    if missing:
        raise InputError(
            f"{path}: there is no column {missing[0]}; a table of link scores needs frame (of the "
            f"earlier cell), source and target (labels) and score; it has {shown(text.header)}"
        )
    *ends, score = (str(column) for column in found.values())
    links = np.stack([text.integers(column) for column in ends])
    values = text.numbers(score)
    if later is not None:
        near = _to_the_next_frame(links[0], text.integers(later), path)
        links, values = links[:, near], values[near]
    frame, source, target = links
    return LinkScores(frame, source, target, values, str(path))


def _graph_scores(path: Path) -> LinkScores:
    """Scores of the edges of a GEFF store."""
    table, cells = read_edge_scores(path)
    frame = table["frame"].to_numpy()
    near = _to_the_next_frame(frame, table["target_frame"].to_numpy(), path)
    source, target, score = (table[c].to_numpy()[near] for c in ("source", "target", "score"))
    return LinkScores(frame[near], source, target, score, str(path), cells)


def _to_the_next_frame(source: Index, target: Index, path: Path | str) -> NDArray[np.bool_]:
    """Links that end in the next frame; warns if others do not."""
    near = target == source + 1
    if not near.all():
        warn(
            f"{path}: {np.sum(~near)} of {len(near)} links do not end in the next frame; they are "
            "left out"
        )
    return near
