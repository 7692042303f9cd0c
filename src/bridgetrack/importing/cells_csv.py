"""Cells of a CSV file, whatever they are read as: positions, sizes and identities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.importing.columns import Columns, check_columns, guess_columns
from bridgetrack.importing.csv_file import TextTable, read_text_table
from bridgetrack.importing.sidecar import Sidecar, read_sidecar
from bridgetrack.movie.geometry import Geometry

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
