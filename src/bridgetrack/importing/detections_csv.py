"""Detections from a table of centroids; cells of a CSV file, whatever they are read as."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from bridgetrack.detections.table import Detections, border_distance, content
from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.importing.text_table import Columns, TextTable, guess_columns, read_text_table
from bridgetrack.movie.geometry import MOST_FRAMES, Geometry, GeometryField
from bridgetrack.paged import ascending, in_parts
from bridgetrack.schema import OpenEntry, check, parse_json, read_text

TABLES = (".csv", ".tsv", ".txt")
"""How names of tables of detections end."""

SIDECAR = "units.json"
_MICRO = ("micron", "microns", "um", "µm", "μm", "micrometer", "micrometers", "micrometre")
NOTHING = -1
_WHAT = "what the program writes beside its tables"


def read_detections_csv(
    path: Path | str,
    columns: Columns | Mapping[str, str | None] | None = None,
    *,
    scale: tuple[float, ...] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
    shape: tuple[int, ...] | None = None,
    n_frames: int | None = None,
    positions: str | None = None,
) -> Detections:
    """Read detections from a CSV file that has only centroids.

    Parameters
    ----------
    path
        Parted by commas, semicolons or tabs; TrackMate's four header rows are understood.
    columns
        What the columns mean, all of it (`Columns`) or corrections of the guess
        (role → column); see `guess_columns`.
    scale
        Size of a pixel along each axis; with positions in micrometres it turns them to pixels.
    unit
        ``"pixel"`` or ``"micrometer"``.
    frame_interval
        Minutes between frames.
    shape
        Extent of the frames in pixels.
    n_frames
        Number of frames; else up to the last that has a cell.
    positions
        ``"pixel"`` or ``"micrometer"``: what the positions are given in; guessed from the units
        in the file where None.

    Returns
    -------
    Detections
        ``label`` is the file's label, id or track where unique in the frame, else a running
        number; ``id`` keeps the file's id. ``has_masks`` is False; the area is that of a disc or
        ball of the file's radius, 1 where sizes are unknown. ``border_distance`` (from the
        centroid) is there where `shape` is known.

    Raises
    ------
    InputError
        Where a column is missing, a number is unreadable or an id repeats; names file and row.

    Warns
    -----
    BridgetrackWarning
        Where rows were left out.
    """
    cells = read_cells(path, columns, scale, unit, frame_interval, shape, n_frames, positions)
    for note in cells.notes:
        warnings.warn(f"{path}: {note}", BridgetrackWarning, stacklevel=2)
    geometry = cells.geometry
    names, pages = ["frame", "label", *geometry.axes, "area", "id"], cells.text.pages
    columns_ = {name: pages.put(cells.table[name].to_numpy()) for name in names}
    del cells  # its text takes as much again
    # A table of columns as they are: those of a large one lie on disk.
    table = pd.DataFrame(columns_, copy=False)
    if not _in_order(table):
        table = table.sort_values(["frame", "label"], kind="stable", ignore_index=True)
        table = pages.keep(table)
    if geometry.shape is not None:
        table["border_distance"] = border_distance(table, geometry)
    try:
        return Detections(table, geometry, has_masks=False)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _in_order(table: pd.DataFrame) -> bool:
    """Whether rows ascend by frame and then by label."""
    frame, label = (table[name].to_numpy() for name in ("frame", "label"))
    return _rising(frame, label)


def _rising(values: NDArray[np.int64], then: NDArray[np.int64] | None = None) -> bool:
    """Whether every number is larger than the one before, or as large, and the second larger."""
    for some in in_parts(len(values)):
        here = slice(max(some.start - 1, 0), some.stop)
        step = np.diff(values[here])
        alike = np.ones(len(step), dtype=bool) if then is None else np.diff(then[here]) <= 0
        if ((step < 0) | ((step == 0) & alike)).any():
            return False
    return True


class Sidecar(OpenEntry):
    """What ``units.json`` says."""

    geometry: GeometryField
    units: dict[str, str]  # unit per column of ``detections.csv``
    # of the columns that are not among the standard ones
    dtypes: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class CellTable:
    """The cells of a file, in the order of its rows."""

    # ``id``, ``frame``, ``label``, position in pixels, ``area`` (pixels or voxels; 1 where
    # unknown); ``parent``, ``track``, ``parent_track`` where there are such columns, with -1
    # for none. The index is the line of the file.
    table: pd.DataFrame
    columns: Columns  # what the columns were taken for
    text: TextTable
    geometry: Geometry
    sidecar: Sidecar | None  # what the package's own sidecar says; None for files of others
    notes: tuple[str, ...]  # what was left out, or is not as in the file

    @property
    def complete(self) -> bool:
        """Whether no row of the file was left out."""
        return len(self.table) == len(self.text.cells)


def read_cells(
    path: Path | str,
    columns: Columns | Mapping[str, str | None] | None,
    scale: tuple[float, ...] | None,
    unit: str | None,
    frame_interval: float | None,
    shape: tuple[int, ...] | None,
    n_frames: int | None,
    positions: str | None,
) -> CellTable:
    """Read positions, sizes and identities of the cells of a file; see `read_detections_csv`."""
    text = read_text_table(path)
    sidecar = _read_sidecar(Path(path))
    known = None if sidecar is None else sidecar.geometry
    if not isinstance(columns, Columns):
        corrections = columns or {}
        columns = guess_columns(text.header).corrected(corrections)
        said = (len(scale or ()), len(shape or ()), known.ndim if known else 0)
        if "z" not in corrections and 3 not in said:
            columns = _flat(columns, text)
    columns.check(text.header, text.source)
    if len(text.cells) == 0:
        raise InputError(f"{text.source}: the table has a header but no rows")
    frame = text.integers(str(columns.frame))
    text.refuse(frame < 0, "the frame is negative; frames count from 0")
    text.refuse(frame >= MOST_FRAMES, f"the frame is beyond the {MOST_FRAMES:,} possible")
    if n_frames is not None:
        text.refuse(frame >= n_frames, f"the movie has {n_frames} frames")
    there = max(int(frame.max()) + 1, known.n_frames if known else 0)
    ndim = 2 if columns.z is None else 3
    if known is not None and known.ndim != ndim:
        raise InputError(f"{text.source}: the table has {ndim} axes, its sidecar {known.ndim}")
    if scale is not None and len(scale) != ndim:
        raise InputError(
            f"{text.source}: the table has {ndim} spatial columns, the scale {scale} has "
            f"{len(scale)} numbers"
        )
    micro = _in_micrometers(text, str(columns.x), positions, sidecar)
    default = "micrometer" if scale is not None or micro else "pixel"
    own = known or Geometry(1, None, (1.0,) * ndim, default)
    geometry = Geometry(
        n_frames=there if n_frames is None else n_frames,
        shape=shape or own.shape,
        scale=tuple(float(s) for s in scale or own.scale),
        unit=unit or (default if scale is not None else own.unit),
        frame_interval=own.frame_interval if frame_interval is None else frame_interval,
    )
    to_pixels = 1 / geometry.scale_array if micro else np.ones(ndim)
    found: dict[str, NDArray[Any]] = {"frame": frame}
    for axis, factor in zip(geometry.axes, to_pixels, strict=True):
        place = text.numbers(str(getattr(columns, axis)))
        place *= factor
        found[axis] = place
    _identities(found, text, columns)
    keep, notes = _sizes(found, text, columns, to_pixels)
    found["label"], numbered = _labels(found, text, columns)
    # Columns as they are: those of a large table lie on disk.
    cells = pd.DataFrame(found, index=text.cells.index, copy=False)
    cells = cells if keep.all() else cells[keep]
    return CellTable(cells, columns, text, geometry, sidecar, (*notes, *numbered))


def _read_sidecar(table: Path) -> Sidecar | None:
    """The sidecar beside a table, None where there is none or it describes other files."""
    path = table.parent / SIDECAR
    if not path.is_file():
        return None
    content = parse_json(read_text(path, _WHAT), _WHAT, str(path))
    files = content.get("files") if isinstance(content, dict) else None
    if not isinstance(files, list) or table.name not in files:
        return None
    known: Sidecar = check(Sidecar, content, f"{path}, written beside the tables")
    return known


def _flat(columns: Columns, text: TextTable) -> Columns:
    """Without a depth that is 0 throughout, as TrackMate writes it for 2D movies."""
    if columns.z is None or not text.cells[columns.z].str.fullmatch(r"\s*-?0(\.0*)?\s*").all():
        return columns
    return columns.corrected({"z": None})


def _in_micrometers(
    text: TextTable, column: str, positions: str | None, sidecar: Sidecar | None
) -> bool:
    """Whether positions are micrometres, from what the files say of the column of x."""
    if positions not in (None, "pixel", "micrometer"):
        raise InputError(f"positions are given in 'pixel' or 'micrometer', not in {positions!r}")
    if positions is not None:
        return positions == "micrometer"
    if sidecar is not None:
        return sidecar.units.get(column) == "um"
    bracket = column[column.find("[") + 1 :].rstrip("]") if "[" in column else ""
    return text.units.get(column, bracket).lower() in _MICRO


def _identities(cells: dict[str, NDArray[Any]], text: TextTable, columns: Columns) -> None:
    """Add ``id`` and what the file names of parents, tracks and labels."""
    if columns.id is None:
        cells["id"] = text.pages.put(np.arange(len(text.cells), dtype=np.int64))
    else:
        ids = text.integers(columns.id)
        if not _rising(ids):
            again = pd.Series(ids).duplicated().to_numpy(dtype=bool)
            text.refuse(again, lambda k: f"the id {ids[k]} was used before; ids must be unique")
        cells["id"] = ids
    for role in ("parent", "track", "parent_track"):
        column = getattr(columns, role)
        if column is not None:
            cells[role] = np.maximum(text.integers(column, empty=NOTHING), NOTHING)
    if columns.label is not None:
        cells["file_label"] = text.integers(columns.label, empty=0)


def _sizes(
    cells: dict[str, NDArray[Any]],
    text: TextTable,
    columns: Columns,
    to_pixels: NDArray[np.float64],
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Add ``area``; which rows have a size, and what to say of the others."""
    keep = np.ones(len(text.cells), dtype=bool)
    if columns.area is not None:
        cells["area"] = text.numbers(columns.area, empty=1.0)
        text.refuse(cells["area"] <= 0, "the area is not positive")
        return keep, ()
    if columns.radius is None:
        cells["area"] = text.pages.put(np.ones(len(text.cells)))
        return keep, ()
    radius = text.numbers(columns.radius, empty=0.0)
    keep = radius > 0
    cells["area"] = content(radius, len(to_pixels)) * np.prod(to_pixels)
    dropped = int((~keep).sum())
    if dropped == len(keep):
        raise InputError(f"{text.source}, column {columns.radius!r}: no radius is positive")
    return keep, (f"{dropped} rows without a positive radius were left out",) if dropped else ()


