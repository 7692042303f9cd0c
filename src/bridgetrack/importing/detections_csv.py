"""The sidecar that says what the package's own tables hold: units, scale and versions.

Cells of a CSV file, whatever they are read as: positions, sizes and identities.

Detections from a table of centroids.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.importing.text_table import (
    Columns,
    TextTable,
    check_columns,
    guess_columns,
    read_text_table,
)
from bridgetrack.movie.geometry import Geometry, GeometryField
from bridgetrack.schema import OpenEntry, check, parse_json, read_text

TABLES = (".csv", ".tsv", ".txt")
"""How names of tables of detections end."""

SIDECAR = "units.json"
_WHAT = "what the program writes beside its tables"


class Sidecar(OpenEntry):
    """What ``units.json`` says.

    Parameters
    ----------
    geometry
        Extent, scale and units of the movie.
    units
        Unit per column of ``detections.csv``.
    dtypes
        Type of the columns of ``detections.csv`` that are not among the standard ones.
    notes
        Notes of the tracks.
    """

    geometry: GeometryField
    units: dict[str, str]
    dtypes: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)


def read_sidecar(table: Path) -> Sidecar | None:
    """The sidecar beside a table, None where there is none or it describes other files.

    Raises
    ------
    InputError
        Where it is there but unreadable.
    """
    path = table.parent / SIDECAR
    if not path.is_file():
        return None
    content = parse_json(read_text(path, _WHAT), _WHAT, str(path))
    files = content.get("files") if isinstance(content, dict) else None
    if not isinstance(files, list) or table.name not in files:
        return None
    known: Sidecar = check(Sidecar, content, f"{path}, written beside the tables")
    return known


_MICRO = ("micron", "microns", "um", "µm", "μm", "micrometer", "micrometers", "micrometre")
NOTHING = -1


@dataclass(frozen=True)
class CsvOptions:
    """What the user knows about a file that the file does not say.

    Parameters
    ----------
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
    """

    scale: tuple[float, ...] | None = None
    unit: str | None = None
    frame_interval: float | None = None
    shape: tuple[int, ...] | None = None
    n_frames: int | None = None
    positions: str | None = None


@dataclass(frozen=True)
class CellTable:
    """The cells of a file, in the order of its rows.

    Parameters
    ----------
    table
        ``id``, ``frame``, ``label``, position in pixels, ``area`` (pixels or voxels; 1 where
        unknown); ``parent``, ``track``, ``parent_track`` where there are such columns, with -1
        for none.
    columns
        What the columns were taken for.
    text
        The file as text.
    geometry
        Extent, scale and units.
    sidecar
        What the package's own sidecar says; None for files of others.
    notes
        What was left out.
    """

    table: pd.DataFrame
    columns: Columns
    text: TextTable
    geometry: Geometry
    sidecar: Sidecar | None
    notes: tuple[str, ...]


def read_cells(
    path: Path | str,
    columns: Columns | Mapping[str, str | None] | None,
    options: CsvOptions,
) -> CellTable:
    """Read positions, sizes and identities of the cells of a CSV file.

    Raises
    ------
    InputError
        Where a column is missing, a number is unreadable or an id repeats.
    """
    text = read_text_table(path)
    sidecar = read_sidecar(Path(path))
    if not isinstance(columns, Columns):
        corrections = columns or {}
        columns = guess_columns(text.header).corrected(corrections)
        known = sidecar.geometry if sidecar is not None else None
        said = (len(options.scale or ()), len(options.shape or ()), known.ndim if known else 0)
        if "z" not in corrections and 3 not in said:
            columns = _flat(columns, text)
    check_columns(columns, text.header, text.source)
    if len(text.cells) == 0:
        raise InputError(f"{text.source}: the table has a header but no rows")
    frame = text.integers(str(columns.frame))
    _complain(text, frame < 0, "the frame is negative; frames count from 0")
    geometry, to_pixels = _geometry(text, columns, frame, options, sidecar)
    cells = pd.DataFrame({"frame": frame})
    for axis, factor in zip(geometry.axes, to_pixels, strict=True):
        cells[axis] = text.numbers(str(getattr(columns, axis))) * factor
    _identities(cells, text, columns)
    keep, notes = _sizes(cells, text, columns, geometry, to_pixels)
    cells["label"] = _labels(cells, columns)
    return CellTable(cells[keep], columns, text, geometry, sidecar, notes)


def _flat(columns: Columns, text: TextTable) -> Columns:
    """Without a depth that is 0 throughout, as TrackMate writes it for 2D movies."""
    if columns.z is None or not text.cells[columns.z].str.fullmatch(r"\s*-?0(\.0*)?\s*").all():
        return columns
    return columns.corrected({"z": None})


def _complain(text: TextTable, wrong: NDArray[np.bool_], what: str) -> None:
    if np.any(wrong):
        raise InputError(f"{text.source}, row {text.first_line + int(np.argmax(wrong))}: {what}")


def _geometry(
    text: TextTable,
    columns: Columns,
    frame: NDArray[np.int64],
    options: CsvOptions,
    sidecar: Sidecar | None,
) -> tuple[Geometry, NDArray[np.float64]]:
    ndim = 2 if columns.z is None else 3
    ours = sidecar.geometry if sidecar is not None else None
    if ours is not None and ours.ndim != ndim:
        raise InputError(f"{text.source}: the table has {ndim} axes, its sidecar {ours.ndim}")
    micro = _in_micrometers(text, columns, options, sidecar)
    scale = options.scale or (ours.scale if ours is not None else None)
    if scale is not None and len(scale) != ndim:
        raise InputError(
            f"{text.source}: the table has {ndim} spatial columns, the scale {scale} has "
            f"{len(scale)} numbers"
        )
    default = ours.unit if ours is not None else "pixel"
    if options.scale is not None or (micro and ours is None):
        default = "micrometer"
    n_frames = int(frame.max()) + 1
    if ours is not None:
        n_frames = max(n_frames, ours.n_frames)
    if options.n_frames is not None:
        _complain(text, frame >= options.n_frames, f"the movie has {options.n_frames} frames")
        n_frames = options.n_frames
    interval = options.frame_interval
    geometry = Geometry(
        n_frames=n_frames,
        shape=options.shape or (ours.shape if ours is not None else None),
        scale=tuple(float(s) for s in scale) if scale is not None else (1.0,) * ndim,
        unit=options.unit or default,
        frame_interval=interval if interval or ours is None else ours.frame_interval,
    )
    return geometry, 1 / geometry.scale_array if micro else np.ones(ndim)


def _in_micrometers(
    text: TextTable, columns: Columns, options: CsvOptions, sidecar: Sidecar | None
) -> bool:
    if options.positions not in (None, "pixel", "micrometer"):
        raise InputError(
            f"positions are given in 'pixel' or 'micrometer', not in {options.positions!r}"
        )
    if options.positions is not None:
        return options.positions == "micrometer"
    column = str(columns.x)
    if sidecar is not None:
        return sidecar.units.get(column) == "um"
    bracket = column[column.find("[") + 1 :].rstrip("]") if "[" in column else ""
    return text.units.get(column, bracket).lower() in _MICRO


def _identities(cells: pd.DataFrame, text: TextTable, columns: Columns) -> None:
    if columns.id is None:
        cells["id"] = np.arange(len(cells), dtype=np.int64)
    else:
        cells["id"] = text.integers(columns.id)
        again = cells["id"].duplicated().to_numpy(dtype=bool)
        if np.any(again):
            number = cells["id"].to_numpy()[again][0]
            _complain(text, again, f"the id {number} was used before; ids must be unique")
    for role in ("parent", "track", "parent_track"):
        column = getattr(columns, role)
        if column is not None:
            cells[role] = np.maximum(text.integers(column, empty=NOTHING), NOTHING)
    if columns.label is not None:
        cells["file_label"] = text.integers(columns.label, empty=0)


def _sizes(
    cells: pd.DataFrame,
    text: TextTable,
    columns: Columns,
    geometry: Geometry,
    to_pixels: NDArray[np.float64],
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    keep = np.ones(len(cells), dtype=bool)
    if columns.area is not None:
        cells["area"] = text.numbers(columns.area, empty=1.0)
        _complain(text, cells["area"].to_numpy() <= 0, "the area is not positive")
        return keep, ()
    if columns.radius is None:
        cells["area"] = 1.0
        return keep, ()
    radius = text.numbers(columns.radius, empty=0.0)
    keep = radius > 0
    ball = np.pi * radius**2 if geometry.ndim == 2 else 4 / 3 * np.pi * radius**3
    cells["area"] = ball * np.prod(to_pixels)
    dropped = int((~keep).sum())
    if dropped == len(cells):
        raise InputError(f"{text.source}, column {columns.radius!r}: no radius is positive")
    notes = (f"{dropped} rows without a positive radius were left out",) if dropped else ()
    return keep, notes


def _labels(cells: pd.DataFrame, columns: Columns) -> NDArray[np.int64]:
    """An identity that is unique in its frame: the file's label, id or track, or a number."""
    for column in ("file_label", "id", "track"):
        if column in cells and (column != "id" or columns.id is not None):
            values = cells[column]
            if values.min() >= 1 and not cells.duplicated(["frame", column]).any():
                return values.to_numpy(dtype=np.int64)
    return np.asarray(cells.groupby("frame").cumcount(), dtype=np.int64) + 1


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
    scale, unit, frame_interval, shape, n_frames, positions
        See `CsvOptions`.

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
    UserWarning
        Where rows were left out.
    """
    options = CsvOptions(scale, unit, frame_interval, shape, n_frames, positions)
    cells = read_cells(path, columns, options)
    for note in cells.notes:
        warnings.warn(f"{path}: {note}", UserWarning, stacklevel=2)
    return detections_of(cells)


def detections_of(cells: CellTable) -> Detections:
    """The cells of a file as detections, without any lineage."""
    geometry = cells.geometry
    table = cells.table[["frame", "label", *geometry.axes, "area", "id"]]
    table = table.sort_values(["frame", "label"], kind="stable").reset_index(drop=True)
    if geometry.shape is not None:
        pixels = table[list(geometry.axes)].to_numpy(dtype=np.float64)
        far_edge = np.asarray(geometry.shape, dtype=np.float64) - 1 - pixels
        gaps = np.minimum(pixels, far_edge) * geometry.scale_array
        table["border_distance"] = np.maximum(gaps.min(axis=1), 0.0)
    return Detections(table, geometry, has_masks=False)