def _labels(
    cells: dict[str, NDArray[Any]], text: TextTable, columns: Columns
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """An identity that is unique in its frame: the file's label, id or track, or a number.

    With what to say where the file has labels that are none.
    """
    said: tuple[str, ...] = ()
    for column in ("file_label", "id", "track"):
        if column in cells and (column != "id" or columns.id is not None):
            values = cells[column]
            wrong = values < 1
            if not _rising(cells["frame"], values):
                both = pd.DataFrame({"frame": cells["frame"], "value": values}, copy=False)
                wrong |= both.duplicated().to_numpy(dtype=bool)
            if not wrong.any():
                return values, said
            if column == "file_label" and values.any():
                k = int(np.argmax(wrong))
                what = f"is {values[k]}" if values[k] < 1 else f"{values[k]} is twice in its frame"
                row = text.cells.index[k]
                said = (
                    f"the cells are numbered anew, since in row {row} the label {what}; "
                    "labels count from 1, each once in a frame",
                )
    frame = cells["frame"]
    if not ascending(frame):
        return np.asarray(pd.Series(frame).groupby(frame).cumcount(), dtype=np.int64) + 1, said
    label = text.pages.zeros(len(frame), np.int64)
    for some in in_parts(len(frame)):
        first = np.searchsorted(frame, frame[some])
        label[some] = np.arange(some.start, some.start + len(first)) - first + 1
    return label, said
